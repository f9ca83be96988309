"""Names that people type, and what to say of one that does not exist."""

import difflib
from collections.abc import Iterable


def unknown(what: str, got: object, allowed: Iterable[object]) -> str:
    """A sentence: what was got, the nearest that exists, what exists."""
    names = list(dict.fromkeys(map(str, allowed)))
    near = difflib.get_close_matches(str(got), names, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {str(got)!r}{hint} (there are: {', '.join(names) or 'none'})"
