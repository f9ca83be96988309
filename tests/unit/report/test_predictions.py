"""The table of what models answer, held against scores that other libraries compute from it."""

import json
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seqeval.metrics import f1_score
from status_fixture import CELL, write

from xlgrid.base.errors import Damaged
from xlgrid.evaluation.cell import pack
from xlgrid.heads import ALL_HEADS
from xlgrid.plan.load import load_plan
from xlgrid.products.evaluate import Cell
from xlgrid.report import predictions

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "export.md"
STUDY = """\
title: Questions
languages: [qa1, qa2]
encoders:
  tiny: {scratch: {kind: bert, languages: [qa1, qa2]}}
tasks:
  qa: {kind: xquad}
  perplexity: {kind: perplexity}
methods: {full-ft: {}, as-is: {}}
grids:
  qa: {task: [qa], encoder: [tiny], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
  bare: {task: [perplexity], encoder: [tiny], method: [as-is], source: [none], target: [qa1], seed: [1]}
"""
LABELS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
SENTENCES = [(["Ada", "Lovelace", "lives"], [1, 2, 0]), (["in", "Rome"], [0, 5])]

pytestmark = pytest.mark.usefixtures("tiny_project")


def result(cell: Cell, head: str, outcomes: list, **more: object) -> None:
    """Write the file of a cell, with the score of its outcomes."""
    metric = ALL_HEADS.find(head).metric(LABELS)
    record = {
        **cell._asdict(),
        **{"run": None, "head": head, "labels": LABELS, "n": len(outcomes), "outcomes": pack(outcomes)},
        "scores": {metric.name: metric.score(outcomes)},
        "metric": {"name": metric.name},
    }
    write(cell.path, json.dumps(record | more))


def data(cell: Cell, rows: list[dict[str, object]]) -> None:
    path = Path(predictions.data_path(load_plan(cell.study), cell))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def exported(study: str = "tiny") -> tuple[str, pd.DataFrame]:
    predictions.rows_of.cache_clear()
    message = predictions.export(load_plan(study), Path("predictions.parquet"))
    return message, pq.read_table("predictions.parquet").to_pandas()


def sentences() -> None:
    data(CELL, [{"tokens": words, "ner_tags": tags} for words, tags in SENTENCES])
    result(CELL, "token", [[[1, 2, 0], [1, 0, 0]], [[0, 5], [0, 5]]])


def test_a_row_has_the_text_of_the_data_and_both_answers() -> None:
    sentences()
    message, frame = exported()
    assert message == "wrote predictions.parquet: the examples of 1 cells"
    assert frame["input_tokens"].tolist() == ["Ada Lovelace lives", "in Rome"]
    assert frame["gold"].tolist() == ["B-PER I-PER O", "O B-LOC"]
    assert frame["predicted"].tolist() == ["B-PER O O", "O B-LOC"]
    assert frame["is_right"].tolist() == [False, True]
    assert frame["example"].tolist() == [0, 1]
    assert frame["path"].unique().tolist() == [CELL.path]
    assert (frame[["task", "source", "target", "seed"]] == [CELL.task, CELL.source, CELL.target, CELL.seed]).all(
        axis=None
    )


def test_the_f1_of_the_rows_by_seqeval_is_the_score_of_the_cell() -> None:
    sentences()
    _, frame = exported()
    tags = [[text.split() for text in frame[side]] for side in ("gold", "predicted")]
    score = json.loads(Path(CELL.path).read_text())["scores"]["f1"]
    assert 100 * f1_score(*tags) == pytest.approx(score, abs=1e-12)


def questions() -> Cell:
    write("studies/questions.yaml", STUDY)
    cell = load_plan("questions").cells[0]
    answers = [{"text": ["Rome", "Rome"], "answer_start": [0, 9]}, {"text": ["Ada"], "answer_start": [0]}]
    rows = [{"question": f"{n}?", "context": "Rome and Rome", "answers": each} for n, each in enumerate(answers)]
    data(cell, rows)
    return cell


def test_answers_that_outcomes_lack_come_from_the_cell() -> None:
    result(questions(), "span", [[1, 1], [0, 0]], labels=[], answers=pack(["Rome", "κήπος"]))
    _, frame = exported("questions")
    assert frame["gold"].tolist() == ["Rome", "Ada"]
    assert frame["predicted"].tolist() == ["Rome", "κήπος"]
    assert frame["is_right"].tolist() == [True, False]
    assert frame["input_question"].tolist() == ["0?", "1?"]


def test_a_cell_of_an_earlier_version_is_named() -> None:
    cell = questions()
    result(cell, "span", [[1, 1], [0, 0]], labels=[])
    message, frame = exported("questions")
    assert f"1 cells, such as {cell.path}, have no predictions" in message
    assert "delete them and run the study again" in message
    assert frame.empty


@pytest.mark.parametrize("rows", [1, 3])
def test_other_data_than_those_of_the_cell_are_an_error(rows: int) -> None:
    sentences()
    data(CELL, [{"tokens": words, "ner_tags": tags} for words, tags in (SENTENCES * 2)[:rows]])
    with pytest.raises(Damaged, match=r"2 examples.*delete the cell"):
        exported()


def test_the_page_describes_every_column() -> None:
    """With the rule for the columns of inputs."""
    _, _, table = PAGE.read_text().partition("## Predictions")
    described = dict(re.findall(r"^\| `([\w{}]+)` \| (.*) \|$", table.partition("\n## ")[0], re.MULTILINE))
    assert described.pop("input_{column}")
    assert described == {name: text for name, (_, text) in predictions.COLUMNS.items()}
