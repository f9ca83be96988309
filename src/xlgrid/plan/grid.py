"""Study -> runs and cells -> paths, and back from any path.

Only identity stands in a path, so a path says what it holds and nothing else has to be asked.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from operator import itemgetter, ne
from typing import TYPE_CHECKING

from xlgrid.base.names import unknown
from xlgrid.languages.sources import data_of
from xlgrid.results.identity import Cell, Contrast, Run, parse
from xlgrid.tasks import MLM

if TYPE_CHECKING:
    from xlgrid.study.schema import Study
    from xlgrid.training.recipe import Start


def cells(study: "Study") -> list[Cell]:
    """Every cell of the study, in the order of its grids.

    Raises:
        ValueError: two places of the study make the same cell.
    """
    found: dict[Cell, str] = {}
    for name, grid in study.grids.items():
        sources = [code for value in grid.source for code in study.expand(value, grid)]
        targets = [code for value in grid.target for code in study.expand(value, grid)]
        if grid.snapshots:
            targets = [f"{target}@{step}" for target, step in product(targets, grid.snapshots)]
        own = {method for method in grid.method if (start := study.methods[method].start) and start.at == "target"}
        for axes in product(grid.task, grid.encoder, grid.method, sources, targets, grid.seed):
            cell = Cell(study.name, *axes)
            if cell.method in own:
                cell = cell._replace(source=f"{cell.source}@{cell.target}")
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
    found = list(dict.fromkeys(cell.run for cell in planned))
    made: list[Run | Cell] = [*planned, *found]
    while ahead := dict.fromkeys(start for one in made for start in starting_runs(study, one)):
        found = [*ahead, *found]
        made = [*ahead]
    return list(dict.fromkeys(found))


def starting_runs(study: "Study", made: Run | Cell) -> list[Run]:
    """The runs that a run begins with, in the order in which their weights are loaded: none or one on text, and that of a
    first task. Of a cell, those on text: the one that its run began with, and the one that it speaks through."""
    if made.task == MLM:
        return []
    start = study.methods[made.method].start
    if isinstance(made, Cell):
        return list(dict.fromkeys([*started_from(start, made.run), *started_from(start, made)]))
    return [*started_from(start, made), *first_stage(study.tasks[made.task].start, made)]


def started_from(start: "Start | None", made: Run | Cell) -> list[Run]:
    """The run on text that `start` names for a run, or for a cell by its target: none or one."""
    if start is None:
        return []
    source: str | None
    data, _, own = made.source.partition("@")
    if start.at == "target":
        source = own
    elif start.at == "both" and isinstance(made, Cell):
        source = start.of_target(data_of(made.target), data)
    else:
        source = start.of_source(data)
    return [Run(made.study, MLM, made.encoder, start.method, source, start.seed)] if source else []


def first_stage(task: str | None, made: Run) -> list[Run]:
    """The run of another task that `made` begins with, if there is such a task: none or one."""
    return [made._replace(task=task)] if task else []


def explain(path: str, study: "Study") -> str:
    """Why a path under results/ is not made by the study: which part is unknown, its nearest neighbour, what exists."""
    if path.count("/") > 1 and (named := path.split("/")[1]) != study.name:
        return f"{path} belongs to study {named!r}, but this is {study.name!r}: add --config study={named}"
    known = cells(study)
    pages = [*(f"claims.{kind}" for kind in ("html", "md", "csv", "svg") if study.claims), "summary.csv", "report.html"]
    try:
        asked = parse(path)
    except ValueError:
        made = [cell.path for cell in known] if "/cells/" in path else []
        if "/attention/" in path:
            made += [one.path for exhibit in study.exhibits.values() for one in exhibit.contrasts(known)]
        folder = f"results/{study.name}/exhibits"
        made += [f"{folder}/{name}{suffix}" for name, one in study.exhibits.items() for suffix in one.suffixes]
        if path.count("/") == 2:
            made = [f"results/{study.name}/{page}" for page in pages]
        near = difflib.get_close_matches(path, made, n=1, cutoff=0.6)
        hint = f" The nearest file is {near[0]}." if near else ""
        kinds = ["cells/", "runs/", "attention/", "data/", "text/", "encoders/", "tokens/", "exhibits/", *pages]
        return f"nothing makes {path}.{hint} Study {study.name} makes, under results/{study.name}/: {', '.join(kinds)}"
    # Runs on text, and those of a first task, have no cells.
    there: Sequence[Run | Cell] = runs(study, known) if isinstance(asked, Run) else known
    for axis, value in asked._asdict().items():
        values = dict.fromkeys(str(getattr(one, "target" if axis == "other" else axis)) for one in there)
        if str(value) not in values:
            return f"{path}: {unknown('target' if axis == 'other' else axis, str(value), values)}"
    if isinstance(asked, Run) and asked in there:
        return f"{path} is the folder of a run, or a file that no run has: ask for {asked.folder}/run.json"
    text = f"{path}: each part exists, but no grid of study {study.name} has this combination: see studies/{study.name}.yaml"
    # The source en of a method that has runs for each target is near en@qu, more than another method is.
    beside = [(sum(map(_differ, one, asked)), one) for one in there if sum(map(ne, one, asked)) == 1]
    if beside and not isinstance(asked, Contrast):
        nearest = min(beside, key=itemgetter(0))[1]
        text += f"; the nearest is {nearest.folder if isinstance(nearest, Run) else nearest.path}"
    return text


def _differ(ours: object, theirs: object) -> bool:
    return data_of(str(ours)) != data_of(str(theirs))


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
