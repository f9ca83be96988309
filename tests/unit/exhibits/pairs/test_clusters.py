"""The order of a clustered heatmap beside scipy, and what it leaves out of the dendrograms."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import EXHIBIT, NAN, grid
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.pairs.clusters import rms, tree
from xlgrid.languages import language
from xlgrid.pairs import pair_values

LANGUAGES = ["en", "ru", "de", "zh", "uk", "ja"]
KNOWN = {code: language(code) for code in LANGUAGES}
CLUSTERS = {"kind": "clusters", "title": "Clusters", "method": "adapters"}


def study(sources: list[str] = LANGUAGES) -> Any:
    order = {"source": sources, "target": LANGUAGES}
    return SimpleNamespace(pair_values=lambda name: pair_values(name, {}, KNOWN), methods={}, order=order)


def rendering(of: pd.DataFrame, sources: list[str] = LANGUAGES, **keys: Any) -> Any:
    return EXHIBIT.validate_python(CLUSTERS | keys).of_scores(study(sources), of)


def rows(drawn: Any) -> list[str]:
    return list(dict.fromkeys(drawn.sheet.entries["source"]))


def columns(drawn: Any) -> list[str]:
    return [column for (column,) in drawn.sheet.columns]


def test_complete_rows_have_the_distances_of_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(5, 7))
    np.testing.assert_allclose(rms(values), squareform(pdist(values)) / np.sqrt(7), atol=1e-12)


def test_rows_are_compared_over_the_columns_that_both_have() -> None:
    found = rms(np.array([[1, 2, NAN], [3, NAN, 5], [NAN, 4, NAN]]))
    np.testing.assert_allclose(found, [[0, 2, 2], [2, 0, NAN], [2, NAN, 0]])


def test_a_tree_is_that_of_scipy() -> None:
    points = np.random.default_rng(1).normal(size=(6, 2))
    expected = hierarchy.linkage(pdist(points), "average", optimal_ordering=True)
    found = tree(LANGUAGES, squareform(pdist(points)))
    assert found.links is not None
    np.testing.assert_allclose(found.links, expected)
    assert list(found.order) == [LANGUAGES[at] for at in hierarchy.leaves_list(expected)] and found.left_out == ()


def test_a_label_without_distances_is_last_and_said() -> None:
    far = squareform(pdist(np.random.default_rng(1).normal(size=(4, 2))))
    far[1, 2] = far[2, 1] = far[1, 3] = far[3, 1] = NAN
    found = tree(["a", "b", "c", "d"], far)
    assert found.left_out == ("b",) and found.order[-1] == "b" and {*found.order} == {*"abcd"}


def test_sources_that_transfer_alike_are_neighbours() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    # Two groups of sources, which alternate in the study.
    group = of["source"].map({code: at % 2 for at, code in enumerate(LANGUAGES)})
    drawn = rendering(of.assign(score=50.0 + 20 * group + of["score"] / 100))
    at = [LANGUAGES.index(code) % 2 for code in rows(drawn)]
    assert at in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    assert "In the order of average linkage by scores." in drawn.sheet.notes


def test_scores_in_the_training_language_do_not_count() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    other = of.assign(score=of["score"].mask(of["source"] == of["target"], 99.0))
    assert rows(rendering(of)) == rows(rendering(other)) and columns(rendering(of)) == columns(rendering(other))


def test_the_order_may_follow_a_table_of_pairs() -> None:
    drawn = rendering(grid(LANGUAGES, LANGUAGES, seeds=1), by="great-circle")
    table = pair_values("great-circle", {}, KNOWN)
    far = np.array([table.of([one] * 6, LANGUAGES) for one in LANGUAGES])
    links = hierarchy.linkage(squareform(far, checks=False), "average", optimal_ordering=True)
    assert rows(drawn) == columns(drawn) == [LANGUAGES[at] for at in hierarchy.leaves_list(links)]


def test_targets_of_a_single_source_are_in_the_order_of_their_values() -> None:
    of = grid(["en"], LANGUAGES, seeds=1)
    drawn = rendering(of, ["en"], by="great-circle")
    values = pair_values("great-circle", {}, KNOWN).values
    assert columns(drawn) == sorted(LANGUAGES, key=lambda code: values["en", code])
    assert "In the order of great-circle." in drawn.sheet.notes
    assert columns(rendering(of, ["en"], by="same-family"))[:2] == ["en", "de"]


def test_the_dendrograms_are_at_the_edges_and_the_numbers_those_of_a_heatmap() -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=1)
    drawn = rendering(of)
    with plots.style():
        ax = drawn.draw(plots.Look())
    # The colour bar and two dendrograms, each with a line for each merger.
    assert sorted(len(inset.lines) for inset in ax.child_axes) == [0, 5, 5]
    means = drawn.sheet.entries.set_index(["source", "column"])["mean"].sort_index()
    expected = of.set_index(["source", "target"])["score"].sort_index()
    assert means.to_numpy() == pytest.approx(expected.to_numpy())


def test_before_the_first_result_there_is_no_dendrogram_and_later_the_same_bytes(tmp_path: Path) -> None:
    of = grid(LANGUAGES, LANGUAGES, seeds=2, holes=0.1)
    exhibit = EXHIBIT.validate_python(CLUSTERS)
    for folder, cells in (("0", of.assign(score=NAN)), ("a", of), ("b", of)):
        exhibit.write("x", tmp_path / folder, exhibit.of_scores(study(), cells))
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["x.csv", "x.md", "x.pdf", "x.png", "x.svg", "x.tex"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert "sources lack a distance from another language" in (tmp_path / "0/x.md").read_text()


def test_a_table_that_does_not_exist_is_told() -> None:
    exhibit = EXHIBIT.validate_python(CLUSTERS | {"by": "score"})
    asked = SimpleNamespace(pairs={}, methods={"adapters": None}, groups={})
    problems = [*exhibit.problems(asked, {"method": ["adapters"]})]
    assert len(problems) == 1 and problems[0].startswith("by: unknown table of pairs 'score', did you mean 'scores'")


def test_a_table_cannot_have_the_name_that_means_the_scores() -> None:
    asked = SimpleNamespace(pairs={"scores": None}, methods={"adapters": None}, groups={})
    [problem] = EXHIBIT.validate_python(CLUSTERS).problems(asked, {"method": ["adapters"]})
    assert "`scores` has a meaning of its own" in problem
