"""A member of a merge: a finished run whose weights are read one parameter at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.models import deltas

if TYPE_CHECKING:
    import torch

# The entries of a recipe that tell the members of a merge apart.
AXES = ("task", "encoder", "method", "source", "seed")


class Member:
    """A member of a merge.

    Args:
        folder: the folder of the run.
        about: the member as the recipe of the merge describes it.
        encoder: the folder of the encoder.
        first: θ_0 of each parameter that is no part of the head.
        tokens: the files that the operation reads for this member.

    Raises:
        FileNotFoundError: a file of the run is missing.
        ValueError: a file is damaged, or of another run than `about` says.
    """

    def __init__(
        self,
        folder: Path,
        about: Mapping[str, object],
        encoder: Path,
        first: "Mapping[str, torch.Tensor]",
        tokens: list[Path],
    ) -> None:
        from safetensors import safe_open

        self.folder, self.encoder, self.first, self.tokens = folder, encoder, first, tokens
        self.record, path = deltas.read_run(folder), folder / deltas.DELTA
        recipe = self.record["recipe"]
        _, self.shapes, digest = deltas.read_delta(path, lambda name: False)
        wrong = [f"{axis} {recipe[axis]}, expected {about[axis]}" for axis in AXES if recipe[axis] != about[axis]]
        if wrong or digest != self.record["digest"]:
            wrong = wrong or [f"a run.json of another recipe than {deltas.DELTA}"]
            raise ValueError(
                f"{folder} has {wrong[0]}: name the runs in the order of the recipe, or make this run again"
            )
        self._file = safe_open(path, framework="pt")

    def read(self, name: str, values: slice = slice(None)) -> "torch.Tensor":
        """Some of the flat values of θ_i of a parameter, in float64; those of θ_0 if the run does not store it."""
        stored: torch.Tensor = self._file.get_tensor(name) if name in self.shapes else self.first[name]
        return stored.flatten()[values].double()

    def task_vector(self) -> "Iterator[torch.Tensor]":
        """The flat values of τ_i of each parameter that is no part of the head, in float64."""
        return (self.read(name) - first.flatten().double() for name, first in self.first.items())

    def check(self, shapes: Mapping[str, tuple[int, ...]], heads: set[str], labels: list[str]) -> None:
        """Check that the weights fit those of the merged run, which have these shapes and labels.

        Raises:
            ValueError: they do not fit.
        """
        has_head = not heads.isdisjoint(self.shapes)
        # MLM runs store no head, and may lack further parts of the model of a task, such as the pooler.
        lacking = shapes.keys() - self.shapes.keys() if has_head or not heads else set()
        if wrong := lacking | {name for name, shape in self.shapes.items() if shapes.get(name) != shape}:
            problem = f"{min(wrong)!r} is missing, unknown or of another shape"
        elif has_head and self.record["labels"] != labels:
            problem = f"it has the labels {', '.join(self.record['labels'])}, and another run {', '.join(labels)}"
        else:
            return
        raise ValueError(
            f"{self.folder} does not fit the other runs: {problem}; merge runs of one encoder and one method"
        )
