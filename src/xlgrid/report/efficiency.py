"""What the jobs of a study have used of the memory and time that they requested, and what to request next time."""

import csv
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.clock import duration
from xlgrid.plan.plan import Plan
from xlgrid.plan.workflow import made_by
from xlgrid.products import product_of
from xlgrid.products.product import Product
from xlgrid.report import ledger
from xlgrid.report.cost import plain_table
from xlgrid.report.status import console

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

# A request for next time: so many times the most that was used, and so many MB for the process that starts the job; or at least so
# many minutes. A job that lacked memory or time needs so many times what it had.
MEMORY, WORKER, TIME, LEAST, LACKED = 1.25, 500, 1.5, 5, 2
UNKNOWN = "–"
NUMBERS = ["seconds", "memory_mb", "cpu_seconds", "mem_mb", "runtime", "cpus", "gpus", "requeues"]


def read(plan: Plan, folder: str | Path) -> "pd.DataFrame":
    """What the jobs of a study have requested and used: all attempts in the executor's ledger, and Snakemake's benchmarks of other
    jobs.

    The columns are those of the ledger's `usage.jsonl`, such as `rule`, `output` and `cause` (empty for a job that is done); numbers that are
    not known are NaN. So are the times of a job that was requeued, because only its last attempt is measured.

    Args:
        folder: the ledger; it need not exist.
    """
    import pandas as pd

    of_study = f"results/{plan.study.name}/"
    jobs = [line for line in ledger.lines(f"{folder}/usage.jsonl") if str(line.get("output")).startswith(of_study)]
    known = {product.job(plan.study) for job in jobs if (product := product_of(str(job["output"])))}
    for product in plan.products:
        # The report and the summary of a study have no benchmark.
        name = product.job(plan.study)
        if product.study == plan.study.name and name not in known and "/" in name:
            with suppress(OSError), open(product.benchmark(plan.study).path, encoding="utf-8", newline="") as file:
                for measured in csv.DictReader(file, delimiter="\t"):
                    about = {"rule": _rule(plan, product), "output": product.path}
                    names = {"seconds": "s", "memory_mb": "max_rss", "cpu_seconds": "cpu_time"}
                    jobs.append(about | {name: measured.get(column) for name, column in names.items()})
    frame = pd.DataFrame(jobs, columns=["rule", "output", "cause", *NUMBERS])
    frame["cause"] = frame["cause"].where(frame["cause"].notna(), "")
    frame[NUMBERS] = frame[NUMBERS].apply(pd.to_numeric, errors="coerce")
    frame.loc[frame["requeues"] > 0, ["seconds", "cpu_seconds"]] = math.nan
    return frame


def _rule(plan: Plan, product: Product) -> str:
    """The rule that makes a product of a study."""
    plans, path = {plan.study.name: plan}, product.path.removeprefix("results/")
    several = product.rules[1:] and product.rules
    return next((rule for rule in several if re.match(made_by(plans, rule, type(product)), path)), product.rules[0])


def unused(used: "pd.Series[float]", requested: "pd.Series[float]") -> str:
    """The share of what jobs requested that they did not use, over the jobs of which both are known."""
    known = used.notna() & (requested > 0)
    return f"{1 - used[known].sum() / requested[known].sum():.0%}" if known.any() else UNKNOWN


def advice(jobs: "pd.DataFrame") -> dict[str, str]:
    """`mem_mb` and `runtime` (in minutes) to request for the jobs of a rule, as far as their use is known.

    As in the rules of xlgrid, the memory grows with the attempt.
    """
    lacking = jobs[~jobs["output"].isin(jobs.loc[jobs["cause"] == "", "output"])]
    # The cause may be the memory of a GPU; then the request is larger than needed, and not too small.
    memory = [
        MEMORY * jobs["memory_mb"].max() + WORKER,
        LACKED * lacking[lacking["cause"] == "out of memory"]["mem_mb"].max(),
    ]
    minutes = [TIME * jobs["seconds"].max() / 60, LACKED * lacking[lacking["cause"] == "timeout"]["runtime"].max()]
    asked = {}
    if known := [value for value in memory if not math.isnan(value)]:
        asked["mem_mb"] = f"{100 * math.ceil(max(known) / 100)} * attempt"
    if known := [value for value in minutes if not math.isnan(value)]:
        asked["runtime"] = f"{max(LEAST, math.ceil(max(known)))}"
    return asked


def tables(jobs: "pd.DataFrame") -> Iterator["Table"]:
    """A table of the memory of each rule, and one of its time, cores and GPUs."""
    spread = ["median", "95 %", "maximum", "requested", "unused"]
    memory = plain_table(["memory in MB", "jobs", "failed", *spread], 1)
    time = plain_table(["time", *spread, "cores unused", "GPUs requested"], 1)
    for rule, of_rule in jobs.groupby("rule", sort=False):
        counts = f"{len(of_rule):,}", f"{(of_rule['cause'] != '').sum():,}"
        memory.add_row(str(rule), *counts, *_spread(of_rule["memory_mb"], of_rule["mem_mb"], "{:,.0f}".format))
        cores = unused(of_rule["cpu_seconds"], of_rule["cpus"] * of_rule["seconds"])
        gpus = _range(of_rule["gpus"], "{:.0f}".format)
        time.add_row(str(rule), *_spread(of_rule["seconds"], 60 * of_rule["runtime"], duration), cores, gpus)
    yield from (memory, time)


def _spread(used: "pd.Series[float]", requested: "pd.Series[float]", text: Callable[[Any], str]) -> list[str]:
    """Median, 95th percentile and most of what was used, the range of what was requested, and the share that was not used."""
    # Each is the use of a job, and not a mean of two.
    shown = (
        [used.dropna().sort_values().iloc[math.ceil(share * used.count()) - 1] for share in (0.5, 0.95, 1)]
        if used.count()
        else []
    )
    return [*(map(text, shown) if shown else [UNKNOWN] * 3), _range(requested, text), unused(used, requested)]


def _range(values: "pd.Series[float]", text: Callable[[Any], str]) -> str:
    """The least and the largest of the values that are known, or the only one."""
    return " to ".join(dict.fromkeys(map(text, (values.min(), values.max())))) if values.count() else UNKNOWN


def show(plan: Plan, folder: str | Path) -> None:
    """Print what the jobs of each rule have used, what is not known, and lines for a profile with what to request.

    Args:
        folder: the executor's ledger.
    """
    terminal, jobs = console(), read(plan, folder)
    if jobs.empty:
        terminal.print(f"No job of {plan.study.name} has been measured: run it, or some of its jobs.")
        return
    for table in tables(jobs):
        terminal.print(table)
    lines = ["set-resources:"]
    for rule, of_rule in jobs.groupby("rule", sort=False):
        asked = advice(of_rule)
        lines += [f"  {rule}:", *(f"    {name}: {value}" for name, value in asked.items())] if asked else []
    terminal.print(*notes(jobs), "", *lines, sep="\n", soft_wrap=True, markup=False)


def notes(jobs: "pd.DataFrame") -> Iterator[str]:
    """Sentences about what the tables do not have, and how the lines for a profile follow from them."""
    if free := jobs["runtime"].isna().sum():
        yield (
            f"{free:,} of {len(jobs):,} jobs have no request: on one machine, none is limited; and of jobs of other executors than "
            "submitit, Snakemake's benchmarks have only the use."
        )
    if unmeasured := jobs["memory_mb"].isna().sum():
        yield f"The memory of {unmeasured:,} jobs is not known, such as that of a job that was killed with its worker."
    if requeued := (jobs["requeues"] > 0).sum():
        yield f"{requeued:,} jobs were requeued, and went on from their saved states: they count for no time."
    yield "Memory is that of the largest process of a job. What jobs use of a GPU is not recorded: see `nvidia-smi` on its node."
    yield (
        f"Next time, in a profile (memory: {MEMORY:g} times the most, and {WORKER} MB for the process that starts the job; runtime: "
        f"{TIME:g} times the most, at least {LEAST} minutes; {LACKED} times the request of a job that lacked one of them):"
    )
