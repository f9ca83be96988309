"""The comparison of an exhibit with published numbers as a table."""

from collections.abc import Iterator
from math import isnan
from typing import Any

import pandas as pd

from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet, number
from xlgrid.results.naming import Published

# The maximum number of contradictions of a paper that the caption lists. If there are more, the caption has their
# number, and the hover text of an entry has its contradiction.
MOST_CONTRADICTIONS = 3


def published_sheet(
    sheet: Sheet, compared: pd.DataFrame, published: Published, digits: int, further: pd.DataFrame | None = None
) -> Sheet:
    """The comparison as a table. Each row of the exhibit has three lines: our number, the paper's and the difference. A
    row that only the paper has follows as one line.

    Args:
        sheet: the exhibit.
        compared: its entries, from `xlgrid.results.published.with_published`.
        digits: the number of decimals.
        further: the rows that only the paper has, from `xlgrid.results.published.without_cells`.
    """
    keys = [*sheet.rows, *sheet.axes]
    entries = compared.assign(ours=sheet.entries["text"], state=sheet.entries["state"], hover=sheet.entries["hover"])
    lines = []
    for _, row in entries.groupby(list(sheet.rows), sort=False):
        for line, print_entry in _LINES.items():
            printed = [print_entry(entry, digits) for entry in row.itertuples()]
            texts = pd.DataFrame(printed, columns=list(PRINTED), index=row.index)
            lines.append(pd.concat([row[keys], texts], axis=1).assign(value=line))
    if len(lines) > len(_LINES):
        lines.append(_totals(compared, sheet, digits))
    if further is not None and len(further):
        printed = [_paper(entry, digits) for entry in further.itertuples()]
        texts = pd.DataFrame(printed, columns=list(PRINTED), index=further.index)
        lines.append(pd.concat([further[keys], texts], axis=1).assign(value="paper"))
    notes = " ".join(_notes(sheet, compared, published))
    if further is not None and len(further):
        notes += " This study does not have the rows with a single line, which are published."
    title = f"{sheet.title}: ours and the published numbers"
    rows = (*sheet.rows, "value")
    return Sheet(
        title,
        sheet.caption,
        notes,
        rows,
        sheet.columns,
        pd.concat(lines),
        sheet.axes,
        sheet.column_axes,
        labels_once=True,
    )


# The text, state and hover text of an entry, for each of its lines.


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
    hover = f"difference {number(entry.difference, 3)}{margin}"
    return sign + number(entry.difference, digits) + mark, entry.verdict or "undecided", hover


_LINES = {"ours": _ours, "paper": _paper, "difference": _difference}


def _notes(sheet: Sheet, compared: pd.DataFrame, published: Published) -> Iterator[str]:
    yield _total(compared, published)
    yield sheet.notes
    if published.substitutes:
        yield published.substitutes
    if (compared["verdict"] != "").any():
        of_names = [(axis, name, n) for axis, each in published.seeds_of.items() for name, n in each.items()]
        others = [
            f", {n} of {name}" for axis, name, n in of_names if axis in compared and (compared[axis] == name).any()
        ]
        yield (
            "≈ within seed noise: |difference| ≤ t · sd · √(1/n + 1/m), the 95 % interval of a difference of two means "
            f"if the paper's m seeds (taken as {published.seeds}{''.join(others)}) spread like our n, plus rounding; ≠ "
            "beyond it."
        )
    if ((compared["verdict"] == "") & compared["difference"].notna()).any():
        yield "No verdict without two seeds of ours."
    contradictions = list(dict.fromkeys(note for note in compared["contradiction"] if note))
    if contradictions and len(contradictions) <= MOST_CONTRADICTIONS:
        yield f"‡ the paper contradicts this number. {' '.join(contradictions)}"
    elif contradictions:
        where = published.path.with_name("contradictions.csv")
        yield f"‡ the paper contradicts this number: {len(contradictions)} contradictions, listed in {where}."


def _total(compared: pd.DataFrame, published: Published) -> str:
    """A sentence with the number of entries that have a published number, and their mean difference from it."""
    difference = compared["difference"].dropna()
    has = int(compared["published"].notna().sum())
    total = (
        f"Paper: {published.path}, which has a number for {has} of the {len(compared)} entries; difference: ours minus "
        "the paper's."
    )
    if len(difference):
        total += f" In total: {_counts(compared)}; mean difference {number(difference.mean(), 1)}"
        total += f", mean size {number(difference.abs().mean(), 1)}."
    return total


def _totals(compared: pd.DataFrame, sheet: Sheet, digits: int) -> pd.DataFrame:
    """The last line of the table: the mean difference of each column."""
    entries = []
    for column, part in compared.groupby(list(sheet.axes), sort=False):
        difference = part["difference"].dropna()
        text = number(difference.mean(), digits) if len(difference) else ""
        sign = "+" if len(difference) and round(difference.mean(), digits) > 0 else ""
        keys = dict.fromkeys(sheet.rows, "") | {sheet.rows[0]: "all rows", "value": "mean difference"}
        printed = dict(zip(PRINTED, (sign + text, "undecided", _counts(part) if len(difference) else ""), strict=True))
        entries.append(keys | dict(zip(sheet.axes, column, strict=True)) | printed)
    return pd.DataFrame(entries)


def _counts(compared: pd.DataFrame) -> str:
    """The verdicts in words, such as `3 within seed noise, 1 beyond it`."""
    verdicts = compared.loc[compared["difference"].notna(), "verdict"].value_counts()
    words = {"within": "within seed noise", "beyond": "beyond it", "": "without a verdict"}
    return ", ".join(f"{verdicts[verdict]} {text}" for verdict, text in words.items() if verdict in verdicts)
