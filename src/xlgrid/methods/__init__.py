"""Methods of transfer: a mapping from the base name in a study to the class, and `make`, which reads its options."""

import difflib
from collections.abc import Mapping
from dataclasses import fields

from xlgrid.methods.bitfit import BitFit
from xlgrid.methods.method import Method

METHODS: dict[str, type[Method]] = {"full-ft": Method, "bitfit": BitFit}

__all__ = ["METHODS", "Method", "make"]


def make(base: str, options: Mapping[str, float | int | str | bool]) -> Method:
    """The method called `base` with its options.

    Raises:
        ValueError: there is no such method, or it has no such option; the message names the nearest.
    """
    if base not in METHODS:
        raise ValueError(f"there is no method {base!r}{_nearest(base, METHODS)}; there are {', '.join(METHODS)}")
    known = [field.name for field in fields(METHODS[base])]
    for option in options:
        if option not in known:
            allowed = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ValueError(f"method {base!r} has no option {option!r}{_nearest(option, known)}; {allowed}")
    return METHODS[base](**options)


def _nearest(word: str, words: Mapping[str, object] | list[str]) -> str:
    found = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
