"""The axes of cells, the names of their values in a study, and the names of these values in a paper."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt, StrictFloat, StrictInt, StrictStr

from xlgrid.base.names import among
from xlgrid.base.papers import published_file
from xlgrid.base.settings import Strict

NamedAxis = Literal["task", "encoder", "method", "source", "target", "metric", "group"]
PublishedColumn = Literal["dataset", "model", "method", "source", "target", "metric"]
# The name of an average over several sources or targets in published numbers.
SEVERAL = "avg"


def as_tuple(value: Any) -> Any:
    """A list as a tuple, and a single value as a tuple of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


# A fact of an encoder may have a fraction.
Value = StrictStr | StrictInt | StrictFloat
Values = Annotated[
    tuple[Value, ...],
    BeforeValidator(as_tuple, json_schema_input_type=str | int | float | tuple[str | int | float, ...]),
    Field(min_length=1),
]


# The axes whose values may stand for others.
SUBSTITUTED: tuple[NamedAxis, ...] = ("encoder", "task", "method")


class Naming(Strict):
    """A paper's names for the values of a study, and the number of seeds behind the paper's numbers."""

    names: dict[NamedAxis, dict[str, str | dict[PublishedColumn, str]]] = Field(
        default={},
        description="axis -> name in the study -> name in the paper, if the two differ. The default for a group `mono` "
        "is `avg:mono`. A name that corresponds to several columns of the paper lists them: {lot-context-only: "
        "{dataset: lot, method: context-only}}",
    )
    seeds: PositiveInt = Field(default=1, description="number of seeds of the paper's means; 1 if it is not known")
    seeds_of: dict[NamedAxis, dict[str, PositiveInt]] = Field(
        default={},
        description="axis -> name in the study -> number of seeds, if it differs: {method: {mlm-trg: 1}}; if several "
        "numbers apply, the smallest is used",
    )

    @property
    def substitutes(self) -> str:
        """The encoders, tasks and methods of the study that stand for others of the paper, in a sentence; "" without any."""
        each = [
            f"{ours} for {name}"
            for axis in SUBSTITUTED
            for ours, name in self.names.get(axis, {}).items()
            if isinstance(name, str) and name != ours
        ]
        return f"This study has {', '.join(each)}." if each else ""

    def problems(self, known: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The names of the study that do not exist, each as `key: problem`. The names of the paper are checked when an
        exhibit is rendered.

        Args:
            known: axis, or `group` -> the existing names.
        """
        sections: dict[str, Mapping[NamedAxis, Mapping[str, object]]] = {"names": self.names, "seeds_of": self.seeds_of}
        for key, section in sections.items():
            for axis, values in section.items():
                if axis != "metric":
                    yield from among(f"{key}.{axis}", axis, values, known[axis])


class Published(Naming):
    """The published numbers with which an exhibit is compared. Absent keys have the values of the study's
    `published`."""

    file: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="{paper}/{exhibit}: a CSV in reference/")

    @property
    def path(self) -> Path:
        return published_file(self.file)
