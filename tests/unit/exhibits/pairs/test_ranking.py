"""Rankings of sources beside scikit-learn, and their regret, donors and recipients."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from exhibit_fixture import EXHIBIT, NAN, grid
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from xlgrid.exhibits.pairs.ranking import ndcg
from xlgrid.languages import language
from xlgrid.pairs import pair_values

LANGUAGES = ["en", "de", "fr", "ru", "uk", "he"]
KNOWN = {code: language(code) for code in LANGUAGES}
STUDY = SimpleNamespace(pair_values=lambda name: pair_values(name, {}, KNOWN))
RANKING = {"kind": "ranking", "title": "Choice", "by": ["great-circle", "same-family"]}

numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=12)


@given(numbers, st.integers(1, 6))
def test_ndcg_is_that_of_scikit_learn_ties_included(pairs: list[tuple[int, int]], k: int) -> None:
    gains, values = (np.array(side, float) for side in zip(*pairs, strict=True))
    if gains.any():
        assert ndcg(gains, values, k) == pytest.approx(ndcg_score([gains], [values], k=k), abs=1e-12)
    else:
        assert np.isnan(ndcg(gains, values, k))


def rendering(of: pd.DataFrame, **keys: Any) -> Any:
    return EXHIBIT.validate_python(RANKING | keys).of_scores(STUDY, of)


def choices(of: pd.DataFrame, **keys: Any) -> pd.DataFrame:
    data = rendering(of, **keys).data
    return data[data["what"] == "choice"].set_index(["by", "target"])


def test_the_ndcg_of_a_target_is_that_of_scikit_learn_with_the_relevances_of_langrank() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    table, got = pair_values("great-circle", {}, KNOWN), choices(of, k=2)
    for target in LANGUAGES:
        sources = of[(of["target"] == target) & (of["source"] != target)].sort_values("score", ascending=False)
        relevance = np.maximum(0, 10 - np.arange(len(sources)))
        near = [-table.values[source, target] for source in sources["source"]]
        expected = 100 * ndcg_score([2.0**relevance - 1], [near], k=2)
        assert got.loc[("great-circle", target), "ndcg"] == pytest.approx(expected, abs=1e-12)


def test_regret_is_the_best_score_minus_that_of_the_nearest_source() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    scores = of.set_index(["source", "target"])["score"]
    got = choices(of)
    # The nearest to Ukrainian is Russian by neither family alone: ru is the only other Slavic language here.
    others = [code for code in LANGUAGES if code != "uk"]
    best = max(scores[code, "uk"] for code in others)
    assert got.loc[("same-family", "uk"), "nearest"] == "ru"
    assert got.loc[("same-family", "uk"), "regret"] == pytest.approx(best - scores["ru", "uk"])
    assert got.loc[("random", "uk"), "regret"] == pytest.approx(best - np.mean([scores[code, "uk"] for code in others]))


def test_sources_with_equal_values_count_as_in_random_order() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    got = choices(of)
    assert got.loc[("same-family", "he"), "regret"] == pytest.approx(got.loc[("random", "he"), "regret"])
    assert got.loc[("same-family", "he"), "ndcg"] == pytest.approx(got.loc[("random", "he"), "ndcg"])


def test_a_table_that_orders_sources_as_the_scores_do_has_no_regret() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    table = pair_values("great-circle", {}, KNOWN)
    of["score"] = 90 - np.array(table.of(of["source"], of["target"])) / 100
    got = choices(of).loc["great-circle"]
    assert got["regret"].to_numpy() == pytest.approx(0) and got["ndcg"].to_numpy() == pytest.approx(100)


def test_a_table_may_have_the_name_of_a_column_of_scores() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    study = SimpleNamespace(pair_values=lambda _: pair_values("great-circle", {}, KNOWN))
    named = EXHIBIT.validate_python(RANKING | {"by": ["mean"]}).of_scores(study, of).data
    expected = choices(of, by=["great-circle"]).loc["great-circle", "regret"]
    assert named[named["by"] == "mean"].set_index("target")["regret"].to_dict() == pytest.approx(expected.to_dict())


def test_a_table_cannot_have_the_name_of_the_random_order() -> None:
    exhibit = EXHIBIT.validate_python(RANKING | {"by": ["random"]})
    [problem] = exhibit.problems(SimpleNamespace(pairs={"random": None}, defined_names={}), {})
    assert problem == "by: random is a random order in rankings: give the table another name"


def test_a_source_without_a_result_is_not_ranked_and_is_said() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    of.loc[(of["source"] == "ru") & (of["target"] == "uk"), "score"] = NAN
    assert choices(of).loc[("great-circle", "uk"), "sources"] == 4
    assert "1 of 30 means lack all of their seeds." in rendering(of).sheet.notes


def test_donors_and_recipients_are_the_effects_of_least_squares_without_the_cells_that_are_missing() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1, holes=0.2)
    data = rendering(of).data
    known = of[(of["source"] != of["target"]) & of["score"].notna()]
    fit = smf.ols("score ~ C(source, Sum) + C(target, Sum)", known).fit()
    donors = data[data["what"] == "donor"].set_index("source")["effect"]
    expected = {code: fit.params[f"C(source, Sum)[S.{code}]"] for code in sorted(LANGUAGES)[:-1]}
    assert {code: donors[code] for code in expected} == pytest.approx(expected, abs=1e-10)
    assert data[data["what"] == "recipient"]["effect"].sum() == pytest.approx(0, abs=1e-9)


def test_the_table_has_means_over_targets() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    entries = rendering(of).sheet.entries.set_index(["by", "column"])["mean"]
    got = choices(of)
    for by in ("great-circle", "same-family", "random"):
        assert entries[by, "ndcg@3"] == pytest.approx(got.loc[by, "ndcg"].mean())
        assert entries[by, "regret"] == pytest.approx(got.loc[by, "regret"].mean())


def test_published_numbers_stand_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reference/p").mkdir(parents=True)
    head = "exhibit,model,dataset,method,source,target,metric,value\n"
    (tmp_path / "reference/p/t1.csv").write_text(f"{head}t1,mini,xnli,lang2vec,avg,avg,ndcg@3,61.5\n")
    published = {"file": "p/t1", "names": {"method": {"great-circle": "lang2vec"}}}
    exhibit = EXHIBIT.validate_python(RANKING | {"published": published})
    exhibit.write_published("x", tmp_path, exhibit.of_scores(STUDY, grid(LANGUAGES, LANGUAGES, seeds=1)))
    compared = pd.read_csv(tmp_path / "x-published.csv").set_index(["by", "column"])["published"]
    assert compared["great-circle", "ndcg@3"] == 61.5 and np.isnan(compared["random", "ndcg@3"])


def test_before_the_first_result_there_are_empty_files_and_later_the_same_bytes(tmp_path: Path) -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=2, holes=0.1)
    exhibit = EXHIBIT.validate_python(RANKING)
    for folder, cells in (("0", of.assign(score=NAN)), ("a", of), ("b", of)):
        exhibit.write("x", tmp_path / folder, exhibit.of_scores(STUDY, cells))
    assert "– |" in (tmp_path / "0/x.md").read_text()
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["x.csv", "x.md", "x.pdf", "x.png", "x.svg", "x.tex"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
