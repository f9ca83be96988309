"""The names that a study defines, and the values on the axes of its grids."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def axes(study: "Study") -> dict[str, list[object]]:
    """Axis -> every value that the grids have on it, each once, for the caller to extend."""
    return {axis: [*values] for axis, values in study.order.items()}


def facts(study: "Study") -> dict[str, list[object]]:
    """Fact -> every value that encoders of the study have of it, each once."""
    values: dict[str, list[object]] = {}
    for known in study.facts.values():
        for fact, value in known.items():
            values.setdefault(fact, [])
            values[fact] += [value] if value not in values[fact] else []
    return values


def with_first(study: "Study", tasks: Iterable[str]) -> list[str]:
    """Tasks, and the tasks with whose runs theirs begin."""
    reached: dict[str, None] = {}
    ahead = list(tasks)
    while ahead:
        reached |= dict.fromkeys(ahead)
        ahead = [first for name in ahead if name in study.tasks and (first := study.tasks[name].start)]
    return [*reached]


def metrics(study: "Study", tasks: Iterable[object]) -> list[str]:
    """The metrics of some tasks, each once."""
    return list(dict.fromkeys(metric for key in tasks for metric in study.metrics[str(key)]))
