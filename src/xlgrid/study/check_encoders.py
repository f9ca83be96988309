"""Mistakes in how grids use encoders.

For example: a language has no module or two modules, or a method or head does not support the encoder's family.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from xlgrid.heads.families import ADDED, MODULES
from xlgrid.heads.probe import head_problem, type_problem
from xlgrid.languages.sources import NONE, Source
from xlgrid.models.fit import misfit_of_method

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study


def grids(study: "Study") -> Iterator[str]:
    """Every language of a grid has one module in an encoder with modules: pre-trained, or from an MLM run that adds it."""
    for name, grid in study.grids.items():
        for encoder in grid.encoder:
            if (modules := study.encoders[encoder].modules_of(study)) is not None:
                for key in grid.method:
                    yield from _languages(study, name, grid, encoder, modules, key)


def families(study: "Study") -> Iterator[str]:
    """Every method and head of a grid supports the family of the encoder, if the family is known already."""
    configs = {
        encoder: study.encoders[encoder].known_config(study, encoder)
        for grid in study.grids.values()
        for encoder in grid.encoder
    }
    types = {encoder: type_problem(config) for encoder, config in configs.items() if config}
    for encoder, problem in types.items():
        if problem:
            path = study.encoders[encoder].folder
            yield f"encoders.{encoder}{f'.path: {path}/' if path else ': its '}config.json {problem}"
    for name, grid in study.grids.items():
        for encoder in grid.encoder:
            config = configs[encoder]
            if types.get(encoder):
                continue
            tasks = _tasks(study, grid)
            heads = {task: study.tasks[task].task.head for task in chain(*tasks.values())}
            problems = {task: head_problem(config, head) for task, head in heads.items() if config}
            yield from (
                f"grids.{name}: task {task}, encoder {encoder}: {problem}"
                for task, problem in problems.items()
                if problem
            )
            for key, of_method in tasks.items():
                method = study.methods[key].method
                # Whether a method fits an encoder depends only on whether the task is text, and on what the head changes.
                asked: list[Mapping[str, Any]] = []
                for head in (heads[task] for task in of_method if not problems.get(task)):
                    if not (described := head.described(config)) or described in asked:
                        continue
                    asked.append(described)
                    if problem := misfit_of_method(config, method, head):
                        yield f"grids.{name}: method {key}, encoder {encoder}: {problem}"
                        break


def _tasks(study: "Study", grid: "Grid") -> dict[str, list[str]]:
    """Method -> its tasks, for the methods of a grid and of the MLM runs with which the grid's runs begin."""
    tasks = {key: [*grid.task] for key in grid.method}
    for key in [*tasks]:
        while start := study.methods[key].start:
            if start.task in tasks.get(start.method, ()):
                break
            tasks.setdefault(start.method, []).append(start.task)
            key = start.method
    return tasks


def _languages(study: "Study", name: str, grid: "Grid", encoder: str, modules: list[str], key: str) -> Iterator[str]:
    entry = study.methods[key]
    adds = any(entry.method.is_language_specific(f"{dictionary}.{ADDED}.weight") for dictionary in MODULES)
    start = entry.start if adds else None
    sources = [source for source in study.sources(grid) if source != NONE]
    parts = {part: start.of_source(Source(part)) if start else None for source in sources for part in source.parts}
    for target in study.targets(grid):
        parts[target] = start.of_target(target, sources[0] if sources else Source(NONE)) if start else None
    place = f"grids.{name}: encoder {encoder} has modules of {', '.join(modules)}"
    for part, text in parts.items():
        if part.is_pair:
            yield f"{place}, each for inputs in one language: leave out {part}"
        elif part in modules and text:
            yield (
                f"{place}; method {key} would add {part} a second time: take an encoder without this module, or give "
                f"the method a `start` with `pairs` that leave out {part}"
            )
        elif part not in modules and text != part:
            yield (
                f"{place}, but not of {part}: leave {part} out, or name it in `pairs` of the `start` of method "
                f"{key}; the method of these MLM runs needs `base: xmod` and `options: "
                "{tune: language}`"
            )
