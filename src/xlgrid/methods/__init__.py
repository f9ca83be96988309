"""Methods of transfer, by the names that a study writes as `base`, and `make`, which sets their options.

`ALL_METHODS` also finds the methods that installed packages declare as entry points of the group `xlgrid.methods`.
"""

from collections.abc import Mapping

from pydantic import ValidationError

from xlgrid.base.plugins import Extensible
from xlgrid.base.settings import plainly
from xlgrid.methods.as_is import AsIs
from xlgrid.methods.bitfit import BitFit
from xlgrid.methods.method import Method, is_head
from xlgrid.methods.peft.options import IA3, LoRA, PrefixTuning

Option = float | int | str | bool

METHODS: dict[str, type[Method]] = {
    "full-ft": Method,
    "bitfit": BitFit,
    "lora": LoRA,
    "ia3": IA3,
    "prefix-tuning": PrefixTuning,
    "as-is": AsIs,
}

ALL_METHODS = Extensible(
    "method",
    "xlgrid.methods",
    METHODS,
    # The evaluation of an encoder without training installs no method.
    fits=lambda name, method: isinstance(method, type) and issubclass(method, Method) and method.is_trained,
    expected="a subclass of xlgrid.methods.Method whose `is_trained` is true: only xlgrid's as-is evaluates without "
    "runs",
)

__all__ = ["ALL_METHODS", "METHODS", "Method", "is_head", "make"]


def make(base: str, options: Mapping[str, Option]) -> Method:
    """The method called `base` with its options.

    Raises:
        ValueError: there is no such method or option, or an option cannot have its value. The message lists the
            allowed names or values.
    """
    try:
        return ALL_METHODS.find(base).model_validate(options)
    except ValidationError as error:
        raise ValueError(f"options: {plainly(error)}") from None
