"""Claims: what a study may say, and the cells and weights that a claim stands for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from xlgrid.plan import grid
from xlgrid.plan.load import load_study
from xlgrid.products.evaluate import Cell
from xlgrid.results import claims
from xlgrid.results.claims import Claim
from xlgrid.study.schema import Study

STUDY = """\
title: a study
languages: [en, fr, de]
encoders:
  mini: {scratch: {kind: bert, languages: [en, fr, de]}}
tasks:
  d0: {kind: ruletaker, options: {n: 100, max_depth: 0}}
  d1: {kind: ruletaker, options: {n: 100, max_depth: 1}}
  d2: {kind: ruletaker, options: {n: 100, max_depth: 2}}
methods: {full-ft: {}, bitfit: {}}
grids:
  main: {task: [d0, d1, d2], encoder: [mini], method: [full-ft], source: [en, en-fr], target: [mono, en-X], seed: [1, 2]}
  few: {task: [d0], encoder: [mini], method: [bitfit], source: [en], target: [mono, en-X], seed: [1, 2]}
claims:
  one:
    says: BitFit is better
    select: {task: d0, source: en}
    compare: [{method: bitfit}, {method: full-ft}]
    expect: greater
"""


COMPARE = "compare: [{method: bitfit}, {method: full-ft}]"


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Study]:
    def load(**changes: Any) -> Study:
        """The study, its claim changed; None takes a key away."""
        raw = yaml.safe_load(STUDY)
        claim = raw["claims"]["one"] | changes
        raw["claims"]["one"] = {key: value for key, value in claim.items() if value is not None}
        path = tmp_path / "s.yaml"
        path.write_text(yaml.safe_dump(raw), encoding="utf-8")
        return load_study(path)

    return load


def terms(study: Study) -> dict[tuple[str, str, str, str, int], float]:
    """(task, method, source, target, seed) -> weight."""
    weighted = claims.terms("one", study.claims["one"], grid.cells(study), study.belongs)
    return {(cell.task, cell.method, cell.source, cell.target, cell.seed): weight for cell, weight, *_ in weighted}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("says: BitFit", "say: BitFit", 15, "did you mean 'says'"),
        ("{task: d0, source", "{tsk: d0, source", 16, "did you mean 'task'"),
        ("{task: d0, source", "{task: d00, source", 16, "did you mean 'd0'"),
        ("{method: bitfit},", "{method: bitfut},", 17, "unknown method 'bitfut', did you mean 'bitfit'"),
        ("source: en}", "source: en, group: moon}", 16, "unknown group 'moon', did you mean 'mono'"),
        ("expect: greater", "expect: better", 18, "greater"),
        ("expect: greater", "expect: none", 14, "needs a `margin`"),
        ("expect: greater", "expect: greater, against: 50".replace(", ", "\n    "), 14, "compare and against"),
        ("{method: bitfit},", "{method: bitfit, group: mono},", 14, "the same axes, got group and method; method"),
        ("{method: bitfit},", "{method: full-ft},", 14, "'full-ft' twice"),
        ("source: en}", "source: en, method: bitfit}", 14, "both name method"),
        (COMPARE, "compare: [{}, {}]", 14, "name nothing"),
        ("compare: [{", "trend: [{", 17, "at least 3"),
        ("source: en}", "source: []}", 16, "at least 1 item"),
        ("expect: greater", "expect: greater\n    within: [{group: mono}, {group: mno}]", 19, "did you mean 'mono'"),
        (
            "expect: greater",
            "expect: greater\n    within: [{group: mono}, {target: fr}]",
            14,
            "the same axes, got group; target",
        ),
        ("expect: greater", "expect: greater\n    within: [{task: d0}, {task: d1}]", 14, "`within` both name task"),
        ("{method: bitfit},", "{method: bitfit, seed: [1]},", 14, "got method and seed; method"),
        ("source: en}", "source: en, seed: [3]}", 16, "unknown seed '3'"),
        (COMPARE, "compare: [{seed: [1]}, {seed: [2]}]", 14, "name seeds, over which they are paired"),
        (
            COMPARE,
            "against: 50\n    within: [{group: en-X}, {group: mono}]",
            14,
            "`within` goes with `compare`, got `against`",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert STUDY.count(old) == 1
    path = tmp_path / "s.yaml"
    path.write_text(STUDY.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError) as error:
        load_study(path)
    assert f"{path}:{line}: " in str(error.value)
    assert message in str(error.value)


def test_a_comparison_pairs_cells_that_differ_in_its_axis_only(load: Callable[..., Study]) -> None:
    weight_of = terms(load())
    assert len(weight_of) == 2 * 2 * 5, "two methods, two seeds, five targets"
    for (_, method, *_), weight in weight_of.items():
        assert weight == pytest.approx(1 / 5 if method == "bitfit" else -1 / 5)


def test_pairs_count_alike_however_many_cells_a_side_has(load: Callable[..., Study]) -> None:
    """Three monolingual targets against two pairs, in three tasks."""
    sides = [{"group": "mono"}, {"group": "en-X"}]
    weight_of = terms(load(select={"method": "full-ft", "source": "en"}, compare=sides))
    weights = {target: weight for (task, _, _, target, seed), weight in weight_of.items() if (task, seed) == ("d1", 2)}
    assert weights == {
        **dict.fromkeys(("en", "fr", "de"), pytest.approx(1 / 9)),
        **dict.fromkeys(("en-fr", "en-de"), pytest.approx(-1 / 6)),
    }


def test_a_group_is_that_of_each_cell_s_own_source(load: Callable[..., Study]) -> None:
    sides = [{"source": "en", "group": "zero-shot:mono"}, {"source": "en-fr", "group": "zero-shot:en-X"}]
    weight_of = terms(load(select={"method": "full-ft"}, compare=sides))
    assert {(source, target) for _, _, source, target, _ in weight_of} == {
        ("en", "fr"),
        ("en", "de"),
        ("en-fr", "en-de"),
    }


def test_a_trend_has_the_weights_of_the_least_squares_slope(load: Callable[..., Study]) -> None:
    select = {"method": "full-ft", "source": "en", "target": "fr"}
    steps = [{"task": task} for task in ("d2", "d0", "d1")]
    weight_of = terms(load(select=select, compare=None, trend=steps, expect="less"))
    assert {task: weight for (task, *_, seed), weight in weight_of.items() if seed == 1} == {
        "d2": -0.5,
        "d0": 0,
        "d1": 0.5,
    }


def test_a_gain_within_one_group_is_set_against_that_within_another(load: Callable[..., Study]) -> None:
    """Two pairs of languages against three languages, of one source, in each of two seeds."""
    weight_of = terms(load(within=[{"group": "en-X"}, {"group": "mono"}]))
    weights = {(method, target): weight for (_, method, _, target, seed), weight in weight_of.items() if seed == 1}
    assert weights == {
        (method, target): pytest.approx(sign * size)
        for method, sign in (("bitfit", 1), ("full-ft", -1))
        for targets, size in ((("en-fr", "en-de"), 1 / 2), (("en", "fr", "de"), -1 / 3))
        for target in targets
    }


def test_a_selection_narrows_the_seeds(load: Callable[..., Study]) -> None:
    weight_of = terms(load(select={"task": "d0", "source": "en", "seed": [2]}))
    assert {seed for *_, seed in weight_of} == {2}


def test_a_number_is_set_against_the_mean(load: Callable[..., Study]) -> None:
    study = load(select={"method": "bitfit", "group": "en-X"}, compare=None, against=50, expect="none", margin=5)
    assert terms(study) == {
        ("d0", "bitfit", "en", target, seed): 0.5 for target in ("en-fr", "en-de") for seed in (1, 2)
    }


def test_a_side_that_is_not_planned_everywhere_is_refused(load: Callable[..., Study]) -> None:
    with pytest.raises(ValueError, match=r"claims\.one: bitfit has no planned cell for task d1.*but full-ft has"):
        terms(load(select={"source": "en"}))


def test_a_selection_without_cells_is_refused(load: Callable[..., Study]) -> None:
    """When the study is read, with the line of the claim."""
    with pytest.raises(
        ValueError, match=r"s\.yaml:\d+: claims\.one: no cell is planned for d1 bitfit: select others, or"
    ):
        load(select={"task": "d1"})


def test_seeds_that_differ_in_what_is_planned_are_refused(load: Callable[..., Study]) -> None:
    study = load(select={"method": "full-ft", "source": "en"}, compare=None, against=50)
    planned = [cell for cell in grid.cells(study) if (cell.seed, cell.task) != (2, "d2")]
    with pytest.raises(ValueError, match=r"15 for seed 1, 10 for seed 2"):
        claims.terms("one", study.claims["one"], planned, study.belongs)


@pytest.mark.parametrize(
    ("expect", "margin", "expected", "bounds"),
    [
        ("greater", 0, "> 0", (0, float("inf"))),
        ("less", 2.5, "< −2.5", (float("-inf"), -2.5)),
        ("none", 5, "within ±5", (-5, 5)),
    ],
)
def test_an_expectation_reads_as_an_inequality(
    expect: Any, margin: float, expected: str, bounds: tuple[float, float]
) -> None:
    claim = Claim(says="s", against=50, expect=expect, margin=margin)
    assert (claim.expected, claim.range) == (expected, bounds)


# Runs of `bitfit` for one target each, and cells of `query` with the weights of the end and of step 5 of an MLM run.
ASIDE = [
    Cell("s", "d0", "mini", *cell, seed)
    for target in ("fr", "de")
    for cell in (("bitfit", f"en@{target}", target), ("query", "en", target), ("query", "en", f"{target}@5"))
    for seed in (1, 2)
]


def paired(*sides: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Method, source and target of each cell of a comparison of two selections."""
    claim = Claim(says="s", compare=sides, expect="greater")  # type: ignore[arg-type]
    weighted = claims.terms("one", claim, ASIDE, lambda *_: True)
    assert sum(weight for _, weight, *_ in weighted) == pytest.approx(0)
    return {(cell.method, str(cell.source), str(cell.target)) for cell, *_ in weighted}


def test_runs_for_one_target_each_pair_by_what_they_train_on_and_checkpoints_are_left_out() -> None:
    assert paired({"method": "bitfit"}, {"method": "query"}) == {
        ("bitfit", "en@fr", "fr"),
        ("bitfit", "en@de", "de"),
        ("query", "en", "fr"),
        ("query", "en", "de"),
    }


def test_a_side_with_a_checkpoint_has_the_cells_of_that_step_alone() -> None:
    assert paired({"method": "query", "checkpoint": 5}, {"method": "bitfit"}) == {
        ("bitfit", "en@fr", "fr"),
        ("bitfit", "en@de", "de"),
        ("query", "en", "fr@5"),
        ("query", "en", "de@5"),
    }
