"""Mistakes in what grids ask of encoders: a language without a module, or with two; a method or a head that is not for the encoder's
family."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.data.checkpoints import LAYER_COUNTS
from xlgrid.heads.families import ADDED, MODULES
from xlgrid.heads.probe import head_problem, type_problem
from xlgrid.languages.sources import NONE, Source
from xlgrid.models.fit import misfit_of_method
from xlgrid.models.parameters import HUB
from xlgrid.products.encode import Encoder

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study
    from xlgrid.training.encoders import EncoderEntry


def grids(study: "Study") -> Iterator[str]:
    """Every language of a grid has one module in an encoder with modules: pre-trained, or from a run on text that adds it."""
    for name, grid in study.grids.items():
        for encoder in grid.encoder:
            if (modules := modules_of(study, encoder)) is not None:
                for key in grid.method:
                    yield from _languages(study, name, grid, encoder, modules, key)


def families(study: "Study") -> Iterator[str]:
    """Every method and head of a grid is for the family of the encoder, as far as this is known before the encoder is there."""
    configs = {encoder: known_config(study, encoder) for grid in study.grids.values() for encoder in grid.encoder}
    types = {encoder: type_problem(config) for encoder, config in configs.items() if config}
    for encoder, problem in types.items():
        if problem:
            path = study.encoders[encoder].path
            yield f"encoders.{encoder}{f'.path: {path}/' if path else ': its '}config.json {problem}"
    for name, grid in study.grids.items():
        for encoder in grid.encoder:
            config = configs[encoder]
            if not config or types[encoder]:
                continue
            tasks = _tasks(study, grid)
            problems = {task: head_problem(config, study.tasks[task].task.head) for task in [*chain(*tasks.values())]}
            yield from (
                f"grids.{name}: task {task}, encoder {encoder}: {problem}"
                for task, problem in problems.items()
                if problem
            )
            for key, of_method in tasks.items():
                method = study.methods[key].method
                # How a method fits does not depend on the task, beyond whether it is text.
                task = next((task for task in of_method if not problems[task]), None)
                if task and (problem := misfit_of_method(config, method, study.tasks[task].task.head)):
                    yield f"grids.{name}: method {key}, encoder {encoder}: {problem}"


def _tasks(study: "Study", grid: "Grid") -> dict[str, list[str]]:
    """Method -> its tasks, of the methods of a grid, and of the runs on text with which its runs begin."""
    tasks = {key: [*grid.task] for key in grid.method}
    for key in [*tasks]:
        while start := study.methods[key].start:
            if start.task in tasks.get(start.method, ()):
                break
            tasks.setdefault(start.method, []).append(start.task)
            key = start.method
    return tasks


def known_config(study: "Study", encoder: str) -> dict[str, Any]:
    """What is known of the config.json of an encoder, or of the one that it is `of`; nothing, or entries with `model_type`."""
    name = study.encoders[encoder].of or encoder
    entry = study.encoders[name]
    if entry.scratch:
        return entry.scratch.known
    config = _published_config(study, name, entry)
    return config | dict.fromkeys(config.keys() & {*LAYER_COUNTS}, entry.layers) if entry.layers else config


def _published_config(study: "Study", name: str, entry: "EncoderEntry") -> dict[str, Any]:
    """What is known of the config.json of an encoder of the Hub or a folder, with all its layers."""
    if entry.path:
        return _read(Path(entry.path, "config.json"))
    known = HUB.get(entry.hub or "", {})
    fetched = Path(Encoder(study.name, name).folder)
    # The folder may still have the encoder of an earlier version of the study.
    if entry.hub and not known and _read(fetched / "encoder.json").get("hub") == entry.hub:
        return _read(fetched / "config.json")
    return known


def _read(path: Path) -> dict[str, Any]:
    """The contents of a config.json with `model_type`, or of an encoder.json; nothing if there is none, or a damaged one, which the job
    that copies the encoder names."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) and not config.keys().isdisjoint({"model_type", "hub"}) else {}


def modules_of(study: "Study", encoder: str) -> list[str] | None:
    """The languages of an encoder's modules; None if it has none for languages, or if its files alone say which."""
    entry = study.encoders[study.encoders[encoder].of or encoder]
    if entry.scratch:
        return [*entry.scratch.modules] or None
    return [*entry.modules] or None


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
                f"{place}; method {key} would add {part} to it once more: take an encoder without it, or give the method a "
                "`start` whose `pairs` leave it out"
            )
        elif part not in modules and text != part:
            yield (
                f"{place}, but none of {part}: leave {part} out, or name it in `pairs` of the `start` of method {key}, whose runs on "
                "text have `base: xmod` and `options: {tune: language}`"
            )
