"""Check the grids of a study whose examples have parallel examples: the same examples in a second language."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.base.names import among
from xlgrid.data.origins.origin import SPLITS
from xlgrid.languages.sources import Target
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def problems(study: "Study", key: str, grid: str, parallel: str) -> Iterator[str]:
    """The mistakes in a grid with the method `key`, whose runs also read each example in a second language.

    The study must have data in the second language, sources and targets must be languages, and tasks must be of
    sequences, tokens or spans. Each mistake has the form `place: problem`.
    """
    yield from among(f"methods.{key}.options.parallel", LANGUAGE, [parallel], study.languages)
    place, stated = f"grids.{grid}: method {key}", study.grids[grid]
    targets = study.targets(stated)
    parts = dict.fromkeys([*study.trained(stated), *targets])
    for part in parts:
        if part.is_pair:
            yield f"{place} reads examples in one language and again in {parallel}, got the pair {part}: leave it out"
    for task in stated.task:
        entry = study.tasks[task]
        if not entry.task.target or entry.choices or entry.task.choices:
            yield f"{place} needs tasks of sequences, tokens or spans, and {task} is of kind {entry.kind}: leave it out"
        else:
            yield from (f"{place} {text}" for text in _without_parallel(study, task, targets, parallel))


def _without_parallel(study: "Study", task: str, targets: list[Target], parallel: str) -> Iterator[str]:
    """The splits of a task that have no parallel examples."""
    entry = study.tasks[task]
    for target in [target for target in targets if entry.parallel and target != parallel]:
        data = study.tasks[str(entry.parallel)].data
        if data and (problem := data.lacks(str(entry.parallel), "test", target)):
            yield f"finds no parallel examples: {problem}"
    # Without another task, the test set has its own parallel examples.
    has_own = not entry.parallel or parallel in targets
    for split in SPLITS if has_own else SPLITS[:2]:
        key, other = study.entry(task, split)
        if other.data and (problem := other.data.lacks(key, split, Target(parallel))):
            yield f"finds no parallel examples: {problem}"
    if entry.is_generated and not entry.task.speaks(parallel):
        yield f"finds no parallel examples: {task} cannot be generated in {parallel}: name another language in `parallel`"
