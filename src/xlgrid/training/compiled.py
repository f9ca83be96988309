"""The setting of training by which torch compiles the layers of an encoder."""

from typing import Any, Literal

from pydantic import RootModel

from xlgrid.heads.families import FAMILIES, layers_of
from xlgrid.training.setting import Setting


class Compile(Setting, RootModel[Literal[True]]):
    """A training in which torch compiles each layer of the encoder, for all lengths at once."""

    about = (
        "true: torch compiles the layers of the encoder in the first steps (`torch.compile`), for all lengths at once, which "
        "takes seconds to minutes. Weights differ by rounding from those of a run without, and an interrupted run from one "
        "that was not. Whether it pays on a GPU was never measured; absent: nothing is compiled"
    )

    def conflict(self, training: Any) -> str | None:
        is_alone = "together" not in training.added
        return None if is_alone else "`compile` is for runs that train alone: leave out `compile` or `together`"

    def unfit(self, method: Any, config: Any) -> str | None:
        if (kind := config.get("model_type", "bert")) in FAMILIES:
            return None
        return f"the layers of encoders of type {kind} are unknown: leave out `compile`, or take one of type {', '.join(FAMILIES)}"

    def complete(self, model: Any) -> None:
        import torch._inductor.config

        # Dropout then draws the numbers that it draws without.
        torch._inductor.config.fallback_random = True
        # Layers are compiled with and without padding, to train and to evaluate; the last one may compute one token only.
        torch._dynamo.config.recompile_limit = 64
        for layer in layers_of(model):
            layer.compile(dynamic=True)
