"""The setting of training by which runs train together, in one forward pass."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, RootModel

from xlgrid.training.setting import Setting

if TYPE_CHECKING:
    from xlgrid.heads.head import Head
    from xlgrid.methods import Method

# The types of encoders whose layers compute the tokens of several runs at once: those that keep no positions in their
# layers, and call an attention function.
TYPES = ("bert", "roberta", "xlm-roberta")


def name_of(run: Any) -> str:
    """The name of a run among the runs of its group.

    Args:
        run: the recipe of the run, or another object with its method, source and seed.
    """
    return f"{run.method}/{run.source}/{run.seed}"


class Together(Setting, RootModel[Annotated[int, Field(ge=2)]]):
    """Runs that differ in source, seed and the settings of their optimiser train in groups, in one forward pass."""

    about = (
        "the most runs in one forward pass: runs of a method that differ in source, seed, or settings of the optimiser "
        "train in groups, which follow from the study; absent: each run trains alone. Sums have another order together, "
        "so that weights differ by rounding"
    )

    def conflict(self, training: Any) -> str | None:
        if training.checkpoints:
            return (
                "`checkpoints` writes weights during training, which runs that train `together` do not: leave out one"
            )
        return None

    def misfit(self, head: "Head") -> str | None:
        if head.has_cells:
            return None
        return f"runs of head {head.name} train alone: leave out `together`"

    def unfit(self, method: "Method", config: Mapping[str, Any]) -> str | None:
        if problem := method.apart:
            return f"runs of the method cannot train `together`, because {problem}: leave it out"
        if (kind := config.get("model_type", TYPES[0])) in TYPES:
            return None
        return f"encoders of type {kind} do not compute several runs at once: leave out `together`, or take one of type {', '.join(TYPES)}"
