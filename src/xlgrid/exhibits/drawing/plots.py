"""The parts that figures share: their style, saving, and texts next to axes.

Every figure is also readable without colour, and the same data give the same bytes. It is drawn at the width that it has
in a paper, so that its texts keep their size there.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation, blended_transform_factory

from xlgrid.base.files import whole
from xlgrid.exhibits.drawing.labels import labelled
from xlgrid.exhibits.latex import WIDTHS, Place

# The colours of Okabe and Ito (2008), which are distinct for every common type of colour vision. Yellow is left out,
# because it is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
# Texts are measured at the resolution at which they are saved, because hinting makes their widths depend on it.
DPI = 300
# Inches that a picture has around its contents. A figure may be so much narrower than asked for.
EDGE, SPARE = 0.02, 0.04
# The panels of a figure are never narrower together, in inches.
LEAST_ROOM = 0.8
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
        "font.size": 8,
        "axes.titlesize": 8.5,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.unicode_minus": True,
        "hatch.linewidth": 0.7,
        "text.parse_math": False,
        "svg.fonttype": "none",
        # TrueType: publishers refuse fonts of type 3.
        "pdf.fonttype": 42,
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


class Look(NamedTuple):
    """How an exhibit draws its figure.

    Attributes:
        room: the width of the panels together, in inches, without the texts on both sides of them.
        labels: name in the study -> what the figure shows for it.
    """

    room: float = 2.4
    labels: Mapping[str, str] = {}

    def label(self, name: object) -> str:
        """What the figure shows for a name, or for a text with names in it."""
        return labelled(name, self.labels)


def extent(figure: Figure) -> Bbox:
    """The box around everything in a figure, in inches."""
    return figure.get_tightbbox(FigureCanvasAgg(figure).get_renderer())


def at_width(
    draw: Callable[[Look], Axes], width: float, labels: Mapping[str, str], sides: float = 0.6
) -> tuple[Axes, float]:
    """A drawing that is `width` inches wide with its texts, and the room of its panels.

    The texts have the same size at every width. A drawing that cannot be as narrow is as narrow as it can be, and one
    that does not grow is narrower.

    Args:
        sides: about how many inches the texts at the sides of the panels take.
    """
    room, before = width - sides, 0.0
    for _ in range(5):
        ax = draw(Look(room, labels))
        wide = extent(figure_of(ax)).width
        free = width - 2 * EDGE - wide
        if 0 <= free <= SPARE or (free > 0 and wide == before) or (free < 0 and room == LEAST_ROOM):
            break
        room, before = max(LEAST_ROOM, room + free - SPARE / 2), wide
    return ax, room


def in_place(
    draw: Callable[[Look], Axes], wanted: float, width: Place | None, labels: Mapping[str, str]
) -> tuple[Axes, Place, bool]:
    """A drawing that is as wide as a column or a page of a paper, which of the two, and whether it fits there.

    Args:
        wanted: the room that the drawing wants.
        width: where the drawing is for; None: in a column if it has the room there, and on a page otherwise.
    """
    places: Sequence[Place] = [width] if width else [place for place in WIDTHS if WIDTHS[place] > wanted] or ["page"]
    sides = 0.6
    for place in places:
        ax, room = at_width(draw, WIDTHS[place], labels, sides)
        sides = WIDTHS[place] - room
        fits = extent(figure_of(ax)).width <= WIDTHS[place]
        if fits and room >= wanted:
            break
    return ax, place, fits


def save(ax: Axes, *paths: Path, width: float = 0) -> None:
    """Write the figure of `ax` to each path, in the format of its suffix, atomically and without a date.

    Args:
        width: the width of the picture in inches; a wider figure is not cut.
    """
    figure = figure_of(ax)
    box = extent(figure)
    spare = max(0, width - box.width - 2 * EDGE)
    box = Bbox.from_extents(box.x0 - EDGE - spare / 2, box.y0 - EDGE, box.x1 + EDGE + spare / 2, box.y1 + EDGE)
    for path in paths:
        nothing = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {"Software": None})
        with whole(path) as aside:
            figure.savefig(aside, dpi=DPI, bbox_inches=box, metadata=nothing)


def legend(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], title: str = "", *, above: bool = False, away: float = 0
) -> Legend:
    """A legend below or above everything in the figure, `away` inches, in as many columns as it has the width for."""
    figure = figure_of(ax)
    box = extent(figure)
    for columns in range(len(names), 0, -1):
        drawn = ax.legend(
            handles,
            names,
            title=title or None,
            ncols=columns,
            loc="lower left" if above else "upper left",
            bbox_to_anchor=_in_figure(figure, box.x0, box.y1 + away if above else box.y0 - away),
            bbox_transform=figure.transFigure,
            borderaxespad=0.4,
            borderpad=0,
            frameon=False,
            alignment="left",
            fontsize=7.5,
            title_fontsize=7.5,
            handlelength=1.2 if above else 2.2,
            handletextpad=0.5,
            columnspacing=1.2,
        )
        if drawn.get_window_extent().width / figure.dpi <= box.width:
            break
    return drawn


def _in_figure(figure: Figure, across: float, up: float) -> tuple[float, float]:
    """A place in inches as fractions of the figure. Places in inches shift when a figure is saved."""
    width, height = figure.get_size_inches()
    return across / width, up / height


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


def panels(
    figure: Figure,
    look: Look,
    number: int,
    least: float,
    between: tuple[float, float],
    across: int = 4,
    high: float = 0.72,
    highest: float = 2.2,
) -> list[Axes]:
    """Panels from left to right and from top to bottom, at most `across` beside each other.

    Args:
        figure: a figure of one square inch.
        least: the least width of a panel in inches.
        between: the space between panels across and down, in inches.
        high: the height of a panel in its widths, which is at most `highest` inches.
    """
    across = max(1, min(number, across, int((look.room + between[0] + 1e-6) / (least + between[0]))))
    width = (look.room + between[0]) / across - between[0]
    height = min(highest, high * width)
    return [
        axes_at(figure, at % across * (width + between[0]), at // across * (height + between[1]), width, height)
        for at in range(number)
    ]


def bare(ax: Axes, axis: Literal["x", "y", "both"]) -> None:
    """Remove the upper and right frame of a panel, and draw a faint grid across an axis."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=axis, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def mark_above(draw: Callable[[Look], Axes], text: str, look: Look) -> Axes:
    """A drawing with a text above it."""
    ax = draw(look)
    figure = figure_of(ax)
    box = extent(figure)
    figure.text(*_in_figure(figure, box.x0, box.y1 + 0.05), text, va="bottom", fontsize=8)
    return ax


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
