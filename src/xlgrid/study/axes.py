"""The names that a study defines, and the values on the axes of its grids."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def axes(study: "Study") -> dict[str, list[object]]:
    """Axis -> the values that the grids have on it, each once. The lists are new, so the caller may extend them."""
    return {axis: [*values] for axis, values in study.order.items()}


def with_first(study: "Study", tasks: Iterable[str]) -> list[str]:
    """Tasks, followed by the tasks that their `start` names, directly or through other tasks."""
    reached: dict[str, None] = {}
    ahead = list(tasks)
    while ahead:
        reached |= dict.fromkeys(ahead)
        ahead = [first for name in ahead if name in study.tasks and (first := study.tasks[name].start)]
    return [*reached]
