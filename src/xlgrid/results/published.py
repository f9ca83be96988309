"""Published numbers beside ours: reading a paper's numbers, and comparing an exhibit with them.

A paper's numbers are CSV files in `reference/{paper}/`, one number per row, in percent, in the paper's own words: columns
`exhibit`, `model`, `dataset`, `method`, `source`, `target`, `metric`, `value`. A mix is written `mix(en,en-fr)`; what is averaged
over sources or targets is `avg`, over a group of targets `avg:{group}`. Beside them, `contradictions.csv` lists numbers that
another number of the same paper contradicts: the same columns, with a sentence in `note` instead of `value`.
"""

from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from xlgrid.base.names import unknown
from xlgrid.exhibits.schema import SEVERAL, NamedAxis, Published, PublishedColumn
from xlgrid.exhibits.tables import PRINTED, Sheet, number

# Ours -> the paper's. A group comes last, because an entry that has one has no single target.
COLUMNS: dict[NamedAxis, PublishedColumn] = {
    "task": "dataset",
    "encoder": "model",
    "method": "method",
    "source": "source",
    "target": "target",
    "metric": "metric",
    "group": "target",
}
KEY: list[str] = list(dict.fromkeys(COLUMNS.values()))


def read(path: str | Path) -> pd.DataFrame:
    """The numbers of one exhibit of a paper.

    Returns:
        A row per number, indexed by `dataset`, `model`, `method`, `source`, `target`, `metric`, with mixes as the project writes
        them (`en+en-fr`): `value` (percent), `rounding` (half a unit of its last printed place), `contradiction` (a sentence, ""
        where the paper does not contradict the number).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is missing, a number is none, or one stands twice.
    """
    path = Path(path)
    found = _read(path, "value")
    value = pd.to_numeric(found["value"], errors="coerce")
    if value.isna().any():
        at = found["value"][value.isna()]
        raise ValueError(f"{path}:{at.index[0] + 2}: {at.iloc[0]!r} is no number: leave out cells without one")
    if found.duplicated(KEY).any():
        twice = found[found.duplicated(KEY)]
        raise ValueError(f"{path}:{twice.index[0] + 2}: a second number for {' '.join(twice[KEY].iloc[0])}")
    decimals = found["value"].str.partition(".")[2].str.len()
    found = found.assign(value=value, rounding=0.5 * 10.0**-decimals).set_index(KEY)
    contradicted = contradictions(path.with_name("contradictions.csv"))
    notes = contradicted[contradicted["exhibit"] == path.stem].groupby(KEY)["note"].agg(" ".join)
    return found.assign(contradiction=notes.reindex(found.index).fillna(""))[["value", "rounding", "contradiction"]]


def contradictions(path: str | Path) -> pd.DataFrame:
    """A paper's `contradictions.csv`; without rows where there is no such file.

    Raises:
        ValueError: a column is missing.
    """
    return _read(Path(path), "note") if Path(path).exists() else pd.DataFrame(columns=["exhibit", *KEY, "note"])


def _read(path: Path, last: str) -> pd.DataFrame:
    try:
        # Languages are called no and nan.
        found = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError as error:
        there = sorted(f"{other.parent.name}/{other.stem}" for other in path.parent.parent.glob("*/*.csv"))
        name = f"{path.parent.name}/{path.stem}"
        raise FileNotFoundError(f"no published numbers in {path}: {unknown('file', name, there)}") from error
    if missing := [name for name in ("exhibit", *KEY, last) if name not in found]:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}: see src/xlgrid/compare.py for what it should have"
        )
    mix = found["source"].str.extract(r"^mix\((.*)\)$")[0]
    return found.assign(source=mix.str.replace(",", "+").fillna(found["source"]))


def beside(sheet: Sheet, cells: pd.DataFrame, published: Published) -> pd.DataFrame:
    """The entries of an exhibit with the paper's numbers.

    An entry's published number is the one with the entry's task, encoder, method, source, target or group, and metric, in
    the paper's words; what differs among the cells of the entry is `avg`.

    Args:
        sheet: the exhibit.
        cells: the cells behind its entries: the identity columns, `sheet.rows`, `sheet.axes`, and `group` where columns are groups.
        published: which numbers, and what the paper calls ours.

    Returns:
        One row per entry, in the order of `sheet.entries`: `sheet.rows`, `sheet.axes`, `mean`, `sd`, `n_seeds`, `n_seeds_expected`,
        `published`, `difference` (ours minus the paper's, points), `margin`, `verdict`, `contradiction`. `margin` is what chance
        allows of the difference: half of the 95 % interval of the difference of two means, over our n and the paper's seeds, if
        theirs spread like ours (t with n - 1 degrees of freedom), and the rounding of the printed number. `verdict` is "within" or
        "beyond" it, or "" below two seeds or without a published number.

    Raises:
        FileNotFoundError: there are no such published numbers.
        ValueError: they are damaged, or none of the entries has one.
    """
    from scipy.stats import t as student

    reference = read(published.path)
    ours = _shared(sheet, cells, reference)
    theirs = pd.DataFrame([_translated(entry, published) for entry in ours], columns=KEY)
    found = reference.reindex(pd.MultiIndex.from_frame(theirs))
    # Which of several metrics is meant is not known as long as there is no result at all.
    if found["value"].isna().all() and (theirs["metric"] != "").all():
        raise ValueError(
            f"{published.path} has no number for any entry of the exhibit: {_why_none(theirs, reference)}. `names` says what the "
            "paper calls ours"
        )
    entries = sheet.entries[[*sheet.rows, *sheet.axes, "mean", "sd", "n_seeds", "n_seeds_expected"]]
    n = entries["n_seeds"]
    t = student.ppf(0.975, n.clip(lower=2) - 1)
    value, rounding = (pd.Series(found[name].to_numpy(), entries.index) for name in ("value", "rounding"))
    difference = entries["mean"] - value
    seeds = pd.Series([_seeds(entry, published) for entry in ours], entries.index)
    # Without a standard deviation, below two seeds, there is no margin.
    margin = t * entries["sd"] * (1 / n.clip(lower=1) + 1 / seeds) ** 0.5 + rounding
    decided = (difference.abs() <= margin).map({True: "within", False: "beyond"})
    return entries.assign(
        published=value,
        difference=difference,
        margin=margin,
        verdict=decided.where(difference.notna() & margin.notna(), ""),
        contradiction=found["contradiction"].fillna("").to_numpy(),
    )


def _shared(sheet: Sheet, cells: pd.DataFrame, reference: pd.DataFrame) -> list[dict[NamedAxis, str]]:
    """What the cells of each entry share, in our words."""
    axes = [axis for axis in COLUMNS if axis in cells]
    # Renamed, because a column may be both what names an entry and what is asked of it.
    keys = [*sheet.rows, *sheet.axes]
    groups = cells[axes].groupby([cells[name].rename(f"of {name}") for name in keys], sort=False)
    shared = groups.first().astype(str).where(groups.nunique() == 1, SEVERAL)
    shared = shared.loc[pd.MultiIndex.from_frame(sheet.entries[keys])]
    metrics = reference.index.unique("metric")
    if len(metrics) == 1:
        # As long as no cell of a task has a result, its metric is not known.
        shared["metric"] = shared["metric"].where(shared["metric"] != "", metrics[0])
    return [dict(zip(axes, values, strict=True)) for values in shared.itertuples(index=False)]


def _seeds(entry: Mapping[NamedAxis, str], published: Published) -> int:
    """Over how many seeds the paper's number is: the fewest of what the axes of an entry say."""
    own = [seeds for axis, each in published.seeds_of.items() if (seeds := each.get(entry.get(axis, "")))]
    return min(own, default=published.seeds)


def _translated(entry: Mapping[NamedAxis, str], published: Published) -> dict[PublishedColumn, str]:
    found: dict[PublishedColumn, str] = {}
    wide: dict[PublishedColumn, str] = {}
    for axis, value in entry.items():
        name = published.names.get(axis, {}).get(value, f"{SEVERAL}:{value}" if axis == "group" else value)
        found[COLUMNS[axis]] = name if isinstance(name, str) else value
        wide |= {} if isinstance(name, str) else name
    return found | wide


def _why_none(theirs: pd.DataFrame, reference: pd.DataFrame) -> str:
    for column in KEY:
        known = list(reference.index.unique(column))
        if not set(theirs[column]) & set(known):
            return unknown(column, theirs[column].iloc[0], known)
    return "each of its words stands there, but never together"


def comparison(sheet: Sheet, found: pd.DataFrame, published: Published, digits: int) -> Sheet:
    """The comparison as a table: of each row of the exhibit three lines, ours, the paper's and the difference.

    Args:
        sheet: the exhibit.
        found: as `beside` returns it.
        digits: decimals.
    """
    keys = [*sheet.rows, *sheet.axes]
    entries = found.assign(ours=sheet.entries["text"], state=sheet.entries["state"], hover=sheet.entries["hover"])
    lines = []
    for _, row in entries.groupby(list(sheet.rows), sort=False):
        for line, say in _LINES.items():
            said = [say(entry, digits) for entry in row.itertuples()]
            texts = pd.DataFrame(said, columns=list(PRINTED), index=row.index)
            lines.append(pd.concat([row[keys], texts], axis=1).assign(value=line))
    notes = " ".join(_notes(sheet, found, published))
    title = f"{sheet.title}: ours and the published numbers"
    return Sheet(title, sheet.caption, notes, (*sheet.rows, "value"), sheet.columns, pd.concat(lines), sheet.axes)


# Text, state and hover of an entry in each of its lines.


def _ours(entry: Any, digits: int) -> tuple[str, str, str]:
    return entry.ours, entry.state, entry.hover


def _paper(entry: Any, digits: int) -> tuple[str, str, str]:
    if isnan(entry.published):
        return "–", "published", "no published number"
    mark = " ‡" if entry.contradiction else ""
    hover = " ".join(part for part in (f"published {entry.published:g}.", entry.contradiction) if part)
    return number(entry.published, digits) + mark, "contradicted" if mark else "published", hover


def _difference(entry: Any, digits: int) -> tuple[str, str, str]:
    if isnan(entry.difference):
        return "", "undecided", ""
    sign = "+" if round(entry.difference, digits) > 0 else ""
    mark = {"within": " ≈", "beyond": " ≠"}.get(entry.verdict, "")
    margin = f", {entry.verdict} ± {entry.margin:.3f}" if entry.verdict else ""
    told = f"difference {number(entry.difference, 3)}{margin}"
    return sign + number(entry.difference, digits) + mark, entry.verdict or "undecided", told


_LINES = {"ours": _ours, "paper": _paper, "difference": _difference}


def _notes(sheet: Sheet, found: pd.DataFrame, published: Published) -> Iterator[str]:
    yield sheet.notes
    has = int(found["published"].notna().sum())
    yield f"Paper: {published.path}, which has a number for {has} of the {len(found)} entries; difference: ours minus the paper's."
    stands = [
        f"{ours} for {name}"
        for axis in ("encoder", "task", "method")
        for ours, name in published.names.get(axis, {}).items()
        if isinstance(name, str) and name != ours
    ]
    if stands:
        yield f"In this study stand {', '.join(stands)}."
    if (found["verdict"] != "").any():
        named = [(axis, name, own) for axis, each in published.seeds_of.items() for name, own in each.items()]
        others = [f", {own} of {name}" for axis, name, own in named if axis in found and (found[axis] == name).any()]
        yield (
            "≈ within seed noise: |difference| ≤ t · sd · √(1/n + 1/m), the 95 % interval of a difference of two means if the "
            f"paper's m seeds (taken as {published.seeds}{''.join(others)}) spread like our n, plus rounding; ≠ beyond it."
        )
    if ((found["verdict"] == "") & found["difference"].notna()).any():
        yield "No verdict without two seeds of ours."
    if notes := list(dict.fromkeys(note for note in found["contradiction"] if note)):
        yield f"‡ the paper contradicts this number. {' '.join(notes)}"
