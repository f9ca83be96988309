"""The state of every cell and run of a study (done, in progress or failed), with the reason of each failure."""

import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from xlgrid.base.clock import minutes
from xlgrid.base.errors import Damaged
from xlgrid.plan.load import named
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.evaluate import Cell
from xlgrid.products.product import Product
from xlgrid.products.report import Report
from xlgrid.products.train import Run
from xlgrid.report import ledger
from xlgrid.report.stages import TRAINING, Stage, stages
from xlgrid.report.trainings import Training, training
from xlgrid.results import records
from xlgrid.results.learning import Learning

WINDOWS = (15 * 60, 60 * 60, 4 * 60 * 60)


class Failure(NamedTuple):
    """A job that ended with an error.

    Attributes:
        target: the file that the job did not make.
        reason: the reason of the failure.
        log: the log of the job.
        cluster: the cluster on which the executor ran the job; empty for another executor.
        damaged: the results to delete before the job can succeed.
    """

    target: str
    reason: str
    log: str
    cluster: str = ""
    damaged: tuple[str, ...] = ()


class Overview(NamedTuple):
    """The state of a study at one moment.

    Attributes:
        study: the name of the study.
        cells, runs: every planned cell and run -> its state: done, running, training, queued, failed or waiting. A cell
            that was not submitted has the state of its run. A cell is stale if its run is newer, so that Snakemake
            makes the cell again.
        broken: each cell that waits for a failed job -> this job.
        flight: (rule, running or queued) -> the number of such jobs in the ledger.
        left: a sentence about the remaining time; empty if it cannot be estimated.
        shared: a sentence about the cells and runs of other studies, see `Plan.shared`.
        stages: the jobs of each stage, including the jobs of other studies.
        trainings: the trainings in progress.
        others: the failed jobs for which no cell waits, such as the job of an exhibit.
        named: the argument with which commands find the study, see `xlgrid.plan.load.named`.
        learnt_nothing: each finished run that has learnt nothing -> the reason, see `xlgrid.results.learning`.
    """

    study: str
    cells: dict[Cell, str]
    runs: dict[Run, str]
    broken: dict[Cell, Failure]
    flight: Counter[tuple[str, str]]
    left: str
    shared: str = ""
    stages: Sequence[Stage] = ()
    trainings: Sequence[Training] = ()
    others: Sequence[Failure] = ()
    named: str = ""
    learnt_nothing: Mapping[Run, str] = MappingProxyType({})

    @property
    def has_begun(self) -> bool:
        """Whether a job of the study is done, in progress or failed."""
        return any(sum(stage[2:]) for stage in self.stages)


class Error(NamedTuple):
    """An error in a log.

    Attributes:
        message: the first line of the error; empty if there is no error.
        damaged: the existing results that the line `delete:` after the message lists.
    """

    message: str = ""
    damaged: tuple[str, ...] = ()


def last_error(text: str) -> Error:
    """The last error in a log."""
    last = Error()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("error:") or line.split(":")[0].endswith(("Error", "Exception")):
            last = Error(line.removeprefix("error: "))
        elif line.startswith("delete: ") and last.message:
            last = last._replace(damaged=_existing(line))
    return last


def _existing(line: str) -> tuple[str, ...]:
    """The existing files and folders that a line `delete: PATH ...` lists."""
    try:
        return tuple(path for path in shlex.split(line)[1:] if os.path.exists(path))
    except ValueError:  # another program's line
        return ()


def failed_files(log: str | Path) -> set[str]:
    """The outputs of failed jobs, from the log of a run of Snakemake."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    outputs = re.findall(r"^Error in rule [^\n]*\n(?:[ ]+[^\n]*\n)*?[ ]+output: ([^\n]*)$", text, re.MULTILINE)
    return {name for line in outputs for name in line.split(", ")}


def look(plan: Plan, folder: str | Path, failed: Collection[str] = ()) -> Overview:
    """The state of every cell and run of a study, and for each missing cell, the first failed job on which it depends.

    Args:
        folder: the executor's ledger, see `xlgrid.report.ledger`; it need not exist.
        failed: the outputs of jobs that are known to have failed, with or without a message in their log.
    """
    # Data, tokens and encoders may belong to an extended study even if all runs and cells belong to this study.
    roots = [Report(each.study.name).folder for each in (*plan.ancestors, plan)]
    # Each folder is listed once, because checking every file is slow on a network file system.
    files = {f"{at}/{name}" for root in roots for at, _, names in os.walk(root, followlinks=True) for name in names}
    jobs = ledger.read(folder, files)
    checked: dict[str, Failure | None] = {}
    # Product -> the first failed job among its own and those of the products from which it is made.
    first: dict[Product, Failure | None] = {}

    def job_failure(target: str, log: str) -> Failure | None:
        job = jobs.get(target)
        if job and job.state in ("queued", "running") and target not in failed:
            return None
        error = Error()
        # Snakemake deletes the log of a job when it starts the job again.
        with suppress(FileNotFoundError):
            error = last_error(Path(log).read_text(encoding="utf-8", errors="replace")) if log in files else error
        if job and job.state == "failed":
            first = job.message.partition("\n")[0].strip()
            if (cited := last_error(job.message)).message:
                error = cited
            message = error.message if error.message not in first else ""
            reason = ": ".join(part for part in (job.cause, first, message) if part)
            return Failure(target, reason or "it failed without a message", job.log or log, job.cluster, error.damaged)
        if not error.message and target in failed:
            error = Error("it ended without a message: was it killed?")
        return Failure(target, error.message, log, damaged=error.damaged) if error.message else None

    def first_failure(product: Product) -> Failure | None:
        if product not in first:
            earlier = map(first_failure, plan.made_from(product))
            first[product] = next(filter(None, earlier), None) or product_failure(product)
        return first[product]

    def product_failure(product: Product) -> Failure | None:
        target = product.path
        if target not in files and target not in checked:
            checked[target] = job_failure(target, product.log(plan.study))
        return checked.get(target)

    def job_state(target: str, running: str) -> str:
        job = jobs.get(target)
        return {"running": running, "queued": "queued"}.get(job.state if job else "", "waiting")

    @cache
    def trained_at(run: Run) -> int:
        modified = _stat(run.delta) if run.delta in files else None
        return modified.st_mtime_ns if modified else 0

    runs: dict[Run, str] = {}
    for run in plan.runs:
        runs[run] = "done" if run.path in files else "failed" if first_failure(run) else job_state(run.path, "training")
    cells: dict[Cell, str] = {}
    broken: dict[Cell, Failure] = {}
    learning = Learning()
    for cell in plan.cells:
        # While the state is computed, Snakemake may delete a file in order to make it again.
        if (path := cell.path) in files and (stat := _stat(path)):
            damage, evidence = _read(path, stat.st_mtime_ns, stat.st_size)
            if evidence:
                learning.add(evidence)
            failure = Failure(path, damage, cell.log(plan.study), damaged=(path,)) if damage else None
            cells[cell] = "stale" if trained_at(plan.owned(cell.run)) > stat.st_mtime_ns else "done"
        else:
            failure = first_failure(cell)
            cells[cell] = job_state(path, "running")
            # A cell without training has no run.
            if cells[cell] == "waiting" and (of_run := runs.get(plan.owned(cell.run))) in ("training", "queued"):
                cells[cell] = of_run
        if failure:
            cells[cell], broken[cell] = "failed", failure
    states, failed_jobs = [], []
    for product in plan.products:
        if product.path in files:
            # The file of a cell may be damaged, or older than its run.
            state = cells[product] if isinstance(product, Cell) else "done"
        elif failure := product_failure(product):
            state = "failed"
            failed_jobs.append(failure)
        else:
            state = job_state(product.path, "running")
        states.append((product.stage, state))
    awaited = set(broken.values())
    others = [failure for failure in failed_jobs if failure not in awaited]
    busy = {job for job in jobs.values() if job.state in ("queued", "running")}
    in_flight = [job for job in busy if any(_is_below(roots, name) and name not in files for name in job.outputs)]
    flight: Counter[tuple[str, str]] = Counter((job.rule, job.state) for job in in_flight)
    trainings = [
        training(job.outputs[0], trained.log(plan.study))
        for job in in_flight
        if job.rule in TRAINING and job.state == "running" and (trained := product_of(job.outputs[0]))
    ]
    finished = {run: plan.owned(run).folder for run, state in runs.items() if state == "done"}
    learnt_nothing = {run: why for run, folder in finished.items() if (why := learning.nothing({"run": folder}))}
    left = ""
    if flight:
        cells_done, runs_done = (
            _mtimes([result.path for result, state in states.items() if state == "done"]) for states in (cells, runs)
        )
        cells_left, runs_left = (
            sum(state not in ("done", "failed") for state in states.values()) for states in (cells, runs)
        )
        left = time_left(time.time(), cells_done, cells_left, runs_done, runs_left)
    of_jobs = stages(states), trainings, others
    return Overview(
        plan.study.name, cells, runs, broken, flight, left, plan.shared, *of_jobs, named(plan), learnt_nothing
    )


def _is_below(roots: Sequence[str], file: str) -> bool:
    return any(file.startswith(f"{root}/") for root in roots)


def _stat(path: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(path)
    return None


# A file is read again only if its modification time or size has changed.
@cache
def _read(path: str, modified: int, size: int) -> tuple[str, dict[str, Any]]:
    """The damage of the file of a cell (empty if the file is intact), and the keys of the cell that `Learning`
    reads."""
    try:
        cell = records.read_cell(path)
    except FileNotFoundError:
        return "", {}
    except Damaged as error:
        return str(error), {}
    names = (*records.IDENTITY, "run", "scores", "metric", "chance")
    return "", {name: cell[name] for name in names if name in cell} if cell.get("run") else {}


def _mtimes(paths: list[str]) -> list[float]:
    times = []
    for path in paths:
        with suppress(FileNotFoundError):
            times.append(os.stat(path).st_mtime)
    return times


def time_left(now: float, cells_done: list[float], cells_left: int, runs_done: list[float], runs_left: int) -> str:
    """A phrase with the remaining time, such as "about 2 h 10 min left for the whole study at the rate of the last 15
    min"; empty without a recent rate.

    Runs take longer than cells, and cells finish in bursts after their run. The later of the two estimated ends counts.

    Args:
        now: the time in seconds, on the clock of `cells_done` and `runs_done`.
        cells_done, runs_done: the times at which cells and runs finished.
        cells_left, runs_left: the numbers of remaining cells and runs.
    """
    cell, run = _rate(now, cells_done), _rate(now, runs_done)
    if not cells_left or not (cell or (run and runs_left)):
        return ""
    ends = [(left / rate[0], rate[1]) for left, rate in ((cells_left, cell), (runs_left, run)) if rate]
    seconds, span = max(ends)
    what = "left for the whole study" if cell else "until all runs are trained"
    return f"about {minutes(seconds)} {what} at the rate of the last {minutes(span)}"


def _rate(now: float, done: list[float]) -> tuple[float, float] | None:
    """The results per second in the shortest recent window with enough results, and the seconds of the window; None
    without such a window."""
    for window in WINDOWS:
        recent = [moment for moment in done if moment > now - window]
        if len(recent) >= 5:
            before = max((moment for moment in done if moment <= now - window), default=0.0)
            if now - before < 2 * window:
                return len(recent) / window, window
            # Work began within the window, so the window begins with the first result.
            span = max(now - min(recent), 1.0)
            return (len(recent) - 1) / span, span
    return None
