"""What changed from one study to another, on cells whose truth is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from xlgrid import heads
from xlgrid.evaluation.cell import pack
from xlgrid.plan.plan import Plan
from xlgrid.report import compare
from xlgrid.study.schema import Study

SEEDS, TARGETS = [1, 2, 3], ["en", "fr"]
# What every record of a run has.
RECORD: dict[str, Any] = {"recipe": {}, "digest": "", "labels": []}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(name: str, lr: float = 1e-3, targets: list[str] = TARGETS, **task: Any) -> Plan:
    study = {
        "name": name,
        "title": name,
        "languages": ["en", "fr", "de"],
        "encoders": {"mini": {"hub": "a/b"}},
        "tasks": {"nli": {"kind": "xnli", **task}},
        "methods": {"bitfit": {}, "full-ft": {}},
        "training": [{"set": {"steps": 10}}, {"when": {"method": "bitfit"}, "set": {"lr": lr}}],
        "grids": {
            "all": {
                "task": ["nli"],
                "encoder": ["mini"],
                "method": ["bitfit", "full-ft"],
                "source": ["en"],
                "target": targets,
                "seed": SEEDS,
            }
        },
    }
    return Plan(Study.model_validate(study))


def write(plan: Plan, right: dict[Any, Any]) -> None:
    """Cells with the outcomes `right[target, seed]`, the same for each method."""
    for cell in plan.cells:
        outcomes = [[0, 0 if each else 1] for each in right[cell.target, cell.seed]]
        metric = heads.ALL_HEADS.find("sequence").metric(["a", "b", "c"], "accuracy")
        record = {
            **cell._asdict(),
            "head": "sequence",
            "labels": ["a", "b", "c"],
            "metric": {"name": "accuracy", "implementation": "i"},
            "scores": {"accuracy": metric.score(outcomes)},
            "n": len(outcomes),
            "outcomes": pack(outcomes),
        }
        Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
        Path(cell.path).write_text(json.dumps(record))


def drawn(rate: float, examples: int = 400) -> dict[Any, Any]:
    rng = np.random.default_rng(int(100 * rate))
    return {(target, seed): rng.random(examples) < rate for target in [*TARGETS, "de"] for seed in SEEDS}


def test_only_settings_that_differ_are_listed_for_the_runs_that_they_are_of() -> None:
    changes = compare.changes(plan("old"), plan("new", lr=1e-4))
    assert changes == [("nli", "mini", "bitfit", "training.lr", "0.001", "0.0001")]
    assert compare.changes(plan("old"), plan("other-name")) == []


@pytest.mark.parametrize(
    ("entry", "old", "new"), [("device", "cpu", "cuda"), ("versions", {"torch": "1"}, {"torch": "2"})]
)
def test_records_say_what_else_differs(entry: str, old: Any, new: Any) -> None:
    plans = plan("old"), plan("new")
    for each, value in zip(plans, (old, new), strict=True):
        for run in each.runs:
            Path(run.folder).mkdir(parents=True)
            Path(run.path).write_text(json.dumps({**RECORD, "inputs": each.study.name, entry: value}))
    changed = {change.setting: (change.first, change.second) for change in compare.changes(*plans)}
    assert changed.pop("contents of data and encoder") == ("–", "others")
    [(first, second)] = changed.values()
    assert (first, second) == (("cpu", "cuda") if entry == "device" else ("1", "2"))


def test_the_difference_is_that_of_the_means_over_common_cells() -> None:
    plans = plan("old"), plan("new", targets=[*TARGETS, "de"])
    rights = drawn(0.5), drawn(0.7)
    for each, right in zip(plans, rights, strict=True):
        write(each, right)
    scored = compare.scores(*plans).set_index("method")
    means = [[100 * np.mean([right[target, seed].mean() for target in TARGETS]) for seed in SEEDS] for right in rights]
    assert scored.loc["bitfit", ["first", "second"]].tolist() == pytest.approx([np.mean(side) for side in means])
    of_seeds = np.subtract(means[1], means[0])
    row = scored.loc["bitfit"]
    assert row["difference"] == pytest.approx(of_seeds.mean())
    paired = stats.t.interval(0.95, len(SEEDS) - 1, of_seeds.mean(), stats.sem(of_seeds))
    # The errors of single cells are in the variance over seeds already.
    assert row["low"] < paired[0] + 1e-9 and paired[1] - 1e-9 < row["high"]
    assert (row["n_cells"], row["n_seeds"]) == (6, 3)


def test_a_study_does_not_differ_from_itself() -> None:
    plans = plan("old"), plan("new")
    for each in plans:
        write(each, drawn(0.5))
    row = compare.scores(*plans).iloc[0]
    assert row[["difference", "low", "high"]].tolist() == pytest.approx([0, 0, 0], abs=1e-9)


def test_a_seed_that_one_study_lacks_is_left_out() -> None:
    plans = plan("old"), plan("new")
    for each in plans:
        write(each, drawn(0.5))
    Path(next(cell for cell in plans[1].cells if cell.seed == 2).path).unlink()
    assert compare.scores(*plans).set_index("method")["n_seeds"].to_dict() == {"bitfit": 2, "full-ft": 3}
    for cell in plans[0].cells:
        Path(cell.path).unlink()
    assert compare.scores(*plans)["difference"].isna().all()


def test_other_test_examples_are_not_paired() -> None:
    plans = plan("old"), plan("new")
    write(plans[0], drawn(0.5))
    write(plans[1], drawn(0.5, examples=300))
    assert not compare.scores(*plans)["is_paired"].any()


def test_studies_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(ValueError, match="old and new have no cell in common"):
        compare.show(plan("old"), plan("new", targets=["de"]))


def test_other_main_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="task nli has the main metric accuracy in old and macro-f1 in new"):
        compare.scores(plan("old"), plan("new", metric="macro-f1"))
