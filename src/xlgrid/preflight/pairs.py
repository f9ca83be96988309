"""The check of tables of pairs: whether they have values for the pairs of the study."""

from collections.abc import Iterator
from pathlib import Path

from xlgrid.data.downloads import find
from xlgrid.languages.sources import NONE
from xlgrid.pairs.table import is_one_way
from xlgrid.plan.plan import Plan
from xlgrid.preflight import Line, State
from xlgrid.preflight.files import missing_lines


def by_hand_lines(plan: Plan) -> Iterator[Line]:
    """A line for each missing table of pairs that a person has to get."""
    for name, entry in plan.study.pairs.items():
        found = find(plan.study.downloads, entry.file)
        if found and found.entry.url is None and not Path(entry.file).is_file():
            advice = f"there is no file {entry.file}, and only you can get it: {found.entry.by_hand}"
            yield Line(State.PROBLEM, f"pairs {name}", advice)


def pair_lines(plan: Plan) -> Iterator[Line]:
    """A line for each table of pairs of the study: the pairs of its cells that have a value, and those that lack one; or
    where the file comes from, if it is missing.

    Cells without training have no source, and cells whose target is a training language of their source are not counted.
    """
    yield from by_hand_lines(plan)
    study = plan.study
    cells = (cell.shown for cell in plan.cells if cell.source != NONE and cell.shown.target not in cell.source.parts)
    pairs = list(dict.fromkeys((str(cell.source), str(cell.target)) for cell in cells))
    for name, entry in study.pairs.items():
        found = find(study.downloads, entry.file)
        if found and not Path(entry.file).is_file():
            yield from missing_lines(f"pairs {name}", [entry.file], {entry.file: found})
            continue
        try:
            known = study.pair_values(name).values
        except (ValueError, OSError) as error:
            yield Line(State.PROBLEM, f"pairs {name}", str(error))
            continue
        missing = [f"{source} to {target}" for source, target in pairs if (source, target) not in known]
        text = f"{len(pairs) - len(missing)} of {len(pairs)} pairs of a source and another target have a value"
        if missing:
            text += f"; none for {', '.join(missing[:3])}{', ...' * (len(missing) > 3)}"
        if missing and not entry.symmetric and is_one_way(known):
            text += "; no pair has values in both directions: write `symmetric: true` if they hold for both"
        yield Line(State.OPEN if missing else State.GOOD, f"pairs {name}", text)
