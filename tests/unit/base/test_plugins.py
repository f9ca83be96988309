"""Entry points of installed packages, beside xlgrid's own names."""

import ast
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NoReturn

import pytest
from plugin_fixture import install

from xlgrid.base import plugins
from xlgrid.base.plugins import Extensible

GROUP = "xlgrid.numbers"


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two installed packages, which both declare the name `shared`."""
    first = {"three": "first_numbers:THREE", "one": "first_numbers:ANOTHER_ONE", "shared": "first_numbers:THREE"}
    first |= {"word": "first_numbers:WORD", "gone": "first_numbers:GONE"}
    code = "ANOTHER_ONE, THREE, WORD = 111, 3, 'three'\n"
    monkeypatch.syspath_prepend(install(tmp_path / "first", "first-numbers", "1.5", code, {GROUP: first}))
    broken = {"four": "broken_numbers:FOUR", "shared": "broken_numbers:FOUR"}
    code = "raise RuntimeError('no such device')\n"
    monkeypatch.syspath_prepend(install(tmp_path / "broken", "broken-numbers", "0.2", code, {GROUP: broken}))
    code = "raise SystemExit('a licence is missing')\n"
    leaving = {GROUP: {"five": "leaving_numbers:FIVE"}}
    monkeypatch.syspath_prepend(install(tmp_path / "leaving", "leaving-numbers", "0.3", code, leaving))


def numbers() -> Extensible[int]:
    return Extensible("number", GROUP, {"one": 1, "two": 2}, lambda name, value: isinstance(value, int), "an int")


def test_a_name_is_that_of_an_entry_point() -> None:
    assert numbers().find("three") == 3
    assert numbers().package("three") == {"first-numbers": "1.5"}


def test_a_name_of_xlgrid_is_xlgrids() -> None:
    assert numbers().find("one") == 1
    assert numbers().package("one") == {}


def test_entry_points_are_read_for_other_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**group: Any) -> None:
        raise AssertionError("the entry points were read")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    known = numbers()
    assert (known.find("one"), known.get("two"), [*known.known()]) == (1, 2, [1, 2])
    assert known.package("one") == {}
    with pytest.raises(AssertionError):
        known.get("three")


def test_an_unknown_name_is_told_beside_all_names() -> None:
    assert numbers().get("thee") is None
    with pytest.raises(
        ValueError, match=r"unknown number 'thee', did you mean 'three'\? \(there are: one, two, .*three"
    ):
        numbers().find("thee")


def test_what_was_imported_is_known() -> None:
    known = numbers()
    assert [*known.known()] == [1, 2]
    known.find("three")
    assert [*known.known()] == [1, 2, 3]


def test_a_name_of_two_packages_is_refused_with_both() -> None:
    with pytest.raises(
        ValueError, match=r"'shared' is declared by broken-numbers 0\.2 and first-numbers 1\.5: uninstall"
    ):
        numbers().find("shared")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("four", r"'four' of the package broken-numbers 0\.2 .*: RuntimeError: no such device; correct or uninstall"),
        (
            "five",
            r"'five' of the package leaving-numbers 0\.3 .*: SystemExit: a licence is missing; correct or uninstall",
        ),
        ("gone", r"'gone' of the package first-numbers 1\.5 .*: AttributeError: .*'GONE'"),
        ("word", r"'word' of the package first-numbers 1\.5 .* is 'three', expected an int; correct"),
    ],
)
def test_an_entry_point_that_cannot_be_used_names_its_package(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        numbers().find(name)


def test_the_module_of_the_documentation_s_example_imports_nothing_slow() -> None:
    """Every command that reads a study with such a method imports the module."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "method.md").read_text(encoding="utf-8")
    [module] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    imported = [node.module for node in ast.parse(module).body if isinstance(node, ast.ImportFrom)]
    assert {*imported} <= {"xlgrid.methods", "pydantic"}


def test_a_checkout_that_is_not_installed_has_the_parts_of_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    installed = {name: point.value for name, point in plugins._own_points("xlgrid.methods").items()}
    monkeypatch.setattr("importlib.metadata.distribution", missing)
    plugins._own_points.cache_clear()
    found = {name: point.value for name, point in plugins._own_points("xlgrid.methods").items()}
    plugins._own_points.cache_clear()
    assert found == installed
