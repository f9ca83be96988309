"""A metric without percent of which less is better, in exhibits, claims and the report."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import surprisal

from xlgrid.evaluation.cell import pack
from xlgrid.exhibits import claims
from xlgrid.exhibits.drawing import plots
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.report import Claims
from xlgrid.report import page
from xlgrid.results import records, verdicts

STUDY = """\
title: surprise
languages: [en, fr, ru]
encoders: {mini: {scratch: {kind: bert, languages: [en]}}}
tasks:
  t: {kind: surprisal, inputs: [text], target: label, labels: [a, b, c], data: {local: "{language}/{split}.jsonl"}}
methods: {full-ft: {}, bitfit: {}}
grids:
  main: {task: [t], encoder: [mini], method: [full-ft, bitfit], source: [en, fr], target: [en, fr, ru], seed: [1, 2, 3]}
exhibits:
  table: {kind: table, title: Means, rows: [method, source], columns: target, digits: 2}
  matrix: {kind: heatmap, title: Full fine-tuning, method: full-ft}
  difference: {kind: heatmap, title: A difference, difference: [full-ft, bitfit]}
  curve: {kind: curve, title: Learning, x: step, lines: method}
claims:
  learns:
    says: Tuning helps.
    select: {source: fr, target: ru}
    compare: [{method: full-ft}, {method: bitfit}]
    expect: less
  bounded: {says: It is not lost., select: {method: bitfit}, against: 400, expect: less, margin: 100}
"""


# (method, source) -> the mean over targets other than the source.
SURPRISALS = {("full-ft", "fr"): 0.1, ("full-ft", "en"): 3.0, ("bitfit", "fr"): 0.7, ("bitfit", "en"): 0.8}
MEANS = {
    (method, source, target): 0.5 * mean if target == source else mean
    for (method, source), mean in SURPRISALS.items()
    for target in ("en", "fr", "ru")
}


def write(cell: Cell) -> None:
    """A cell and its run, with made-up outcomes of a mean near that in `MEANS`."""
    rng = np.random.default_rng(cell.seed)
    mean = MEANS[cell.method, cell.source.data, cell.target.data]
    outcomes = [[mean * float(each), 1] for each in rng.normal(1, 0.01, 50)]
    scores = {"surprisal": surprisal.SURPRISAL.score(outcomes)}
    named = {
        "head": "surprisal",
        "labels": [],
        "metric": {"name": "surprisal", "implementation": "i"},
        "scores": scores,
        "run": cell.run.folder,
    }
    record = {**cell._asdict(), **named, "n": len(outcomes), "outcomes": pack(outcomes)}
    curve = [{"step": step, "score": mean + 1 / step} for step in (10, 20)]
    texts = {
        cell.path: json.dumps(record),
        cell.run.path: json.dumps({"recipe": cell.run._asdict()}),
        cell.run.file("curve.jsonl"): "".join(f"{json.dumps(point)}\n" for point in curve),
    }
    for path, text in texts.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    """The plan of the study, all of whose cells have results."""
    with pytest.MonkeyPatch.context() as patch:
        surprisal.register(patch)
        patch.chdir(tmp_path_factory.mktemp("surprise"))
        Path("s.yaml").write_text(STUDY)
        plan = load_plan("s.yaml")
        for cell in plan.cells:
            write(cell)
        yield plan


@pytest.fixture(scope="module")
def scores(plan: Plan) -> pd.DataFrame:
    return records.read_cells([(cell.path, cell._asdict()) for cell in plan.cells], plan.study.metrics)


@pytest.fixture(scope="module")
def means(scores: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """(method, source, target) -> mean over seeds."""
    return scores.groupby(["method", "source", "target"])["score"].mean().to_dict()


def files(plan: Plan, name: str, folder: Path) -> dict[str, str]:
    plan.study.exhibit(name).render(name, plan, folder)
    return {path.suffix: path.read_text() for path in folder.glob(f"{name}.*") if path.suffix not in (".png", ".pdf")}


def test_a_table_says_in_what_its_numbers_are_and_which_end_is_better(
    plan: Plan, means: dict[tuple[str, str, str], float], tmp_path: Path
) -> None:
    text = files(plan, "table", tmp_path)[".md"]
    assert "Metric: surprisal, lower is better." in text and "percent" not in text
    assert f"{means['full-ft', 'fr', 'ru']:.2f}" in text


def colours(plan: Plan, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """The mesh of a heatmap, and the label of its colour bar."""
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "save", lambda ax, *_, **__: drawn.append(ax))
    plan.study.exhibit(name).render(name, plan, folder)
    [ax] = drawn
    return ax.collections[0], ax.child_axes[0].get_ylabel()


def luminance(colour: Any) -> float:
    return float(np.dot(colour[:3], [0.2126, 0.7152, 0.0722]))


def test_the_dark_end_of_a_heatmap_is_the_better_one(
    plan: Plan, means: dict[tuple[str, str, str], float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh, label = colours(plan, "matrix", tmp_path, monkeypatch)
    best, worst = (mesh.to_rgba(means["full-ft", source, "ru"]) for source in ("fr", "en"))
    assert luminance(best) < luminance(worst)
    assert label == "surprisal"


def test_the_blue_end_of_a_difference_is_the_better_one(
    plan: Plan, means: dict[tuple[str, str, str], float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh, label = colours(plan, "difference", tmp_path, monkeypatch)
    for source, is_better in (("fr", True), ("en", False)):
        red, _, blue, _ = mesh.to_rgba(means["full-ft", source, "ru"] - means["bitfit", source, "ru"])
        assert (blue > red) == is_better
    assert label == "full-ft − bitfit"


def test_a_learning_curve_has_the_metric_on_its_axis(plan: Plan, tmp_path: Path) -> None:
    text = files(plan, "curve", tmp_path)[".svg"]
    assert ">dev surprisal</text>" in text and "(%)" not in text


def test_claims_of_less_hold_and_name_the_direction(
    plan: Plan, means: dict[tuple[str, str, str], float], tmp_path: Path
) -> None:
    claims.render(plan.study, plan.cells, tmp_path)
    judged = pd.read_csv(tmp_path / "claims.csv").set_index("claim")
    assert judged["verdict"].to_dict() == dict.fromkeys(("learns", "bounded"), verdicts.HOLDS)
    assert judged["effect"]["learns"] == pytest.approx(means["full-ft", "fr", "ru"] - means["bitfit", "fr", "ru"])
    assert "full-ft − bitfit; surprisal, lower is better; 3 of 3 seeds" in (tmp_path / "claims.html").read_text()
    assert "The effect is in the unit of its metric" in (tmp_path / "claims.md").read_text()
    assert "effect (the unit of its metric), 95 % interval" in (tmp_path / "claims.svg").read_text()


def test_the_report_names_no_points_and_no_percent(plan: Plan, scores: pd.DataFrame) -> None:
    files(plan, "table", Path(Exhibit(plan.study.name, "table").folder))
    claims.render(plan.study, plan.cells, Claims(plan.study.name).folder)
    report = page.load("s.yaml")
    pd.testing.assert_frame_equal(report.cells.drop(columns="run"), scores)
    assert ">deviation from the mean over seeds</text>" in page.spread(report.cells)
    assert ">dev surprisal</text>" in page.learning_curves(report.curves, report.cells)
    for part in (page.exhibits(report), page.verdicts(report)):
        assert part and "surprisal, lower is better" in part
        assert "in percent" not in part and "in points" not in part
