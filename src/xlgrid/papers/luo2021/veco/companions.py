"""The grids of a study whose examples have companions: the same examples in a second language."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xlgrid.base.names import among
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.sources import no_data
from xlgrid.languages.sources import Target
from xlgrid.study.languages import LANGUAGE

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def problems(study: "Study", key: str, grid: str, companion: str) -> Iterator[str]:
    """The mistakes in a grid with the method `key`, whose runs read each example once more in a language, each as `place: what is wrong`.

    That language is one of the study with data, sources and targets are languages, and tasks are of sequences, tokens or spans.
    """
    yield from among(f"methods.{key}.options.companion", LANGUAGE, [companion], study.languages)
    place, stated = f"grids.{grid}: method {key}", study.grids[grid]
    targets = study.targets(stated)
    parts = dict.fromkeys([part for source in study.sources(stated) for part in source.parts] + targets)
    for part in parts:
        if part.is_pair:
            yield f"{place} reads an example in one language and once more in {companion}, got the pair {part}: leave it out"
    for task in stated.task:
        entry = study.tasks[task]
        if not entry.task.target or entry.choices or entry.task.choices:
            yield f"{place} is for tasks of sequences, tokens and spans, and {task} is of kind {entry.kind}: leave it out"
        else:
            yield from (f"{place} {text}" for text in _without_companions(study, task, targets, companion))


def _without_companions(study: "Study", task: str, targets: list[Target], companion: str) -> Iterator[str]:
    """The splits of a task that have no companions."""
    entry = study.tasks[task]
    for target in [target for target in targets if entry.companions and target != companion]:
        data = study.tasks[str(entry.companions)].data
        if data and not (origin := data.of("test", target)).has(target):
            yield f"finds no companions: {no_data(str(entry.companions), origin, 'test', target)}"
    # Without another task, the test set has companions of its own.
    has_own = not entry.companions or companion in targets
    for split in SPLITS if has_own else SPLITS[:2]:
        key, other = study.entry(task, split)
        if other.data and not (origin := other.data.of(split, Target(companion))).has(Target(companion)):
            yield f"finds no companions: {no_data(key, origin, split, companion)}"
    if entry.is_generated and not entry.task.speaks(companion):
        yield f"finds no companions: {task} cannot be generated in {companion}: name another language in `companion`"
