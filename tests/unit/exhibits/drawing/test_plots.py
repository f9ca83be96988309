"""What figures share: fonts, settings of matplotlib, files with the same bytes, contrast, and texts beside axes."""

import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xlgrid.exhibits.drawing import plots


def panel(title: str = "") -> Axes:
    """Axes with a title, whose figure is 4 by 3 inches."""
    ax = Figure(figsize=(4, 3)).add_subplot()
    ax.set_title(title)
    return ax


def test_svg_keeps_text_as_text_and_carries_no_date(tmp_path: Path) -> None:
    with plots.style():
        plots.save(panel("en-fr"), tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert ">en-fr</text>" in text
    assert "dc:date" not in text


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_saving_twice_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    with plots.style():
        for name in ("a", "b"):
            plots.save(panel(), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_no_character_of_a_title_is_missing_from_the_fonts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(), plots.style():
        warnings.simplefilter("error")
        plots.save(panel("Русский, Ελληνικά, العربية † − ± $5 and 5$ a_b"), tmp_path / "x.png", tmp_path / "x.svg")
    assert caplog.records == []


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path: Path) -> None:
    before = {name: value for name, value in mpl.rcParams.items() if name != "backend"}
    with plots.style():
        assert mpl.rcParams["font.size"] == 8
        plots.save(panel(), tmp_path / "x.png")
    assert {name: mpl.rcParams[name] for name in before} == before


def test_contrast_is_that_of_wcag() -> None:
    black, white, grey = (0, 0, 0), (1, 1, 1), (0x76 / 255,) * 3
    assert plots.contrast(black, white) == plots.contrast(white, black) == pytest.approx(21)
    assert plots.contrast(grey, grey) == 1
    # The lightest grey on which WCAG allows white text.
    assert plots.contrast(grey, white) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_text_beside_the_axes_is_as_far_away_as_asked(axis: str) -> None:
    ax = panel()
    text = plots.beside(ax, axis, 0.5, 20, "family", 8)  # type: ignore[arg-type]
    box, inside = text.get_window_extent(), ax.get_window_extent()
    gap = inside.y0 - box.y1 if axis == "x" else inside.x0 - box.x1
    assert gap / plots.figure_of(ax).dpi * 72 == pytest.approx(20, abs=2)


@pytest.mark.parametrize("place", plots.WIDTHS)
def test_a_picture_is_as_wide_as_its_place_and_its_fonts_are_embedded_as_truetype(
    place: plots.Place, tmp_path: Path
) -> None:
    def draw(look: plots.Look) -> Axes:
        [ax] = plots.panels(Figure(figsize=(1, 1), dpi=plots.DPI), look, 1, 1, (0, 0))
        ax.set(ylabel="score (%)", title="Русский, العربية")
        return ax

    with plots.style():
        ax, drawn, fits = plots.in_place(draw, 0, place, {})
        plots.save(ax, *(tmp_path / f"x{suffix}" for suffix in (".png", ".svg", ".pdf")), width=plots.WIDTHS[place])
    assert (drawn, fits) == (place, True)
    inches = plots.WIDTHS[place]
    assert int.from_bytes((tmp_path / "x.png").read_bytes()[16:20]) == pytest.approx(300 * inches, abs=1)
    pdf = (tmp_path / "x.pdf").read_bytes()
    width = re.search(rb"/MediaBox *\[ *0 0 ([0-9.]+)", pdf)
    assert width and float(width[1]) == pytest.approx(72 * inches, abs=0.01)
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf and b"/CreationDate" not in pdf


def test_a_drawing_goes_to_a_page_where_a_column_has_too_little_room() -> None:
    def draw(look: plots.Look) -> Axes:
        return plots.panels(Figure(figsize=(1, 1), dpi=plots.DPI), look, 1, 1, (0, 0))[0]

    with plots.style():
        places = [plots.in_place(draw, wanted, None, {})[1] for wanted in (1, 2.8, 9)]
    assert places == ["column", "page", "page"]


def test_a_drawing_that_cannot_be_narrower_does_not_fit() -> None:
    def draw(look: plots.Look) -> Axes:
        return plots.axes_at(Figure(figsize=(1, 1), dpi=plots.DPI), 0, 0, 5, 1)

    with plots.style():
        assert plots.in_place(draw, 0, "column", {})[1:] == ("column", False)


def test_axes_at_a_place_in_inches() -> None:
    figure = Figure(figsize=(4, 3))
    box = plots.axes_at(figure, left=1, top=0.5, width=2, height=1).get_position()
    assert (box.x0 * 4, (1 - box.y1) * 3, box.width * 4, box.height * 3) == pytest.approx((1, 0.5, 2, 1))
