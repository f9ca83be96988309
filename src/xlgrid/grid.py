"""Study -> runs and cells -> paths, and back from any path.

Only identity stands in a path, so a path says what it holds and nothing else has to be asked.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from xlgrid.names import unknown

if TYPE_CHECKING:
    from xlgrid.recipe import Start
    from xlgrid.study import Study


# The task of runs on text, which other runs begin with.
MLM = "mlm"


class Run(NamedTuple):
    """One training."""

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
    """One evaluation: a run on a target."""

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
    def encoder_folder(self) -> str:
        return f"results/{self.study}/encoders/{self.encoder}"

    @property
    def tokens(self) -> str:
        return f"results/{self.study}/tokens/{self.task}/{self.encoder}/{self.target}/test.arrow"

    @property
    def path(self) -> str:
        middle = f"{self.task}/{self.encoder}/{self.method}/{self.source}/{self.target}"
        return f"results/{self.study}/cells/{middle}/seed{self.seed}.json"


class Contrast(NamedTuple):
    """A run's attention on two targets."""

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
        """The cell of each target."""
        cell = Cell(*self[:5], self.target, self.seed)
        return cell, cell._replace(target=self.other)

    @property
    def run(self) -> Run:
        return self.cells[0].run

    @property
    def path(self) -> str:
        middle = f"{self.task}/{self.encoder}/{self.method}/{self.source}/{self.target}/{self.other}"
        return f"results/{self.study}/attention/{middle}/seed{self.seed}.json"


def cells(study: "Study") -> list[Cell]:
    """Every cell of the study, in the order of its grids.

    Raises:
        ValueError: two places of the study make the same cell.
    """
    found: dict[Cell, str] = {}
    for name, grid in study.grids.items():
        sources = [code for value in grid.source for code in study.expand(value, grid)]
        targets = [code for value in grid.target for code in study.expand(value, grid)]
        for axes in product(grid.task, grid.encoder, grid.method, sources, targets, grid.seed):
            cell = Cell(study.name, *axes)
            if cell in found:
                raise ValueError(
                    f"study {study.name}: the cell {cell.path} is made twice, by grids {found[cell]!r} and {name!r}: "
                    "remove one of the two, or the repeated value"
                )
            found[cell] = name
    return list(found)


def runs(study: "Study", planned: Iterable[Cell] | None = None) -> list[Run]:
    """Every run that the cells `planned` need, or all cells of the study, each once; those that others begin with come
    first."""
    planned = cells(study) if planned is None else list(planned)
    starts = dict.fromkeys(start for cell in planned for one in (cell, cell.run) for start in starting_runs(study, one))
    return list(dict.fromkeys([*starts, *(cell.run for cell in planned)]))


def starting_runs(study: "Study", made: Run | Cell) -> list[Run]:
    """The run on text that a run begins with, or that a cell speaks through: none or one."""
    return [] if made.task == MLM else started_from(study.methods[made.method].start, made)


def started_from(start: "Start | None", made: Run | Cell) -> list[Run]:
    """The run on text that `start` names for a run, or for a cell by its target: none or one."""
    if start is None:
        return []
    source = start.of_target(made.target, made.source) if isinstance(made, Cell) else start.of_source(made.source)
    return [Run(made.study, MLM, made.encoder, start.method, source, start.seed)] if source else []


def parse(path: str) -> Run | Cell | Contrast:
    """The run, cell or contrast that a path belongs to: a cell's or contrast's file, a run's folder or any file in it.

    Raises:
        ValueError: the path is none of them.
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


def explain(path: str, study: "Study") -> str:
    """Why a path under results/ is not made by the study: which part is unknown, its nearest neighbour, what exists."""
    from xlgrid.exhibits import contrasts, suffixes

    known = cells(study)
    pages = [*(f"claims.{kind}" for kind in ("html", "md", "csv", "svg") if study.claims), "summary.csv", "report.html"]
    try:
        asked = parse(path)
    except ValueError:
        made = [cell.path for cell in known] if "/cells/" in path else []
        if "/attention/" in path:
            made += [one.path for exhibit in study.exhibits.values() for one in contrasts(exhibit, known)]
        folder = f"results/{study.name}/exhibits"
        made += [f"{folder}/{name}{suffix}" for name, one in study.exhibits.items() for suffix in suffixes(one)]
        if path.count("/") == 2:
            made = [f"results/{study.name}/{page}" for page in pages]
        near = difflib.get_close_matches(path, made, n=1, cutoff=0.6)
        hint = f" The nearest file is {near[0]}." if near else ""
        kinds = ["cells/", "runs/", "attention/", "data/", "text/", "encoders/", "tokens/", "exhibits/", *pages]
        return f"nothing makes {path}.{hint} Study {study.name} makes, under results/{study.name}/: {', '.join(kinds)}"
    if asked.study != study.name:
        return f"{path} belongs to study {asked.study!r}, but this is {study.name!r}: add --config study={asked.study}"
    for axis, value in asked._asdict().items():
        values = dict.fromkeys(str(getattr(cell, "target" if axis == "other" else axis)) for cell in known)
        if str(value) not in values:
            return f"{path}: {unknown('target' if axis == 'other' else axis, str(value), values)}"
    if isinstance(asked, Run) and asked in {cell.run for cell in known}:
        return f"{path} is the folder of a run, or a file that no run has: ask for {asked.folder}/run.json"
    return f"{path}: each part exists, but no grid of study {study.name} has this combination: see studies/{study.name}.yaml"


def constraint(values: Iterable[str]) -> str:
    """A regular expression that matches exactly these wildcard values."""
    return "|".join(re.escape(value) for value in sorted(set(values), key=lambda v: (-len(v), v)))


def files(allowed: Mapping[str, str], tables: Iterable[str], figures: Iterable[str], compared: Iterable[str]) -> str:
    """A regular expression of what a study makes of cells, runs, attention, exhibits, claims and reports, as paths in
    `results`.

    Args:
        allowed: axis -> regular expression of its values.
        tables, figures: names of the exhibits.
        compared: names of those that are compared with published numbers.
    """
    study, task, encoder, method, source, target, seed = (
        f"(?:{allowed[axis]})" for axis in ("study", *Cell._fields[1:])
    )
    run = f"{task}/{encoder}/{method}/{source}"
    kinds = (
        rf"cells/{run}/{target}/seed{seed}\.json",
        rf"attention/{run}/{target}/{target}/seed{seed}\.json",
        rf"runs/{run}/seed{seed}/(?:delta\.safetensors|run\.json|curve\.jsonl)",
        rf"exhibits/(?:{constraint(tables)})\.(?:csv|md|tex|html)",
        rf"exhibits/(?:{constraint(figures)})\.(?:csv|md|tex|png|svg)",
        *(rf"exhibits/{re.escape(name)}-published\.(?:csv|md|html)" for name in compared),
        # Without claims, too: their rule says that there are none.
        r"claims\.(?:csv|md|html|svg)|summary\.csv|report\.html",
    )
    return f"{study}/(?:{'|'.join(kinds)})"
