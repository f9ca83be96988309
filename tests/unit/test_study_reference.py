"""The reference of the study file and the JSON Schema are current, complete, and right about the studies of this project."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml
from module_fixture import load_module
from shipped import STUDIES

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "studies" / "study.schema.json").read_text())
FIRST = yaml.safe_load((STUDIES["first"]).read_text())


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_module(ROOT / "docs" / "study_reference.py")


def mistakes(study: dict[str, Any]) -> list[str]:
    """The mistakes that the JSON Schema finds, each after the place of its key. Keys of YAML may be numbers, those of JSON may not."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    errors = validator.iter_errors(json.loads(json.dumps(study)))
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def test_the_page_is_current(reference: ModuleType) -> None:
    assert reference.page() == reference.PAGE.read_text(), "run `python docs/study_reference.py`"


def test_the_json_schema_is_current(reference: ModuleType) -> None:
    assert reference.schema_text() == reference.SCHEMA.read_text(), "run `python docs/study_reference.py`"


def test_every_key_and_option_has_a_meaning(reference: ModuleType) -> None:
    lines = reference.PAGE.read_text().splitlines()
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []


def test_the_reference_names_nothing_of_the_code(reference: ModuleType) -> None:
    """A reader of the page knows YAML, and neither the modules of xlgrid nor the classes of the schema."""
    text = reference.PAGE.read_text()
    modules = "|".join(path.stem for path in (ROOT / "src" / "xlgrid").rglob("[a-z]*.py"))
    models = "|".join(reference.Study.model_json_schema()["$defs"])
    code = re.compile(rf"\bxlgrid\.\w+|`(?:{models}|Method)\b[^`]*`|`(?:{modules})\.\w+`|\b[A-Z]+_[A-Z_]+\b")
    places = set(re.findall(r"^#+ (`[^`]*`)$", text, re.MULTILINE))
    assert {*code.findall(text)} - places - {"`text.data`", "`options.0`"} == set()


@pytest.mark.parametrize("path", STUDIES.values(), ids=lambda path: path.stem)
def test_an_editor_finds_no_mistake_in_a_study_of_this_project(path: Path) -> None:
    assert mistakes(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("path", STUDIES.values(), ids=lambda path: path.stem)
def test_a_study_names_the_schema_in_its_first_line(path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert schema.resolve() == ROOT / "studies" / "study.schema.json"


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"langauges": []}, "langauges"),
        ({"title": None}, "title"),
        ({"tasks": {"ner": {"kind": "wikiann", "max_lenght": 64}}}, "max_lenght"),
        ({"tasks": {"ner": {"kind": "wikiann", "options": {"m": 4000}}}}, "tasks.ner.options"),
        ({"methods": {"x": {"base": "bitfit", "options": {"bert_head": "papers"}}}}, "methods.x.options.bert_head"),
        ({"training": [{"set": {"lr": "high"}}]}, "training.0.set.lr"),
        ({"exhibits": {"t": {"kind": "tabel", "title": "t"}}}, "exhibits.t.kind"),
        ({"exhibits": {"t": {"kind": "table", "title": "t", "columns": "target"}}}, "exhibits.t: 'rows'"),
    ],
)
def test_an_editor_finds_a_mistake(change: dict[str, Any], mistake: str) -> None:
    assert any(mistake in message for message in mistakes(FIRST | change))


def test_a_study_that_extends_may_lack_keys_and_remove_them_but_not_invent_them() -> None:
    study = {"extends": "first", "methods": {"full-ft": None}, "exhibits": {"transfer": {"digits": 2}}}
    assert mistakes(study) == []
    assert any("gird" in message for message in mistakes(study | {"gird": {}}))
    assert mistakes(study | {"grids": {"all": {"sed": [1]}}}) != []
