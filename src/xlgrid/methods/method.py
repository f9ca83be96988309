"""What a method of cross-lingual transfer may do to a model; the default does nothing, which is full fine-tuning."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xlgrid.base.arrays import Segments

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Method:
    """Full fine-tuning, and the base of every other method: override what differs; fields are the method's options.

    A subclass keeps the contract that `tests/unit/test_methods.py` checks: installing leaves the outputs as they were
    (nearly so where new weights are drawn as a paper draws them: an option then has them change nothing at first), and the
    gradients are exactly where `trains` says. What `is_language_specific` names changes what a cell computes (`test_speaking.py`).
    """

    def install(self, model: "PreTrainedModel") -> None:
        """Add the method's modules to a loaded `model`, in place; new weights come from torch's seeded generator."""

    def trains(self, name: str) -> bool:
        """Whether training on the task changes the parameter called `name` (in `named_parameters` after `install`)."""
        return True

    def arrange(self, segments: Segments, device: "torch.device", training: bool) -> dict[str, Any]:
        """The arguments that an installed model's forward gets besides a batch; torch's generator draws random ones.

        Args:
            segments: the segments of the batch's inputs, and their languages.
        """
        return {}

    def is_language_specific(self, name: str) -> bool:
        """Whether a cell that speaks through the text run of its target (`Start.at`) takes the parameter `name` from that."""
        return False

    def leaves_out(self, name: str, layers: int) -> bool:
        """Whether a parameter of a run on text has no place, and needs none, where a run begins with it.

        Args:
            layers: of the encoder.
        """
        return False

    def check_start(self, start: "Method | None") -> None:
        """Raise a ValueError if a run cannot begin with a run on text of the method `start`, or, at None, with none."""

    def stack(self, task: str, language: str | None) -> tuple[str, ...]:
        """The adapters that are active in a cell of `task`, from the embeddings up, as `kind:name`.

        Args:
            language: what the text run was trained on that the cell speaks through; None if there is none.
        """
        return ()


def is_head(name: str) -> bool:
    """Whether a parameter belongs to the part of a task's model that an encoder may come without."""
    return not {"pooler", "classifier", "pre_classifier", "qa_outputs"}.isdisjoint(name.split("."))


def check_choice(method: Method, name: str, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError if an option is none of those allowed."""
    if (value := getattr(method, name)) not in allowed:
        raise ValueError(f"option {name} must be one of {', '.join(allowed)}, got {value!r}")
