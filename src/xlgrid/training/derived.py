"""Runs that a rule makes without training."""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel

from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.data.published import Repository


class DerivedRuns(BaseModel):
    """Runs of a method that a rule makes without training: from other runs of the study, or from files of others.

    A subclass is an entry point of the group `xlgrid.derived_runs`. The name of the entry point is a key of
    `methods.NAME` in a study, and the subclass parses the value of the key. If the value is a mapping, the subclass also
    inherits from `Strict`; otherwise, it also inherits from `pydantic.RootModel`. In the methods, `run` is an
    `xlgrid.products.train.Run` under the name of the study, `plan` an `xlgrid.plan.plan.Plan`, and `study` an
    `xlgrid.study.schema.Study`.

    Attributes:
        about: the meaning of the key in the reference of the study file.
        rule: the rule that writes the files of a run.
    """

    about: ClassVar[str]
    rule: ClassVar[str]

    @property
    def methods(self) -> list[str]:
        """The methods of the runs from which the rule makes runs."""
        return []

    def runs(self, run: Any, study: Any) -> list[Any]:
        """The runs of the study from which the rule makes a run, besides those with which the run begins (`start`)."""
        return []

    def inputs(self, run: Any, plan: Any) -> dict[str, str | list[str]]:
        """The files from which the rule makes a run, by name, besides its encoder and the runs with which it begins."""
        return {}

    def settings(self, run: Any) -> dict[str, str | int | list[str]]:
        """The settings of the rule's command, besides the recipe of the run."""
        return {}

    def recipe(self, run: Any, study: Any) -> dict[str, Any]:
        """What the recipe of a run says about its derivation, as values of JSON. It is a part of the run's identity."""
        return {}

    def evaluated(self, run: Any, plan: Any) -> list[Any]:
        """The tokens on which the rule evaluates models of a run, once for each evaluation, for `xlgrid cost`."""
        return []

    def gradients(self, run: Any, study: Any) -> dict[Any, int]:
        """Run -> the number of its training examples for which the rule computes gradients one at a time, for `xlgrid cost`."""
        return {}

    def is_aimed(self, study: Any) -> bool:
        """Whether there is a run for each target, source@target."""
        return False

    def repository(self, run: Any) -> Repository | None:
        """The repository on the Hub from which a run is fetched; None if it comes from elsewhere."""
        return None

    def problems(self, study: Any, name: str) -> Iterator[str]:
        """The mistakes in the settings, each as `key: what is wrong`.

        Args:
            name: the name of the method in the study. Names in the settings may be unknown to the study.
        """
        yield from ()

    def problems_in(self, study: Any, name: str, grid: str) -> Iterator[str]:
        """Why a grid cannot have the method, each as `place: what is wrong`. The names in both exist.

        Args:
            name, grid: the names of the method and of the grid.
        """
        yield from ()

    def mistakes(self, run: Any, plan: Any) -> Iterator[str]:
        """Why a run could not be made, each as `key: what is wrong`."""
        yield from ()


ALL_DERIVED_RUNS = Extensible[type[DerivedRuns]](
    "key of methods",
    "xlgrid.derived_runs",
    {},
    fits=is_subclass_of(DerivedRuns),
    expected="a subclass of xlgrid.training.derived.DerivedRuns",
)
