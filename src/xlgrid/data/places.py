"""Places of data that xlgrid cannot read itself, such as a database.

A place is a subclass of `Place` that an installed package declares as an entry point of the group `xlgrid.places`. The
name of the entry point is the `kind` of the place.
"""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BeforeValidator, Field, SerializeAsAny

from xlgrid.base.plugins import Extensible
from xlgrid.base.settings import Strict
from xlgrid.data.origins.origin import Origin
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa


class Place(Strict):
    """A place of data.

    The fields of a subclass, besides the literal field `kind`, are the keys that a study may write.
    """

    kind: str

    def files(self, language: str, split: str) -> list[str]:
        """The files from which a split in a language is read, as paths from the project's folder.

        If a file changes, the split is read again.

        Args:
            language: the place's name of a language or pair (`names` in the study).
            split: the place's name of the split (`splits` in the study).
        """
        return []

    @abstractmethod
    def read(self, language: str, split: str) -> "pa.Table":
        """The rows of a split in a language, before the settings of the study select rows and rename columns.

        Args:
            language, split: see `files`.

        Raises:
            OSError, ValueError: the place cannot be read; the message names it, and says what to do.
        """


def _fits(name: str, value: Any) -> bool:
    """Whether an object is a class of places whose kind has this name."""
    return (
        isinstance(value, type) and issubclass(value, Place) and name in get_args(value.model_fields["kind"].annotation)
    )


ALL_PLACES = Extensible[type[Place]](
    "kind of place",
    "xlgrid.places",
    {},
    _fits,
    expected="a subclass of xlgrid.data.places.Place with a literal field `kind` of this name",
)


def _place_of(fields: Any) -> Any:
    """The place that a mapping from a study describes. Any other value, such as a `Place`, is returned."""
    if not isinstance(fields, Mapping):
        return fields
    if not isinstance(kind := fields.get("kind"), str):
        raise ValueError("`kind` is missing: add the name of a place that a package declares")
    return ALL_PLACES.find(kind).model_validate(fields)


AnyPlace = Annotated[SerializeAsAny[Place], BeforeValidator(_place_of, json_schema_input_type=dict[str, Any])]


class OfPackage(Origin):
    """A place that a package reads."""

    place: AnyPlace = Field(
        description="a place that a package reads, by its `kind`, such as `{kind: sqlite, database: mine.db}`: "
        "docs/how-to/origin.md",
    )

    @classmethod
    def describes(cls, fields: dict[str, Any]) -> bool:
        return "place" in fields

    def paths(self, language: str, split: str) -> list[str]:
        return self.place.files(*self._names(language, split))

    def read(self, described: Task, language: str, split: str, lock: str | Path) -> "tuple[pa.Table, str]":
        names = self._names(language, split)
        return self.place.read(*names), f"{self}, {', '.join(names)}"

    def _names(self, language: str, split: str) -> tuple[str, str]:
        """The names that the place has for a language and a split."""
        return self.configuration(language) or language, self.named(split)

    def __str__(self) -> str:
        return f"the place of kind {self.place.kind}"
