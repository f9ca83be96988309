"""Mistakes in grids of methods that read each example in a second language."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.base.names import among
from xlgrid.data.sources import SPLITS, no_data
from xlgrid.languages.sources import Target
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study


def grids(study: "Study") -> Iterator[str]:
    """Companions have a language of the study with data, and sources and targets are languages."""
    for name, grid in study.grids.items():
        for key in grid.method:
            if companion := study.methods[key].method.companion_language:
                yield from among(f"methods.{key}.options.companion", LANGUAGE, [companion], study.languages)
                yield from (f"grids.{name}: method {key} {text}" for text in _misfits(study, grid, companion))


def tasks(study: "Study") -> Iterator[str]:
    """Tasks that name another task for their companions name one of the same kind and columns, with data."""
    for name, entry in study.tasks.items():
        if entry.companions:
            alike = [
                key
                for key, other in study.tasks.items()
                if key != name and (other.kind, other.columns, bool(other.data)) == (entry.kind, entry.columns, True)
            ]
            yield from among(
                f"tasks.{name}.companions", f"task of kind {entry.kind} with data", [entry.companions], alike
            )


def _misfits(study: "Study", grid: "Grid", companion: str) -> Iterator[str]:
    parts = dict.fromkeys([part for source in study.sources(grid) for part in source.parts] + study.targets(grid))
    for part in parts:
        if part.is_pair:
            yield f"reads an example in one language and once more in {companion}, got the pair {part}: leave it out"
    for task in grid.task:
        entry = study.tasks[task]
        if not entry.task.target or entry.choices or entry.task.choices:
            yield f"is for tasks of sequences, tokens and spans, and {task} is of kind {entry.kind}: leave it out"
            continue
        others = study.targets(grid) if entry.companions else []
        for target in [target for target in others if target != companion]:
            data = study.tasks[str(entry.companions)].data
            if data and not (origin := data.of("test", target)).has(target):
                yield f"finds no companions: {no_data(str(entry.companions), origin, 'test', target)}"
        # Without another task, the test set has companions of its own.
        for split in SPLITS[: 2 if entry.companions and companion not in others else None]:
            key, other = study.entry(task, split)
            if other.data and not (origin := other.data.of(split, Target(companion))).has(Target(companion)):
                yield f"finds no companions: {no_data(key, origin, split, companion)}"
        if entry.is_generated and not entry.task.speaks(companion):
            yield f"finds no companions: {task} cannot be generated in {companion}: name another language in `companion`"
