"""Attention in two targets as an exhibit: the divergence over runs as a table, one example as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from xlgrid.base.files import write_text
from xlgrid.evaluation import attention
from xlgrid.exhibits import schema as exhibits
from xlgrid.exhibits.tables import PRINTED, Sheet, latex, markdown, number, sheet
from xlgrid.results import stats

if TYPE_CHECKING:
    from xlgrid.results.identity import Cell, Contrast

# What tells the lines of the table apart; seeds are averaged over.
AXES = ("task", "encoder", "method", "source")
COLUMNS = {"context": "context tokens", "first": "first token"}


def render(name: str, exhibit: exhibits.Attention, cells: Sequence["Cell"], folder: str | Path) -> None:
    """Make the files of an exhibit of attention, each atomically, from whatever results exist.

    The CSV has a line per entry of the table, as `exhibits.render` says.

    Args:
        name: the exhibit's name, and the stem of its files.
        cells: the study's.
        folder: where the files go.

    Raises:
        ValueError: no run is planned for both targets, or a file is damaged.
    """
    from xlgrid.exhibits import panels, plots

    planned = exhibits.contrasts(exhibit, cells)
    if not planned:
        raise ValueError(f"no run that exhibit {name} selects is planned for both {' and '.join(exhibit.targets)}")
    found = {contrast: attention.read(contrast.path) for contrast in planned if Path(contrast.path).exists()}
    table, notes = divergences(planned, found), _notes(planned, found)
    rows = [axis for axis in AXES if table[axis].nunique() > 1] or ["method"]
    made = sheet(
        stats.entries(table, rows, "rows"),
        title=exhibit.title,
        caption=exhibit.caption,
        notes=notes,
        rows=rows,
        order={row: stats.in_order(table, row, exhibit.select) for row in rows} | {"column": list(COLUMNS.values())},
        digits=exhibit.digits,
    )
    stem = Path(folder) / name
    with plots.style():
        ax = panels.attention(examples(planned, found, made), exhibit.targets, exhibit.title)
        plots.save(ax, stem.with_name(f"{name}.png"), stem.with_name(f"{name}.svg"))
    write_text(f"{stem}.csv", made.entries.drop(columns=list(PRINTED)).to_csv(index=False, lineterminator="\n"))
    write_text(f"{stem}.md", markdown(made))
    write_text(f"{stem}.tex", latex(made, name))


def divergences(planned: Sequence["Contrast"], found: dict["Contrast", dict[str, Any]]) -> pd.DataFrame:
    """Two rows per planned run: `AXES`, `seed`, `rows` (a value of `COLUMNS`), `score` (bits, NaN without a result)."""
    return pd.DataFrame(
        [
            {axis: getattr(contrast, axis) for axis in (*AXES, "seed")}
            | {"rows": label, "score": found[contrast]["divergence"][key] if contrast in found else float("nan")}
            for contrast in planned
            for key, label in COLUMNS.items()
        ]
    )


def examples(
    planned: Sequence["Contrast"], found: dict["Contrast", dict[str, Any]], made: Sheet
) -> dict[str, dict[str, Any] | None]:
    """For each line of the table what to write above its pictures, and its first run with a result or None."""
    shown: dict[tuple[str, ...], dict[str, Any] | None] = {}
    for contrast in planned:
        keys = tuple(getattr(contrast, axis) for axis in AXES)
        shown[keys] = shown.get(keys) or found.get(contrast)
    entries = made.entries[made.entries["column"] == COLUMNS["context"]]
    texts = dict(zip(entries[list(made.rows)].itertuples(index=False, name=None), entries["text"], strict=True))
    told = {}
    for keys, one in shown.items():
        named = dict(zip(AXES, keys, strict=True))
        said = f"{named['method']}, trained on {named['source']}: {named['encoder']}, {named['task']}"
        if one:
            said += f", divergence {texts[tuple(named[row] for row in made.rows)]} bits"
        told[said] = one
    return told


def _notes(planned: Sequence["Contrast"], found: dict["Contrast", dict[str, Any]]) -> list[str]:
    target, other = planned[0].target, planned[0].other
    said = [
        f"Jensen–Shannon divergence, in bits, between the last layer's attention in {target} and in {other}: each head's rows "
        "of the context's tokens, and of the first token alone, over these tokens and the question as a whole; 0: the same.",
        f"Runs with a result: {len(found)} of {len(planned)}.",
    ]
    if found:
        n, left_out = ([one[key] for one in found.values()] for key in ("n", "left_out"))
        examples = number(min(n), 0) if min(n) == max(n) else f"{min(n)} to {max(n)}"
        said.append(f"Mean over {examples} examples.")
        if max(left_out):
            said.append(f"Left out, because their contexts were cut differently: up to {max(left_out)} more.")
    return said
