"""Starting points are valid, overwrite nothing, and refuse names that are taken or cannot be names."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from module_fixture import load_module

from xlgrid.plan.load import load_plan
from xlgrid.preflight import State
from xlgrid.preflight.files import file_lines, materials
from xlgrid.starters import new
from xlgrid.starters.new import begin
from xlgrid.synthetic import natural


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "studies").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "name", "cells"), [("study", "mine", 36), ("language", "qa9", 36), ("language", "qa1", 36)]
)
def test_a_study_is_planned_as_it_was_written(kind: str, name: str, cells: int) -> None:
    [path] = begin(kind, name).files
    assert path.read_text().startswith("# yaml-language-server: $schema=study.schema.json\n")
    assert len(load_plan(name).cells) == cells
    assert name in load_plan(name).study.languages or kind == "study"


def test_a_task_reads_the_files_that_were_written_beside_it() -> None:
    begin("task", "pets")
    plan = load_plan("pets")
    lines = [*file_lines(plan, materials(plan))]
    assert {line.thing for line in lines} == {"data pets", "text"}
    assert {line.state for line in lines} == {State.GOOD}, lines
    rows = [json.loads(row) for row in Path("data/pets/de/test.jsonl").read_text().splitlines()]
    assert len(rows) == 12 and {row["label"] for row in rows} == {"animal", "plant"}


def test_the_splits_of_a_task_share_no_sentence() -> None:
    begin("task", "pets")
    splits = [set(Path(f"data/pets/en/{split}.jsonl").read_text().splitlines()) for split in ("train", "dev", "test")]
    assert [len(rows) for rows in splits] == [72, 12, 12]
    assert len(set.union(*splits)) == 96


def test_a_method_is_a_package_that_declares_it() -> None:
    files = begin("method", "norm-tuning").files
    about = tomllib.loads(Path("methods/norm-tuning/pyproject.toml").read_text())
    assert about["project"]["entry-points"]["xlgrid.methods"] == {"norm-tuning": "xlgrid_norm_tuning:NormTuning"}
    module = Path("methods/norm-tuning/xlgrid_norm_tuning.py")
    assert module in files
    method = load_module(module).NormTuning(embeddings=False)
    assert method.trains("roberta.encoder.layer.0.output.LayerNorm.bias") and method.trains("classifier.weight")
    assert not method.trains("roberta.embeddings.LayerNorm.bias")


def test_a_language_is_a_lexicon_that_can_be_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lexicons = project / "lexicons"
    shutil.copytree(natural.LEXICONS, lexicons)
    monkeypatch.setattr(new, "LEXICONS", lexicons)
    begun = begin("language", "nl")
    assert lexicons / "nl.yaml" in begun.files and Path("studies/nl.yaml") in begun.files
    written = natural.lexicon("nl", lexicons)
    assert (written.english, written.family, written.script) == ("Dutch", "Germanic", "Latn")
    assert "begun as a copy of de.yaml" in (lexicons / "nl.yaml").read_text()


@pytest.mark.parametrize(
    ("kind", "name", "like", "message"),
    [
        ("studdy", "mine", None, "did you mean 'study'"),
        ("study", "a/b", None, "cannot be a name"),
        ("study", "mine", "en", "leave it out"),
        ("task", "xnli", None, "is the name of a task or head that exists"),
        ("method", "bitfit", None, "the method bitfit exists"),
        ("method", "My_Method", None, "lower-case letters"),
        ("language", "de", None, "has a lexicon"),
        ("language", "xq", None, "unknown language 'xq'"),
        ("language", "nl", "dee", "did you mean 'de'"),
        ("language", "qa9", "de", "needs no lexicon"),
    ],
)
def test_a_name_that_cannot_be_or_is_taken_is_refused(
    project: Path, kind: str, name: str, like: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        begin(kind, name, like)
    assert [*Path("studies").iterdir()] == []


def test_nothing_is_written_if_one_file_exists() -> None:
    Path("studies/pets.yaml").write_text("mine")
    with pytest.raises(FileExistsError, match=r"studies/pets\.yaml exists already"):
        begin("task", "pets")
    assert Path("studies/pets.yaml").read_text() == "mine" and not Path("data").exists()


def test_a_folder_that_is_no_project_is_refused(project: Path) -> None:
    (project / "studies").rmdir()
    with pytest.raises(ValueError, match="in the folder of your clone"):
        begin("study", "mine")
