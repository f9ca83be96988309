"""The first part of a report: the finding, the claims as a forest plot, and published numbers beside ours."""

import re
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from xlgrid.report import verdicts as first
from xlgrid.results.claims import Claim
from xlgrid.results.population import TOO_FEW
from xlgrid.results.verdicts import DOES_NOT, HOLDS, NOT_ENOUGH, NOTHING

SIDES = [{"method": "lora"}, {"method": "full-ft"}]
CLAIMS = {
    "better": Claim(says="LoRA is better.", compare=SIDES, expect="greater"),  # type: ignore[arg-type]
    "same": Claim(says="BitFit is as <good>.", compare=SIDES, expect="none", margin=1),  # type: ignore[arg-type]
    "later": Claim(says="It is far better.", compare=SIDES, expect="greater", margin=9),  # type: ignore[arg-type]
}


def row(name: str, verdict: str, like: str, effect: float, low: float, high: float, **others: Any) -> dict[str, Any]:
    """A row of `claims.csv`."""
    claim = CLAIMS[name]
    words = {"claim": name, "says": claim.says, "measured": claim.measured, "expected": claim.expected, "metric": "f1"}
    counts = {"n_seeds": 3, "n_seeds_expected": 3, "n_cells": 6, "n_cells_expected": 6, "n_sources": 1, "n_targets": 3}
    needed = {"seeds_needed": nan, "languages_needed": nan, "learnt_nothing": ""}
    like_these = {"like_low": nan, "like_high": nan, "like_verdict": like}
    p = {f"{prefix}{name}": nan for prefix in ("", "like_") for name in ("p", "p_corrected")}
    return {
        **words,
        "effect": effect,
        "low": low,
        "high": high,
        "verdict": verdict,
        **like_these,
        **p,
        **counts,
        **needed,
        **others,
    }


BETTER = row("better", HOLDS, TOO_FEW, 2.1, 1.2, 3.0)
SAME = row("same", DOES_NOT, DOES_NOT, 0.3, -2.0, 2.6, like_low=-4.0, like_high=4.6, seeds_needed=9.0)
LATER = row("later", NOT_ENOUGH, NOT_ENOUGH, nan, nan, nan)


def judged(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows)


def test_the_finding_is_about_the_first_claim_that_holds() -> None:
    assert first.finding(judged(SAME, BETTER, LATER)) == (
        "“LoRA is better” holds over these languages: lora − full-ft is 2.1 points of f1 (95 % interval 1.2 to 3.0), where > 0 is expected; "
        "for languages like these, it is open: too few languages. Of 3 claims, 1 holds over these languages, 1 does not, and 1 lacks runs; none holds for "
        "languages like these."
    )


def test_the_finding_has_the_labels_of_the_study() -> None:
    labels = {"lora": "LoRA", "full-ft": "full fine-tuning"}
    assert "LoRA − full fine-tuning is 2.1 points" in first.finding(judged(BETTER), labels)


def test_the_finding_has_the_unit_of_the_metric() -> None:
    assert "is 2.1 perplexity (95 % interval 1.2 to 3.0)" in first.finding(judged(BETTER | {"metric": "perplexity"}))


def test_without_a_claim_that_holds_the_finding_says_what_is_not_shown() -> None:
    assert first.finding(judged(SAME, LATER)).startswith(
        "“BitFit is as <good>” is not shown over these languages: lora − full-ft is 0.3 points of f1 (95 % interval −2.0 to 2.6), where within ±1 is "
        "expected; for languages like these, it is open (−4.0 to 4.6)."
    )
    assert first.finding(judged(LATER)) == (
        "Of 1 claim, none holds over these languages, and 1 lacks runs; none holds for languages like these."
    )
    several = judged(BETTER, BETTER, SAME, SAME, LATER | {"verdict": NOTHING}, LATER, LATER)
    counts = "2 hold over these languages, 2 do not, 1 has a side that has learnt nothing, and 2 lack runs;"
    assert f"Of 7 claims, {counts}" in first.finding(several)


def test_an_interval_on_the_claimed_side_without_a_verdict_says_that_p_is_corrected() -> None:
    like = {"like_verdict": DOES_NOT, "like_low": 0.6, "like_high": 12.4, "like_p": 0.03, "like_p_corrected": 0.09}
    reason = "p 0.090 after the correction for the number of claims"
    assert f"it is open (0.6 to 12.4), with {reason}." in first.finding(judged(BETTER | like))
    assert str(first.forest(CLAIMS, judged(BETTER | like))).count(reason) == 1
    these = {"verdict": DOES_NOT, "p": 0.03, "p_corrected": 0.09}
    assert str(first.forest(CLAIMS, judged(BETTER | these))).count(reason) == 1
    assert reason not in str(first.forest(CLAIMS, judged(BETTER, SAME | {"p": 0.4, "p_corrected": 0.8})))


def test_the_scale_of_effects_of_0_is_not_smaller_than_a_point() -> None:
    same = pd.DataFrame([dict.fromkeys(("effect", "low", "high", "like_low", "like_high"), 1e-14)])
    low, high, _ = first._scale(same, [])
    assert high - low >= 1


def test_the_forest_has_the_claims_in_the_groups_of_their_verdicts() -> None:
    html = str(first.forest(CLAIMS, judged(LATER, SAME, BETTER, SAME | {"verdict": NOTHING})))
    assert re.findall("Claims [a-z ]+: 1", html) == [f"{heading}: 1" for heading in first.GROUPS.values()]
    assert [html.index(name) for name in ("<b>better</b>", "<b>same</b>", "<b>later</b>")] == sorted(
        html.index(name) for name in ("<b>better</b>", "<b>same</b>", "<b>later</b>")
    )
    assert "BitFit is as &lt;good&gt;." in html
    assert "+2.1 [1.2, 3.0]" in html and "it would take 9 seeds" in html
    assert 'aria-label="+0.3 [−2.0, 2.6] over these languages; +0.3 [−4.0, 4.6] over languages like these"' in html


def test_a_claim_with_fewer_seeds_than_a_verdict_needs_says_so() -> None:
    few = LATER | {"n_seeds": 2, "n_seeds_expected": 2}
    assert "2 of 2 seeds, 6 of 6 cells, and a verdict needs 3 seeds" in str(first.forest(CLAIMS, judged(few)))


def places(html: str) -> list[tuple[float, float, float]]:
    """Both ends of each thick interval, and its effect, in percent of the width."""
    thick = re.findall(r'class="these" x1="([\d.]+)%" x2="([\d.]+)%"', html)
    effects = re.findall(r'cx="([\d.]+)%"', html)
    return [(float(low), float(high), float(effect)) for (low, high), effect in zip(thick, effects, strict=True)]


def test_claims_of_the_same_unit_have_the_same_scale_and_others_their_own() -> None:
    apart = [SAME, BETTER | {"metric": "accuracy"}]
    one, other = places(str(first.forest(CLAIMS, judged(*apart))))
    # A point of effect is as wide in both.
    assert (one[1] - one[0]) / 1.8 == pytest.approx((other[1] - other[0]) / 4.6, abs=0.05)
    assert one[0] < one[2] < one[1]
    html = str(first.forest(CLAIMS, judged(SAME, BETTER | {"metric": "perplexity"})))
    assert html.count("<table") == 2 and "Effect in points" in html


def written(folder: Path, name: str, *rows: tuple[float, float, float, str, str]) -> None:
    columns = ["mean", "published", "margin", "verdict", "contradiction"]
    frame = pd.DataFrame(rows, columns=columns).assign(task="t", sd=1.0)
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / f"{name}-published.csv", index=False)


def drawn(figure: Any, alt: str) -> str:
    return f"<img alt='{alt}'>"


def study(root: Path, **entries: Any) -> Any:
    exhibits = {name: SimpleNamespace(title=f"The {name}", is_compared=True) for name in ("table1", "table2", "later")}
    parts = {"name": "p", "path_of": root.joinpath, "plan": None, "claims": {}, "exhibits": exhibits}
    return SimpleNamespace(**parts | entries)


def test_the_score_counts_the_numbers_that_noise_explains(tmp_path: Path) -> None:
    exhibits = tmp_path / "results/p/exhibits"
    written(exhibits, "table1", (50.0, 51.0, 2.0, "within", ""), (60.0, 70.0, 2.0, "beyond", "It says 60 below."))
    written(exhibits, "table2", (40.0, 41.0, nan, "", ""), (nan, 42.0, nan, "", ""), (43.0, nan, nan, "", ""))
    html = first.first_part(study(tmp_path), drawn)
    assert "<b>1 of 2 within noise; 1 without two seeds of ours.</b>" in html
    assert '<a href="#exhibit-table1">The table1</a>: 1 of 2 within noise</li>' in html
    assert "<li>The table1: It says 60 below.</li>" in html and "Numbers that the paper contradicts: 1" in html


def test_each_point_of_the_scatter_is_an_entry(tmp_path: Path) -> None:
    written(tmp_path, "table1", (50.0, 51.0, 2.0, "within", ""), (60.0, 70.0, 2.0, "beyond", ""))
    figure = first.scatter(first.compared(tmp_path, ["table1", "absent"]))
    [ax] = [ax for ax in figure.axes if ax.axison]
    points = {tuple(map(tuple, line.get_xydata())) for line in ax.lines if line.get_marker() in ("o", "s")}  # type: ignore[arg-type]
    assert {((51.0, 50.0),), ((70.0, 60.0),)} <= points


def test_a_study_without_claims_and_published_numbers_has_no_first_part(tmp_path: Path) -> None:
    assert first.first_part(study(tmp_path), drawn) == "" == first.of_study(study(tmp_path))


@pytest.mark.parametrize("stale", [False, True])
def test_claims_without_current_verdicts_say_how_to_judge_them(tmp_path: Path, stale: bool) -> None:
    """A file of an earlier version has no verdict over languages like these."""
    folder = tmp_path / "results/p"
    folder.mkdir(parents=True)
    if stale:
        judged(BETTER).drop(columns="like_verdict").to_csv(folder / "claims.csv")
    html = first.first_part(study(tmp_path, claims=CLAIMS), drawn)
    assert "snakemake --cores all --forcerun claims -- results/p/claims.html" in html


@pytest.mark.parametrize(
    ("of_study", "of_extended", "heading"),
    [(True, False, "The paper&#39;s claims"), (False, True, "The paper&#39;s claims"), (False, False, "Claims")],
)
def test_the_claims_are_the_paper_s_if_the_study_or_what_it_extends_has_its_numbers(
    tmp_path: Path, of_study: bool, of_extended: bool, heading: str
) -> None:
    folder = tmp_path / "results/p"
    folder.mkdir(parents=True)
    judged(BETTER).to_csv(folder / "claims.csv", index=False)
    (folder / "claims.html").write_text("<table>all</table>")
    own, extended = ({"t": SimpleNamespace(title="T", is_compared=compares)} for compares in (of_study, of_extended))
    plan = SimpleNamespace(ancestors=[SimpleNamespace(study=SimpleNamespace(exhibits=extended))])
    html = first.first_part(study(tmp_path, claims=CLAIMS, exhibits=own, plan=plan), drawn)
    assert f'<h2 id="claims">{heading}</h2>' in html
    assert "<table>all</table>" in html and 'href="claims.csv"' in html


def test_languages_have_a_name_a_code_and_a_family() -> None:
    facts = {
        "en": SimpleNamespace(name="English", family="Germanic"),
        "sw": SimpleNamespace(name="Swahili", family="Bantu"),
    }
    facts["de"] = SimpleNamespace(name="German", family="Germanic")
    languages = [(code, facts.get(code)) for code in ("en", "sw", "qa1", "de")]
    assert first.by_family(languages) == "Germanic: English (en), German (de); Bantu: Swahili (sw); qa1"
