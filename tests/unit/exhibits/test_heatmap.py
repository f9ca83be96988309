"""What heatmaps hand to matplotlib: numbers, hatches, outlines, limits, the order of axes; and the bytes of the files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import NAN, grid, key
from exhibit_fixture import draw as render_files
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.drawing.blocks import by_family
from xlgrid.exhibits.heatmap import SMALLEST, heatmap, limits
from xlgrid.results import stats


@dataclass(frozen=True)
class Language:
    family: str
    script: str


LANGUAGES = {
    **dict.fromkeys(("en", "de"), Language("Germanic", "Latin")),
    **dict.fromkeys(("fr", "es"), Language("Romance", "Latin")),
    **dict.fromkeys(("ru", "uk"), Language("Slavic", "Cyrillic")),
    "pl": Language("Slavic", "Latin"),
    **{f"q{i:02}": Language(f"Family {i // 5}", "round" if i % 5 < 3 else "square") for i in range(16)},
}


def draw(cells: pd.DataFrame, look: plots.Look | None = None, **how: Any) -> Axes:
    sources, targets = list(dict.fromkeys(cells["source"])), list(dict.fromkeys(cells["target"]))
    look = look or plots.Look(0.5 * len(targets))
    among = [*targets, *sources]
    with plots.style():
        return heatmap(
            stats.entries(cells, ["source"], "target"),
            look,
            rows=by_family(sources, LANGUAGES, among),
            columns=by_family(targets, LANGUAGES, among),
            **how,
        )


def numbers(ax: Axes) -> dict[tuple[float, float], str]:
    """(column, row) -> the number in that cell."""
    inside = [text for text in ax.texts if text.get_transform() == ax.transData]
    return {(text.get_position()[0] - 0.5, text.get_position()[1] - 0.5): text.get_text() for text in inside}


def rectangles(ax: Axes, *, hatched: bool) -> set[tuple[float, float]]:
    return {
        (round(r.get_x()), round(r.get_y()))
        for r in ax.patches
        if isinstance(r, Rectangle) and bool(r.get_hatch()) == hatched
    }


def ticks(ax: Axes) -> tuple[list[str], list[str]]:
    return [label.get_text() for label in ax.get_xticklabels()], [label.get_text() for label in ax.get_yticklabels()]


def test_every_cell_shows_its_number_in_its_place() -> None:
    cells = grid(["en", "fr"], ["en", "fr", "ru"]).assign(score=range(12))
    ax = draw(cells)
    assert ticks(ax) == (["en", "fr", "ru"], ["en", "fr"])
    assert numbers(ax) == {
        (0, 0): "0.5", (1, 0): "2.5", (2, 0): "4.5",
        (0, 1): "6.5", (1, 1): "8.5", (2, 1): "10.5",
    }  # fmt: skip


def test_a_missing_cell_is_hatched_a_partial_one_marked_an_unplanned_one_blank() -> None:
    cells = grid(["en", "fr"], ["en", "fr"]).assign(score=[1.0, 3.0, NAN, NAN, NAN, 7.0, 8.0, 9.0])
    ax = draw(cells[(cells["source"] != "fr") | (cells["target"] != "fr")])
    assert numbers(ax) == {(0, 0): "2.0", (0, 1): "7.0†"}
    assert rectangles(ax, hatched=True) == {(1, 0)}
    assert key(ax) == ["target seen in training", "no complete seed", "fewer seeds than planned", "not planned"]


def test_the_key_lists_only_what_is_there() -> None:
    assert key(draw(grid(["en"], ["fr"]))) == []


def test_languages_stand_by_family_then_script_on_both_axes() -> None:
    ax = draw(grid(["pl", "en", "fr"], ["ru", "en", "pl", "fr", "uk", "de", "es"]))
    assert ticks(ax) == (["ru", "uk", "pl", "en", "de", "fr", "es"], ["pl", "en", "fr"])
    names = [text.get_text() for text in ax.texts]
    assert "Slavic (Cyrillic)" in names, "a family name along the axis, with its script where scripts differ"
    assert "Romance (Latin)" in names


def test_families_are_separated_by_solid_and_scripts_by_dashed_lines() -> None:
    ax = draw(grid(["en"], ["ru", "uk", "pl", "en"]))
    lines = [(line.get_xdata()[0], line.get_linestyle()) for line in ax.lines if line.get_linewidth() in (0.7, 1.3)]  # type: ignore[index]
    assert lines == [(2, "--"), (3, "-")]


@pytest.mark.parametrize(
    ("values", "diverging", "ends"),
    [
        ([40.0, 90.0, NAN], False, (40, 90)),
        ([60.0, 60.2], False, (55.1, 65.1)),
        ([99.0, 100.0], False, (90, 100)),
        ([1.0, 0.0], False, (0, 10)),
        ([NAN], False, (0, 100)),
        ([-3.0, 12.0], True, (-12, 12)),
        ([0.3, -0.1], True, (-5, 5)),
        ([NAN], True, (-5, 5)),
    ],
)
def test_limits_of_colours(values: list[float], diverging: bool, ends: tuple[float, float]) -> None:
    assert limits(pd.Series(values), diverging=diverging) == pytest.approx(ends)


def test_limits_of_a_metric_without_percent_are_those_of_its_scores() -> None:
    assert limits(pd.Series([211.0, 541.0]), diverging=False, percent=False) == (211, 541), "not cut at 100"


def test_the_dark_end_of_percent_is_that_of_greater_scores() -> None:
    """test_direction.py has a metric of which less is better."""
    ax = draw(grid(["en"], ["en", "fr"]).assign(score=[40.0, 40.0, 80.0, 80.0]))
    low, high = (np.dot(ax.collections[0].to_rgba(score)[:3], [0.2126, 0.7152, 0.0722]) for score in (40, 80))
    assert high < low


def test_differences_are_coloured_around_zero() -> None:
    ax = draw(grid(["en"], ["en", "fr"]).assign(score=[-7.0, -7.0, 2.0, 2.0]), diverging=True)
    assert ax.collections[0].get_clim() == (-7, 7)
    assert numbers(ax) == {(0, 0): "−7.0", (1, 0): "2.0"}


def test_numbers_can_be_read_on_every_shade() -> None:
    for diverging, scores in ((False, np.linspace(0, 100, 16)), (True, np.linspace(-9, 9, 16))):
        targets = [f"q{i:02}" for i in range(16)]
        ax = draw(grid(["en"], targets, seeds=1).assign(score=scores), diverging=diverging)
        mesh = ax.collections[0]
        for text in (text for text in ax.texts if text.get_transform() == ax.transData):
            shade = tuple(mesh.to_rgba(scores[int(text.get_position()[0])]))
            assert plots.contrast(shade, to_rgb(text.get_color())) >= 4.5, text.get_text()


def overlaps(boxes: list[Any]) -> bool:
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize(("size", "room"), [(1, 2.0), (2, 2.0), (6, 2.0), (9, 1.9), (16, 5.0), (30, 5.0)])
def test_nothing_overlaps_and_numbers_stay_in_their_cells(size: int, room: float) -> None:
    codes = [f"q{i:02}" for i in range(size)]
    ax = draw(grid(codes, codes, holes=0.2), plots.Look(room))
    figure = ax.get_figure(root=True)
    assert figure is not None
    FigureCanvasAgg(figure).draw()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert not overlaps([label.get_window_extent() for label in labels])
    outside = [text for text in ax.texts if text.get_transform() != ax.transData]
    legend = [legend.get_window_extent()] if (legend := ax.get_legend()) else []
    assert not overlaps([text.get_window_extent() for text in outside] + legend + [ax.bbox])
    for text in (text for text in ax.texts if text.get_transform() == ax.transData):
        box, size_pt = text.get_window_extent(), float(text.get_fontsize())
        assert box.width <= ax.bbox.width / size, f"{text.get_text()} is wider than its cell"
        assert size_pt >= SMALLEST, "too small to print"


@pytest.mark.parametrize(("room", "shown"), [(3.0, "12.3"), (1.2, "12"), (0.8, "")])
def test_numbers_that_do_not_fit_have_no_decimals_or_are_left_out(room: float, shown: str) -> None:
    codes = [f"q{i:02}" for i in range(8)]
    ax = draw(grid(codes, codes).assign(score=12.34), plots.Look(room))
    assert set(numbers(ax).values()) == {shown}


def test_long_labels_stand_upright_rather_than_overlap() -> None:
    ax = draw(grid(["en"], ["en", "en+en-fr", "en+en-de", "en+en-ru"]))
    FigureCanvasAgg(ax.get_figure(root=True)).draw()  # type: ignore[arg-type]
    assert not overlaps([label.get_window_extent() for label in ax.get_xticklabels()])


HEATMAP = {"kind": "heatmap", "title": "Transfer", "method": "adapters"}
DIFFERENCE = {"kind": "heatmap", "title": "Gain", "difference": ["adapters", "full-ft"]}
CODES = ["en", "fr", "ru", "en-fr", "fr-en"]


def render(spec: dict[str, Any], folder: Path, **change: Any) -> dict[str, bytes]:
    cells = grid(CODES[:2], CODES, methods=("full-ft", "adapters"), seeds=3, holes=0.1)
    return render_files(spec | change, cells, folder, name="figure01", languages=LANGUAGES)


@pytest.mark.parametrize("spec", [HEATMAP, DIFFERENCE], ids=["heatmap", "difference"])
def test_rendering_twice_gives_the_same_bytes(spec: dict[str, Any], tmp_path: Path) -> None:
    assert render(spec, tmp_path / "a") == render(spec, tmp_path / "b")


def test_the_data_stand_beside_a_heatmap(tmp_path: Path) -> None:
    render(DIFFERENCE, tmp_path)
    table = pd.read_csv(tmp_path / "figure01.csv")
    assert list(table)[:4] == ["source", "column", "mean", "sd"]
    assert len(table) == 10
    assert "adapters minus full-ft, paired by seed" in (tmp_path / "figure01.md").read_text()


def test_a_heatmap_stands_in_the_groups_that_it_names(tmp_path: Path) -> None:
    cells = grid(["ru", "en"], ["en", "ru", "fr"])
    spec = HEATMAP | {"blocks": ["far", "all"], "select": {}}
    groups = {"far": ("ru", "fr"), "all": ("en", "fr", "ru")}
    render_files(spec, cells, tmp_path, name="f", belongs=lambda group, _, code: code in groups[group])
    table = pd.read_csv(tmp_path / "f.csv")
    assert list(dict.fromkeys(table["source"])) == ["ru", "en"]
    assert list(dict.fromkeys(table["column"])) == ["ru", "fr", "en"]
    assert ">far</text>" in (tmp_path / "f.svg").read_text(encoding="utf-8")


def test_a_difference_of_methods_with_unequal_seeds_uses_all_runs_and_says_so(tmp_path: Path) -> None:
    """Five runs of one method and one of the other, as in figure 15 of Pfeiffer et al. (2020)."""
    cells = grid(["en", "fr"], ["en", "fr"], methods=("full-ft", "adapters"), seeds=5)
    cells = cells[(cells["method"] == "adapters") | (cells["seed"] == 1)]
    render_files(DIFFERENCE, cells, tmp_path, languages=LANGUAGES)
    differences = pd.read_csv(tmp_path / "x.csv").set_index(["source", "column"])["mean"]
    means = cells.groupby(["method", "source", "target"])["score"].mean()
    for source, target in differences.index:
        difference = means["adapters", source, target] - means["full-ft", source, target]
        assert differences[source, target] == pytest.approx(difference)
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "adapters and full-ft have different seeds (5 and 1): the entry is the difference of their means" in text


@pytest.mark.parametrize(
    ("spec", "marks"),
    [({"method": "full-ft"}, 0), ({"method": "adapters"}, 4), ({"difference": ["full-ft", "adapters"]}, 4)],
)
def test_sources_that_have_learnt_nothing_have_a_mark(spec: dict[str, Any], marks: int, tmp_path: Path) -> None:
    """In the picture and in the table, also where its cells are subtracted from those of another method."""
    cells = grid(["en", "fr"], ["en", "fr"], methods=("full-ft", "adapters"), seeds=2)
    cells["learnt_nothing"] = (cells["method"] == "adapters").map({True: "f1 0.0, chance 0.0", False: ""})
    render_files({"kind": "heatmap", "title": "t", **spec}, cells, tmp_path, name="h", languages=LANGUAGES)
    table = [line for line in (tmp_path / "h.md").read_text().splitlines() if line.startswith("|")]
    assert "".join(table).count("§") == marks
    assert ("learnt nothing</text>" in (tmp_path / "h.svg").read_text(encoding="utf-8")) == bool(marks)


def test_targets_seen_in_training_are_outlined() -> None:
    ax = draw(grid(["en", "fr", "en+en-fr"], ["en", "fr", "en-fr"]))
    assert ticks(ax)[1] == ["en", "fr", "en+en-fr"]
    assert rectangles(ax, hatched=False) == {(0, 0), (1, 1), (0, 2), (2, 2)}
