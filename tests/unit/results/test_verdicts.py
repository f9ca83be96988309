"""Verdicts on synthetic cells of which the truth is known."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from xlgrid import heads
from xlgrid.evaluation.cell import pack
from xlgrid.heads.metrics import OfAll
from xlgrid.products.evaluate import Cell
from xlgrid.results import verdicts
from xlgrid.results.claims import Claim, Selection, Term
from xlgrid.results.population import TOO_FEW, Population

N = 500
ONE_LANGUAGE = {"shared_variance": 0.0, "population": Population(math.nan, math.nan, 1, 1, TOO_FEW)}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def cell(method: str, target: str, seed: int, task: str = "t") -> Cell:
    return Cell("s", task, "mini", method, "en", target, seed)


def write(cell: Cell, outcomes: Any, metric: str = "accuracy") -> None:
    listed = [
        each.tolist() if isinstance(each, np.ndarray) else each if isinstance(each, list) else int(each)
        for each in outcomes
    ]
    scored = {
        "head": {"accuracy": "embed", "squad-f1": "span", "mining-f1": "embed-mining"}.get(metric, "sequence"),
        "labels": [],
        "metric": {"name": metric, "implementation": "i"},
        "scores": {metric: heads.metric(metric).score(listed)},
    }
    path = Path(cell.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**cell._asdict(), **scored, "n": len(listed), "outcomes": pack(listed)}))


def compared(first: str, second: str, seeds: tuple[int, ...], targets: tuple[str, ...] = ("fr", "de")) -> list[Term]:
    weights = {first: 1 / len(targets), second: -1 / len(targets)}
    return [Term(cell(m, target, seed), w) for m, w in weights.items() for target in targets for seed in seeds]


def claim(expect: Any = "greater", margin: float = 0, against: float | None = None) -> Claim:
    sides = (Selection(method=("b",)), Selection(method=("a",)))
    return Claim(says="s", compare=None if against else sides, against=against, expect=expect, margin=margin)


def scored(terms: list[Term], accuracy: dict[str, float], rng: np.random.Generator, spread: float = 0.01) -> None:
    """Examples differ in how hard they are; each run of a method has its own accuracy around that of the method."""
    hard = rng.random(N)
    run: dict[tuple[str, int], float] = {}
    for term in terms:
        key = (term.cell.method, term.cell.seed)
        rate = run.setdefault(key, accuracy[term.cell.method] + rng.normal(0, spread))
        write(term.cell, hard + rng.normal(0, 0.1, N) < rate)


def verdict(about: dict[str, list[Term]], claims: dict[str, Claim]) -> pd.DataFrame:
    return verdicts.judge(claims, verdicts.measure(about)).set_index("claim")


def test_a_true_effect_holds_and_a_null_does_not() -> None:
    seeds = (1, 2, 3, 4)
    about = {"true": compared("b", "a", seeds), "null": compared("c", "a", seeds), "not the other way": []}
    about["not the other way"] = about["true"]
    scored([*about["true"], *compared("c", "a", seeds)], {"a": 0.6, "b": 0.75, "c": 0.6}, np.random.default_rng([1]))
    claims = {"true": claim(), "null": claim(), "not the other way": claim("less")}
    judged = verdict(about, claims)
    assert judged["verdict"].to_dict() == {
        "true": verdicts.HOLDS,
        "null": verdicts.DOES_NOT,
        "not the other way": verdicts.DOES_NOT,
    }
    assert judged.loc["true", "effect"] == pytest.approx(15, abs=2)
    assert judged.loc["true", "low"] < 15 < judged.loc["true", "high"]


def test_no_effect_holds_only_within_a_margin_that_the_runs_can_tell() -> None:
    about = {name: compared("b", "a", (1, 2, 3, 4)) for name in ("wide", "narrow")}
    scored(about["wide"], {"a": 0.6, "b": 0.6}, np.random.default_rng([2]))
    judged = verdict(about, {"wide": claim("none", margin=10), "narrow": claim("none", margin=0.2)})
    assert list(judged["verdict"]) == [verdicts.HOLDS, verdicts.DOES_NOT]


@pytest.mark.parametrize(("expect", "rate"), [("greater", 0.75), ("less", 0.45)])
def test_a_margin_is_what_the_effect_must_exceed(expect: str, rate: float) -> None:
    about = {name: compared("b", "a", (1, 2, 3)) for name in ("5", "20")}
    scored(about["5"], {"a": 0.6, "b": rate}, np.random.default_rng([3]))
    judged = verdict(about, {"5": claim(expect, margin=5), "20": claim(expect, margin=20)})
    assert list(judged["verdict"]) == [verdicts.HOLDS, verdicts.DOES_NOT]


def test_chance_is_subtracted() -> None:
    about = {"chance": [Term(cell("a", "fr", seed), 1.0) for seed in (1, 2, 3)]}
    scored(about["chance"], {"a": 0.55}, np.random.default_rng([4]))
    scores = [json.loads(Path(term.cell.path).read_text())["scores"]["accuracy"] for term in about["chance"]]
    judged = verdict(about, {"chance": claim(against=50)})
    assert judged.loc["chance", "effect"] == pytest.approx(np.mean(scores) - 50)


def test_intervals_cover_the_truth_and_a_null_rarely_holds() -> None:
    """Three seeds, noise of seeds and of examples: 95 % intervals, wrong side included."""
    rng = np.random.default_rng([5])
    terms = compared("b", "a", (1, 2, 3), ("fr",))
    covered, held, times = 0, 0, 120
    for _ in range(times):
        # The test set is drawn anew too: the truth of b - a is 0.
        scored(terms, {"a": 0.5, "b": 0.5}, rng, spread=0.03)
        row = verdict({"null": terms}, {"null": claim()}).loc["null"]
        covered += row["low"] < 0 < row["high"]
        held += row["verdict"] == verdicts.HOLDS
    assert covered / times > 0.92
    assert held / times < 0.06


def test_the_noise_of_examples_is_what_a_bootstrap_of_all_cells_together_does_to_all_seeds() -> None:
    """The covariance of the effects of two seeds over draws."""
    rng = np.random.default_rng([6])
    terms = compared("b", "a", (1, 2))
    scored(terms, {"a": 0.4, "b": 0.6}, rng)
    outcomes = [
        verdicts.records.outcomes(term.cell.path, json.loads(Path(term.cell.path).read_text())) for term in terms
    ]
    weights = np.array([[term.weight * (term.cell.seed == seed) for term in terms] for seed in (1, 2)])
    each = 100 * weights @ np.array(outcomes)
    drawn = [each[:, rng.integers(N, size=N)].mean(1) for _ in range(4000)]
    [variance] = verdicts.measure({"one": terms})["example_variance"]
    assert variance == pytest.approx(np.cov(np.transpose(drawn))[0, 1], rel=0.08)


def precision(outcomes: np.ndarray) -> float:
    """The geometric mean of the shares of right n-grams, of [sentences, 8]: the right ones and all, for n from 1 to 4."""
    right, of_all = np.split(outcomes.sum(0), 2)
    return 100 * float((right / of_all).prod() ** 0.25)


def test_the_noise_of_a_metric_of_all_outcomes_is_that_of_a_bootstrap_that_draws_all_cells_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most sentences are as hard for one method as for the other, so that cells that are drawn apart would differ much more."""
    monkeypatch.setattr(heads.HEADS["sequence"], "all_metrics", (OfAll("geometric", "here", precision),))
    rng, count = np.random.default_rng([7]), 60
    about, outcomes = {"one": compared("b", "a", (1, 2))}, {}
    hard = rng.integers(0, 11, count)
    for term in about["one"]:
        right = np.clip(hard + rng.integers(0, 2, count), 0, 10)
        ngrams = [np.clip(right - step, 0, None) for step in range(4)]
        outcomes[term.cell] = np.stack([*ngrams, *[np.full(count, 10 - n) for n in range(4)]], 1)
        write(term.cell, outcomes[term.cell], "geometric")
    measured = verdicts.measure(about).iloc[0]
    draws = []
    for _ in range(300):
        rows = rng.integers(0, count, count)
        scores = {cell: heads.metric("geometric").score(sums[rows].tolist()) for cell, sums in outcomes.items()}
        draws.append([sum(t.weight * scores[t.cell] for t in about["one"] if t.cell.seed == seed) for seed in (1, 2)])
    assert measured["example_variance"] == pytest.approx(np.cov(np.transpose(draws))[0, 1], abs=0.02)
    apart = sum(
        (term.weight / 2) ** 2 * (heads.metric("geometric").moves(outcomes[term.cell].tolist()) ** 2).mean() / 1000
        for term in about["one"]
    )
    assert measured["example_variance"] < apart / 2


def test_the_noise_of_seeds_is_that_of_their_mean() -> None:
    """With effects of 10, 20 and 30 points: sd 10, over three seeds."""
    terms = compared("b", "a", (1, 2, 3), ("fr",))
    for term in terms:
        right = 40 + (10 * term.cell.seed if term.cell.method == "b" else 0)
        write(term.cell, np.arange(100) < right)
    row = verdicts.measure({"one": terms}).iloc[0]
    assert (row["effect"], row["seed_variance"]) == (pytest.approx(20), pytest.approx(100 / 3))


@pytest.mark.parametrize("planned", [(1,), (1, 2), (1, 2, 3)])
def test_without_enough_runs_there_is_no_verdict(planned: tuple[int, ...]) -> None:
    """Fewer than three seeds planned, or one cell of three seeds missing: effect and interval are given nevertheless."""
    about = {"one": compared("b", "a", planned)}
    scored(about["one"], {"a": 0.6, "b": 0.9}, np.random.default_rng([7]))
    missing = len(planned) == 3
    if missing:
        Path(about["one"][0].cell.path).unlink()
    row = verdict(about, {"one": claim()}).loc["one"]
    assert row["verdict"] == verdicts.NOT_ENOUGH
    assert math.isnan(row["p"]) and math.isnan(row["p_corrected"])
    assert row["effect"] == pytest.approx(30, abs=5)
    assert list(row[["n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]]) == [
        len(planned) - missing,
        len(planned),
        4 * len(planned) - missing,
        4 * len(planned),
    ]
    assert math.isnan(row["low"]) == (len(planned) == 1), "one seed has no interval"


def test_holm_by_hand() -> None:
    """0.01 · 4, then 0.02 · 3, then 0.02 · 2 which may not be less than the one before, then 0.7 · 1."""
    assert verdicts.holm([0.02, 0.7, 0.01, 0.02]) == pytest.approx([0.06, 0.7, 0.04, 0.06])
    assert verdicts.holm([0.5, 0.9]) == [1.0, 1.0]


def test_claims_without_a_verdict_count_in_the_correction() -> None:
    about = {"true": compared("b", "a", (1, 2, 3)), "later": compared("d", "a", (1, 2, 3))}
    scored(about["true"], {"a": 0.6, "b": 0.9}, np.random.default_rng([8]))
    judged = verdict(about, dict.fromkeys(about, claim()))
    assert judged.loc["true", "p_corrected"] == pytest.approx(2 * judged.loc["true", "p"])


def test_cells_of_different_metrics_are_not_mixed() -> None:
    about = {"one": compared("b", "a", (1, 2), ("fr",))}
    for term in about["one"]:
        f1 = term.cell.method == "a"
        write(term.cell, np.ones((5, 3), int) if f1 else np.ones(5), "mining-f1" if f1 else "accuracy")
    with pytest.raises(ValueError, match=r"claims\.one: its cells have accuracy and mining-f1"):
        verdicts.measure(about)


def test_a_test_set_that_changed_is_noticed() -> None:
    about = {"one": compared("b", "a", (1, 2), ("fr",))}
    for term in about["one"]:
        write(term.cell, np.ones(5 if term.cell.method == "a" else 6))
    with pytest.raises(ValueError, match="5 examples, but other cells of task t on fr in claim one have 6"):
        verdicts.measure(about)


def test_two_claims_may_be_about_other_inputs_of_one_text() -> None:
    """As those into which two tokenizers cut it."""
    about = {"one": compared("b", "a", (1, 2), ("fr",)), "two": compared("d", "c", (1, 2), ("fr",))}
    for name, n in (("one", 5), ("two", 6)):
        for term in about[name]:
            write(term.cell, np.ones(n))
    assert set(verdicts.measure(about)["claim"]) == {"one", "two"}


def judged(effect: float, seed_variance: float, example_variance: float, n: int) -> pd.Series:
    """The verdict on one claim of all planned cells, from its effect and noise."""
    noise = {"effect": effect, "seed_variance": seed_variance, "example_variance": example_variance, **ONE_LANGUAGE}
    counts = {"n_seeds": n, "n_seeds_expected": n, "n_cells": n, "n_cells_expected": n, "learnt_nothing": ""}
    frame = pd.DataFrame([{"claim": "one", "metric": "accuracy", **noise, **counts}])
    return verdicts.judge({"one": claim()}, frame).iloc[0]


@pytest.mark.parametrize(("n", "t"), [(2, 12.706), (3, 4.303), (11, 2.228)])
def test_where_only_seeds_differ_the_interval_is_student_s_t_as_printed_in_tables(n: int, t: float) -> None:
    """With n - 1 degrees of freedom. Where the interval ends at 0, p is 0.05."""
    row = judged(t, 1.0, 0.0, n)
    assert row["low"] == pytest.approx(0, abs=1e-3)
    assert math.isnan(row["p"]) if n < 3 else row["p"] == pytest.approx(0.05, abs=1e-4)


def test_where_only_examples_differ_the_interval_is_the_normal_one() -> None:
    row = judged(1.95996, 0.0, 1.0, 3)
    assert row["low"] == pytest.approx(0, abs=1e-5)
    assert row["p"] == pytest.approx(0.05, abs=1e-5)


@pytest.mark.parametrize("tail", [0.4, 0.025, 1e-6])
@pytest.mark.parametrize("noise", [(1.0, 0.0, 3), (0.3, 2.0, 3), (1e-9, 1.0, 5)])
def test_p_is_the_level_of_the_interval_that_ends_at_the_bound(tail: float, noise: tuple[float, float, int]) -> None:
    distance = verdicts.half_width(tail, *noise)
    assert verdicts.tail_beyond(distance, *noise) == pytest.approx(tail, rel=1e-6)
    assert verdicts.tail_beyond(-distance, *noise) == pytest.approx(1 - tail)


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
def test_an_interval_misses_the_truth_in_five_of_a_hundred_times_at_most(seeds: int, share: float) -> None:
    """However the noise divides between seeds and examples: `share` is that of seeds in the variance of the effect. Degrees of
    freedom after Satterthwaite miss it in up to 10 of a hundred."""
    rng = np.random.default_rng([seeds, round(100 * share)])
    times = 8000
    effects = rng.normal(0, 1, times)
    variances = share * rng.chisquare(seeds - 1, times) / (seeds - 1)
    missed = [
        abs(effect) > verdicts.half_width(0.025, variance, 1 - share, seeds)
        for effect, variance in zip(effects, variances, strict=True)
    ]
    assert np.mean(missed) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / times)


def test_a_claim_about_exact_matches_is_judged_by_them() -> None:
    """Its effect, and what draws of other questions would do to it; F1 says the opposite here."""
    rng = np.random.default_rng([11])
    terms = compared("b", "a", (1, 2, 3))
    # All seeds answer the same questions.
    right = {"a": (rng.random(N) < 0.5).astype(float), "b": (rng.random(N) < 0.8).astype(float)}
    for term in terms:
        exact = right[term.cell.method]
        f1 = np.full(N, 0.2 if term.cell.method == "b" else 0.9)
        outcomes = [[float(of_f1), float(of_exact)] for of_f1, of_exact in zip(f1, exact, strict=True)]
        write(term.cell, outcomes, "squad-f1")
        path = Path(term.cell.path)
        cell_json = json.loads(path.read_text())
        cell_json["scores"]["squad-em"] = heads.metric("squad-em").score(outcomes)
        path.write_text(json.dumps(cell_json))
    claims = {name: claim() for name in ("main", "exact")}
    judged = verdicts.judge(claims, verdicts.measure(dict.fromkeys(claims, terms), {"exact": "squad-em"}))
    assert dict(zip(judged["claim"], judged["verdict"], strict=True)) == {
        "main": verdicts.DOES_NOT,
        "exact": verdicts.HOLDS,
    }
    assert judged["effect"].tolist() == pytest.approx([-70, 30], abs=5)
    # All questions have one F1, so other questions would change nothing.
    noise = verdicts.measure({"exact": terms, "main": terms}, {"exact": "squad-em"}).set_index("claim")
    assert noise.loc["main", "example_variance"] == pytest.approx(0, abs=1e-9)
    assert noise.loc["exact", "example_variance"] > 0.1


def zero_shot(seeds: tuple[int, ...] = (1, 2, 3)) -> list[Term]:
    """In a language that the runs were not trained on, `b` is far better than `a`."""
    terms = compared("b", "a", seeds, ("en", "fr"))
    rng = np.random.default_rng(13)
    for term in terms:
        write(term.cell, rng.random(N) < {"a": 0.3, "b": 0.8}[term.cell.method] + rng.normal(0, 0.01))
    return terms


def change(terms: list[Term], method: str, seeds: tuple[int, ...], target: str = "en", **entries: Any) -> None:
    for term in terms:
        if (term.cell.method, term.cell.target) == (method, target) and term.cell.seed in seeds:
            path = Path(term.cell.path)
            path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@pytest.mark.parametrize("seeds", [(1, 2, 3), (2,)])
@pytest.mark.parametrize("method", ["a", "b"])
def test_a_claim_has_no_verdict_where_a_run_is_at_chance_in_its_own_language(
    method: str, seeds: tuple[int, ...]
) -> None:
    terms = zero_shot()
    assert verdict({"one": terms}, {"one": claim()}).loc["one", "verdict"] == verdicts.HOLDS
    # The runs train on `en`; each cell names its run.
    for name in ("a", "b"):
        for target in ("en", "fr"):
            for seed in (1, 2, 3):
                change(terms, name, (seed,), target, run=f"runs/{name}{seed}")
    change(terms, method, seeds, chance={"accuracy": 95.0})
    row = verdict({"one": terms}, {"one": claim()}).loc["one"]
    assert row["verdict"] == verdicts.NOTHING and math.isnan(row["p"])
    assert f"{len(seeds)} of 6 models" in row["learnt_nothing"] and "chance 95.0" in row["learnt_nothing"]
    assert row["effect"] == pytest.approx(50, abs=5)


def test_chance_in_another_language_leaves_the_verdict() -> None:
    terms = zero_shot()
    change(terms, "a", (1, 2, 3), "fr", run="runs/a", chance={"accuracy": 95.0})
    change(terms, "a", (1, 2, 3), "en", run="runs/a")
    assert verdict({"one": terms}, {"one": claim()}).loc["one", "verdict"] == verdicts.HOLDS


def test_a_claim_has_no_verdict_where_the_loss_of_a_run_rose() -> None:
    terms = zero_shot()
    change(terms, "a", (3,), "fr", run="diverged")
    Path("diverged").mkdir()
    Path("diverged/run.json").write_text(json.dumps({"loss": {"first": 1.1, "last": 5e7}}))
    row = verdict({"one": terms}, {"one": claim()}).loc["one"]
    assert row["verdict"] == verdicts.NOTHING and "5e+07" in row["learnt_nothing"]


def test_that_a_model_guesses_can_be_claimed() -> None:
    """Such a claim has one side, and compares it with a number."""
    terms = [Term(cell("a", "en", seed), 1.0) for seed in (1, 2, 3)]
    for term in terms:
        write(term.cell, np.arange(N) % 2)
    change(terms, "a", (1, 2, 3), run="runs/a", chance={"accuracy": 50.0})
    row = verdict({"one": terms}, {"one": claim("none", margin=8, against=50.0)}).loc["one"]
    assert row["verdict"] == verdicts.HOLDS and row["learnt_nothing"] == ""


@pytest.mark.parametrize(("dev_score", "is_known"), [(50.0, False), (90.0, True)])
def test_that_a_model_guesses_in_another_language_is_known_only_of_one_that_has_learnt(
    dev_score: float, is_known: bool
) -> None:
    terms = [Term(cell("a", "fr", seed), 1.0) for seed in (1, 2, 3)]
    Path("runs/a").mkdir(parents=True)
    record = {"dev_score": dev_score, "metric": "accuracy", "chance": {"accuracy": 50.0}}
    Path("runs/a/run.json").write_text(json.dumps(record))
    for term in terms:
        write(term.cell, np.arange(N) % 2)
    change(terms, "a", (1, 2, 3), "fr", run="runs/a", chance={"accuracy": 50.0})
    row = verdict({"one": terms}, {"one": claim("none", margin=8, against=50.0)}).loc["one"]
    assert row["verdict"] == (verdicts.HOLDS if is_known else verdicts.NOTHING)


@pytest.mark.parametrize("seeds", [3, 4, 5, 10])
@pytest.mark.parametrize("claims", [1, 4, 42])
def test_the_smallest_effect_is_where_the_first_of_so_many_claims_begins_to_hold(seeds: int, claims: int) -> None:
    """By the verdicts themselves, and by Student's t of scipy with Bonferroni's level, which is that of Holm's first step."""
    smallest = verdicts.smallest_effect(seeds, claims)
    assert smallest * math.sqrt(seeds) == pytest.approx(stats.t.isf(0.025 / claims, seeds - 1))
    for factor, expected in ((1.001, verdicts.HOLDS), (0.999, verdicts.DOES_NOT)):
        counts = dict.fromkeys(("n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"), seeds)
        noise = {"metric": "f1", "seed_variance": 1 / seeds, "example_variance": 0.0, "learnt_nothing": ""}
        noise |= ONE_LANGUAGE
        rows = [{"claim": str(n), "effect": 0.0 if n else factor * smallest, **noise, **counts} for n in range(claims)]
        judged = verdicts.judge({str(n): claim() for n in range(claims)}, pd.DataFrame(rows))
        assert judged.loc[0, "verdict"] == expected


@pytest.mark.parametrize(("seeds", "share"), [(3, 0.63), (5, 0.59)])
def test_a_true_effect_of_the_smallest_size_shows_in_more_than_half_of_all_studies(seeds: int, share: float) -> None:
    """Simulated: the effect of each seed is normal with standard deviation 1."""
    smallest, times = verdicts.smallest_effect(seeds, 42), 20_000
    effects = np.random.default_rng(seeds).normal(smallest, 1, (times, seeds))
    shown = effects.mean(axis=1) / effects.std(axis=1, ddof=1) > smallest
    assert shown.mean() == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize(("targets", "examples"), [(1, 0.4), (6, 0.1)])
def test_the_examples_of_a_single_target_add_to_the_interval_over_languages(targets: int, examples: float) -> None:
    """The variance over languages has the noise of examples that differ between targets, and one target has no others."""
    counts = {"n_seeds": 3, "n_seeds_expected": 3, "n_cells": 36, "n_cells_expected": 36, "learnt_nothing": ""}
    variances = {"seed_variance": 0.2, "example_variance": 0.4, "shared_variance": 0.1}
    row = {"claim": "c", "metric": "accuracy", "effect": 2.0, "population": Population(0.3, 5.0, 6, targets)}
    judged = verdicts.judge({"c": claim()}, pd.DataFrame([row | variances | counts]))
    assert judged["like_se"].item() == pytest.approx(math.sqrt(0.2 + 0.3 + examples))
