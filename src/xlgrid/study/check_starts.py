"""Mistakes in the methods of a study, and in the MLM runs and tasks that `start` names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.base.names import among, unknown
from xlgrid.languages.sources import Source, Target
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Grid, Study


def methods(study: "Study") -> Iterator[str]:
    """Each `start` names tasks, methods and languages of the study."""
    texts = [name for name, entry in study.tasks.items() if not entry.task.head.has_cells]
    for name, entry in study.methods.items():
        for problem in entry.imported.problems(entry.method) if entry.imported else ():
            yield f"methods.{name}.{problem}"
        if entry.start:
            place = f"methods.{name}.start"
            if entry.start.task not in texts:
                yield (
                    f"{place}.task: {unknown('task of kind `mlm`', entry.start.task, texts)}: add `{entry.start.task}: "
                    "{kind: mlm}` to `tasks`, or name another"
                )
            yield from among(f"{place}.method", "method", [entry.start.method], study.methods)
            named = [*map(Target, entry.start.pairs), *(Source(entry.start.source).parts if entry.start.source else ())]
            yield from among(place, LANGUAGE, [code for part in named for code in part.languages], study.languages)


def begun(study: "Study") -> Iterator[str]:
    """A method gets the weights that it does not train from its `start`, and starts do not form a circle."""
    for name, entry in study.methods.items():
        try:
            entry.method.check_start(study.methods[entry.start.method].method if entry.start else None)
        except ValueError as error:
            yield f"methods.{name}: {error}"
        chain = [name]
        while (start := study.methods[chain[-1]].start) and start.method not in chain:
            chain.append(start.method)
        if start and start.method == name:
            yield (
                f"methods.{name}.start: MLM runs would begin with one another in a circle, {' -> '.join([*chain, name])}: "
                "add a method without `start` for the first MLM runs, and name it here"
            )


def first_tasks(study: "Study") -> Iterator[str]:
    """A task and the task in its `start` have the same head, and starts of tasks do not form a circle."""
    for name, entry in study.tasks.items():
        first = entry.start
        if first is None:
            continue
        if wrong := list(among(f"tasks.{name}.start", "task", [first], study.tasks)):
            yield from wrong
            continue
        chain = [name]
        while (last := study.tasks[chain[-1]].start) in study.tasks and last not in chain:
            chain.append(str(last))
        if last in chain:
            yield f"tasks.{name}.start: tasks begin with one another in a circle: {' -> '.join([*chain, str(last)])}"
            continue
        later, earlier = (study.tasks[key].task for key in (name, first))
        for what, here, there in (
            ("head", later.head.name, earlier.head.name),
            *([("labels", later.labels, earlier.labels)] if later.head.output_per_label else []),
        ):
            if here != there:
                yield (
                    f"tasks.{name}.start: runs also begin with the head of task {first}, which has {what} {there}, "
                    f"but {name} has {what} {here}: name a task of the same kind"
                )


def grids(study: "Study") -> Iterator[str]:
    """Each run and each target of a grid has exactly one MLM run, where its method needs one."""
    for name, grid in study.grids.items():
        for key in grid.method:
            yield from _begins(study, name, grid, key)
        if len(grid.checkpoints) > len(set(grid.checkpoints)):
            yield f"grids.{name}.checkpoints: a step is twice in {grid.checkpoints}: remove one"


def _begins(study: "Study", name: str, grid: "Grid", key: str) -> Iterator[str]:
    start = study.methods[key].start
    if not study.methods[key].method.trains_head:
        yield (
            f"grids.{name}.method: {key}, with its options {study.methods[key].options}, is for MLM runs and trains no "
            "head: name a method that begins with it"
        )
    if grid.checkpoints and (start is None or start.source or start.at != "both"):
        yield (
            f"grids.{name}.checkpoints: cells of method {key} are not evaluated with the MLM runs of their targets: "
            "leave the method out of this grid, or give it a `start` without `source` and `at`"
        )
    if start is None:
        return
    sources, targets = study.sources(grid), study.targets(grid)
    wrong: list[str] = [source for source in sources if len(source.parts) > 1 or source.parts[0].is_pair]
    wrong += [target for target in targets if target.is_pair]
    if start.at == "target" and wrong:
        yield (
            f"grids.{name}: runs of method {key} begin with the MLM run of their target, so that sources and targets "
            f"must be single languages: leave out {', '.join(dict.fromkeys(wrong))}"
        )
        return
    without: list[Target] = []
    for source in sources:
        try:
            without += source.parts if start.of_source(source) is None else []
        except ValueError as error:
            yield f"grids.{name}.source: method {key}: {error}"
    if start.at == "both" and start.missing == "none":
        without += [target for target in targets if start.of_target(target, sources[0]) is None]
    if without and study.methods[key].method.needs_start:
        parts = ", ".join(dict.fromkeys(without))
        yield (
            f"grids.{name}: method {key} has no MLM run of {parts}, so that some of its weights would stay untrained: "
            f"add {parts} to `pairs` of its `start`, which has {', '.join(start.pairs)}, or leave {parts} out here"
        )
