"""Which source transfers best to each target, as a table."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from xlgrid.exhibits.tables import PRINTED, Sheet, about, number
from xlgrid.languages.sources import Source
from xlgrid.results import stats

if TYPE_CHECKING:
    from xlgrid.exhibits.schema import Best


def sources(exhibit: "Best", cells: pd.DataFrame) -> Sheet:
    """A row per target, a column per value of `exhibit.columns`; each entry is a source and its mean over complete seeds.

    Sources that are trained on the target, in a mix too, are left out. Of equal ones the first in the study is best.

    Args:
        cells: one row per planned cell, as `exhibits.render` takes them.

    Returns:
        A sheet whose entries have `target`, `column`, `source` ("" where no source has a complete seed), `mean`, `sd`, `next` (the
        source after it) and its `next_mean`, `n_sources` (with all of their seeds), `n_sources_expected`.

    Raises:
        ValueError: the selection is empty, or an entry would mix tasks, encoders, methods or metrics.
    """
    chosen = stats.select(cells, exhibit.select)
    trained = [
        target in Source(source).parts for source, target in zip(chosen["source"], chosen["target"], strict=True)
    ]
    others = chosen[[not own for own in trained]]
    if others.empty:
        raise ValueError("every selected source is trained on its target: select others, or an exhibit of another kind")
    found = stats.entries(others, [exhibit.columns, "source"], "target")
    found = found.rename(columns={"column": "target", exhibit.columns: "column"})
    order = {name: stats.in_order(chosen, name, exhibit.select) for name in ("target", exhibit.columns)}
    rows = [
        {"target": target, "column": column} | _entry(one, exhibit.digits)
        for target in order["target"]
        for column in order[exhibit.columns]
        if len(one := found[(found["target"] == target) & (found["column"] == column)])
    ]
    notes = [
        *about(others),
        "The source, not trained on the target, with the highest mean over complete seeds; in brackets how far the next is behind.",
    ]
    if any(row["state"] == "incomplete" for row in rows):
        notes.append("† not all sources have all of their seeds: another may be better.")
    if any(row["state"] == "missing" for row in rows):
        notes.append("– no source has a complete seed.")
    entries = pd.DataFrame(rows)
    columns = [(str(column),) for column in order[exhibit.columns]]
    return Sheet(exhibit.title, exhibit.caption, " ".join(notes), ("target",), columns, entries)


def _entry(candidates: pd.DataFrame, digits: int) -> dict[str, Any]:
    """The best of some sources, and what is printed of it."""
    whole = int((candidates["n_seeds"] == candidates["n_seeds_expected"]).sum())
    counts = {"n_sources": whole, "n_sources_expected": len(candidates)}
    told = f"{whole} of {len(candidates)} sources with all of their seeds"
    ranked = candidates[candidates["n_seeds"] > 0].sort_values("mean", ascending=False, kind="stable")
    if ranked.empty:
        nothing = {"source": "", "mean": float("nan"), "sd": float("nan"), "next": "", "next_mean": float("nan")}
        return nothing | counts | dict(zip(PRINTED, ("–", "missing", told), strict=True))
    first, *rest = ranked.head(2).to_dict("records")
    text, after = f"{first['source']} {number(first['mean'], digits)}", {"next": "", "next_mean": float("nan")}
    if rest:
        after = {"next": rest[0]["source"], "next_mean": rest[0]["mean"]}
        text += f" ({number(rest[0]['mean'] - first['mean'], digits)})"
        told = f"next {rest[0]['source']} {number(rest[0]['mean'], digits)}; {told}"
    state = "complete" if whole == len(candidates) else "incomplete"
    printed = (text + " †" * (state == "incomplete"), state, told)
    its = {name: first[name] for name in ("source", "mean", "sd")}
    return its | after | counts | dict(zip(PRINTED, printed, strict=True))
