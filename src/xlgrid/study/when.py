"""Entries of a study that are for some of its runs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from xlgrid.base.names import among
from xlgrid.base.settings import Strict

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class ForRuns(Strict):
    """An entry for the runs that match `when`."""

    when: dict[Literal["task", "encoder", "method", "base", "source"], str | list[str]] = Field(
        {},
        description="the runs to which the entry applies; absent: all. `base` matches every method with that base; a "
        "group of sources matches each of its members",
    )

    def matches(self, study: "Study", run: Mapping[str, str]) -> bool:
        """Whether the entry is for a run with these values on its axes, or may be, if `run` lacks axes of `when`."""
        return all(run[axis] in study.meant(axis, self.when[axis]) for axis in self.when if axis in run)

    def problems_of_when(self, study: "Study", place: str) -> Iterator[str]:
        """Names in `when` that the study lacks, each as `place: what is wrong`."""
        for axis, values in self.when.items():
            try:
                named = study.meant(axis, values)
            except ValueError as error:
                yield f"{place}.when.{axis}: {error}"
            else:
                yield from among(f"{place}.when.{axis}", axis, named, study.defined_names.get(axis, named))
