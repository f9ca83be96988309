"""A method with parameters of a language, for tests of the core, which has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from xlgrid.methods import METHODS
from xlgrid.methods.method import AdapterFormat, Method, of_encoders_only


def files(folder: str | Path) -> list[str]:
    return [f"{folder}/adapter.safetensors"]


@dataclass(frozen=True)
class Queries(Method):
    """Full fine-tuning, of which some parameters belong to a language, those of queries by default.

    With `tune: query`, MLM runs train them alone. Examples may be read a second time in the language `parallel`.
    """

    adapter_format: ClassVar[AdapterFormat | None] = SimpleNamespace(TEXT_OPTIONS="{tune: query}", files=files)

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


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method `queries` is one of the core."""
    monkeypatch.setitem(METHODS, "queries", Queries)
