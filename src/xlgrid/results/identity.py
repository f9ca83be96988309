"""The identity of an encoder, a run, a cell and a contrast: the values that tell it from all others, and its path.

Only identity stands in a path, so that a path says what the file holds, and `parse` reads the identity back.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from xlgrid.languages.sources import Source, Target


@dataclass(frozen=True)
class Encoder:
    """An encoder with its tokenizer."""

    study: str
    encoder: str

    @property
    def folder(self) -> str:
        return f"results/{self.study}/encoders/{self.encoder}"

    @property
    def path(self) -> str:
        return f"{self.folder}/model.safetensors"

    @property
    def tokenizer(self) -> str:
        return f"{self.folder}/tokenizer.json"


class _RunAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    seed: int


class _CellAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    target: Target
    seed: int


class _ContrastAxes(NamedTuple):
    study: str
    task: str
    encoder: str
    method: str
    source: Source
    target: Target
    other: Target
    seed: int


class Run(_RunAxes):
    """One training. The source is a language, a pair, a mix, or one of these for a target (`en@qu`).

    Raises:
        ValueError: the source cannot be parsed.
    """

    __slots__ = ()

    def __new__(cls, study: str, task: str, encoder: str, method: str, source: str, seed: int) -> "Run":
        return super().__new__(cls, study, task, encoder, method, Source(source), seed)

    @property
    def folder(self) -> str:
        return f"results/{self.study}/runs/{self.task}/{self.encoder}/{self.method}/{self.source}/seed{self.seed}"


class Cell(_CellAxes):
    """One evaluation: a run on a target. The target is a language or a pair, or one of these as of a step (`qu@1000`).

    Raises:
        ValueError: the source or the target cannot be parsed.
    """

    __slots__ = ()

    def __new__(cls, study: str, task: str, encoder: str, method: str, source: str, target: str, seed: int) -> "Cell":
        return super().__new__(cls, study, task, encoder, method, Source(source), Target(target), seed)

    @property
    def run(self) -> Run:
        return Run(self.study, self.task, self.encoder, self.method, self.source, self.seed)

    @property
    def shown(self) -> "Cell":
        """The cell as exhibits and claims name it: source and target without what follows @."""
        # Every exhibit asks this of every cell, so the common case returns at once.
        if self.source.for_target is None and self.target.step is None:
            return self
        return self._replace(source=self.source.data, target=self.target.data)

    @property
    def path(self) -> str:
        middle = f"{self.task}/{self.encoder}/{self.method}/{self.source}/{self.target}"
        return f"results/{self.study}/cells/{middle}/seed{self.seed}.json"


class Contrast(_ContrastAxes):
    """The comparison of a run's attention on two targets.

    Raises:
        ValueError: the source or a target cannot be parsed.
    """

    __slots__ = ()

    def __new__(
        cls, study: str, task: str, encoder: str, method: str, source: str, target: str, other: str, seed: int
    ) -> "Contrast":
        targets = Target(target), Target(other)
        return super().__new__(cls, study, task, encoder, method, Source(source), *targets, seed)

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
    path = path.rstrip("/")
    pieces = path.split("/")
    if pieces[0] == "results":
        is_json = path.endswith(".json")
        with suppress(ValueError):  # one of the languages cannot be a language, pair or mix
            match pieces[1:]:
                case [study, "cells", task, encoder, method, source, target, file] if is_json:
                    return Cell(study, task, encoder, method, source, target, _seed(file.removesuffix(".json")))
                case [study, "attention", task, encoder, method, source, target, other, file] if is_json:
                    seed = _seed(file.removesuffix(".json"))
                    return Contrast(study, task, encoder, method, source, target, other, seed)
                case [study, "runs", task, encoder, method, source, folder, *files] if len(files) < 2:
                    return Run(study, task, encoder, method, source, _seed(folder))
    raise ValueError(
        f"{path} is no run and no cell: expected results/STUDY/cells/TASK/ENCODER/METHOD/SOURCE/TARGET/seedN.json, "
        "results/STUDY/attention/TASK/ENCODER/METHOD/SOURCE/TARGET/OTHER/seedN.json "
        "or results/STUDY/runs/TASK/ENCODER/METHOD/SOURCE/seedN/"
    )


def _seed(name: str) -> int:
    """The number in `seed7`.

    Raises:
        ValueError: the name is not written so.
    """
    if not re.fullmatch(r"seed(0|[1-9][0-9]*)", name):
        raise ValueError(f"{name} is no seed: expected for instance seed7")
    return int(name.removeprefix("seed"))
