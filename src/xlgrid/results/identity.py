"""The identity of an encoder, a run, a cell and a contrast: the values that tell one from all others, and the path with them."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from xlgrid.languages.sources import NONE, Source, Target

# A field of a template, or what differs between several files.
_FIELD = re.compile(r"{(\w+)}")


class Templated:
    """The files that one rule makes together. The fields of a subclass are the wildcards of the rule.

    Attributes:
        template: the path of the files, with each field in braces; `{file}` is the part in which several files differ.
        files: the values of `{file}`. The first file exists if and only if the product is complete.
    """

    __slots__ = ()
    template: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ("",)
    _format: ClassVar[str]
    _pattern: ClassVar[re.Pattern[str]]

    def __init_subclass__(cls) -> None:
        # Studies have hundreds of thousands of cells, so a path is formatted without a dictionary of the fields.
        cls._format = _FIELD.sub(r"{0.\1}", cls.template).replace("{0.file}", "{1}")
        patterns = {
            "seed": "(?P<seed>0|[1-9][0-9]*)",
            "job": "(?P<job>.+)",
            "file": f"(?:{'|'.join(map(re.escape, cls.files))})",
        }
        pieces = enumerate(_FIELD.split(cls.template))
        # Every second piece is a field.
        regular = (patterns.get(text, f"(?P<{text}>[^/]+?)") if i % 2 else re.escape(text) for i, text in pieces)
        cls._pattern = re.compile("".join(regular))

    def file(self, name: str) -> str:
        """The path of the file for which `{file}` is this name."""
        return self._format.format(self, name)

    @property
    def path(self) -> str:
        """The path of the first file."""
        return self._format.format(self, self.files[0])

    @property
    def folder(self) -> str:
        """The folder of the files."""
        return self.path.rpartition("/")[0]

    @classmethod
    def parse(cls, path: str) -> Self | None:
        """The product to which a file belongs; None if this kind of product has no such file."""
        match = cls._pattern.fullmatch(path)
        try:
            return cls(**match.groupdict()) if match else None
        except ValueError:  # one of the languages cannot be a language, pair or mix
            return None


@dataclass(frozen=True)
class Encoder(Templated):
    """An encoder with its tokenizer."""

    template = "results/{study}/encoders/{encoder}/{file}"
    files = ("model.safetensors", "config.json", "tokenizer.json")
    study: str
    encoder: str


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


class Run(Templated, _RunAxes):
    """One training. The source is a language, a pair, a mix, or one of these for a target (`en@qu`).

    Raises:
        ValueError: the source cannot be parsed, or the seed is no number.
    """

    __slots__ = ()
    template = "results/{study}/runs/{task}/{encoder}/{method}/{source}/seed{seed}/{file}"
    files = ("run.json", "delta.safetensors", "curve.jsonl")

    def __new__(cls, study: str, task: str, encoder: str, method: str, source: str, seed: int | str) -> "Run":
        return super().__new__(cls, study, task, encoder, method, Source(source), int(seed))

    @property
    def delta(self) -> str:
        """The weights that the run has changed."""
        return self.file("delta.safetensors")


class Cell(Templated, _CellAxes):
    """One evaluation: a run on a target. The target is a language or a pair, or one of these as of a step (`qu@1000`).

    Raises:
        ValueError: the source or the target cannot be parsed, or the seed is no number.
    """

    __slots__ = ()
    template = "results/{study}/cells/{task}/{encoder}/{method}/{source}/{target}/seed{seed}.json"

    def __new__(
        cls, study: str, task: str, encoder: str, method: str, source: str, target: str, seed: int | str
    ) -> "Cell":
        return super().__new__(cls, study, task, encoder, method, Source(source), Target(target), int(seed))

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


def with_values(cells: Iterable[Cell], select: Mapping[str, Iterable[object]]) -> Iterator[Cell]:
    """The cells that have one of some values on each of some axes, as exhibits and claims name them.

    Args:
        select: axis -> values.
    """
    # Every exhibit and claim asks this of every cell of a study, whenever the study is loaded.
    chosen = [(Cell._fields.index(axis), frozenset(values)) for axis, values in select.items()]
    for cell in cells:
        shown = cell.shown
        for at, values in chosen:
            if shown[at] not in values:
                break
        else:
            yield cell


def bare_cell(path: str | Path, target: str) -> Cell:
    """The cell without training, on a target, whose file has this path.

    Raises:
        ValueError: no such cell has the path.
    """
    cell = Cell.parse(os.path.relpath(path))
    if cell is None or (cell.source, cell.target) != (NONE, target):
        template = Cell.template.replace("{source}", NONE).replace("{target}", target)
        raise ValueError(f"{path} is not the path of a cell without training, {template}: correct it, or name a run")
    return cell


class Contrast(Templated, _ContrastAxes):
    """The comparison of a run's attention on two targets.

    Raises:
        ValueError: the source or a target cannot be parsed, or the seed is no number.
    """

    __slots__ = ()
    template = "results/{study}/attention/{task}/{encoder}/{method}/{source}/{target}/{other}/seed{seed}.json"

    def __new__(
        cls, study: str, task: str, encoder: str, method: str, source: str, target: str, other: str, seed: int | str
    ) -> "Contrast":
        targets = Target(target), Target(other)
        return super().__new__(cls, study, task, encoder, method, Source(source), *targets, int(seed))

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The cells of the two targets."""
        cell = Cell(*self[:5], self.target, self.seed)
        return cell, cell._replace(target=self.other)

    @property
    def run(self) -> Run:
        return self.cells[0].run
