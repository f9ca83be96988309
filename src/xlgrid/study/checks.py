"""Mistakes in a study that no key shows alone: names that no other part of the study knows, sizes that do not go together.

Found when a study is read, because the same mistake found by a job may come after hours of work.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from xlgrid import methods
from xlgrid.base.names import unknown
from xlgrid.base.settings import plainly
from xlgrid.data.sources import SPLITS, lacking
from xlgrid.languages import language, parts
from xlgrid.languages.sources import data_of
from xlgrid.plan.grid import cells, runs
from xlgrid.results.naming import SEVERAL, NamedAxis, Naming
from xlgrid.tasks import MLM, TASKS, task
from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study

_LANGUAGE = "language, which `languages` of the study must name first,"
_DIALS: tuple[Literal["overlap", "loans", "distance"], ...] = ("overlap", "loans", "distance")


def problems(study: "Study") -> list[str]:
    """Each as `place: what is wrong`; a place is the path to a key, joined by dots."""
    # Each check relies on those before it.
    for check in (
        _codes,
        _languages,
        _methods,
        _begun,
        _names,
        _starts,
        _spoken,
        _sizes,
        _snapshots,
        _exhibits,
        _claims,
    ):
        found = list(check(study))
        if found:
            return found
    return []


def _codes(study: "Study") -> Iterator[str]:
    for i, code in enumerate(study.languages):
        try:
            language(code)
        except ValueError as error:
            yield f"languages.{i}: {error}"


def _languages(study: "Study") -> Iterator[str]:
    for name, members in study.groups.items():
        if name in study.languages:
            yield f"groups.{name}: a language of this study has this name: choose another"
        codes = [code for member in members for code in parts(member)]
        yield from _among(f"groups.{name}", _LANGUAGE, codes, study.languages)
    for name, grid in study.grids.items():
        yield from _among(f"grids.{name}.languages", _LANGUAGE, grid.languages, study.languages)
    for name, encoder in study.encoders.items():
        if encoder.mini:
            place = f"encoders.{name}.mini"
            yield from _among(f"{place}.languages", _LANGUAGE, encoder.mini.languages, study.languages)
            aligned = [code for pair in encoder.mini.bitext for code in pair]
            yield from _among(f"{place}.bitext", "language of this encoder", aligned, encoder.mini.languages)


def _methods(study: "Study") -> Iterator[str]:
    for name, method in study.methods.items():
        try:
            made = methods.make(method.base, method.options)
        except ValueError as error:
            yield f"methods.{name}: {error}"
        else:
            if method.imported and getattr(made, "tune", None) != "language":
                yield (
                    f"methods.{name}.imported: what can be read are language adapters: set `base: madx` and `options: "
                    "{tune: language}`, or leave it out"
                )
        if method.start:
            place = f"methods.{name}.start"
            yield from _among(f"{place}.method", "method", [method.start.method], study.methods)
            told = [*method.start.pairs, *(method.start.source or "").split("+")]
            codes = [code for one in told if one for code in parts(one)]
            yield from _among(place, _LANGUAGE, codes, study.languages)
    if MLM in study.tasks:
        yield f"tasks.{MLM}: the name is taken, by runs on text: choose another"


def _begun(study: "Study") -> Iterator[str]:
    """A method gets from its start what it does not train."""
    made = {name: methods.make(method.base, method.options) for name, method in study.methods.items()}
    for name, method in study.methods.items():
        try:
            made[name].check_start(made[method.start.method] if method.start else None)
        except ValueError as error:
            yield f"methods.{name}: {error}"


def _names(study: "Study") -> Iterator[str]:
    for name, entry in study.tasks.items():
        if entry.trained_on:
            alike = [key for key, other in study.tasks.items() if task(other.kind).head == task(entry.kind).head]
            alike = [key for key in alike if key != name and not study.tasks[key].trained_on]
            yield from _among(f"tasks.{name}.trained_on", "task with this head", [entry.trained_on], alike)
    for name, grid in study.grids.items():
        for axis, known in (("task", study.tasks), ("encoder", study.encoders), ("method", study.methods)):
            yield from _among(f"grids.{name}.{axis}", axis, getattr(grid, axis), known)
        for axis in ("source", "target"):
            for value in getattr(grid, axis):
                try:
                    study.expand(value, grid)
                except ValueError as error:
                    yield f"grids.{name}.{axis}: {error}"


def _starts(study: "Study") -> Iterator[str]:
    """What runs begin with exists, and there is one of it."""
    for name, entry in study.tasks.items():
        yield from _first(study, name, entry.start)
    for name, grid in study.grids.items():
        sources = [code for value in grid.source for code in study.expand(value, grid)]
        targets = [code for value in grid.target for code in study.expand(value, grid)]
        for key in grid.method:
            start = study.methods[key].start
            made = methods.make(study.methods[key].base, study.methods[key].options)
            if (tune := getattr(made, "tune", None)) in ("language", "query"):
                yield (
                    f"grids.{name}.method: {key}, with `tune: {tune}`, is for runs on text and trains no head: name a method "
                    "that begins with it"
                )
            if grid.snapshots and (start is None or start.source or start.at != "both"):
                yield (
                    f"grids.{name}.snapshots: cells of method {key} do not speak through runs on text of their targets: "
                    "leave the method out of this grid, or give it a `start` without `source` and `at`"
                )
            if start is None:
                continue
            wrong = [one for one in dict.fromkeys((*sources, *targets)) if "+" in one or len(parts(one)) > 1]
            if start.at == "target" and wrong:
                yield (
                    f"grids.{name}: runs of method {key} begin with the run on text of their target, a language, and train "
                    f"on one: leave out {', '.join(wrong)}"
                )
                continue
            lone = []
            for source in sources:
                try:
                    lone += [source] if start.of_source(source) is None else []
                except ValueError as error:
                    yield f"grids.{name}.source: method {key}: {error}"
            if start.at == "both" and start.missing == "none":
                lone += [target for target in targets if start.of_target(target, "") is None]
            if lone and not _goes_alone(made):
                codes = ", ".join(dict.fromkeys(code for value in lone for code in value.split("+")))
                yield (
                    f"grids.{name}: method {key} has no run on text of {codes}, and what it does not train would stay untrained: "
                    f"add it to `pairs` of its `start`, which has {', '.join(start.pairs)}, or leave it out here"
                )
        if len(grid.snapshots) > len(set(grid.snapshots)):
            yield f"grids.{name}.snapshots: a step stands twice in {grid.snapshots}: remove one"


def _goes_alone(made: methods.Method) -> bool:
    """Whether runs of a method may begin with no run on text."""
    try:
        made.check_start(None)
    except ValueError:
        return False
    return True


def _first(study: "Study", name: str, first: str | None) -> Iterator[str]:
    """The task that a task's runs begin with has the same head, and does not begin with that task's runs in turn."""
    if first is None:
        return
    if wrong := list(_among(f"tasks.{name}.start", "task", [first], study.tasks)):
        yield from wrong
        return
    chain = [name]
    while (last := study.tasks[chain[-1]].start) in study.tasks and last not in chain:
        chain.append(str(last))
    if last in chain:
        yield f"tasks.{name}.start: tasks begin with one another in a circle: {' -> '.join([*chain, str(last)])}"
        return
    ours, theirs = (task(study.tasks[key].kind) for key in (name, first))
    for what in ("head", "labels") if ours.head in ("sequence", "token") else ("head",):
        if (one := getattr(ours, what)) != (other := getattr(theirs, what)):
            yield (
                f"tasks.{name}.start: runs begin with the head of task {first}, too, but its {what} is {other}, and {one} "
                "here: name a task of the same kind"
            )


def _snapshots(study: "Study") -> Iterator[str]:
    """Trainings reach the steps of their snapshots, and those of text keep what the grids ask for."""
    setting = [f"training.{i}.set" for i, entry in enumerate(study.training) if "snapshots" in entry.set]
    # Settings are the same for every seed, and for every target that a source has a run for.
    alike = {run._replace(source=data_of(run.source), seed=0): run for run in (runs(study) if setting else ())}
    for run in alike.values():
        made = study.recipe(*run[1:]).training
        if made.steps and (last := max(made.snapshots, default=0)) > made.steps:
            yield (
                f"{setting[-1]}: `snapshots` has step {last}, but {run.folder} has {made.steps} steps: leave it out, "
                "raise `steps`, or say `when` it is meant"
            )
            return
    for name, grid in study.grids.items():
        for encoder, key in product(grid.encoder, grid.method) if grid.snapshots else ():
            start = study.methods[key].start
            assert start
            if study.methods[start.method].imported:
                yield (
                    f"grids.{name}.snapshots: method {start.method}, through whose runs on text cells of {key} speak, is "
                    "`imported`, and imported adapters have no steps: leave one of the two out"
                )
                continue
            axes = (
                [code for value in axis for code in study.expand(value, grid)] for axis in (grid.target, grid.source)
            )
            spoken = {start.of_target(target, source): target for target, source in product(*axes)}
            for text, target in spoken.items():
                if text is None:
                    yield f"grids.{name}.snapshots: there is no run on text through which {key} speaks {target}: leave it out"
                    continue
                kept = study.recipe(MLM, encoder, start.method, text, start.seed).training.snapshots
                if lacking := [step for step in grid.snapshots if step not in kept]:
                    yield (
                        f"grids.{name}.snapshots: the run on text of method {start.method} in {text} keeps "
                        f"{', '.join(map(str, kept)) or 'none'}, not {', '.join(map(str, lacking))}: add them to the "
                        f"`snapshots` that `training` sets {{when: {{task: {MLM}, method: {start.method}}}}}"
                    )
                    break


def _spoken(study: "Study") -> Iterator[str]:
    """Generated data and text are in languages that something can say; text of one's own in languages of the study."""
    yield from _among("text.files", "language", study.text.files, study.languages)
    for name, encoder in study.encoders.items():
        for code in encoder.mini.languages if encoder.mini else ():
            if not study.text.fetches(code) and not any(made.speaks(code) for made in TASKS.values()):
                yield f"encoders.{name}.mini: there is no text in {code}, which has no lexicon; CONTRIBUTING.md says how to add one"
    for name, grid in study.grids.items():
        values = [value for axis in (grid.source, grid.target) for each in axis for value in study.expand(each, grid)]
        told = [part for value in values for part in value.split("+")]
        codes = dict.fromkeys(code for part in told for code in parts(part))
        pairs = [part for part in told if len(parts(part)) > 1]
        for key in _with_first(study, grid.task):
            entry = study.tasks[key]
            made = task(entry.kind)
            if pairs and made.second is None:
                reads = "reads one text and " if len(made.inputs) == 1 else ""
                yield f"grids.{name}: task {key} {reads}has no pairs such as {pairs[0]}: leave them out"
            yield from (f"grids.{name}: {text}" for text in _lacking(study, key, grid))
            mute = [code for code in codes if entry.data is None and not task(entry.kind).speaks(code)]
            if mute:
                yield (
                    f"grids.{name}: task {key} cannot be generated in {', '.join(mute)}: give it `data`, "
                    "leave them out, or see CONTRIBUTING.md on how to add a language"
                )


def _lacking(study: "Study", key: str, grid: "Grid") -> Iterator[str]:
    """Languages of a grid whose data of a task's split would come from a source without them."""
    for split in SPLITS:
        name, entry = study.entry(key, split)
        if entry.data:
            values = grid.target if split == "test" else grid.source
            told = (part for value in values for each in study.expand(value, grid) for part in each.split("+"))
            for part in dict.fromkeys(told):
                if not (origin := entry.data.of(split, part)).has(part):
                    yield lacking(name, origin, split, part)


def _sizes(study: "Study") -> Iterator[str]:
    known = _axes(study)
    starts = [study.methods[str(name)].start for name in known["method"]]
    for start in filter(None, starts):
        sources = [start.source] if start.source else start.pairs or [*known["source"], *known["target"]]
        own = {"task": [MLM], "method": [start.method], "source": sources}
        for axis, values in own.items():
            known[axis] += [value for value in values if value not in known[axis]]
    known["task"] = [*_with_first(study, map(str, known["task"]))]
    methods = map(str, known["method"])
    known["base"] = [*dict.fromkeys(study.methods[method].base for method in methods)]
    for i, entry in enumerate(study.training):
        for axis, given in entry.when.items():
            for value in [given] if isinstance(given, str) else given:
                place = f"training.{i}.when.{axis}"
                try:
                    meant = study.meant(axis, value)
                except ValueError as error:
                    yield f"{place}: {error}"
                    continue
                if not {*meant} & {*known[axis]}:
                    yield (
                        f"{place}: {unknown(axis, value, known[axis])}"
                        if meant == [value]
                        else f"{place}: no run is for a source of {value!r}, which has {', '.join(meant) or 'no members'}: leave it out"
                    )
        try:
            Training(**entry.set)
        except ValidationError as error:
            yield f"training.{i}.set: {plainly(error)}"
    for grid in study.grids.values():
        for name in _with_first(study, grid.task):
            for encoder in grid.encoder:
                mini = study.encoders[encoder].mini
                if mini and study.tasks[name].max_length > mini.max_length:
                    yield (
                        f"tasks.{name}: inputs of up to {study.tasks[name].max_length} tokens are too long for encoder "
                        f"{encoder}, which takes {mini.max_length}: lower this max_length, or raise the encoder's"
                    )
    if any(encoder.mini for encoder in study.encoders.values()):
        for name, made in study.tasks.items():
            options = task(made.kind).Options(**made.options)
            for dial in _DIALS if "overlap" in type(options).model_fields else ():
                spoken = study.text.dials.get(dial, type(options).model_fields[dial].default)
                if made.data is None and getattr(options, dial) != spoken:
                    yield (
                        f"tasks.{name}: its languages have {dial} {getattr(options, dial)}, those of the text {spoken}: "
                        "set the same in text.dials, or encoders read another language of the same code"
                    )


def _exhibits(study: "Study") -> Iterator[str]:
    axes = _axes(study)
    axes["metric"] = [*_metrics(study, axes["task"])]
    planned = cells(study)
    for name, exhibit in study.exhibits.items():
        yield from (f"exhibits.{name}.{problem}" for problem in exhibit.problems(study, axes, planned))
        if exhibit.is_compared and f"{name}-published" in study.exhibits:
            yield f"exhibits.{name}-published: the comparison of exhibit {name} has files of this name: choose another"
    yield from _published(study, axes)


def _published(study: "Study", axes: Mapping[str, list[object]]) -> Iterator[str]:
    """The study's names in `names` and `seeds_of` exist; the paper's are checked when an exhibit is rendered."""
    known = {**axes, "source": [*axes["source"], SEVERAL], "target": [*axes["target"], SEVERAL], "group": []}
    for exhibit in study.exhibits.values():
        for axis, coined in exhibit.coined_names.items():
            known[axis] = [*known[axis], *coined]
    namings: dict[str, Naming] = {"published": study.published}
    namings |= {
        f"exhibits.{name}.published": exhibit.published_numbers
        for name, exhibit in study.exhibits.items()
        if exhibit.published_numbers is not None
    }
    for place, naming in namings.items():
        sections: dict[str, Mapping[NamedAxis, Mapping[str, object]]] = {
            "names": naming.names,
            "seeds_of": naming.seeds_of,
        }
        for key, section in sections.items():
            for axis in section.keys() - {"metric"}:
                yield from _among(f"{place}.{key}.{axis}", axis, section[axis], known[axis])


def _claims(study: "Study") -> Iterator[str]:
    known = _axes(study)
    for name, claim in study.claims.items():
        if claim.metric:
            tasks = claim.select.task or {value for side in claim.sides for value in side.task or ()} or known["task"]
            among = _metrics(study, [key for key in tasks if key in known["task"]])
            yield from _among(f"claims.{name}.metric", "metric of its tasks", [claim.metric], among)
        # As the file has them: `against` has no sides of its own.
        keys = {"compare": claim.compare, "within": claim.within, "trend": claim.trend}
        sides = {f"{key}.{at}": side for key, given in keys.items() for at, side in enumerate(given or ())}
        for place, selection in {"select": claim.select, **sides}.items():
            for axis, values in selection.axes.items():
                here = f"claims.{name}.{place}.{axis}"
                if axis != "group":
                    yield from _among(here, axis, values, known[axis])
                    continue
                for group in values:
                    try:
                        study.belongs(group, str(known["source"][0]), str(known["target"][0]))
                    except ValueError as error:
                        yield f"{here}: {error}"


def _with_first(study: "Study", tasks: Iterable[str]) -> list[str]:
    """Tasks, and those whose runs theirs begin with."""
    found: dict[str, None] = {}
    ahead = list(tasks)
    while ahead:
        found |= dict.fromkeys(ahead)
        ahead = [first for name in ahead if name in study.tasks and (first := study.tasks[name].start)]
    return [*found]


def _metrics(study: "Study", tasks: Iterable[object]) -> list[str]:
    """Those of some tasks."""
    return list(dict.fromkeys(metric for key in tasks for metric in study.metrics[str(key)]))


def _axes(study: "Study") -> dict[str, list[object]]:
    """Every value of every axis of the grids."""
    found: dict[str, list[object]] = {axis: [] for axis in ("task", "encoder", "method", "source", "target", "seed")}
    for grid in study.grids.values():
        for axis, values in found.items():
            given = getattr(grid, axis)
            expands = axis in ("source", "target")
            values += [code for value in given for code in study.expand(value, grid)] if expands else given
    return {axis: list(dict.fromkeys(values)) for axis, values in found.items()}


def _among(place: str, what: str, given: Iterable[object], known: Iterable[object]) -> Iterator[str]:
    known = list(known)
    yield from (f"{place}: {unknown(what, value, known)}" for value in given if value not in known)
