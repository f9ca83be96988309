"""What changed from one study to another: in the settings of their runs, and in the scores of the cells that both have."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.files import write_text
from xlgrid.exhibits.drawing.sheet import number
from xlgrid.models.deltas import read_run
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.report.cost import plain_table
from xlgrid.report.status import console
from xlgrid.results import records, units

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

# A comparison has a row for each of these.
GROUP = ("task", "encoder", "method")
# The most tasks, encoders and methods that are named beside a setting.
_NAMED = 3


class Change(NamedTuple):
    """A setting in which runs of both studies differ. A run of one study that lacks the setting has "–"."""

    task: str
    encoder: str
    method: str
    setting: str
    first: str
    second: str


def pairs(first: Plan, second: Plan) -> list[tuple[Cell, Cell]]:
    """The cells that both studies have, by their task, encoder, method, source, target and seed."""
    others = {cell[1:]: cell for cell in second.cells}
    return [(cell, others[cell[1:]]) for cell in first.cells if cell[1:] in others]


def changes(first: Plan, second: Plan) -> list[Change]:
    """The settings in which the runs of both studies differ, once for each task, encoder and method.

    The settings are those of the recipe; the contents of the inputs, the device and the versions are those of the records of
    runs that have ended.
    """
    found: dict[Change, None] = {}
    for one, other in dict.fromkeys((one.run, other.run) for one, other in pairs(first, second)):
        if not first.study.methods[one.method].is_trained:
            continue
        sides = [_settings(plan, run) for plan, run in ((first, one), (second, other))]
        records = [_recorded(plan.owned(run).path) for plan, run in ((first, one), (second, other))]
        if all(records):
            sides = [{**side, **record} for side, record in zip(sides, records, strict=True)]
            if len({side.pop("inputs") for side in sides}) > 1:
                sides[1]["contents of data and encoder"] = "others"
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            before, after = (side.get(name, "–") for side in sides)
            if before != after:
                found[Change(one.task, one.encoder, one.method, name, before, after)] = None
    return [*found]


def _settings(plan: Plan, run: Run) -> dict[str, str]:
    """The settings of a run, as text; nested settings have names such as `training.lr`."""
    return dict(_flat(plan.study.recipe(*run[1:]).model_dump(mode="json", exclude={"study"}, exclude_none=True)))


def _recorded(path: str) -> dict[str, str]:
    """What the record of a run says about its inputs and its computer; empty for a run that has not ended."""
    if not Path(path).is_file():
        return {}
    record = read_run(Path(path).parent)
    return dict(_flat({name: record[name] for name in ("inputs", "device", "processes", "versions") if name in record}))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value if isinstance(value, str) else json.dumps(value)


def scores(first: Plan, second: Plan) -> "pd.DataFrame":
    """The scores of the cells that both studies have, as means over these cells within each seed and then over seeds.

    Returns:
        A row for each task, encoder and method: these, `metric`, `first` and `second` (the means), `difference` (the second
        minus the first), `low` and `high` (its 95 % interval over other seeds and other test examples, see
        `xlgrid.results.verdicts`; NaN below two complete seeds), `n_cells` and `n_seeds` (that both studies have complete).
        Test sets of different sizes have different examples, so that nothing is paired and `is_paired` is false.

    Raises:
        ValueError: a file is damaged, or the studies have different main metrics for a task.
    """
    import pandas as pd

    from xlgrid.results.claims import Term
    from xlgrid.results.verdicts import LEVEL, half_width, measure

    groups: dict[tuple[str, ...], list[tuple[Cell, Cell]]] = defaultdict(list)
    for one, other in pairs(first, second):
        groups[one.task, one.encoder, one.method].append((one, other))
    main = {task: names[0] for task, names in first.study.metrics.items()}
    for task in {task for task, *_ in groups}:
        if main[task] != (theirs := second.study.metrics[task][0]):
            raise ValueError(
                f"task {task} has the main metric {main[task]} in {first.study.name} and {theirs} in {second.study.name}: state "
                f"the same `metric` in both"
            )
    rows = []
    for group, both in groups.items():
        count = Counter(one.seed for one, _ in both)
        # A seed counts only if both studies have all of its cells.
        whole = count.keys() - {one.seed for pair in both for one in pair if not Path(one.path).exists()}
        kept = [pair for pair in both if pair[0].seed in whole]
        sides = [[Term(pair[side], 1 / count[pair[0].seed]) for pair in kept] for side in (0, 1)]
        terms = {"first": sides[0], "second": sides[1]}
        if is_paired := all(_examples(one) == _examples(other) for one, other in kept):
            terms["difference"] = [*sides[1], *(Term(term.cell, -term.weight) for term in sides[0])]
        measured = {row["claim"]: row for row in measure(terms, main=main).to_dict("records")}
        means = {side: measured[side]["effect"] for side in ("first", "second")}
        noise = [
            measured["difference"][name] if is_paired else measured["first"][name] + measured["second"][name]
            for name in ("seed_variance", "example_variance")
        ]
        difference, half = means["second"] - means["first"], half_width(LEVEL / 2, noise[0], noise[1], len(whole))
        interval = {"difference": difference, "low": difference - half, "high": difference + half}
        counts = {"n_cells": len(kept), "n_seeds": len(whole), "is_paired": is_paired}
        rows.append({**dict(zip(GROUP, group, strict=True)), "metric": main[group[0]], **means, **interval, **counts})
    return pd.DataFrame(rows, columns=[*GROUP, "metric", "first", "second", "difference", "low", "high", *counts])


def _examples(cell: Cell) -> int:
    return int(records.read_expected(cell.path, cell._asdict())["n"])


def show(first: Plan, second: Plan, output: Path | None = None) -> None:
    """Print what changed, and write `settings.csv` and `scores.csv` to a folder, if one is given."""
    import pandas as pd

    names, terminal = [first.study.name, second.study.name], console()
    both = pairs(first, second)
    alone = [f"{len(plan.cells) - len(both):,} only in {plan.study.name}" for plan in (first, second)]
    terminal.print(f"{len(both):,} cells are in both studies, {' and '.join(alone)}.", soft_wrap=True)
    if not both:
        raise ValueError(
            f"{' and '.join(names)} have no cell in common: they compare by the names of task, encoder, method, source and target; "
            "`xlgrid rename` gives a part another name"
        )
    changed, scored = changes(first, second), scores(first, second)
    terminal.print(_changes_table(changed, names) if changed else "All settings of the runs of these cells are equal.")
    terminal.print(_scores_table(scored, names))
    if output:
        titles = dict(zip(("first", "second"), names, strict=True))
        for name, frame in (("settings", pd.DataFrame(changed, columns=Change._fields)), ("scores", scored)):
            write_text(output / f"{name}.csv", frame.rename(columns=titles).to_csv(index=False, lineterminator="\n"))


def _changes_table(changed: Iterable[Change], names: list[str]) -> "Table":
    """A row for each change of a setting, with the tasks, encoders and methods whose runs have it."""
    table = plain_table(["setting", *names, "runs of"], 4)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for change in changed:
        groups[change[len(GROUP) :]].append(" ".join(change[: len(GROUP)]))
    for setting, where in groups.items():
        more = f" and {len(where) - _NAMED} more" if len(where) > _NAMED else ""
        table.add_row(*setting, ", ".join(where[:_NAMED]) + more)
    return table


def _scores_table(scored: "pd.DataFrame", names: list[str]) -> "Table":
    """A row for each task, encoder and method, with an interval where there are two complete seeds."""
    table = plain_table([*GROUP, "metric", *names, "difference", "95 % interval", "cells", "seeds", ""], 4)
    row: Any
    for row in scored.itertuples():
        digits = 2
        sides = ["–" if isnan(value) else number(value, digits) for value in (row.first, row.second)]
        difference = "–" if isnan(row.difference) else f"{'+' * (row.difference > 0)}{number(row.difference, digits)}"
        interval = "" if isnan(row.low) else f"{number(row.low, digits)} to {number(row.high, digits)}"
        note = "" if row.is_paired else "other test examples"
        names_of_group = (row.task, row.encoder, row.method)
        unit = units.with_unit(row.metric, units.unit([row.metric]))
        table.add_row(*names_of_group, unit, *sides, difference, interval, str(row.n_cells), str(row.n_seeds), note)
    return table
