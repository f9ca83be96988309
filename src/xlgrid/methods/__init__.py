"""Methods of transfer: a dictionary from the name that a study calls `base` to the class, and `make`, which sets options."""

from collections.abc import Mapping
from dataclasses import fields

from xlgrid.base.names import unknown
from xlgrid.methods.as_is import AsIs
from xlgrid.methods.bitfit import BitFit
from xlgrid.methods.madx import MadX
from xlgrid.methods.method import Method
from xlgrid.methods.structured import CrossQuery, StructuredDropout

METHODS: dict[str, type[Method]] = {
    "full-ft": Method,
    "bitfit": BitFit,
    "structured-dropout": StructuredDropout,
    "qcross": CrossQuery,
    "madx": MadX,
    "as-is": AsIs,
}

__all__ = ["METHODS", "Method", "make"]


def make(base: str, options: Mapping[str, float | int | str | bool]) -> Method:
    """The method called `base` with its options.

    Raises:
        ValueError: there is no such method, or it has no such option; the message names the nearest.
    """
    if base not in METHODS:
        raise ValueError(unknown("method", base, METHODS))
    known = [field.name for field in fields(METHODS[base])]
    for option in options:
        if option not in known:
            raise ValueError(unknown(f"option of method {base!r}", option, known))
    return METHODS[base](**options)
