"""Methods of transfer: a dictionary from the name that a study calls `base` to the class, and `make`, which sets options.

`ALL_METHODS` also finds the methods that installed packages declare as entry points of the group `xlgrid.methods`.
"""

from collections.abc import Mapping
from dataclasses import fields

from xlgrid.base.names import unknown
from xlgrid.base.plugins import Extensible
from xlgrid.methods.as_is import AsIs
from xlgrid.methods.bitfit import BitFit
from xlgrid.methods.method import Method, is_head

Option = float | int | str | bool

METHODS: dict[str, type[Method]] = {
    "full-ft": Method,
    "bitfit": BitFit,
    "as-is": AsIs,
}

ALL_METHODS = Extensible(
    "method",
    "xlgrid.methods",
    METHODS,
    # The evaluation of an encoder without training installs no method.
    fits=lambda name, method: isinstance(method, type) and issubclass(method, Method) and method.is_trained,
    expected="a subclass of xlgrid.methods.Method whose `is_trained` is true: only xlgrid's as-is evaluates without runs",
)

__all__ = ["ALL_METHODS", "METHODS", "Method", "is_head", "make", "without_defaults"]


def make(base: str, options: Mapping[str, Option]) -> Method:
    """The method called `base` with its options.

    Raises:
        ValueError: there is no such method, or it has no such option; the message names the nearest.
    """
    method = ALL_METHODS.find(base)
    defaults = {field.name: field.default for field in fields(method)}
    for option, value in options.items():
        if option not in defaults:
            raise ValueError(unknown(f"option of method {base!r}", option, defaults))
        # Python takes a truth value as a number.
        if isinstance(value, bool) and type(defaults[option]) in (int, float):
            raise ValueError(
                f"option {option} must be a number, got {str(value).lower()} (yes, no, on and off are truth values of YAML)"
            )
    return method(**options)


def without_defaults(base: str, options: Mapping[str, Option]) -> dict[str, Option]:
    """The options of a method that differ from its defaults, in the order in which its class lists them."""
    defaults = {field.name: field.default for field in fields(ALL_METHODS.find(base))}
    return {name: options[name] for name, default in defaults.items() if name in options and options[name] != default}
