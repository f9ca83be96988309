"""Print the cost of a study and the parameters of its methods as tables; `xlgrid.plan.estimate` computes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.methods.variants import plain
from xlgrid.plan.estimate import Cost, Estimate
from xlgrid.plan.plan import Plan
from xlgrid.report.status import console

if TYPE_CHECKING:
    from rich.table import Table

# Unit of time -> the number of units in an hour.
TIMES = (("hours", 1), ("minutes", 60), ("seconds", 3600))


def show(plan: Plan, measured: str | Path | None = None) -> None:
    """Print a table of the exhibits and stages, a table of the methods, and the assumptions behind the numbers.

    Args:
        measured: a run.json whose speed is used instead of the assumed speed.

    Raises:
        ValueError: `Estimate.stages` or `Estimate.measured` raises it.
    """
    estimate, terminal = Estimate(plan), console()
    estimate = estimate.measured(measured) if measured else estimate
    terminal.print(cost_table(estimate.exhibits(), estimate.stages()))
    terminal.print(method_table(estimate))
    lengths = {plan.study.tasks[run.task].kind: estimate.sizes.length(run.task) for run in plan.runs}
    terminal.print(
        f"Speed: {estimate.speed.name}. The hours do not include fetching data, tokenizing and the start of processes.",
        f"Tokens of an input, assumed: {', '.join(f'{kind} {length}' for kind, length in lengths.items())}.",
        *([f"Not counted, because another study makes them: {plan.shared}."] if plan.shared else []),
        sep="\n",
        soft_wrap=True,
        markup=False,
    )


def cost_table(*groups: Mapping[str, Cost]) -> "Table":
    """A table with a row for each cost and a line between groups. In its units, the largest number is at least 1."""
    costs = [cost for group in groups for cost in group.values()]
    hours, gigabytes = max(cost.hours for cost in costs), max(cost.gigabytes for cost in costs)
    unit, per_hour = next((each for each in TIMES if hours * each[1] >= 1), TIMES[-1])
    size, per_gigabyte = ("GB", 1) if gigabytes >= 1 else ("MB", 1000)
    table = plain_table(["", "runs", "cells", "steps", "M tokens", "PFLOP", f"GPU-{unit}", f"{size} stored"], 1)
    for group in groups:
        for name, cost in group.items():
            counts = (f"{count:,}" for count in (cost.runs, cost.cells, cost.steps))
            numbers = cost.tokens / 1e6, cost.operations / 1e15, per_hour * cost.hours, per_gigabyte * cost.gigabytes
            table.add_row(name, *counts, *map(_rounded, numbers))
        table.add_section()
    return table


def _rounded(number: float) -> str:
    """A number with at least two significant digits."""
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.2g}"


def method_table(estimate: Estimate) -> "Table":
    """A table with a row for each method on each encoder: the numbers of trained, stored and all parameters."""
    table = plain_table(["encoder", "method", "trained", "stored", "all", "% trained"], 2)
    for encoder, method, counted in dict.fromkeys(
        (run.encoder, plain(run.method), estimate.count(run)[:3]) for run in estimate.plan.runs
    ):
        table.add_row(encoder, method, *(f"{number:,}" for number in counted), f"{100 * counted[0] / counted[2]:.2f}")
    return table


def plain_table(columns: list[str], words: int) -> "Table":
    """An empty table whose columns are right-aligned, except for the first `words` columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="left" if number < words else "right")
    return table
