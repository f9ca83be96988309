"""Mean ranks of methods beside scipy, scikit-posthocs and the critical values of Demšar 2006."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs as posthocs
from exhibit_fixture import EXHIBIT, NAN, grid
from scipy.stats import friedmanchisquare, rankdata

from xlgrid.exhibits.pairs.ranks import critical

METHODS = ("full-ft", "bitfit", "madx")
TARGETS = ["de", "fr", "ru", "uk", "he", "sw", "yo"]
RANKS = {"kind": "ranks", "title": "Ranks"}


def rendering(of: pd.DataFrame, **keys: Any) -> Any:
    return EXHIBIT.validate_python(RANKS | keys).of_scores(SimpleNamespace(pairs={}, languages_used={}), of)


def cells(**how: Any) -> pd.DataFrame:
    return grid(["en", "es"], TARGETS, methods=METHODS, seeds=1, **how)


def table(of: pd.DataFrame, **keys: Any) -> pd.DataFrame:
    return rendering(of, **keys).sheet.entries.pivot(index="method", columns="column", values="text")


def scores(of: pd.DataFrame) -> np.ndarray:
    """The mean over sources of each target (rows) and method (columns)."""
    return np.asarray(of.pivot_table(index="target", columns="method", values="score")[[*METHODS]])


@pytest.mark.parametrize(("methods", "value"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_values_are_those_of_the_table_of_demsar(methods: int, value: float) -> None:
    """Table 5a of Demšar 2006: q of 0.05."""
    assert critical(methods, 14) / (methods * (methods + 1) / (6 * 14)) ** 0.5 == pytest.approx(value, abs=1e-3)


def test_mean_ranks_are_those_of_scipy() -> None:
    of = cells()
    expected = rankdata(-scores(of), axis=1).mean(axis=0)
    assert table(of)["mean rank"].to_dict() == {
        name: f"{rank:.2f}" for name, rank in zip(METHODS, expected, strict=True)
    }


def test_p_is_that_of_scikit_posthocs() -> None:
    of = cells()
    p = posthocs.posthoc_nemenyi_friedman(-scores(of))
    got = table(of)
    for i, one in enumerate(METHODS):
        for j, other in enumerate(METHODS):
            if i != j:
                assert got.loc[one, f"p against {other}"] == f"{p.iloc[i, j]:.3f}"


def test_the_notes_have_friedman_s_test() -> None:
    of = cells()
    statistic, p = friedmanchisquare(*scores(of).T)
    assert f"Friedman's test: χ²(2) = {statistic:.2f}, p = {p:.3g}." in rendering(of).sheet.notes
    nothing = "Friedman's test finds no difference at all"
    assert p >= 0.05 and nothing in rendering(of).sheet.notes
    apart = of.assign(score=of["score"] + 1000 * of["method"].map(METHODS.index))
    assert nothing not in rendering(apart).sheet.notes


def test_methods_that_are_equal_in_each_block_do_not_differ(tmp_path: Path) -> None:
    drawn = rendering(cells().assign(score=50.0))
    assert "χ²(2) = 0.00, p = 1." in drawn.sheet.notes and "finds no difference at all" in drawn.sheet.notes
    EXHIBIT.validate_python(RANKS).write("x", tmp_path, drawn)


def test_equal_means_share_their_ranks() -> None:
    of = cells().assign(score=50.0)
    of.loc[of["method"] == "madx", "score"] = 60.0
    assert table(of)["mean rank"].to_dict() == {"madx": "1.00", "full-ft": "2.50", "bitfit": "2.50"}


def test_a_block_that_lacks_a_method_is_left_out_and_said() -> None:
    of = cells()
    of.loc[(of["target"] == "fr") & (of["method"] == "bitfit"), "score"] = NAN
    drawn = rendering(of)
    assert "1 of 7 blocks lack a method and are left out (xnli fr)." in drawn.sheet.notes
    assert set(drawn.data["target"]) == {*TARGETS} - {"fr"}


def test_a_source_from_which_one_method_is_not_planned_counts_for_none() -> None:
    of = cells()
    # From the source en, everything is harder.
    of.loc[of["source"] == "en", "score"] -= 20
    best = of.assign(score=of["score"] + 200 * (of["method"] == "bitfit"))
    both, partly = rendering(best), rendering(best[(best["method"] != "bitfit") | (best["source"] == "en")])
    assert "of a source" not in both.sheet.notes
    assert "14 of 35 cells are of a source" in partly.sheet.notes
    assert partly.data.query("method == 'bitfit'")["rank"].eq(1).all()


def test_blocks_may_be_each_cell() -> None:
    assert "Ranks over 14 blocks (source × target)" in rendering(cells(), blocks=["source", "target"]).sheet.notes


def test_too_few_blocks_are_refused() -> None:
    of = cells()
    with pytest.raises(ValueError, match="ranks need 6 blocks and 3 methods or more, got 5 blocks"):
        rendering(of[of["target"].isin(TARGETS[:5])])


def test_too_few_complete_blocks_have_no_ranks_yet(tmp_path: Path) -> None:
    of = cells()
    of.loc[of["target"].isin(TARGETS[:2]), "score"] = NAN
    drawn = rendering(of)
    assert "There are no ranks below 6 complete blocks." in drawn.sheet.notes
    EXHIBIT.validate_python(RANKS).write("x", tmp_path, drawn)
    assert "no ranks yet" in (tmp_path / "x.svg").read_text()


def test_two_methods_are_a_claim() -> None:
    exhibit = EXHIBIT.validate_python(RANKS | {"select": {"method": ["full-ft", "bitfit"]}})
    [problem] = exhibit.problems(SimpleNamespace(pairs={}), {"method": [*METHODS]})
    assert problem == "of: ranks need 3 methods or more, got full-ft, bitfit: compare two of them by a claim"


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        EXHIBIT.validate_python(RANKS).write("x", tmp_path / folder, rendering(cells()))
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["x.csv", "x.md", "x.pdf", "x.png", "x.svg", "x.tex"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
