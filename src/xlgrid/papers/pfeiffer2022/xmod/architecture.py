"""X-MOD from scratch: XLM-R with a module for each language, or a shared one, in every layer (Pfeiffer et al. 2022,
section 3)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from xlgrid.architectures.architecture import Architecture
from xlgrid.heads.families import SHARED

if TYPE_CHECKING:
    import torch


class Modular(Architecture):
    """X-MOD, or its baseline with a module that all languages share (Pfeiffer et al. 2022, section 3).

    It is pre-trained by masked language modelling on `languages`.
    """

    architecture: Literal["xmod", "shared"] = Field(
        description="XLM-R with modules in every layer. xmod: one for each language; shared: one for all languages"
    )
    kind: Literal["xlmr"] = Field("xlmr", description="the tokenizer is that of XLM-R")
    reduction: PositiveInt = Field(2, description="the hidden size divided by the size of a module's bottleneck")
    absent: Literal["skip", "zero"] = Field(
        "skip",
        description="the gradient of a module if a step has no rows in its language. skip: none, so that the module "
        "does not move; zero: a gradient of zero, as in transformers, so that weight decay and momentum move the "
        "module",
    )

    @model_validator(mode="after")
    def _modules_fit(self) -> Self:
        if self.hidden < self.reduction:
            raise ValueError(
                f"hidden ({self.hidden}) is smaller than reduction ({self.reduction}): modules would have no size"
            )
        if self.architecture == "xmod" and self.bitext:
            raise ValueError(
                "a module is for inputs in one language: leave out `bitext`, or set `architecture: shared` or `plain`"
            )
        return self

    @property
    def model_type(self) -> str:
        return "xmod"

    @property
    def modules(self) -> tuple[str, ...]:
        return self.languages if self.architecture == "xmod" else ()

    def sizes(self, vocabulary_size: int) -> dict[str, Any]:
        # Other programs do not pass the language of an input and compute it with the single module.
        modules = {"languages": [*self.modules] or [SHARED], "default_language": None if self.modules else SHARED}
        return super().sizes(vocabulary_size) | modules | {"adapter_reduction_factor": self.reduction}

    def complete_gradients(self, weights: "Mapping[str, torch.nn.Parameter]") -> None:
        import torch

        if self.absent == "zero":
            for parameter in weights.values():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
