"""The message for a name that does not exist."""

import difflib
from collections.abc import Iterable


def unknown(what: str, got: object, allowed: Iterable[object]) -> str:
    """A message that states the unknown name, the nearest of the allowed names, and all allowed names.

    Args:
        what: what the name is of, such as "language".
        got: the unknown name.
        allowed: all names that exist; repeated names are listed once.
    """
    names = list(dict.fromkeys(map(str, allowed)))
    near = difflib.get_close_matches(str(got), names, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {str(got)!r}{hint} (there are: {', '.join(names) or 'none'})"
