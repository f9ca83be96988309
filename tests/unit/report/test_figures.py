"""The figures of the report on a synthetic study with gaps."""

import html
import re

import pandas as pd
from page_fixture import NAN, frame

from xlgrid.report import figures


def test_seed_deviations_need_two_seeds_and_centre_each_cell(cells: pd.DataFrame) -> None:
    deviations = figures.seed_deviations(cells)
    assert deviations[["method", "target", "deviation"]].values.tolist() == [["full", "en", -2.0], ["full", "en", 2.0]]


def test_spread_bar_is_the_pooled_standard_deviation() -> None:
    # Squared deviations 2 * 2**2 + 2 * 4**2 over one free seed in each of two cells: sqrt(20).
    figure = figures.spread(figures.seed_deviations(frame(full__en=[90, 94], full__ar=[60, 68])))
    assert [text.get_text() for text in figure.axes[0].texts] == ["4.5"]


def test_spread_is_drawn_where_a_task_lacks_another_one_s_seeds() -> None:
    more, fewer = frame(full__en=[90, 94, 92]), frame(full__en=[60, 68]).assign(task="spans")
    figure = figures.spread(figures.seed_deviations(pd.concat([more, fewer])))
    drawn = [[len(line.get_xdata()) for line in ax.lines[:3]] for ax in figure.axes]
    assert drawn == [[1, 1, 1], [1, 1, 0]]


def test_encoders_of_a_task_are_lines_of_one_panel_named_after_what_differs() -> None:
    mini = frame(full__en=[90, 94], bitfit__en=[80, 81])
    both = pd.concat([mini, mini.assign(encoder="large")])
    names = [
        [
            [text.get_text() for text in ax.get_yticklabels()]
            for ax in figures.spread(figures.seed_deviations(cells)).axes
        ]
        for cells in (mini, both, both[both["method"] == "full"])
    ]
    assert names == [
        [["full", "bitfit"]],
        [["mini, full", "mini, bitfit", "large, full", "large, bitfit"]],
        [["mini", "large"]],
    ]


def test_learning_curves_have_a_panel_per_method_and_a_line_per_run(curves: pd.DataFrame) -> None:
    figure = figures.curves(pd.concat([curves, curves[curves["seed"] == 0].assign(method="bitfit")]))
    assert [len(ax.lines) for ax in figure.axes] == [2, 1]


def test_a_source_of_many_languages_leaves_room_for_the_panels(curves: pd.DataFrame) -> None:
    figure = figures.curves(curves.assign(source="+".join(f"q{letter}1" for letter in "abcdefghijklmnopqrstuvwxyz")))
    [label] = [text.get_text() for text in figure.legends[0].get_texts()]
    assert label == "qa1+qb1+…\n(26 parts)"


def test_deviations_of_a_target_as_of_a_step_are_from_the_mean_of_that_step(cells: pd.DataFrame) -> None:
    """As of step 10 and of the end, with scores far apart."""
    both = pd.concat([cells.assign(checkpoint=NAN), cells.assign(checkpoint=10.0, score=cells["score"] - 50)])
    assert figures.seed_deviations(both)["deviation"].abs().max() == 2.0


def test_runs_of_one_source_for_one_target_each_have_lines_of_their_own(curves: pd.DataFrame) -> None:
    twice = pd.concat([curves.assign(target="en"), curves.assign(target="ar")])
    lines = [len(figures.curves(points).axes[0].lines) for points in (curves, twice)]
    assert lines == [2, 4]


def test_two_pictures_have_no_id_in_common() -> None:
    svg = '<?xml?><svg width="100pt"><defs><path id="a"/></defs><g id="entries" clip-path="url(#a)"><use xlink:href="#a"/></g></svg>'
    pictures = [figures.inlined(svg, name, "A <title>") for name in ("one", "two")]
    ids = [set(re.findall(r'\bid="([^"]+)"', picture)) for picture in pictures]
    assert ids[0].isdisjoint(ids[1])
    for picture, names in zip(pictures, ids, strict=True):
        assert {*re.findall(r"#([\w-]+)", picture)} <= names
        assert html.escape("A <title>") in picture


def test_the_numbers_of_a_picture_are_those_of_its_markdown() -> None:
    text = "**A**\n\n| Source   |  a\\|b | c |\n| -------- | ---: | -: |\n| x \\* y | 1.0 ± 0.1 |  |\n\n*Notes.*\n"
    assert figures.numbers(text) == (1, ["Source", "a|b", "c"], [["x * y", "1.0 ± 0.1", ""]])
