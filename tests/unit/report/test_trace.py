"""Everything behind a number: its results, what they were made from and by, and what has changed since."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from results_fixture import EXHIBITS, make_results, result
from status_fixture import CELL, RUN, STUDY, write

from xlgrid.products.data import Data
from xlgrid.products.encode import Encoder
from xlgrid.report.trace import settings_used, show, trace

MEANS, CLAIMS = "results/tiny/exhibits/means.csv", "results/tiny/claims.csv"


@pytest.fixture(autouse=True)
def project(tiny_project: None) -> None:
    make_results()


def one(**labels: list[str]) -> dict[str, Any]:
    [entry] = trace(MEANS, **labels)["entries"]
    return entry


def test_an_entry_has_the_cells_of_its_seeds_with_what_they_record() -> None:
    entry = one(rows=["qa1"], columns=["qa2"])
    assert (entry["row"], entry["column"], entry["text"]) == ({"source": "qa1"}, {"column": "qa2"}, "71.5 ± 0.7")
    assert entry["statistics"]["mean"] == 71.5
    assert [(each["seed"], each["score"], each["commit"]) for each in entry["results"]] == [
        (1, 71, "c1"),
        (2, 72, "c2"),
    ]
    first = entry["results"][0]
    assert first["path"] == CELL._replace(target="qa2").path and Path(first["path"]).exists()
    assert (first["metric"], first["chance"], first["n"], first["run"]) == ("f1", 1.5, 2, RUN.folder)


def test_a_row_is_named_as_the_study_or_as_the_table_names_it() -> None:
    write("studies/tiny.yaml", STUDY + EXHIBITS + "labels: {qa1: First, qa2: Second}\n")
    assert one(rows=["First"], columns=["Second"]) == one(rows=["qa1"], columns=["qa2"])


def test_an_average_has_the_cells_of_all_its_columns() -> None:
    assert {each["target"] for each in one(rows=["qa1"], columns=["average"])["results"]} == {"qa1", "qa2", "qb1"}


def test_without_labels_the_whole_table_is_traced_and_missing_results_are_counted() -> None:
    traced = trace(MEANS)
    assert len(traced["entries"]) == 2 * 4
    assert "6 of 12 results do not exist, and no number depends on them." in traced["notes"]
    assert {each["path"] for each in traced["runs"]} == {RUN.path, RUN._replace(seed=2).path}


def test_files_and_commands_are_those_of_the_results() -> None:
    traced = trace(MEANS, ["qa1"], ["qb1"])
    encoder = Encoder("tiny", "tiny").path
    assert traced["files"][encoder] == hashlib.sha256(Path(encoder).read_bytes()).hexdigest()
    paths = [CELL.path, CELL._replace(seed=2).path]
    assert traced["commands"]["results"] == f"snakemake --cores all --force -- {' '.join(paths)}"
    assert traced["made_by"]["commit"] == ["c1", "c2", "None"] and traced["study_file"] == "studies/tiny.yaml"
    assert "The results differ in commit: c1, c2, None." in traced["notes"]


def test_a_table_that_is_older_than_its_results_is_told() -> None:
    assert not [note for note in trace(MEANS)["notes"] if MEANS in note]
    result(CELL, {"f1": 99.0})
    [note] = [note for note in trace(MEANS)["notes"] if MEANS in note]
    assert "differs from what the results give now" in note


def test_other_inputs_than_those_of_the_training_are_told() -> None:
    run = f"{RUN.path}: its inputs have changed since the training"
    assert not [note for note in trace(MEANS)["notes"] if "inputs" in note]
    write(Encoder("tiny", "tiny").path, "another")
    assert any(note.startswith(run) for note in trace(MEANS)["notes"])


def test_a_claim_has_the_cells_that_it_compares() -> None:
    [entry] = trace(CLAIMS, ["near"])["entries"]
    assert entry["text"] == "not judged: It is nearer."
    assert {(each["target"], each["seed"]) for each in entry["results"]} == {
        (t, s) for t in ("qa2", "qb1") for s in (1, 2)
    }


def test_a_claim_has_its_verdict() -> None:
    numbers = "claim,verdict,like_verdict,effect,low,high\nnear,holds,too few languages,2.0,1.0,3.0\n"
    write(CLAIMS, numbers)
    [entry] = trace(CLAIMS, ["near"])["entries"]
    assert entry["text"].startswith("holds, +2.0 [1.0, 3.0]") and entry["statistics"]["low"] == 1.0


@pytest.mark.parametrize("table", [MEANS, CLAIMS])
def test_what_is_missing_is_no_number_in_json(table: str) -> None:
    write(CLAIMS, "claim,verdict,like_verdict,effect,low,high\nnear,not enough runs,not enough runs,,,\n")
    json.dumps(trace(table), allow_nan=False, default=float)


@pytest.mark.parametrize("path", [CELL.path, RUN.path])
def test_a_result_is_traced_itself(path: str) -> None:
    traced = trace(path)
    assert [each["path"] for each in traced["entries"][0]["results"]] == [path]
    assert [each["path"] for each in traced["runs"]] == [RUN.path]


def test_an_exhibit_without_results_depends_on_none() -> None:
    """Without a target, Snakemake would make the default study again."""
    traced = trace("results/tiny/exhibits/groups.csv")
    assert not [each for entry in traced["entries"] for each in entry["results"]]
    assert traced["commands"].keys() == {"file"}


def test_the_command_for_results_makes_missing_ones_too() -> None:
    command = trace(MEANS, ["qa2"], ["qb1"])["commands"]["results"]
    assert command.endswith(f" -- {CELL._replace(source='qa2').path} {CELL._replace(source='qa2', seed=2).path}")


@pytest.mark.parametrize(
    ("training", "used"),
    [
        ({"steps": 300, "epochs": 3.0, "lr": 1e-4}, {"steps": 300, "lr": 1e-4}),
        ({"steps": None, "epochs": 3.0}, {"steps": None, "epochs": 3.0}),
        ({"batch_size": 32, "batch_tokens": 4096}, {"batch_size": 32}),
    ],
)
def test_a_setting_over_which_another_one_wins_is_left_out(training: dict[str, Any], used: dict[str, Any]) -> None:
    assert settings_used(training) == used


@pytest.mark.parametrize(
    ("file", "labels", "message"),
    [
        (MEANS, {"rows": ["qa3"]}, "unknown row 'qa3', did you mean 'qa2'"),
        (MEANS, {"columns": ["avrage"]}, "unknown column 'avrage', did you mean 'average'"),
        ("results/tiny/exhibits/mean.csv", {}, "The nearest file is results/tiny/exhibits/means.csv"),
        ("README.md", {}, "README.md is no file of a study: name a table"),
        (Data("tiny", "ner", "qa1", "test").path, {}, "is no table, and no result: name a table"),
    ],
)
def test_what_cannot_be_traced_is_told_with_the_nearest(file: str, labels: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trace(file, **labels)


def test_the_screen_has_the_cells_and_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    show(trace(MEANS, ["qa1"], ["qb1"]))
    output = capsys.readouterr().out
    assert "41.5 ± 0.7" in output and CELL.path in output and RUN.path in output
    assert "snakemake --cores all --force -- " in output
