"""A method with parameters of a language, for tests of the core, which has none."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from xlgrid.base.settings import Strict
from xlgrid.methods import METHODS
from xlgrid.methods.method import Method, of_encoders_only
from xlgrid.training.derived import ALL_DERIVED_RUNS, DerivedRuns


class Queries(Method):
    """Full fine-tuning, of which some parameters belong to a language, those of queries by default.

    With `tune: query`, MLM runs train them alone. Examples may be read a second time in the language `parallel`.
    """

    tune: str = "all"
    own: str = ".query."
    parallel: str = ""

    def misfit(self, config: Mapping[str, Any]) -> str | None:
        return of_encoders_only(config)

    def trains(self, name: str) -> bool:
        return self.trains_head or self.is_language_specific(name)

    @property
    def trains_head(self) -> bool:
        return self.tune != "query"

    def is_language_specific(self, name: str) -> bool:
        return self.own in name

    @property
    def parallel_language(self) -> str | None:
        return self.parallel or None


class ReadQueries(DerivedRuns, Strict):
    """Queries in a folder for each language."""

    about = "a folder of queries"
    rule = "read_queries"
    folder: str

    def inputs(self, run: Any, plan: Any) -> dict[str, str | list[str]]:
        return {"files": [f"{self.folder}/{run.source}/queries.safetensors"]}

    def settings(self, run: Any) -> dict[str, Any]:
        return {"place": f"{self.folder}/{run.source}"}

    def problems(self, study: Any, name: str) -> Iterator[str]:
        if study.methods[name].method.trains_head:
            yield "read: only queries can be read: set `tune: query`"


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method `queries` is one of the core, and so is the key `read` of methods whose runs are read."""
    monkeypatch.setitem(METHODS, "queries", Queries)
    monkeypatch.setitem(ALL_DERIVED_RUNS.builtin, "read", ReadQueries)  # type: ignore[arg-type]
