"""The identity of a run, a cell and a contrast: the values that tell it from all others, and its path.

Only identity stands in a path, so that a path says what the file holds, and `parse` reads the identity back.
"""

from typing import NamedTuple

from xlgrid.languages.sources import data_of


class Run(NamedTuple):
    """One training. The source is a language, a pair, a mix, or one of these for a target (`en@qu`)."""

    study: str
    task: str
    encoder: str
    method: str
    source: str
    seed: int

    @property
    def folder(self) -> str:
        return f"results/{self.study}/runs/{self.task}/{self.encoder}/{self.method}/{self.source}/seed{self.seed}"


class Cell(NamedTuple):
    """One evaluation: a run on a target. The target is a language or a pair, or one of these as of a step (`qu@1000`)."""

    study: str
    task: str
    encoder: str
    method: str
    source: str
    target: str
    seed: int

    @property
    def run(self) -> Run:
        return Run(self.study, self.task, self.encoder, self.method, self.source, self.seed)

    @property
    def shown(self) -> "Cell":
        """The cell as exhibits and claims name it: source and target without what follows @."""
        # Every exhibit asks this of every cell, so the common case returns at once.
        if "@" not in self.source and "@" not in self.target:
            return self
        return self._replace(source=data_of(self.source), target=data_of(self.target))

    @property
    def encoder_folder(self) -> str:
        return f"results/{self.study}/encoders/{self.encoder}"

    @property
    def tokens(self) -> str:
        return f"results/{self.study}/tokens/{self.task}/{self.encoder}/{data_of(self.target)}/test.arrow"

    @property
    def path(self) -> str:
        middle = f"{self.task}/{self.encoder}/{self.method}/{self.source}/{self.target}"
        return f"results/{self.study}/cells/{middle}/seed{self.seed}.json"


class Contrast(NamedTuple):
    """The comparison of a run's attention on two targets."""

    study: str
    task: str
    encoder: str
    method: str
    source: str
    target: str
    other: str
    seed: int

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The cells of the two targets."""
        cell = Cell(*self[:5], self.target, self.seed)
        return cell, cell._replace(target=self.other)

    @property
    def run(self) -> Run:
        return self.cells[0].run

    @property
    def path(self) -> str:
        middle = f"{self.task}/{self.encoder}/{self.method}/{self.source}/{self.target}/{self.other}"
        return f"results/{self.study}/attention/{middle}/seed{self.seed}.json"


def parse(path: str) -> Run | Cell | Contrast:
    """The run, cell or contrast that a path names.

    Args:
        path: the file of a cell or contrast, the folder of a run, or any file in that folder.

    Raises:
        ValueError: the path is none of these.
    """
    pieces = path.rstrip("/").split("/")
    if pieces[0] == "results" and len(pieces) >= 8:
        study, kind, *rest = pieces[1:]
        length = {"cells": 6, "attention": 7}.get(kind)
        if len(rest) == length and rest[-1].startswith("seed") and rest[-1].endswith(".json"):
            seed = rest.pop().removeprefix("seed").removesuffix(".json")
            if _is_seed(seed):
                task, encoder, method, source, target, *other = rest
                if other:
                    return Contrast(study, task, encoder, method, source, target, other[0], int(seed))
                return Cell(study, task, encoder, method, source, target, int(seed))
        if kind == "runs" and len(rest) in (5, 6) and rest[4].startswith("seed") and _is_seed(rest[4][4:]):
            task, encoder, method, source, seed = rest[:5]
            return Run(study, task, encoder, method, source, int(seed[4:]))
    raise ValueError(
        f"{path} is no run and no cell: expected results/STUDY/cells/TASK/ENCODER/METHOD/SOURCE/TARGET/seedN.json, "
        "results/STUDY/attention/TASK/ENCODER/METHOD/SOURCE/TARGET/OTHER/seedN.json "
        "or results/STUDY/runs/TASK/ENCODER/METHOD/SOURCE/seedN/"
    )


def _is_seed(text: str) -> bool:
    return text.isdecimal() and text.isascii() and str(int(text)) == text
