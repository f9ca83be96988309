"""Cells in the schema of Every Eval Ever: each log is valid, and its examples are those of the cells that it names."""

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from results_fixture import result
from status_fixture import CELL

from xlgrid.evaluation.cell import pack
from xlgrid.plan.load import load_plan
from xlgrid.report import every_eval_ever, predictions

LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
SENTENCES = [(["Ada", "Lovelace", "lives"], [1, 2, 0]), (["in", "Rome"], [0, 5])]
FOLDER = Path("logs")


@pytest.fixture
def log(tiny_project: None) -> dict[str, Any]:
    """The log of a run with one cell."""
    predictions.rows_of.cache_clear()
    path = Path(predictions.data_path(load_plan("tiny"), CELL))
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([{"tokens": words, "ner_tags": tags} for words, tags in SENTENCES]), path)
    outcomes = {"labels": LABELS, "outcomes": pack([[[1, 2, 0], [1, 0, 0]], [[0, 5], [0, 5]]])}
    versions = {"xlgrid": "0.1", "transformers": "5.23"}
    result(
        CELL, {"f1": 61.5}, **outcomes, versions=versions, commit="c1", chance={"f1": 1.0}, command="xlgrid evaluate"
    )
    message = every_eval_ever.export(load_plan("tiny"), FOLDER)
    assert message == "wrote 1 logs to logs: 1 cells"
    [path] = FOLDER.glob("data/tiny/tiny/ner_tiny_full-ft_qa1_seed1/*.json")
    contents: dict[str, Any] = json.loads(path.read_text())
    return contents


def lines(log: dict[str, Any]) -> list[dict[str, Any]]:
    text = (FOLDER / log["detailed_evaluation_results"]["file_path"]).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_log_has_the_scores_of_its_cells(log: dict[str, Any]) -> None:
    [found] = [each for each in log["evaluation_results"] if each["evaluation_result_id"] == "ner/qb1/f1"]
    assert found["score_details"]["score"] == 61.5
    assert found["score_details"]["details"] == {"n": "2", "cell": CELL.path, "chance": "1.0"}
    assert (found["metric_config"]["metric_unit"], found["metric_config"]["lower_is_better"]) == ("percent", False)
    assert log["eval_library"] == {"name": "xlgrid", "version": "0.1", "additional_details": {"commit": "c1"}}


def test_a_time_of_evaluation_that_no_record_has_is_left_out(log: dict[str, Any]) -> None:
    assert "evaluation_timestamp" not in log


def test_an_example_has_its_text_both_answers_and_a_hash(log: dict[str, Any]) -> None:
    first, second = lines(log)
    assert first["input"] == {"raw": "Ada Lovelace lives", "reference": ["B-PER I-PER O"]}
    assert first["output"] == {"raw": ["B-PER O O"]} and first["evaluation"] == {"score": 0.0, "is_correct": False}
    assert second["evaluation"] == {"score": 1.0, "is_correct": True}
    # The recipe of Every Eval Ever.
    text = json.dumps({"raw": "in Rome", "reference": ["O B-LOC"]}, sort_keys=True, separators=(",", ":"))
    assert second["sample_hash"] == hashlib.sha256(text.encode()).hexdigest()


def test_examples_and_their_log_name_each_other(log: dict[str, Any]) -> None:
    detailed = log["detailed_evaluation_results"]
    assert detailed["total_rows"] == 2
    assert detailed["checksum"] == hashlib.sha256((FOLDER / detailed["file_path"]).read_bytes()).hexdigest()
    known = {each["evaluation_result_id"] for each in log["evaluation_results"]}
    for line in lines(log):
        assert (line["evaluation_id"], line["model_id"]) == (log["evaluation_id"], log["model_info"]["id"])
        assert line["evaluation_result_id"] in known


def test_a_second_export_writes_the_same_files(log: dict[str, Any]) -> None:
    before = {path: path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}
    every_eval_ever.export(load_plan("tiny"), FOLDER)
    assert {path: path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()} == before


@pytest.mark.thorough
def test_the_schema_finds_no_mistake(log: dict[str, Any]) -> None:
    """Where the package every-eval-ever is installed, which has the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    if (package := importlib.util.find_spec("every_eval_ever")) is None or package.origin is None:
        pytest.skip("every-eval-ever is not installed")
    schemas = Path(package.origin).parent / "schemas"
    for name, contents in (("eval", [log]), ("instance_level_eval", lines(log))):
        validator = jsonschema.Draft7Validator(json.loads((schemas / f"{name}.schema.json").read_text()))
        assert [error.message for each in contents for error in validator.iter_errors(each)] == []
