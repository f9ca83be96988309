"""Questions and choices through the whole workflow: generated, or fetched with training data from elsewhere."""

import base64
import json
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from project import FEW, ROOT, SIZES, project, shell, succeeds

from xlgrid.data.generated import make_data, make_meanings

STUDY = """\
title: questions and choices
languages: [qa1, qb1]
text: {sentences: 200}
encoders:
  mini: {scratch: {kind: xlmr, languages: [qa1, qb1]}}
tasks:
  xquad: {kind: xquad, options: {n: 40, stride: 16}, max_length: 64}
  own:
    kind: xquad
    max_length: 128
    data:
      local: "downloads/{language}.parquet"
      train: &squad {local: "downloads/squad-{split}.parquet", languages: [qa1]}
      dev: *squad
  siqa: {kind: siqa, options: {n: 40}, max_length: 128}
  copa: {kind: copa, options: {n: 40}, max_length: 128, trained_on: siqa}
methods: {full-ft: {}}
training:
  - set: {steps: 4, batch_tokens: 512, evaluations: 2}
grids:
  main: {task: [xquad, own, copa], encoder: [mini], method: [full-ft], source: [qa1], target: [qa1, qb1], seed: [1]}
exhibits:
  table: {kind: table, title: Scores, rows: [task, metric], columns: target}
  main: {kind: heatmap, title: Questions, method: full-ft, select: {task: xquad}}
claims:
  exact: {says: it guesses, against: 0, expect: greater, metric: squad-em, select: {task: xquad}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = yaml.safe_load(STUDY)
    study["encoders"]["mini"] = {"scratch": study["encoders"]["mini"]["scratch"] | SIZES, "training": FEW}
    folder = project(tmp_path_factory.mktemp("questions"), study)
    downloads = folder / "downloads"
    make_meanings("xquad", {"n": 40}, downloads / "meanings.parquet")
    for code, splits in (
        ("qa1", {"train": "squad-train", "dev": "squad-dev", "test": "qa1"}),
        ("qb1", {"test": "qb1"}),
    ):
        make_data("xquad", {"n": 40}, code, downloads / "meanings.parquet", downloads / code)
        for split, name in splits.items():
            pq.write_table(pq.read_table(downloads / code / f"{split}.parquet"), downloads / f"{name}.parquet")
    succeeds(folder, "snakemake --profile laptop")
    return folder / "results" / "demo"


def cell(built: Path, task: str, target: str) -> dict[str, Any]:
    return json.loads((built / f"cells/{task}/mini/full-ft/qa1/{target}/seed1.json").read_text())


@pytest.mark.parametrize("task", ["xquad", "own", "copa"])
def test_cells_have_every_metric_of_their_task(built: Path, task: str) -> None:
    expected = {"accuracy"} if task == "copa" else {"squad-f1", "squad-em"}
    for target in ("qa1", "qb1"):
        record = cell(built, task, target)
        assert expected <= {*record["scores"]} and record["n"] == 8


def test_only_what_is_needed_was_fetched(built: Path) -> None:
    files = {str(path.relative_to(built / "data" / "own")) for path in (built / "data" / "own").rglob("*.parquet")}
    assert files == {"qa1/train.parquet", "qa1/dev.parquet", "qa1/test.parquet", "qb1/test.parquet"}


def test_one_task_was_trained_on_another(built: Path) -> None:
    run = json.loads((built / "runs/copa/mini/full-ft/qa1/seed1/run.json").read_text())
    assert run["labels"] == ["1", "2", "3"] and run["n_train"] == 28
    assert {path.stem for path in (built / "tokens/copa").rglob("*.arrow")} == {"test"}


def test_a_table_that_names_the_metric_has_a_row_for_each(built: Path) -> None:
    rows = [line.split(",") for line in (built / "exhibits/table.csv").read_text().splitlines()]
    task, metric = rows[0].index("task"), rows[0].index("metric")
    assert {(row[task], row[metric]) for row in rows[1:]} == {
        ("xquad", "squad-f1"),
        ("xquad", "squad-em"),
        ("own", "squad-f1"),
        ("own", "squad-em"),
        ("copa", "accuracy"),
    }


def test_the_report_counts_a_cell_once(built: Path) -> None:
    assert "<b>6<small> / 6</small></b>cells" in (built / "report.html").read_text()


def test_a_claim_is_about_the_metric_that_it_names(built: Path) -> None:
    content = (built / "claims.csv").read_text()
    assert "(squad-em)" in content
    scores = [cell(built, "xquad", target)["scores"]["squad-em"] for target in ("qa1", "qb1")]
    header, line = (line.split(",") for line in content.splitlines())
    assert float(line[header.index("effect")]) == pytest.approx(sum(scores) / 2)


def test_a_program_that_scores_by_itself_finds_a_score_that_is_not_that_of_its_model(built: Path) -> None:
    path = built / "cells/own/mini/full-ft/qa1/qb1/seed1.json"
    before = path.read_text()
    record = json.loads(before)
    scores = {name: score + 2 * (name == "squad-em") for name, score in record["scores"].items()}
    path.write_text(json.dumps({**record, "scores": scores}))
    try:
        process = shell(built.parents[1], f"{sys.executable} {ROOT / 'benchmarks' / 'score_cells.py'} demo")
    finally:
        path.write_text(before)
    assert process.returncode == 0, process.stderr[-4000:]
    *rows, last = process.stdout.splitlines()[1:]
    sets = {"xquad": "results/demo/data/xquad/{}/test.parquet", "own": "downloads/{}.parquet"}
    sets["copa"] = sets["xquad"].replace("xquad", "copa")
    expected = [
        [task, "mini", target, "1", "8", f"{2 * (task == 'own' and target == 'qb1'):.6f}", sets[task].format(target)]
        for task in ("xquad", "own", "copa")
        for target in ("qa1", "qb1")
    ]
    assert [row.split() for row in rows] == expected
    cell = path.relative_to(built.parents[1])
    assert last == f"6 cells, of which 1 differ; the largest difference is 2.000000 points, of {cell}"


def test_the_right_answers_of_the_exported_predictions_are_the_scores(built: Path) -> None:
    succeeds(built.parents[1], "xlgrid export demo --predictions")
    frame = pq.read_table(built / "predictions.parquet").to_pandas()
    for path, rows in frame.groupby("path"):
        scores = json.loads((built.parents[1] / path).read_text())["scores"]
        assert scores.get("squad-em", scores.get("accuracy")) == pytest.approx(100 * rows["is_right"].mean())
    assert frame["path"].nunique() == 6


def test_the_report_has_wrong_answers_of_each_task_beside_the_gold_ones(built: Path) -> None:
    [packed] = re.findall(r'<script id="drill"[^>]*>"([^"]+)"', (built / "report.html").read_text())
    details = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert len(details["cells"]) == 6 and set(details["exhibits"]) == {"table", "main"}
    shown = {cell["axes"][0]: cell for cell in details["cells"] if cell["examples"]}
    assert shown.keys() == {"xquad", "own", "copa"}
    frame = pq.read_table(built / "data/xquad/qb1/test.parquet").to_pandas()
    for cell in details["cells"]:
        for row, text, _, gold, predicted, *_ in cell["examples"] if cell["axes"][::4] == ["xquad", "qb1"] else ():
            assert gold == frame["answers"][row]["text"][0] != predicted
            assert text.startswith(frame["question"][row])
