"""The names that a study defines, and the values on the axes of its grids."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def axes(study: "Study") -> dict[str, list[object]]:
    """Axis -> every value that the grids have on it, each once, for the caller to extend."""
    return {axis: [*values] for axis, values in study.order.items()}


def with_first(study: "Study", tasks: Iterable[str]) -> list[str]:
    """Tasks, and the tasks with whose runs theirs begin."""
    reached: dict[str, None] = {}
    ahead = list(tasks)
    while ahead:
        reached |= dict.fromkeys(ahead)
        ahead = [first for name in ahead if name in study.tasks and (first := study.tasks[name].start)]
    return [*reached]
