"""Parts of a study get other names, and what was computed under the old names is moved."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import cells, commands, planned, shell, succeeds

RENDERED = {"all", "table", "figure", "claims", "report_notebook", "report_html"}
TIMES = ("seconds", "cpu_seconds")


def renamed(value: Any, old: str, new: str) -> Any:
    """A study in which every name `old` is `new`."""
    if isinstance(value, dict):
        return {renamed(key, old, new): renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, old, new) for each in value]
    return new if value == old else value


@pytest.fixture
def copy(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo, tmp_path / "copy", symlinks=True))


def edit(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    file = folder / "studies" / "demo.yaml"
    file.write_text(yaml.safe_dump(change(yaml.safe_load(file.read_text()))))


def rename(study: dict[str, Any], part: str, old: str, new: str) -> dict[str, Any]:
    """The study in which a part has another name, and a method still has its base."""
    study = renamed(study, old, new)
    if part == "method":
        study["methods"][new] = {"base": old}
    return study


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [("method", "bitfit", "biases"), ("task", "ner", "names"), ("encoder", "mini-bert", "small")],
)
def test_nothing_is_computed_for_a_new_name(copy: Path, part: str, old: str, new: str) -> None:
    before = cells(copy)
    edit(copy, lambda study: rename(study, part, old, new))
    assert planned(copy)["train"], "without the command, the runs of the new name train"
    succeeds(copy, f"xlgrid rename demo {part} {old} {new}")
    assert set(planned(copy)) <= RENDERED
    succeeds(copy, "snakemake --profile laptop")
    after = cells(copy)
    assert {name.replace(f"/{old}/", f"/{new}/") for name in before} == set(after)
    for name, cell in before.items():
        same = after[name.replace(f"/{old}/", f"/{new}/")]
        assert {**cell, part: same[part], "run": same["run"]} == same
        run = json.loads((copy / same["run"] / "run.json").read_text())
        assert same["digest"] == run["digest"] and run["recipe"][part] == same[part]
    assert not [path for path in (copy / "results" / "demo").rglob(old) if "study" not in path.parts]


def test_snakemake_still_knows_what_else_has_changed(copy: Path) -> None:
    def change(study: dict[str, Any]) -> dict[str, Any]:
        study = rename(study, "method", "bitfit", "biases")
        study["training"].append({"when": {"method": "biases", "task": "ner"}, "set": {"lr": 0.5}})
        study["training"].append({"when": {"method": "full-ft", "task": "ruletaker-d0"}, "set": {"lr": 0.5}})
        return study

    edit(copy, change)
    succeeds(copy, *commands("docs/how-to/renaming.md"))
    # A run of the renamed method, and those of another task from two sources.
    assert planned(copy)["train"] == 1 + 2


def test_a_study_that_extends_the_renamed_one_is_renamed_after_it(copy: Path) -> None:
    own = {
        "extends": "demo",
        "title": "Other rates",
        "training": [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2, "lr": 0.01}}],
        "grids": {"ner": {"method": ["bitfit"]}, "ruletaker": None},
        "exhibits": None,
    }
    (copy / "studies/own.yaml").write_text(yaml.safe_dump(own))
    succeeds(copy, "snakemake --profile laptop results/own/report.html")
    edit(copy, lambda study: rename(study, "method", "bitfit", "biases"))
    own["grids"]["ner"]["method"] = ["biases"]  # type: ignore[index]
    (copy / "studies/own.yaml").write_text(yaml.safe_dump(own))
    succeeds(copy, "xlgrid rename demo method bitfit biases", "xlgrid rename own method bitfit biases")
    assert set(planned(copy, "results/own/report.html")) <= RENDERED - {"all"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("method bitfit biasses", "unknown method 'biasses', did you mean 'biases'?"),
        ("method full-ft biases", "study demo still has the method 'full-ft'"),
    ],
)
def test_a_name_that_the_study_does_not_have_is_refused(copy: Path, names: str, message: str) -> None:
    edit(copy, lambda study: rename(study, "method", "bitfit", "biases"))
    process = shell(copy, f"xlgrid rename demo {names}")
    assert process.returncode == 1 and message in process.stderr
