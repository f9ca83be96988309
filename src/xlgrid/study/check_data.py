"""Mistakes in the data of a study: languages without data, training settings for no run, sizes that do not fit."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from xlgrid.base.names import among, unknown_or_unused
from xlgrid.base.settings import plainly
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.sources import no_data
from xlgrid.languages.sources import Target
from xlgrid.study.axes import axes, with_first
from xlgrid.study.encoders import limit_of
from xlgrid.study.groups import in_settings
from xlgrid.synthetic.artificial import Dials
from xlgrid.tasks import TASKS
from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study


def available(study: "Study") -> Iterator[str]:
    """Data and text exist, or can be generated, in each language of grids, encoders from scratch and tokenizers."""
    yield from among("text.files", "language", study.text.files, study.languages)
    on_text = {
        f"encoders.{name}.{key}": languages
        for name, entry in study.encoders.items()
        for key, languages in entry.texts.items()
    }
    on_text |= {f"tokenizers.{name}": entry.texts for name, entry in study.tokenizers.items()}
    for place, languages in on_text.items():
        for code in languages:
            if lacking := _not_in_text(study, code):
                yield f"{place}: {lacking}"
            elif not has_text(study, code):
                yield f"{place}: there is no text in {code}, which has no lexicon; CONTRIBUTING.md says how to add one"
    for name, grid in study.grids.items():
        parts = [part for source in study.sources(grid) for part in source.parts] + study.targets(grid)
        codes = dict.fromkeys(code for part in parts for code in part.languages)
        pairs, alone = ([part for part in parts if part.is_pair is is_pair] for is_pair in (True, False))
        for key in with_first(study, grid.task):
            entry = study.tasks[key]
            kind = entry.task
            if alone and kind.head.has_pairs_only:
                yield (
                    f"grids.{name}: task {key} compares sentences of two languages, got {', '.join(alone)}: write pairs, such as "
                    f"{alone[0]}-en"
                )
            if pairs and kind.second is None and not kind.head.has_pairs_only:
                reads = "reads one text and " if len(kind.inputs) == 1 else ""
                yield f"grids.{name}: task {key} {reads}has no pairs such as {pairs[0]}: leave them out"
            yield from (f"grids.{name}: {text}" for text in _without_data(study, key, grid))
            if entry.data is None and entry.from_text:
                yield from (f"grids.{name}: {text}" for code in codes if (text := _not_in_text(study, code)))
            available_in = partial(has_text, study) if entry.from_text else kind.speaks
            missing = [code for code in codes if entry.data is None and not available_in(code)]
            if missing:
                origin = "it `data`, or the study `text`" if entry.from_text else "it `data`"
                yield (
                    f"grids.{name}: task {key} cannot be generated in {', '.join(missing)}: give {origin}, leave out "
                    f"{'this language' if len(missing) == 1 else 'these languages'}, or see CONTRIBUTING.md on how to add a language"
                )


def scored(study: "Study") -> Iterator[str]:
    """Targets of the grids, and dev sets of the sources, can be scored."""
    parts: dict[str, dict[Target, None]] = {}
    for grid in study.grids.values():
        trained = [part for source in study.sources(grid) for part in source.parts]
        for key in with_first(study, grid.task):
            parts.setdefault(key, {}).update(dict.fromkeys([*study.targets(grid), *trained]))
    for key, targets in parts.items():
        entry = study.tasks[key]
        head, options = entry.task.head, entry.task.Options(**entry.options)
        of_head = head.options.model_validate(options.model_dump(include={*head.options.model_fields}))
        for problem in head.unscorable(of_head, [[*map(study.language, target.languages)] for target in targets]):
            yield f"tasks.{key}.options.{problem}"


def has_text(study: "Study", code: str) -> bool:
    """Whether text in a language is fetched or can be generated."""
    return study.text.fetches(code) or any(task.speaks(code) for task in TASKS.values())


def _not_in_text(study: "Study", code: str) -> str | None:
    """The message that the study's text lacks a language; None if the text has it, or may have it."""
    data = study.text.data
    if data is None or code in study.text.files or not study.text.fetches(code) or data.has(code):
        return None
    return (
        f"the text comes from {data}, which has only {', '.join(data.known or ())} according to its "
        f"`{'languages' if data.languages else 'names'}`, and not {code}: name a file with text in {code} under "
        f"`text.files`, or leave {code} out"
    )


def _without_data(study: "Study", key: str, grid: "Grid") -> Iterator[str]:
    """A message for each split and language that a grid needs, but the task's data lack."""
    for split in SPLITS:
        name, entry = study.entry(key, split)
        if entry.data:
            trained = [part for source in study.sources(grid) for part in source.parts]
            for part in dict.fromkeys(study.targets(grid) if split == "test" else trained):
                if not (origin := entry.data.of(split, part)).has(part):
                    yield no_data(name, origin, split, part)


def derived_data(study: "Study") -> Iterator[str]:
    """The mistakes that data origins report for the study."""
    for name, entry in study.tasks.items():
        for key, each in entry.data.derived.items() if entry.data else ():
            yield from (f"tasks.{name}.data.{key}.{problem}" for problem in each.problems(study, name))


def training(study: "Study") -> Iterator[str]:
    """Entries of `training` match runs that exist, and have valid settings."""
    known = axes(study)
    starts = [study.methods[str(name)].start for name in known["method"]]
    while starts:
        following = []
        for start in filter(None, starts):
            sources = [start.source] if start.source else start.pairs or [*known["source"], *known["target"]]
            of_text = {"task": [start.task], "method": [start.method], "source": sources}
            for axis, values in of_text.items():
                known[axis] += [value for value in values if value not in known[axis]]
            following.append(study.methods[start.method].start)
        starts = following
    known["task"] = [*with_first(study, map(str, known["task"]))]
    known["base"] = [*dict.fromkeys(study.methods[str(name)].base for name in known["method"])]
    defined = study.defined_names | {"source": study.languages}
    for i, entry in enumerate(study.training):
        for axis, names in entry.when.items():
            for value in [names] if isinstance(names, str) else names:
                place = f"training.{i}.when.{axis}"
                try:
                    members = study.meant(axis, value)
                except ValueError as error:
                    yield f"{place}: {error}"
                    continue
                if axis == "method" and value in study.methods and not study.methods[value].is_trained:
                    yield f"{place}: method {value} has no runs to train: leave it out"
                if {*members} & {*known[axis]}:
                    continue
                if members == [value]:
                    yield f"{place}: {unknown_or_unused(axis, value, known[axis], defined[axis])}"
                else:
                    yield f"{place}: no run has a source in {value!r} ({', '.join(members) or 'empty'}): leave it out"
        try:
            settings = in_settings(entry.set, study.expand)
        except ValueError as error:
            yield f"training.{i}.set.dev_targets: {error}"
            continue
        try:
            Training(**settings)
        except ValidationError as error:
            yield f"training.{i}.set: {plainly(error)}"


def sizes(study: "Study") -> Iterator[str]:
    """Inputs fit encoders and tokenizers from scratch, and tasks and text use artificial languages with equal dials."""
    for grid in study.grids.values():
        on_text = [start.task for key in grid.method if (start := study.methods[key].start)]
        for name in dict.fromkeys([*with_first(study, grid.task), *on_text]):
            for encoder in grid.encoder:
                if limit := limit_of(study, name, encoder):
                    what, user, most = limit
                    yield (
                        f"tasks.{name}: inputs of up to {study.tasks[name].max_length} tokens are too long for {what} {user}, "
                        f"which takes {most}: lower this max_length, or raise the {what}'s"
                    )
    if not any(encoder.is_trained for encoder in study.encoders.values()):
        return
    for name, task in study.tasks.items():
        options = task.task.Options(**task.options)
        for dial in Dials.model_fields if isinstance(options, Dials) and task.data is None else ():
            of_text = getattr(study.text.dials, dial)
            if getattr(options, dial) != of_text:
                yield (
                    f"tasks.{name}: its artificial languages have {dial} {getattr(options, dial)}, but the text has "
                    f"{of_text}: set the same value in `text.dials`; otherwise the same code means two languages"
                )


def pretraining(study: "Study") -> Iterator[str]:
    """Encoders that are trained here can read the tokens of their tasks."""
    for name, entry in study.encoders.items():
        yield from entry.problems_of_texts(study, name)
