"""Variants of methods in exhibits and claims, from made-up cells, against sums by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from xlgrid.evaluation.cell import pack
from xlgrid.exhibits.drawing import plots
from xlgrid.methods.variants import settings_of, variant
from xlgrid.plan.checks import plan_problems
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.report import export, page
from xlgrid.results import claims
from xlgrid.study.schema import Study

STUDY = """\
title: Variants
languages: [en, fr]
encoders: {e: {path: e}}
tasks: {nli: {kind: xnli, max_length: 128}}
methods: {full-ft: {}, bitfit: {}}
training:
  - {set: {epochs: 2, lr: 1.0e-5}}
  - {when: {method: bitfit}, set: {lr: 3.0e-3, warmup: 0.2}}
sweep: [{when: {method: bitfit}, set: {lr: [1.0e-4, 1.0e-3], epochs: [5, 10]}, cells: all}]
grids:
  g: {task: [nli], encoder: [e], method: [full-ft, bitfit], source: [en], target: [en, fr], seed: [1, 2]}
exhibits:
  plain: {kind: table, title: T, rows: [method], columns: target}
  named: {kind: table, title: T, rows: [method], columns: target, select: {method: [bitfit, bitfit@epochs=5@lr=0.001]}}
  surface: {kind: table, title: T, rows: [lr], columns: epochs, select: {method: bitfit, target: fr}}
  both: {kind: table, title: T, rows: [method, lr], columns: target, select: {epochs: [5]}}
  curve: {kind: curve, title: T, x: lr, lines: epochs, select: {target: fr}}
  learning: {kind: curve, title: T, x: step, lines: lr, select: {epochs: [5], method: bitfit}}
  half: {kind: table, title: T, rows: [lr], columns: target}
claims:
  chance: {says: Above chance., select: {target: fr}, against: 50, expect: greater}
  best: {says: A, compare: [{method: bitfit@epochs=5@lr=0.001}, {method: full-ft}], expect: greater}
"""
VARIANTS = [variant("bitfit", {"lr": lr, "epochs": epochs}) for lr in (1e-4, 1e-3) for epochs in (5, 10)]
# The score of the target fr with seed 1. On en it is 10 more, and with seed 2 it is 1 more.
SCORES = {"full-ft": 70.0, "bitfit": 60.0, **dict(zip(VARIANTS, (51.0, 52.0, 53.0, 54.0), strict=True))}


def write(cell: Cell) -> None:
    score = SCORES[cell.method] + 10 * (cell.target == "en") + (cell.seed - 1)
    record = {
        **cell._asdict(),
        "scores": {"accuracy": score},
        "metric": {"name": "accuracy"},
        "head": "embed",
        "labels": [],
        "n": 1,
    }
    Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
    Path(cell.path).write_text(json.dumps(record | {"outcomes": pack([1])}))


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    """A study with cells of the variants of bitfit."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(
        STUDY.replace(", bitfit@epochs=5@lr=0.001", "").replace("bitfit@epochs=5@lr=0.001", "bitfit")
    )
    text = load_plan_of(STUDY)
    for cell in text.cells:
        write(cell)
    yield text


def load_plan_of(text: str) -> Plan:

    study = Study.model_validate({**yaml.safe_load(text), "name": "s"})
    return Plan(study)


def rendered(plan: Plan, name: str) -> pd.DataFrame:
    plan.study.exhibit(name).render(name, plan, ".")
    return pd.read_csv(f"{name}.csv")


def shown(plan: Plan, name: str) -> set[str]:
    return {cell.method for cell in plan.study.exhibit(name).cells(plan.cells, plan.study.facts)}


def test_a_variant_trains_with_the_settings_of_its_method_and_its_own(plan: Plan) -> None:
    of: Any = plan.study.recipe("nli", "e", VARIANTS[0], "en", 1)
    assert (of.training.lr, of.training.epochs, of.training.warmup) == (1e-4, 5, 0.2)
    assert (of.method, of.base) == (VARIANTS[0], "bitfit")
    assert plan.study.recipe("nli", "e", "bitfit", "en", 1).training.lr == 3e-3


def test_an_exhibit_that_names_no_variant_shows_none(plan: Plan) -> None:
    assert shown(plan, "plain") == {"full-ft", "bitfit"}
    table = rendered(plan, "plain")
    assert table[["method", "column", "mean", "n_seeds_expected"]].values.tolist() == [
        ["full-ft", "en", 80.5, 2],
        ["full-ft", "fr", 70.5, 2],
        ["bitfit", "en", 70.5, 2],
        ["bitfit", "fr", 60.5, 2],
    ]


def test_a_variant_is_shown_under_its_name(plan: Plan) -> None:
    table = rendered(plan, "named")
    assert table[["method", "column", "mean"]].values.tolist() == [
        ["bitfit", "en", 70.5],
        ["bitfit", "fr", 60.5],
        [VARIANTS[2], "en", 63.5],
        [VARIANTS[2], "fr", 53.5],
    ]


def test_settings_of_variants_are_axes_under_the_name_of_their_method(plan: Plan) -> None:
    assert rendered(plan, "surface")[["lr", "column", "mean"]].values.tolist() == [
        [1e-4, 5, 51.5],
        [1e-4, 10, 52.5],
        [1e-3, 5, 53.5],
        [1e-3, 10, 54.5],
    ]
    assert rendered(plan, "both")[["method", "lr", "column", "mean"]].values.tolist() == [
        ["bitfit", 1e-4, "en", 61.5],
        ["bitfit", 1e-4, "fr", 51.5],
        ["bitfit", 1e-3, "en", 63.5],
        ["bitfit", 1e-3, "fr", 53.5],
    ]
    assert rendered(plan, "curve")[["lr", "column", "mean"]].values.tolist() == [
        [1e-4, 5, 51.5],
        [1e-4, 10, 52.5],
        [1e-3, 5, 53.5],
        [1e-3, 10, 54.5],
    ]


def test_learning_curves_have_a_line_for_each_value_of_a_setting(plan: Plan) -> None:
    for run in plan.runs:
        folder = Path(run.folder)
        folder.mkdir(parents=True)
        recipe = plan.study.recipe(*run[1:]).model_dump(mode="json")
        (folder / "run.json").write_text(json.dumps({"recipe": recipe}))
        points = [{"step": step, "score": SCORES[run.method] + step + run.seed} for step in (1, 2)]
        (folder / "curve.jsonl").write_text("\n".join(map(json.dumps, points)))
    assert rendered(plan, "learning")[["step", "column", "mean", "n_seeds"]].values.tolist() == [
        [1, 1e-4, 53.5, 2],
        [1, 1e-3, 55.5, 2],
        [2, 1e-4, 54.5, 2],
        [2, 1e-3, 56.5, 2],
    ]


def test_an_exhibit_must_name_all_settings_of_a_variant(plan: Plan) -> None:
    [problem] = [text for text in plan_problems(plan) if "variants" in text]
    assert problem == (
        "exhibits.half.select: variants differ in epochs and lr, and the exhibit names lr: name all settings of a variant in "
        "rows, columns or `select`"
    )


def test_a_claim_is_about_variants_only_where_it_names_them(plan: Plan) -> None:
    study = plan.study
    of: Any = {
        name: {term.cell.method for term in claims.terms(name, claim, plan.cells, study.belongs)}
        for name, claim in study.claims.items()
    }
    assert of == {"chance": {"full-ft", "bitfit"}, "best": {VARIANTS[2], "full-ft"}}


def test_an_export_has_the_settings_of_variants_as_facts(plan: Plan) -> None:
    rows = [export._row(plan, cell) for cell in plan.cells]
    settings = {row["method"]: {key: row.get(f"fact_{key}") for key in ("lr", "epochs")} for row in rows}
    assert settings["bitfit"] == {"lr": None, "epochs": None}
    assert all(settings[name] == settings_of(name) for name in VARIANTS)


def test_learning_curves_of_the_variants_of_a_method_share_its_panel() -> None:
    points = [
        {
            "task": "nli",
            "encoder": "e",
            "method": name,
            "source": "en",
            "seed": 1,
            "run": name,
            "step": step,
            "score": 50.0,
        }
        for name in ("bitfit", *VARIANTS)
        for step in (1, 2)
    ]
    cells = pd.DataFrame({"task": ["nli"], "metric": ["accuracy"]})
    assert page.learning_curves(pd.DataFrame(points), cells).count(">bitfit</text>") == 1


def test_a_curve_over_numbers_of_examples_ends_with_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    described = yaml.safe_load(STUDY)
    del described["sweep"], described["claims"]
    described["grids"]["g"]["vary"] = {"examples": ["all", 1000, 10]}
    described["exhibits"] = {"c": {"kind": "curve", "title": "T", "x": "examples", "lines": "method"}}
    few = Plan(Study.model_validate({**described, "name": "few"}))
    scores = {10: 50.0, 1000: 60.0, "all": 70.0}
    monkeypatch.setattr(
        f"{__name__}.SCORES", {cell.method: scores[settings_of(cell.method)["examples"]] for cell in few.cells}
    )
    for cell in few.cells:
        write(cell)
    rendering = few.study.exhibit("c").rendering(few)
    assert [*dict.fromkeys(rendering.sheet.entries["examples"])] == [10, 1000, "all"]
    assert rendering.draw
    axes = rendering.draw(plots.Look())
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "1000", "all"]
    assert [line.get_ydata().tolist() for line in axes.get_lines()[:1]] == [[55.5, 65.5, 75.5]]
