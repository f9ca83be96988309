"""Mistakes between keys of a study, such as a name that the study does not define, or sizes that do not fit.

These checks run when a study is read, because a job that fails for the same reason may come after hours of work.
"""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from xlgrid.architectures import Use
from xlgrid.base.names import among
from xlgrid.heads import HEADS
from xlgrid.languages import known_language, stated_language
from xlgrid.languages.iso import standard
from xlgrid.languages.sources import NONE, Source, Target
from xlgrid.results.naming import SEVERAL, Naming
from xlgrid.results.records import COLUMNS
from xlgrid.study import check_data, check_encoders, check_starts
from xlgrid.study.axes import axes
from xlgrid.study.groups import RELATIONS
from xlgrid.study.languages import GROUPS, LANGUAGE
from xlgrid.tasks import mlm

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def problems(study: "Study") -> list[str]:
    """Each mistake as `place: what is wrong`; a place is the path to a key, joined by dots."""
    # Each check relies on the earlier checks.
    for check in (
        _declared,
        _codes,
        _languages,
        _tokenizers,
        _encoders,
        check_starts.methods,
        check_starts.begun,
        _names,
        _untrained,
        _architectures,
        _held_out,
        check_starts.first_tasks,
        check_starts.grids,
        check_encoders.grids,
        check_encoders.families,
        _parts,
        check_data.derived_data,
        check_data.available,
        check_data.scored,
        check_data.training,
        check_data.sizes,
        check_data.pretraining,
        _facts,
        _exhibits,
        _claims,
    ):
        mistakes = list(check(study))
        if mistakes:
            return mistakes
    return []


def _declared(study: "Study") -> Iterator[str]:
    for code, declared in study.declared_languages.items():
        if (language := stated_language(code)) and language != declared:
            facts = ", ".join(map(str, language[1:]))
            yield f"new_languages.{code}: xlgrid knows {code} as {facts}: leave it out, or choose another code"
        if study.new_languages[code].name is None and known_language(code) is None:
            yield f"new_languages.{code}: `name` is missing, because ISO 639 has no language of this code: add it"


def _codes(study: "Study") -> Iterator[str]:
    for i, code in enumerate(study.languages):
        if code in study.languages[:i]:
            yield f"languages.{i}: {code} is in the list twice: leave it out here"
        is_of_iso = len(code) == 3 and code not in study.declared_languages and stated_language(code) is None
        if is_of_iso and (known := standard(code)) and known.codes[0] != code and known.codes[0] in study.languages:
            yield f"languages.{i}: {code} and {known.codes[0]} are codes of one language: leave out one of them"
        if code in GROUPS:
            yield f"languages.{i}: {code} is the name of a group: declare the language by another code in `new_languages`"
        try:
            study.language(code)
        except ValueError as error:
            yield f"languages.{i}: {error}"


def _languages(study: "Study") -> Iterator[str]:
    for name, members in study.groups.items():
        if name in study.languages:
            yield f"groups.{name}: a language of this study has this name: choose another"
        if name == NONE:
            yield f"groups.{name}: this is the source of methods without training: choose another name"
        if name in RELATIONS:
            yield f"groups.{name}: exhibits and claims have a group of this name, the relation of a target to the source: choose another"
        for i, member in enumerate(members):
            if member in members[:i]:
                yield f"groups.{name}.{i}: {member} is in the group twice: leave it out here"
        codes = [code for member in members for code in Source(member).languages]
        yield from among(f"groups.{name}", LANGUAGE, codes, study.languages)
    for name, grid in study.grids.items():
        yield from among(f"grids.{name}.languages", LANGUAGE, grid.languages, study.languages)
    for name, task in study.tasks.items():
        # A study that extends another may generate its data instead, in other languages.
        parts = task.examples.languages if task.examples and task.data else ()
        codes = [code for part in parts for code in Target(part).languages]
        yield from among(f"tasks.{name}.examples.languages", LANGUAGE, codes, study.languages)


def _tokenizers(study: "Study") -> Iterator[str]:
    """Tasks name tokenizers that exist, and each name means one tokenizer."""
    for name, entry in study.tokenizers.items():
        yield from among(f"tokenizers.{name}.languages", LANGUAGE, entry.texts, study.languages)
        if name in study.encoders and study.encoders[name].own_tokenizer:
            yield (
                f"tokenizers.{name}: encoder {name} has a tokenizer of its own, which has this name: choose another, or add "
                f"`tokenizer: {name}` to the encoder"
            )
    for name, task in study.tasks.items():
        # `xlgrid.plan.checks` checks names with {language}, because the plan knows the languages.
        if task.tokenizer and "{language}" not in task.tokenizer:
            yield from among(f"tasks.{name}", "tokenizer", [task.tokenizer], study.all_tokenizers)


def _encoders(study: "Study") -> Iterator[str]:
    for name, entry in study.encoders.items():
        yield from entry.problems(study, name)


def _names(study: "Study") -> Iterator[str]:
    for name, entry in study.tasks.items():
        if entry.trained_on:
            alike = [key for key, other in study.tasks.items() if other.task.head is entry.task.head]
            alike = [key for key in alike if key != name and not study.tasks[key].trained_on]
            yield from among(f"tasks.{name}.trained_on", "task with this head", [entry.trained_on], alike)
        if entry.parallel:
            alike = [
                key
                for key, other in study.tasks.items()
                if key != name and (other.kind, other.columns, bool(other.data)) == (entry.kind, entry.columns, True)
            ]
            wanted = f"task of kind {entry.kind} with data"
            yield from among(f"tasks.{name}.parallel", wanted, [entry.parallel], alike)
    for name, grid in study.grids.items():
        for axis, known in (("task", study.tasks), ("encoder", study.encoders), ("method", study.methods)):
            yield from among(f"grids.{name}.{axis}", axis, getattr(grid, axis), known)
        for key in grid.task:
            if key in study.tasks and not study.tasks[key].task.head.has_cells:
                yield (
                    f"grids.{name}.task: {key} is of kind {study.tasks[key].kind}, whose runs are MLM runs without "
                    "cells: leave it out, and name it in the `start` of methods; or evaluate on a task of kind "
                    "`perplexity`"
                )
        for axis in ("source", "target"):
            for value in getattr(grid, axis):
                try:
                    members = study.expand(value, grid)
                    for member in members:
                        Source(member) if axis == "source" else Target(member)
                except ValueError as error:
                    yield f"grids.{name}.{axis}: {error}"
                else:
                    if not members:
                        yield f"grids.{name}.{axis}: group {value!r} has no members: add some to it, or name another group"


def _untrained(study: "Study") -> Iterator[str]:
    """Grids with methods that train nothing have the source `none`, and tasks whose head is a part of the encoder.

    They also have one seed for each encoder, because cells of a second seed would be copies that tests count as
    independent. Encoders that differ only by their seeds have different seeds in the grids, because exhibits and claims
    count these encoders as seeds of one encoder.
    """
    first_replica = study.replicas
    # (first replica of an encoder, seed in a grid) -> the replica that has cells with this seed.
    replica_of: dict[tuple[str, int], str] = {}
    seed_of: dict[str, int] = {}
    for name, grid in study.grids.items():
        untrained = not all(study.methods[key].is_trained for key in grid.method)
        for encoder, seed in product(grid.encoder, grid.seed) if untrained else ():
            if seed_of.setdefault(encoder, seed) != seed:
                yield (
                    f"grids.{name}.seed: without training, all seeds of encoder {encoder} have the same scores, got "
                    f"{seed_of[encoder]}, {seed}: write `seed: [{seed_of[encoder]}]` in all grids of methods that "
                    "train nothing"
                )
            elif (other := replica_of.setdefault((first_replica.get(encoder, encoder), seed), encoder)) != encoder:
                yield (
                    f"grids.{name}.seed: encoder {encoder} differs from {other} only by its seed, so that exhibits "
                    f"count both as seeds of one encoder, got seed {seed} for both: write another seed for "
                    f"{encoder}, in a grid of its own"
                )
        sources = study.sources(grid)
        for key in grid.method:
            is_trained = study.methods[key].is_trained
            wrong = [source for source in sources if (source == NONE) == is_trained]
            if wrong and is_trained:
                yield (
                    f"grids.{name}.source: runs of method {key} train on a language, a pair or a mix, got `{NONE}`: put it "
                    "into a grid of its own, with a method of base `as-is`"
                )
            elif wrong:
                yield (
                    f"grids.{name}.source: method {key} trains on nothing, got {', '.join(wrong)}: write `source: [{NONE}]`, "
                    "and put methods that train into another grid"
                )
            for task in grid.task if is_trained else ():
                if not study.tasks[task].task.head.is_trained:
                    yield (
                        f"grids.{name}.task: nothing trains the head of {task}, so that there are no runs of method {key}: put the "
                        f"task into a grid of its own, with a method of base `as-is` and `source: [{NONE}]`"
                    )
            for task in grid.task if not is_trained else ():
                if not study.tasks[task].task.head.is_pretrained:
                    kinds = [f"`{head.name}`" for head in HEADS.values() if head.is_pretrained and head.has_cells]
                    yield (
                        f"grids.{name}.task: method {key} trains nothing, and the weights of the head of {task} would be random: "
                        f"name a task of kind {' or '.join(kinds)}, or a method that trains"
                    )


def _parts(study: "Study") -> Iterator[str]:
    """Each method and each head accepts its grids."""
    for name, grid in study.grids.items():
        for key in grid.method:
            yield from study.methods[key].method.problems(study, key, name)
        for task in grid.task:
            yield from study.tasks[task].task.head.problems_of_grid(study, task, name)


def _architectures(study: "Study") -> Iterator[str]:
    """The architecture of each encoder from scratch supports the grids that use the encoder."""
    for name, grid in study.grids.items():
        parts = [part for source in study.sources(grid) for part in source.parts] + study.targets(grid)
        use = Use(
            {key: (study.methods[key].base, study.methods[key].start is not None) for key in grid.method},
            [*dict.fromkeys(code for part in parts for code in part.languages)],
        )
        for encoder in grid.encoder:
            for key, problem in study.encoders[encoder].problems_of_use(study, use):
                yield f"grids.{name}{f'.{key}' if key else ''}: encoder {encoder}: {problem}"


def _held_out(study: "Study") -> Iterator[str]:
    """No task on the texts of the study trains on rows that are test rows of another task."""
    dev_rows = {
        name: options.dev_rows
        for name, entry in study.tasks.items()
        if entry.from_text and isinstance(options := entry.task.Options(**entry.options), mlm.Options)
    }
    for name in dev_rows:
        if not study.tasks[name].task.head.has_cells:
            continue
        for other in dev_rows:
            # With a larger `dev_rows`, the held-out rows include the held-out rows of a smaller one.
            if dev_rows[other] < dev_rows[name]:
                yield (
                    f"tasks.{name}: test rows of {name} are training rows of task {other}, because `dev_rows` is "
                    f"{dev_rows[name]} in {name} and {dev_rows[other]} in {other}: write at most {dev_rows[other]} "
                    f"in the `options` of {name}, or at least {dev_rows[name]} in the `options` of {other}"
                )


def _facts(study: "Study") -> Iterator[str]:
    """The facts of encoders do not have the names of axes or columns of exhibits."""
    for name, entry in study.encoders.items():
        for fact in entry.facts:
            if fact in COLUMNS:
                yield f"encoders.{name}.facts.{fact}: an axis or a column of exhibits has this name: choose another"


def _exhibits(study: "Study") -> Iterator[str]:
    """Exhibits select values that the grids have, and published numbers match what the exhibits show."""
    known = axes(study)
    known["metric"] = [*dict.fromkeys(metric for key in known["task"] for metric in study.metrics[str(key)])]
    for facts in study.facts.values():
        for fact, value in facts.items():
            known.setdefault(fact, []).append(value)
    several: list[object] = [SEVERAL]
    names = {**known, "group": [], "source": known["source"] + several, "target": known["target"] + several}
    namings: dict[str, Naming] = {"published": study.published}
    for name, exhibit in study.exhibits.items():
        problems = [*exhibit.unknown_names(study, known)] or exhibit.problems(study, known)
        yield from (f"exhibits.{name}.{problem}" for problem in problems)
        if name.endswith("-published"):
            yield f"exhibits.{name}: such names are for comparisons with published numbers: choose another name"
        if exhibit.published_numbers is not None:
            namings[f"exhibits.{name}.published"] = exhibit.published_numbers
        for axis, coined in exhibit.coined_names.items():
            names[axis] = [*names[axis], *coined]
    for place, naming in namings.items():
        yield from (f"{place}.{problem}" for problem in naming.problems(names))


def _claims(study: "Study") -> Iterator[str]:
    """Claims compare values that the grids have."""
    for name, claim in study.claims.items():
        yield from (f"claims.{name}.{problem}" for problem in claim.problems(study, study.order))
