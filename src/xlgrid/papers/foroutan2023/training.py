"""Settings of training that only this paper has: a curriculum by proof depth, and a language model's classifier."""

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PositiveFloat, RootModel, model_validator

from xlgrid.base.settings import Strict
from xlgrid.training.setting import Plan, Setting

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from xlgrid.base.arrays import Ints
    from xlgrid.heads.tokens import Tokens
    from xlgrid.training.recipe import Training


class Phase(Strict):
    """One phase of a curriculum: train on questions up to a proof depth, for a share of the steps or for epochs.

    For example, Foroutan et al. 2023 (appendix C.2) train on depth 0 for 3 epochs first.
    """

    share: float | None = Field(None, gt=0, lt=1, description="share of all optimiser steps")
    epochs: PositiveFloat | None = Field(None, description="passes over the examples of this phase")
    max_depth: int = Field(ge=0, description="keep questions of at most this proof depth")

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.share is None) == (self.epochs is None):
            raise ValueError("a phase has either `share` or `epochs`: give exactly one")
        return self

    def eligible(self, tokens: "Tokens", pool: "Ints") -> "Ints":
        """The row numbers of the examples that the phase admits, of the rows `pool`.

        Raises:
            ValueError: the phase admits no example, or the data has no column `depth`.
        """

        if (depths := tokens.columns.get("depth")) is None:
            raise ValueError(f"the curriculum asks for max_depth {self.max_depth}, but the data has no column `depth`")
        admitted = pool[depths[pool] <= self.max_depth]
        if not len(admitted):
            raise ValueError(
                f"no example has a proof depth of at most {self.max_depth}, which a phase of the curriculum asks for: "
                "raise `max_depth`, or leave out the phase"
            )
        return admitted


class Curriculum(Setting, RootModel[tuple[Phase, ...]]):
    """Phases by proof depth, in order, before training on all examples (Foroutan et al. 2023, appendix C.2)."""

    about = (
        "phases by proof depth, in order, before training on all examples; absent: no such phases "
        "(Foroutan et al. 2023, appendix C.2)"
    )

    def conflict(self, training: "Training") -> str | None:
        if training.alpha is None:
            return None
        return (
            "`curriculum` ends with training on all examples, and `alpha` samples examples without end: leave out "
            "`curriculum` or `alpha`"
        )

    def plan(self, planned: Plan, tokens: "Tokens", training: "Training", seed: int) -> Plan:
        """Put the phases before the planned training, each for its share of the steps or for its epochs.

        With `steps`, the phases take part of these steps; otherwise, the epochs of the phases are added to the plan.
        """
        from xlgrid.training.schedule import steps_of

        pools = [phase.eligible(tokens, planned.pools[-1]) for phase in self.root]
        counts = [
            steps_of(tokens, pool, phase.epochs, training, seed) if phase.epochs else 0
            for phase, pool in zip(self.root, pools, strict=True)
        ]
        added = 0 if training.steps else sum(counts)
        steps = planned.steps + added
        counts = [count or round((phase.share or 0) * steps) for phase, count in zip(self.root, counts, strict=True)]
        if sum(counts) >= steps:
            raise ValueError(
                f"the curriculum takes {sum(counts)} steps of {steps}: shorten its phases, so that steps are left for "
                "training on all examples"
            )
        return Plan([*pools, *planned.pools], [*accumulate(counts), *(end + added for end in planned.ends)])

    def passes(self, examples: int, options: Mapping[str, object]) -> list[tuple[float, int]]:
        """The epochs of the phases. Generated data have the same number of examples of each depth."""
        deepest = options.get("max_depth")
        depths = deepest + 1 if isinstance(deepest, int) else 1
        return [
            (phase.epochs, round(examples * min(1.0, (phase.max_depth + 1) / depths)))
            for phase in self.root
            if phase.epochs
        ]


class ClassifierOfLanguageModel(Setting, RootModel[Literal["lm-head"]]):
    """XLM-R's classifier begins with the dense layer of its language-modelling head, as in the authors' code."""

    about = (
        "the dense layer of XLM-R's classifier. lm-head: the weights of the language-modelling head (Foroutan et al. "
        "2023's code); absent: new weights"
    )

    def begin(self, model: "PreTrainedModel", encoder: Path) -> None:
        """Copy the dense layer of the encoder's language-modelling head into the classifier.

        Raises:
            ValueError: the encoder has no such head, or the model's classifier has no such layer.
        """
        import torch
        from safetensors import safe_open

        dense = getattr(getattr(model, "classifier", None), "dense", None)
        weights = encoder / "model.safetensors"
        with safe_open(weights, framework="pt") as stored:
            names = [f"lm_head.dense.{name}" for name in ("weight", "bias")]
            if dense is None or not set(names) <= set(stored.keys()):
                raise ValueError(
                    f"`head: lm-head` needs an XLM-R with its language-modelling head, but {weights} or the task's "
                    "classifier lacks the layer `dense` of this head: leave out `head` for this encoder"
                )
            with torch.no_grad():
                for name, parameter in zip(names, (dense.weight, dense.bias), strict=True):
                    parameter.copy_(stored.get_tensor(name))
