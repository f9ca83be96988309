"""The parts that figures share: their style, saving, and texts next to axes.

Every figure is also readable without colour, and the same data give the same bytes.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from xlgrid.base.files import whole

# The colours of Okabe and Ito (2008), which are distinct for every common type of colour vision. Yellow is left out,
# because it is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
# Texts are measured at the resolution at which they are saved, because hinting makes their widths depend on it.
DPI = 150
INK, FAINT, MISSING = "#222222", "#9a9a9a", "#e4e4e4"
# DejaVu is part of matplotlib. The other fonts are used for characters that DejaVu lacks, if they are installed.
FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Naskh Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Thai",
    "Noto Sans Georgian",
    "Noto Sans CJK SC",
    "Noto Sans Symbols2",
)


def installed_fonts() -> list[str]:
    """The fonts of figures that this machine has."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in FONTS if name in installed]


def lacking(text: str) -> str:
    """The characters of a text for which figures have no font on this machine."""
    files = [font_manager.findfont(name, fallback_to_default=False) for name in installed_fonts()]
    glyphs = [font_manager.get_font(file).get_charmap() for file in files]
    return "".join(character for character in text if not any(ord(character) in known for known in glyphs))


@contextmanager
def style() -> Iterator[None]:
    """The style of all figures, as a context for both drawing and saving."""
    # The type is Any because the stubs list every setting by name.
    look: Any = {
        "font.family": installed_fonts() or ["sans-serif"],
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.unicode_minus": True,
        "hatch.linewidth": 0.7,
        "text.parse_math": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "xlgrid",
    }
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    # A warning that a fallback font lacks, for instance, a bold weight does not help users.
    log.setLevel(logging.ERROR)
    try:
        with mpl.rc_context(look):
            yield
    finally:
        log.setLevel(level)


def figure_of(ax: Axes) -> Figure:
    """The figure of some axes.

    Raises:
        ValueError: the axes have been removed from their figure.
    """
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError(
            "these axes have been removed from their figure: draw into axes of a figure, or leave `ax` out"
        )
    return figure


def save(ax: Axes, *paths: Path) -> None:
    """Write the figure of `ax` to each path, in the format of its suffix, atomically and without a date."""
    figure = figure_of(ax)
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with whole(path) as aside:
            figure.savefig(aside, dpi=DPI, bbox_inches="tight", pad_inches=0.08, metadata=metadata)


def contrast(colour: Sequence[float], other: Sequence[float]) -> float:
    """The contrast ratio of two RGB colours, from 1 to 21, as defined by WCAG 2. Text needs 4.5."""

    def luminance(rgb: Sequence[float]) -> float:
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3])
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(colour), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def size_in_points(ax: Axes, text: Text) -> tuple[float, float]:
    """The width and height of a text in points."""
    box = text.get_window_extent()
    return box.width / figure_of(ax).dpi * 72, box.height / figure_of(ax).dpi * 72


def depth(ax: Axes, axis: Literal["x", "y"], texts: Sequence[Text]) -> float:
    """The distance in points that the texts of an axis extend from it."""
    return max(size_in_points(ax, text)[1 if axis == "x" else 0] for text in texts)


def beside(ax: Axes, axis: Literal["x", "y"], along: float, away: float, text: str, size: float) -> Text:
    """Write a text below or left of the axes, at the data coordinate `along` and `away` points from the axes."""
    if axis == "x":
        at, shift, where = (along, 0.0), (0.0, -away), blended_transform_factory(ax.transData, ax.transAxes)
        return ax.annotate(text, at, shift, where, "offset points", ha="center", va="top", fontsize=size)
    at, shift, where = (0.0, along), (-away, 0.0), blended_transform_factory(ax.transAxes, ax.transData)
    return ax.annotate(text, at, shift, where, "offset points", ha="right", va="center", fontsize=size)


def bracket(ax: Axes, axis: Literal["x", "y"], start: float, end: float, away: float) -> None:
    """Draw a line next to the axes from `start` to `end`, `away` points from the axes."""
    down, left = (0, -away / 72) if axis == "x" else (-away / 72, 0)
    shift = ScaledTranslation(down, left, figure_of(ax).dpi_scale_trans)
    if axis == "x":
        where = blended_transform_factory(ax.transData, ax.transAxes) + shift
        ax.plot([start, end], [0, 0], transform=where, color=INK, linewidth=1, clip_on=False)
    else:
        where = blended_transform_factory(ax.transAxes, ax.transData) + shift
        ax.plot([0, 0], [start, end], transform=where, color=INK, linewidth=1, clip_on=False)


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes whose place is given in inches from the left and the top of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def title_above(figure: Figure, title: str, inches: float) -> None:
    """Write the title of a figure `inches` above its top."""
    height = figure.get_size_inches()[1]
    figure.text(0, 1 + inches / height, title, fontsize=10, fontweight="bold", va="bottom")


def name_tokens(ax: Axes, tokens: Sequence[str], context: int, size: float) -> None:
    """Write the tokens along both axes of an attention matrix, with brackets for the context and the question."""
    ax.set_xticks(np.arange(len(tokens)) + 0.5, tokens, fontsize=size, rotation=90)
    ax.set_yticks(np.arange(len(tokens)) + 0.5, tokens, fontsize=size)
    ax.tick_params(length=0, pad=2)
    sides: tuple[tuple[Literal["x", "y"], Sequence[Text], str], ...] = (
        ("x", ax.get_xticklabels(), "key"),
        ("y", ax.get_yticklabels(), "query"),
    )
    for axis, ticks, role in sides:
        away = 6 + depth(ax, axis, ticks)
        rotation = 0 if axis == "x" else 90
        for start, end, segment in ((0, context, "context"), (context, len(tokens), "question")):
            bracket(ax, axis, start + 0.1, end - 0.1, away)
            beside(ax, axis, (start + end) / 2, away + 3, segment, 7.5).set_rotation(rotation)
        beside(ax, axis, len(tokens) / 2, away + 14, role, 8).set_rotation(rotation)
