"""Figures: a tidy frame in, axes out. Every picture also reads without colour, and the same data give the same bytes."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, ScaledTranslation, blended_transform_factory

from xlgrid.base.files import whole
from xlgrid.exhibits.tables import label, number
from xlgrid.languages.sources import Source

SEQUENTIAL, DIVERGING = "YlGnBu", "RdBu"
# Okabe and Ito (2008), told apart with every common kind of colour vision; yellow is left out as too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Texts are measured at the resolution at which they are saved: hinting makes their widths depend on it.
DPI = 150
INK, FAINT, MISSING = "#222222", "#9a9a9a", "#e4e4e4"
# DejaVu comes with matplotlib; the others are used where they are installed and DejaVu lacks a character.
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


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures; hold it both while drawing and while saving."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    # Any: the stubs list every setting by name.
    look: Any = {
        "font.family": [name for name in FONTS if name in installed] or ["sans-serif"],
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
    # A fallback font without, say, a bold weight is no news to anyone.
    log.setLevel(logging.ERROR)
    try:
        with mpl.rc_context(look):
            yield
    finally:
        log.setLevel(level)


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure any more: draw into axes of a figure, or leave `ax` out")
    return figure


def save(ax: Axes, *paths: Path) -> None:
    """Write the figure of `ax` to each path, in the format of its suffix, atomically and without a date."""
    figure = _figure(ax)
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with whole(path) as aside:
            figure.savefig(aside, dpi=DPI, bbox_inches="tight", pad_inches=0.08, metadata=metadata)


@dataclass(frozen=True)
class Block:
    """Neighbouring labels of one axis that belong together; blocks of one `family` are set apart less."""

    family: str
    script: str
    codes: tuple[str, ...]


def blocks(codes: Sequence[str], languages: Mapping[str, Any], among: Sequence[str] | None = None) -> list[Block]:
    """Order the labels of an axis: languages by family, then script; then pairs by direction; then mixes.

    Families, scripts and languages keep the order in which they first appear.

    Args:
        codes: languages (`en`), pairs (`en-fr`, context - question) and mixes (`en+en-fr`), without repetition.
        languages: code -> object with `family` and `script`; a language that is not there goes to a family `other`.
        among: all labels of the figure, so that both axes get one order and one pivot language; default `codes`.
    """
    among = list(dict.fromkeys(codes if among is None else among))
    parts = dict.fromkeys(part for code in among for part in Source(code).parts)
    pairs = [part.languages for part in parts if part.is_pair]
    pivot = Counter(code for pair in pairs for code in pair).most_common(1)[0][0] if pairs else ""
    directions = [f"{pivot}-X", f"X-{pivot}", "other pairs"]

    def place(code: str) -> tuple[str, str]:
        part, *others = Source(code).parts
        if others:
            return "mixed", ""
        if part.is_pair:
            context, question = part.languages
            return directions[0 if context == pivot else 1 if question == pivot else 2], ""
        language = languages.get(code)
        return (language.family, language.script) if language else ("other", "")

    places = list(dict.fromkeys(map(place, among)))
    families = list(dict.fromkeys(family for family, _ in places))

    def rank(code: str) -> tuple[int, ...]:
        family, script = place(code)
        part, *others = Source(code).parts
        if others:
            return 2, among.index(code)
        if part.is_pair:
            return 1, directions.index(family), *(order.get(end, len(order)) for end in part.languages)
        return 0, families.index(family), places.index((family, script)), among.index(code)

    order: dict[str, int] = {}
    order |= {code: i for i, code in enumerate(sorted((c for c in among if Source(c).languages == (c,)), key=rank))}
    members = groupby(sorted(codes, key=rank), key=place)
    return [Block(family, script, tuple(group)) for (family, script), group in members]


def grouped(codes: Sequence[str], groups: Sequence[str], belongs: Callable[[str, str, str], bool]) -> list[Block]:
    """The labels of an axis in blocks that are groups, each label in its first; what is in none comes last, as `other`.

    Args:
        codes: in the order in which they stand within a block.
        belongs: whether a target (3rd) belongs to a group (1st) for a source (2nd); a source is asked as a target.
    """
    of = {code: next((group for group in groups if belongs(group, code, code)), "other") for code in codes}
    return [
        Block(group, "", members)
        for group in (*groups, "other")
        if (members := tuple(code for code in codes if of[code] == group))
    ]


def contrast(colour: Sequence[float], other: Sequence[float]) -> float:
    """Contrast ratio of two RGB colours, 1 to 21, as WCAG 2 defines it; text needs 4.5."""

    def luminance(rgb: Sequence[float]) -> float:
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3])
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(colour), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def limits(values: "pd.Series[float]", *, diverging: bool) -> tuple[float, float]:
    """Ends of a colour scale. It spans ten points at least, lest noise between seeds look like a result.

    Args:
        values: scores in percent, or differences in points; NaN are ignored.
        diverging: put the centre at 0.
    """
    shown = values.dropna()
    if shown.empty:
        return (-5.0, 5.0) if diverging else (0.0, 100.0)
    if diverging:
        reach = max(5.0, float(shown.abs().max()))
        return -reach, reach
    low, high = float(shown.min()), float(shown.max())
    spare = max(0.0, 10 - (high - low)) / 2
    low, high = low - spare, high + spare
    shift = max(0.0, -low) - max(0.0, high - 100)
    return low + shift, high + shift


def heatmap(
    entries: pd.DataFrame,
    *,
    rows: Sequence[Block],
    columns: Sequence[Block],
    diverging: bool = False,
    digits: int = 1,
    quantity: str = "score (%)",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Source × target matrix of means, with its numbers.

    A cell without a complete seed is hatched, a cell that was never planned stays blank, a cell from fewer seeds than planned
    carries †, and the cells whose target the source was trained on are outlined.

    Args:
        entries: columns `source`, `column` (the target), `mean`, `n_seeds`, `n_seeds_expected`.
        rows: the sources; columns: the targets (see `blocks` and `grouped`).
        diverging: the values are differences; colours are centred at 0.
        quantity: what the numbers are, for the colour bar.
    """
    sources = [code for block in rows for code in block.codes]
    targets = [code for block in columns for code in block.codes]
    inch = float(np.interp(max(len(sources), len(targets)), [2, 6, 16, 40], [0.8, 0.62, 0.47, 0.4]))
    if ax is None:
        ax = Figure(figsize=(inch * len(targets), inch * len(sources)), dpi=DPI).add_axes((0, 0, 1, 1))
    width, height = ax.get_window_extent().size
    inch = min(inch, width / len(targets) / _figure(ax).dpi, height / len(sources) / _figure(ax).dpi)
    points = float(np.interp(inch, [0.4, 0.47, 0.62, 0.8], [6, 7.5, 9.5, 11]))
    low, high = limits(entries["mean"], diverging=diverging)
    values = entries.pivot(index="source", columns="column", values="mean").reindex(index=sources, columns=targets)
    shades = mpl.colormaps[DIVERGING if diverging else SEQUENTIAL]
    # Its own texts and ticks know nothing of missing seeds and of families.
    plain: Any = {"cbar": False, "xticklabels": False, "yticklabels": False, "linewidths": 1, "square": True}
    sns.heatmap(values.astype(float), ax=ax, cmap=shades, vmin=low, vmax=high, **plain)
    mesh = ax.collections[0]
    ax.set(xlabel="", ylabel="")
    ax.apply_aspect()
    seen = set()
    entry: Any
    for entry in entries.itertuples():
        x, y = targets.index(str(entry.column)), sources.index(str(entry.source))
        if entry.n_seeds == 0:
            seen.add("missing")
            ax.add_patch(Rectangle((x, y), 1, 1, facecolor=MISSING, edgecolor=FAINT, hatch="////", linewidth=0))
        else:
            short = entry.n_seeds < entry.n_seeds_expected
            seen |= {"short"} if short else set()
            back = mpl.colors.to_rgb(shades((entry.mean - low) / (high - low)))
            ink = max(("white", "black"), key=lambda ink: contrast(back, mpl.colors.to_rgb(ink)))
            text = number(entry.mean, digits) + ("†" if short else "")
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=ink, fontsize=points)
        if str(entry.column) in Source(entry.source).parts:
            seen.add("own")
            ax.add_patch(
                Rectangle((x + 0.05, y + 0.05), 0.9, 0.9, fill=False, edgecolor="black", linewidth=1.6, zorder=4)
            )
    if len(entries) < len(sources) * len(targets):
        seen.add("blank")
    _language_axis(ax, "x", columns, inch)
    _language_axis(ax, "y", rows, inch)
    _colour_bar(ax, mesh, quantity)
    _key(ax, seen, title)
    return ax


def _language_axis(ax: Axes, axis: Literal["x", "y"], parts: Sequence[Block], inch: float) -> None:
    """Codes, lines between blocks, and beyond the codes a bracket with the name of each block."""
    codes = [code for block in parts for code in block.codes]
    ends = np.cumsum([len(block.codes) for block in parts]).tolist()
    size = float(np.interp(inch, [0.4, 0.47, 0.62], [7, 8, 9]))
    for (before, after), end in zip(pairwise(parts), ends, strict=False):
        family = before.family != after.family
        look: Any = {"linewidth": 1.3 if family else 0.7, "linestyle": "-" if family else (0, (3, 2))}
        (ax.axvline if axis == "x" else ax.axhline)(end, color=INK, zorder=3, **look)

    (ax.set_xticks if axis == "x" else ax.set_yticks)(np.arange(len(codes)) + 0.5, codes, fontsize=size)
    ax.tick_params(axis=axis, length=0, pad=3)
    ticks = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    if axis == "x" and max(_points(ax, tick)[0] for tick in ticks) > inch * 72 - 3:
        ax.tick_params(axis="x", rotation=90)
    away = 8 + depth(ax, axis, ticks)

    if len(parts) > 1:
        several = len({block.script for block in parts if block.script}) > 1
        texts = []
        for block, end in zip(parts, ends, strict=True):
            start = end - len(block.codes)
            bracket(ax, axis, start + 0.12, end - 0.12, away)
            script = f"({block.script})" if several and block.script else ""
            name = beside(ax, axis, (start + end) / 2, away + 4, f"{block.family} {script}".strip(), size)
            room = (end - start) * inch * 72 - 4
            if axis == "x" and _points(ax, name)[0] > room:
                name.set_text(f"{block.family}\n{script}".strip())
                if _points(ax, name)[0] > room:
                    name.set(text=f"{block.family} {script}".strip(), rotation=90)
            texts.append(name)
        away += 7 + depth(ax, axis, texts)
    title = beside(ax, axis, len(codes) / 2, away + 3, "target" if axis == "x" else "source", size + 1)
    title.set_rotation(0 if axis == "x" else 90)


def _points(ax: Axes, text: Text) -> tuple[float, float]:
    """Width and height of a text in points."""
    box = text.get_window_extent()
    return box.width / _figure(ax).dpi * 72, box.height / _figure(ax).dpi * 72


def depth(ax: Axes, axis: Literal["x", "y"], texts: Sequence[Text]) -> float:
    """How far, in points, the texts of an axis reach away from it."""
    return max(_points(ax, text)[1 if axis == "x" else 0] for text in texts)


def beside(ax: Axes, axis: Literal["x", "y"], along: float, away: float, text: str, size: float) -> Text:
    """Write at `along` (in data) below or left of the axes, `away` points from them."""
    if axis == "x":
        at, shift, where = (along, 0.0), (0.0, -away), blended_transform_factory(ax.transData, ax.transAxes)
        return ax.annotate(text, at, shift, where, "offset points", ha="center", va="top", fontsize=size)
    at, shift, where = (0.0, along), (-away, 0.0), blended_transform_factory(ax.transAxes, ax.transData)
    return ax.annotate(text, at, shift, where, "offset points", ha="right", va="center", fontsize=size)


def bracket(ax: Axes, axis: Literal["x", "y"], start: float, end: float, away: float) -> None:
    """A line beside the axes from `start` to `end`, `away` points from them."""
    down, left = (0, -away / 72) if axis == "x" else (-away / 72, 0)
    shift = ScaledTranslation(down, left, _figure(ax).dpi_scale_trans)
    if axis == "x":
        where = blended_transform_factory(ax.transData, ax.transAxes) + shift
        ax.plot([start, end], [0, 0], transform=where, color=INK, linewidth=1, clip_on=False)
    else:
        where = blended_transform_factory(ax.transAxes, ax.transData) + shift
        ax.plot([0, 0], [start, end], transform=where, color=INK, linewidth=1, clip_on=False)


def _colour_bar(ax: Axes, mesh: Any, quantity: str) -> None:
    figure = _figure(ax)
    width = ax.get_window_extent().width / figure.dpi
    height = ax.get_window_extent().height / figure.dpi
    # Beside a low matrix the bar reaches further down, so that its ticks and its label have room.
    tall = max(1.0, 1.3 / height)
    aside = ax.inset_axes((1 + 0.14 / width, 1 - tall, 0.13 / width, tall))
    bar = figure.colorbar(mesh, cax=aside)
    bar.set_label(quantity, fontsize=8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.locator = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])
    bar.update_ticks()


def _key(ax: Axes, seen: set[str], title: str) -> None:
    glyph = TextPath((0, 0), "†", size=1)
    dagger = glyph.transformed(Affine2D().translate(*-glyph.get_extents().get_points().mean(axis=0)))
    handles: dict[str, Any] = {
        "own": (Patch(facecolor="white", edgecolor="black", linewidth=1.6), "target seen in training"),
        "missing": (Patch(facecolor=MISSING, edgecolor=FAINT, hatch="////", linewidth=0), "no complete seed"),
        "short": (Line2D([], [], marker=dagger, markersize=9, color=INK, linestyle=""), "fewer seeds than planned"),
        "blank": (Patch(facecolor="white", edgecolor=FAINT, linewidth=0.6), "not planned"),
    }
    shown = [handles[name] for name in handles if name in seen]
    if shown:
        ax.legend(
            *zip(*shown, strict=True),
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0.4,
            borderpad=0,
            ncols=len(shown),
            frameon=False,
            fontsize=8,
            handlelength=1.1,
            handleheight=1.0,
            handletextpad=0.5,
            columnspacing=1.3,
        )
    if title:
        ax.set_title(title, loc="left", fontsize=10, fontweight="bold", pad=22 if shown else 8)


def forest(
    effects: pd.DataFrame,
    *,
    claimed: Sequence[tuple[float, float]],
    mark: Mapping[str, Any],
    ax: Axes | None = None,
) -> Axes:
    """Effects with their intervals, one line each, from top to bottom, upon the range that is claimed.

    Args:
        effects: columns `claim`, `effect`, `low`, `high`, `verdict`; what is NaN is left out.
        claimed: for each effect, the range in which it is claimed to be; a bound may be infinite.
        mark: verdict -> how its marker is filled, "full" or "none"; others get a cross.
    """
    if ax is None:
        ax = Figure(figsize=(4.6, 0.6 + 0.26 * len(effects)), dpi=DPI).add_axes((0, 0, 1, 1))
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    shown: dict[str, Any] = {}
    numbers = effects[["low", "effect", "high"]].to_numpy(float)
    for at, (verdict, (low, effect, high)) in enumerate(zip(map(str, effects["verdict"]), numbers, strict=True)):
        colour = COLOURS[[*mark, ""].index(verdict if verdict in mark else "") % len(COLOURS)]
        ax.plot([low, high], [at, at], color=colour, linewidth=1.4, solid_capstyle="butt")
        shown[verdict] = ax.plot(
            [effect],
            [at],
            linestyle="",
            color=colour,
            marker="o" if verdict in mark else "x",
            fillstyle=mark.get(verdict, "full"),
            markersize=5,
        )[0]
    ax.set_yticks(range(len(effects)), [str(name) for name in effects["claim"]])
    ax.set(ylim=(len(effects) - 0.5, -0.5), xlabel="effect (points), 95 % interval")
    # The bounds themselves are always in the picture.
    ax.update_datalim([(bound, 0) for bounds in claimed for bound in bounds if np.isfinite(bound)])
    ax.autoscale_view(scaley=False)
    for at, bounds in enumerate(claimed):
        low, high = np.clip(bounds, *ax.get_xlim())
        band = Rectangle((low, at - 0.4), high - low, 0.8, facecolor="#e9f0f6", linewidth=0, zorder=0)
        ax.add_patch(band)
        shown["claimed"] = band
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(
        shown.values(), shown, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(shown), frameon=False, fontsize=8
    )
    return ax


def curve(
    entries: pd.DataFrame,
    *,
    x: str,
    lines: str,
    order: Sequence[Any],
    quantity: str = "score (%)",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Means against `x`, one line per value of `lines`, with a band of one standard deviation over seeds on either side.

    A point from fewer seeds than planned is hollow; a point without a complete seed leaves a gap in its line.

    Args:
        entries: columns `x`, `column` (the line), `mean`, `sd`, `n_seeds`, `n_seeds_expected`.
        order: the lines in the order of the legend.
    """
    if ax is None:
        ax = Figure(figsize=(3.8, 2.6), dpi=DPI).add_axes((0, 0, 1, 1))
    hollow = False
    for i, name in enumerate(order):
        one = entries[entries["column"] == name].sort_values(x)
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        dash = ("-", "--", ":", "-.")[i // len(COLOURS) % 4]
        short = one["n_seeds"].between(1, one["n_seeds_expected"], inclusive="left").to_numpy()
        across, mean, sd = (one[column].to_numpy(float) for column in (x, "mean", "sd"))
        ax.fill_between(across, mean - sd, mean + sd, color=colour, alpha=0.18, linewidth=0, zorder=1)
        # Enough markers to tell the lines apart without colour, not so many that they hide a long curve.
        every = max(1, len(one) // 12)
        ax.plot(across, mean, dash, color=colour, marker=marker, markersize=5, markevery=every, label=label(name))
        if short.any():
            hollow = True
            ax.plot(
                across[short],
                mean[short],
                linestyle="",
                marker=marker,
                markersize=5,
                markerfacecolor="white",
                markeredgecolor=colour,
                zorder=3,
            )
    if pd.api.types.is_integer_dtype(entries[x]) or (entries[x] % 1 == 0).all():
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    # Without a result the axes still show what is planned.
    low, high = float(entries[x].min()), float(entries[x].max())
    spare = 0.04 * (high - low) or 0.5
    ax.set(
        xlabel="steps of training on text" if x == "snapshot" else x, ylabel=quantity, xlim=(low - spare, high + spare)
    )
    if entries["mean"].isna().all():
        ax.set(ylim=(0, 100))
        ax.text(0.5, 0.5, "no complete seed", transform=ax.transAxes, ha="center", va="center")
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    handles, names = ax.get_legend_handles_labels()
    if hollow:
        handles.append(Line2D([], [], linestyle="", marker="o", markerfacecolor="white", markeredgecolor=INK))
        names.append("fewer seeds than planned")
    ax.legend(handles, names, title=lines, loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, alignment="left")
    if title:
        ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return ax
