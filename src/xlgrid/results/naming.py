"""The axes of cells, the values that a study names on them, and what a paper calls these values."""

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


class Naming(Strict):
    """A paper's names for the values of a study, and the number of seeds behind the paper's numbers."""

    names: dict[NamedAxis, dict[str, str | dict[PublishedColumn, str]]] = Field(
        default={},
        description="axis -> name in the study -> name in the paper, where the two differ; a group `mono` is `avg:mono` unless "
        "named here; a name that fills several columns of the paper gives each: {lot-context-only: {dataset: lot, method: "
        "context-only}}",
    )
    seeds: PositiveInt = Field(default=1, description="over how many seeds the paper averages; 1 where it does not say")
    seeds_of: dict[NamedAxis, dict[str, PositiveInt]] = Field(
        default={},
        description="axis -> name in the study -> the number of seeds, where it differs: {method: {mlm-trg: 1}}; the smallest "
        "counts where several apply",
    )

    def problems(self, known: Mapping[str, Sequence[object]]) -> Iterator[str]:
        """The study's names that do not exist, each as `key: what is wrong`. The paper's names are checked when an exhibit is rendered.

        Args:
            known: axis, or `group` -> the names that there are.
        """
        sections: dict[str, Mapping[NamedAxis, Mapping[str, object]]] = {"names": self.names, "seeds_of": self.seeds_of}
        for key, section in sections.items():
            for axis, values in section.items():
                if axis != "metric":
                    yield from among(f"{key}.{axis}", axis, values, known[axis])


class Published(Naming):
    """The published numbers that an exhibit is compared with; keys that are absent are as in the study's `published`."""

    file: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="{paper}/{exhibit}: a CSV in reference/")

    @property
    def path(self) -> Path:
        return published_file(self.file)
