"""The first part of a report: a finding in words, the claims as a forest plot, and published numbers beside ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from xlgrid.exhibits import claims as drawn
from xlgrid.exhibits.drawing import plots
from xlgrid.exhibits.drawing.labels import labelled
from xlgrid.exhibits.drawing.sheet import number
from xlgrid.products.report import Claims
from xlgrid.results import units
from xlgrid.results.claims import Claim
from xlgrid.results.verdicts import DOES_NOT, HOLDS, LEVEL, NOTHING

TEMPLATES = jinja2.Environment(loader=jinja2.PackageLoader("xlgrid", "report"), autoescape=True)
_PARTS: Any = TEMPLATES.get_template("verdicts.html.j2").module
# The state of a claim -> the heading of its group.
GROUPS = {
    "holds": "Claims that hold",
    "open": "Claims that do not hold",
    "nothing": "Claims of which a side has learnt nothing",
    "lacks": "Claims that lack runs",
}
# The state of claims that do not hold -> what a sentence says about one, and about several.
WITHOUT = {
    "open": ("does not", "do not"),
    "nothing": ("has a side that has learnt nothing", "have a side that has learnt nothing"),
    "lacks": ("lacks runs", "lack runs"),
}
# The panels of the scatter, in its columns and at most.
COLUMNS, MOST_PANELS = 4, 12
# A list of more footnotes is folded.
MOST_NOTES = 5


def first_part(study: Any, draw: Callable[[Figure, str], str]) -> str:
    """The claims with their verdicts, and the published numbers with ours; "" for a study that has neither.

    Args:
        study: a `xlgrid.report.page.Report`.
        draw: a function that returns the HTML of a figure with an alternative text.
    """
    parts = []
    # The miniature of a paper extends its study.
    extended = [each.study.exhibits for each in study.plan.ancestors] if study.plan else []
    of_paper = any(exhibit.is_compared for exhibits in (study.exhibits, *extended) for exhibit in exhibits.values())
    if study.claims:
        product = Claims(study.name)
        judged = read(study.path_of(product.file(".csv")))
        table, files = "", []
        if judged is None:
            body = _PARTS.missing(f"snakemake --cores all --forcerun claims -- {product.path}")
        else:
            body = forest(study.claims, judged)
            table = Markup(study.path_of(product.file(".html")).read_text(encoding="utf-8"))
            files = [(f"claims{suffix}", suffix[1:]) for suffix in product.files]
        parts.append(_PARTS.claims("The paper's claims" if of_paper else "Claims", body, table, files))
    frames = compared(study.path_of(f"results/{study.name}/exhibits"), study.exhibits)
    if frames:
        with plots.style():
            alt = f"Ours against the published numbers: {score(frames.values())}"
            figure = draw(scatter(dict(list(frames.items())[:MOST_PANELS])), alt)
        titles = {name: study.exhibits[name].title for name in frames}
        scores = [(name, titles[name], score([frame])) for name, frame in frames.items()]
        notes = [(titles[name], note) for name in frames for note in frames[name]["contradiction"].unique() if note]
        section = _PARTS.published(
            score=score(frames.values()),
            substitutes=study.plan.study.published.substitutes if study.plan else "",
            scores=scores,
            picture=Markup(figure),
            footnotes=notes,
            folded=len(notes) > MOST_NOTES,
            most=MOST_PANELS,
        )
        parts.append(section)
    return "".join(parts)


def of_study(study: Any) -> str:
    """The finding of a study, see `finding`; "" without verdicts."""
    judged = read(study.path_of(Claims(study.name).file(".csv"))) if study.claims else None
    return "" if judged is None else finding(judged, study.labels)


def read(path: Path) -> pd.DataFrame | None:
    """The verdicts in `claims.csv`; None if the file does not exist, or an earlier version of xlgrid wrote it."""
    judged = pd.read_csv(path, keep_default_na=False, na_values=[""]) if path.exists() else None
    return judged if judged is not None and "like_verdict" in judged else None


def finding(judged: pd.DataFrame, labels: Mapping[str, str] = MappingProxyType({})) -> str:
    """A sentence about the first claim that holds, or else about the first one with a verdict, and a sentence with the
    numbers of claims.

    Args:
        labels: name in the study -> what the sentence has for it.
    """
    states = judged["verdict"].map(_state)
    decided = judged[states == "holds"] if (states == "holds").any() else judged[states == "open"]
    n = states.value_counts().to_dict()
    parts = [f"{_holds(n.get('holds', 0))} over these languages"]
    parts += [f"{n[state]} {words[n[state] > 1]}" for state, words in WITHOUT.items() if state in n]
    counts = ", and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    also = _holds(int((judged["like_verdict"] == HOLDS).sum()))
    first = [_sentence(decided.iloc[0], labels)] if len(decided) else []
    total = f"Of {len(judged)} claim{'s' * (len(judged) > 1)}, {counts}; {also} for languages like these."
    return " ".join([*first, total])


def _holds(n: int) -> str:
    return f"{n or 'none'} hold{'s' * (n < 2)}"


def _sentence(row: Any, labels: Mapping[str, str]) -> str:
    """A claim and its effect in words, such as `“LoRA is better” holds over these languages: lora − full-ft is 2.1 points of F1 (95 % interval
    1.2 to 3.0), where > 0 is expected; for languages like these, it is open: too few languages.`"""
    unit = units.unit_of_difference([row.metric])
    metric = labelled(row.metric, labels)
    of_metric = f"{unit} of {metric}" if unit else metric
    holds = "holds" if row.verdict == HOLDS else "is not shown"
    effect = f"{labelled(row.measured, labels)} is {number(row.effect, 1)} {of_metric} (95 % interval {_to(row.low, row.high)})"
    like = {HOLDS: "it holds", DOES_NOT: "it is open"}.get(row.like_verdict, f"it is open: {row.like_verdict}")
    interval = "" if isnan(row.like_low) else f" ({_to(row.like_low, row.like_high)})"
    interval += f", with {corrected}" if (corrected := _corrected(row, "like_")) else ""
    return (
        f"“{row.says.rstrip('.')}” {holds} over these languages: {effect}, where {row.expected} is expected; "
        f"for languages like these, {like}{interval}."
    )


def _corrected(row: Any, prefix: str) -> str:
    """The corrected p of a claim that only the correction for the number of claims keeps from holding; "" for others."""
    verdict, p, corrected = (getattr(row, prefix + name) for name in ("verdict", "p", "p_corrected"))
    is_kept = verdict == DOES_NOT and p < LEVEL
    return f"p {number(corrected, 3)} after the correction for the number of claims" if is_kept else ""


def _to(low: float, high: float) -> str:
    return f"{number(low, 1)} to {number(high, 1)}"


def _state(verdict: str) -> str:
    return {HOLDS: "holds", DOES_NOT: "open", NOTHING: "nothing"}.get(verdict, "lacks")


def forest(claims: Mapping[str, Claim], judged: pd.DataFrame) -> Markup:
    """The claims with both intervals, those of the same unit on the same scale, and grouped by their verdicts."""
    judged = judged.assign(
        state=judged["verdict"].map(_state),
        unit=[units.unit_of_difference([name]) for name in judged["metric"].fillna("")],
    )
    blocks = []
    for unit, of_unit in judged.groupby("unit", sort=False):
        low, high, ticks = _scale(of_unit, [claims[str(name)] for name in of_unit["claim"]])

        def at(value: float, low: float = low, high: float = high) -> float:
            return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

        groups = [
            (state, heading, [_line(claims[str(row.claim)], row, at) for row in rows.itertuples()])
            for state, heading in GROUPS.items()
            if len(rows := of_unit[of_unit["state"] == state])
        ]
        blocks.append(
            (
                unit or "the unit of the metric",
                groups,
                [(at(tick), f"{tick:g}".replace("-", "\N{MINUS SIGN}")) for tick in ticks],
                at(0),
            )
        )
    return Markup(_PARTS.forest(blocks))


def _scale(judged: pd.DataFrame, claims: Sequence[Claim]) -> tuple[float, float, list[float]]:
    """The ends of the scale of some claims, and its ticks."""
    from matplotlib.ticker import MaxNLocator

    shown = judged[["effect", "low", "high", "like_low", "like_high"]].to_numpy(float).ravel().tolist()
    shown += [bound for claim in claims for bound in claim.range]
    values = [0.0, *filter(isfinite, shown)]
    span = max(values) - min(values)
    # Effects of 0 without an interval differ by the precision of sums alone.
    room = 0.04 * span if span > 1e-6 else 0.5
    low, high = min(values) - room, max(values) + room
    ticks = MaxNLocator(5).tick_values(low, high)
    return low, high, [float(tick) for tick in ticks if low <= tick <= high]


def _line(claim: Claim, row: Any, at: Any) -> dict[str, Any]:
    """The texts of a claim, and the places of its marks in percent of the width."""
    counts = drawn.counts(row)
    nothing = "" if isinstance(row.learnt_nothing, float) else row.learnt_nothing
    spans = {"claimed": claim.range, "like": (row.like_low, row.like_high), "these": (row.low, row.high)}
    return {
        "name": row.claim,
        "says": row.says,
        "expected": row.expected,
        "measured": row.measured,
        "these": drawn.interval(row, ""),
        "like": drawn.interval(row, "like_"),
        "verdicts": [(row.verdict, _state(row.verdict)), (row.like_verdict, _state(row.like_verdict))],
        "aside": "; ".join(filter(None, (_corrected(row, "like_"), drawn.needed(row) or nothing))),
        "counts": "; ".join(filter(None, (counts, _corrected(row, "")))),
        "effect": None if isnan(row.effect) else at(row.effect),
        "spans": {name: (at(low), at(high)) for name, (low, high) in spans.items() if not isnan(low)},
    }


def compared(folder: Path, exhibits: Iterable[str]) -> dict[str, pd.DataFrame]:
    """Exhibit -> its entries with a published number and with ours, for exhibits that have both."""
    found = {}
    for name in exhibits:
        if (path := folder / f"{name}-published.csv").exists():
            texts = {"verdict": str, "contradiction": str}
            frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=texts)
            frame = frame.fillna(dict.fromkeys(texts, ""))
            if len(frame := frame.dropna(subset=["published", "mean"])):
                found[name] = frame
    return found


def score(frames: Iterable[pd.DataFrame]) -> str:
    """How many numbers agree with the published ones, such as `148 of 170 within noise`."""
    verdicts = pd.concat([frame["verdict"] for frame in frames])
    n, decided = len(verdicts), int((verdicts != "").sum())
    if not decided:
        return f"{n} without two seeds of ours, which a comparison takes"
    aside = f"; {n - decided} without two seeds of ours" if decided < n else ""
    return f"{(verdicts == 'within').sum()} of {decided} within noise{aside}"


def scatter(frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Ours against the published numbers, a panel for each exhibit. A bar is the difference that noise explains."""
    rows = -(-len(frames) // COLUMNS)
    columns = min(COLUMNS, len(frames))
    figure = Figure(figsize=(2 * columns, 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, (name, frame) in zip(axes, frames.items(), strict=False):
        ends = frame[["published", "mean"]].to_numpy(float)
        room = 0.06 * max(1e-9, float(ends.max() - ends.min()))
        limits = (float(ends.min()) - room, float(ends.max()) + room)
        ax.plot(limits, limits, color=plots.FAINT, linewidth=0.8, zorder=0)
        for verdict, colour, marker, filled in _MARKS:
            part = frame[frame["verdict"] == verdict]
            ax.errorbar(
                part["published"],
                part["mean"],
                yerr=part["margin"].fillna(0),
                linestyle="",
                color=colour,
                marker=marker,
                markersize=3.5,
                fillstyle="full" if filled else "none",
                elinewidth=0.6,
            )
        noted = frame[frame["contradiction"] != ""]
        ax.plot(
            noted["published"], noted["mean"], linestyle="", marker="o", fillstyle="none", color=plots.INK, markersize=8
        )
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        ax.set_title(name, loc="left", fontsize=8.5, fontweight="bold")
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(frames) :]:
        ax.set_axis_off()
    figure.supxlabel("published", fontsize=9)
    figure.supylabel("ours", fontsize=9)
    return figure


# Verdict, colour, marker, and whether it is filled.
_MARKS = (
    ("", plots.FAINT, ".", True),
    ("within", plots.COLOURS[0], "o", True),
    ("beyond", plots.COLOURS[1], "s", False),
)


def by_family(languages: Iterable[tuple[str, Any]]) -> str:
    """Languages by name, code and family: `Indo-European: English (en), French (fr); Bantu: Swahili (sw)`.

    Args:
        languages: the code of each, and the language, or None for one without facts.
    """
    families: dict[str, list[str]] = {}
    for code, language in languages:
        name = getattr(language, "name", "") or code
        family = getattr(language, "family", "") or ""
        families.setdefault(family, []).append(f"{name} ({code})" if name != code else code)
    return "; ".join(
        f"{family}: {', '.join(names)}" if family else ", ".join(names) for family, names in families.items()
    )
