"""Runs that are read from files of others instead of being trained."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel

from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.data.published import Repository
from xlgrid.methods import Method


class ImportedRuns(BaseModel):
    """Runs of a method that a rule of a package makes from the files of others.

    A package declares a subclass as an entry point of the group `xlgrid.imported_runs`. The name of the entry point is
    a key of `methods.NAME` in a study, and the subclass parses the value of the key. If the value is a mapping, the
    subclass also inherits from `Strict`; otherwise, it also inherits from `pydantic.RootModel`. In the methods, `run`
    is an `xlgrid.products.train.Run`.

    Attributes:
        about: the meaning of the key in the reference of the study file.
        rule: the rule that writes the files of a run.
    """

    about: ClassVar[str]
    rule: ClassVar[str]

    @abstractmethod
    def inputs(self, run: Any) -> list[str]:
        """The local files from which the rule makes a run, besides its encoder."""

    @abstractmethod
    def settings(self, run: Any) -> dict[str, str | int | list[str]]:
        """The settings of the rule's command, besides the recipe of the run."""

    def repository(self, run: Any) -> Repository | None:
        """The repository on the Hub from which a run is fetched; None if it comes from elsewhere."""
        return None

    def problems(self, method: Method) -> Iterator[str]:
        """The mistakes in the settings, each as `key: what is wrong`.

        Args:
            method: the method with the key.
        """
        yield from ()


ALL_IMPORTED = Extensible[type[ImportedRuns]](
    "key of methods",
    "xlgrid.imported_runs",
    {},
    fits=is_subclass_of(ImportedRuns),
    expected="a subclass of xlgrid.training.imported.ImportedRuns",
)
