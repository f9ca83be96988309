"""Scores against a value of their pairs: what the figure shows and what it leaves out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from exhibit_fixture import EXHIBIT, NAN, grid

from xlgrid.exhibits.drawing import plots
from xlgrid.languages import language
from xlgrid.pairs import pair_values
from xlgrid.pairs.table import PairsFile

LANGUAGES = ["en", "de", "fr", "ru", "uk", "he"]
SCATTER = {"kind": "scatter", "title": "Far", "against": "great-circle"}


def cells(methods: tuple[str, ...] = ("full-ft", "bitfit"), **how: Any) -> pd.DataFrame:
    return grid(LANGUAGES, LANGUAGES, methods=methods, **how)


def study(**pairs: PairsFile) -> Any:
    languages = {code: language(code) for code in LANGUAGES}
    return SimpleNamespace(
        pairs=pairs, pair_values=lambda name: pair_values(name, pairs, languages), methods={}, group_facts=lambda _: ""
    )


def rendering(spec: dict[str, Any], of: pd.DataFrame, **pairs: PairsFile) -> Any:
    return EXHIBIT.validate_python(SCATTER | spec).of_scores(study(**pairs), of)


def notes(spec: dict[str, Any], of: pd.DataFrame, **pairs: PairsFile) -> str:
    return str(rendering(spec, of, **pairs).sheet.notes)


@pytest.fixture
def table(tmp_path: Path) -> PairsFile:
    """A table without a value for en to de."""
    rows = [
        f"{one},{other},{(3 * i + 5 * i * j) % 11}"
        for i, one in enumerate(LANGUAGES)
        for j, other in enumerate(LANGUAGES)
        if (one, other) != ("en", "de")
    ]
    (tmp_path / "t.csv").write_text("\n".join(["source,target,value", *rows]))
    return PairsFile(file=str(tmp_path / "t.csv"), quantity="cost of a train")


def test_a_slope_is_that_of_least_squares_on_means_over_seeds() -> None:
    data = rendering({}, cells()).data
    of_line = data[data["method"] == "bitfit"]
    assert len(of_line) == 30
    expected = smf.ols("mean ~ value + C(source) + C(target)", of_line).fit().params["value"]
    assert of_line["slope"].unique() == pytest.approx([expected * of_line["per"].iloc[0]], rel=1e-9)


def test_a_point_is_the_mean_over_complete_seeds() -> None:
    of = cells()
    data = rendering({}, of).data.set_index(["method", "source", "target"])["mean"]
    means = of[of["source"] != of["target"]].groupby(["method", "source", "target"])["score"].mean()
    pd.testing.assert_series_equal(data.sort_index(), means, check_names=False)


def test_a_pair_without_a_value_is_left_out_and_said(table: PairsFile) -> None:
    of = cells()
    assert "1 of 30 pairs have no value in train and are left out (en to de)." in notes(
        {"against": "train"}, of, train=table
    )
    data = rendering({"against": "train"}, of, train=table).data
    known = data[(data["method"] == "bitfit") & data["value"].notna()]
    expected = smf.ols("mean ~ value + C(source) + C(target)", known).fit().params["value"]
    assert known["slope"].iloc[0] == pytest.approx(expected * known["per"].iloc[0], rel=1e-9)


def test_a_mean_without_a_seed_is_left_out_and_said() -> None:
    of = cells()
    gap = (of["source"] == "en") & (of["target"] == "fr") & (of["method"] == "bitfit")
    of.loc[gap, "score"] = NAN
    assert "1 of 60 means lack all of their seeds and are left out." in notes({}, of)
    points = rendering({}, of).data
    expected = points[(points["method"] == "bitfit") & points["mean"].notna()]
    assert len(expected) == 29
    slope = smf.ols("mean ~ value + C(source) + C(target)", expected).fit().params["value"]
    assert expected["slope"].iloc[0] == pytest.approx(slope * expected["per"].iloc[0], rel=1e-9)


def test_cells_in_the_training_language_do_not_count() -> None:
    drawn = rendering({}, cells())
    assert len(drawn.data) == 60 and "Cells whose target is a training language of their source" in drawn.sheet.notes


def test_cells_without_training_have_no_source_and_no_point() -> None:
    of = cells()
    bare = of[of["source"] == "en"].assign(source="none", method="full-ft")
    assert len(rendering({}, pd.concat([of, bare])).data) == 60


def test_a_selection_without_transfer_is_refused() -> None:
    of = cells()
    with pytest.raises(ValueError, match="every selected target is a training language of its source"):
        rendering({}, of[of["source"] == of["target"]])


def test_a_gain_is_the_difference_from_the_baseline_of_the_same_pair() -> None:
    of = cells()
    data = rendering({"baseline": {"method": "full-ft"}}, of).data.set_index(["source", "target"])
    assert set(data["method"]) == {"bitfit"}
    scores = of.pivot_table(index=["source", "target"], columns="method", values="score")
    expected = (scores["bitfit"] - scores["full-ft"]).reindex(data.index)
    np.testing.assert_allclose(data["mean"], expected, atol=1e-12)


def test_lines_of_tasks_have_gains_of_each_task() -> None:
    of = pd.concat([cells(), cells().assign(task="paws", score=lambda each: each["score"] / 2)])
    spec = {"lines": "task", "baseline": {"method": "full-ft"}}
    data = rendering(spec, of).data.set_index(["task", "source", "target"])["mean"]
    np.testing.assert_allclose(data["paws"], data["xnli"] / 2, atol=1e-12)


def test_lines_of_tasks_with_gains_of_two_methods_are_refused() -> None:
    of = pd.concat([cells(("full-ft", "bitfit", "madx")), cells().assign(task="paws")])
    with pytest.raises(ValueError, match="line xnli has several methods"):
        rendering({"lines": "task", "baseline": {"method": "full-ft"}}, of)


def test_a_table_without_any_value_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("source,target,value\n")
    with pytest.raises(ValueError, match="against: far has no value for any source and target of the exhibit"):
        rendering({"against": "far"}, cells(), far=PairsFile(file=str(tmp_path / "t.csv")))


def test_a_grid_of_few_languages_has_a_slope_without_an_interval() -> None:
    of = cells()
    few = of[of["source"].isin(LANGUAGES[:5]) & of["target"].isin(LANGUAGES[:5])]
    assert "No interval: the pairs are too few" in notes({}, few)
    assert rendering({}, few).data["slope"].notna().all() and rendering({}, few).data["low"].isna().all()


def test_before_the_first_result_the_figure_shows_where_the_points_will_be(tmp_path: Path) -> None:
    drawn = rendering({}, cells().assign(score=NAN))
    exhibit = EXHIBIT.validate_python(SCATTER)
    exhibit.write("x", tmp_path, drawn)
    assert {"no complete seed"} <= {text.get_text() for text in drawn.draw(plots.Look()).texts}
    assert set(drawn.sheet.entries["state"]) == {"missing"}


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        EXHIBIT.validate_python(SCATTER).write("x", tmp_path / folder, rendering({}, cells(seeds=3, holes=0.1)))
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["x.csv", "x.md", "x.pdf", "x.png", "x.svg", "x.tex"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_lines_differ_in_more_than_colour_and_the_axes_have_their_quantities(table: PairsFile) -> None:
    with plots.style():
        ax = rendering({"against": "train"}, cells(), train=table).draw(plots.Look())
    drawn = [line for line in ax.lines if line.get_label() in ("full-ft", "bitfit")]
    assert len({(line.get_linestyle(), line.get_marker()) for line in drawn}) == 2
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cost of a train", "accuracy (%)")


def test_the_files_of_the_exhibit_are_its_table_and_a_change_of_the_table_s_meaning_renders_it_again(
    table: PairsFile,
) -> None:
    exhibit = EXHIBIT.validate_python(SCATTER | {"against": "train"})
    assert exhibit.files(study(train=table)) == [table.file]
    assert EXHIBIT.validate_python(SCATTER).files(study(train=table)) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"against": "great-circel"}, "unknown table of pairs 'great-circel', did you mean 'great-circle'"),
        ({"baseline": {"method": "fullft"}}, "unknown method 'fullft', did you mean 'full-ft'"),
        ({"baseline": {"method": "full-ft"}, "select": {"method": ["full-ft"]}}, "`select` has full-ft, too"),
    ],
)
def test_a_mistake_names_its_key(keys: dict[str, Any], said: str) -> None:
    asked = study()
    asked.defined_names = {"method": [], "encoder": []}
    axes = {"method": ["full-ft", "bitfit"], "encoder": ["mini"]}
    [problem] = EXHIBIT.validate_python(SCATTER | keys).problems(asked, axes)
    assert problem.split(":")[0].split(".")[0] in keys and said in problem


def test_a_setting_of_variants_has_a_line_for_each_value() -> None:
    """The line of a value is that of the cells with this value alone."""
    of = cells()
    few = of[of["method"] == "bitfit"]
    both = pd.concat([few.assign(examples=10), few.assign(examples=1000, score=few["score"] ** 2 / 100)])
    data = rendering({"lines": "examples"}, both).data
    alone = [rendering({}, part).data for _, part in both.groupby("examples")]
    assert [*data.groupby("examples")["slope"].first()] == pytest.approx([each["slope"].iloc[0] for each in alone])
