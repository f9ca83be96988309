"""The state of every cell and run of a study: done, under way, or failed, and for what reason."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from xlgrid.plan import needs
from xlgrid.plan.grid import Plan
from xlgrid.plan.products import Report
from xlgrid.report import ledger
from xlgrid.results.identity import Cell, Run

WINDOWS = (15 * 60, 60 * 60, 4 * 60 * 60)


class Failure(NamedTuple):
    """A job that ended in an error.

    Attributes:
        target: the file that the job should have made.
        reason: why it did not.
        log: the job's log.
        cluster: where the executor ran the job; empty if another executor did.
        damaged: files that must be deleted before the job can succeed.
    """

    target: str
    reason: str
    log: str
    cluster: str = ""
    damaged: tuple[str, ...] = ()


class Overview(NamedTuple):
    """A study at one moment.

    Attributes:
        study: the name of the study.
        cells, runs: every planned cell and run -> its state: done, running, training, queued, failed or waiting. A cell that
            has not been submitted has the state of its run.
        broken: the cells that wait for a job that failed, and that job.
        flight: (rule, running or queued) -> the number of such jobs in the ledger.
        left: a sentence on the time that is left; empty if it cannot be estimated.
    """

    study: str
    cells: dict[Cell, str]
    runs: dict[Run, str]
    broken: dict[Cell, Failure]
    flight: Counter[tuple[str, str]]
    left: str


def last_error(text: str) -> str | None:
    """The last error in a log, or None if there is none."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [
        line for line in lines if line.startswith("error:") or line.split(":")[0].endswith(("Error", "Exception"))
    ]
    return errors[-1].removeprefix("error: ") if errors else None


def failed_files(log: str | Path) -> set[str]:
    """The files that failed jobs should have made, from the log of a run of Snakemake."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    outputs = re.findall(r"^Error in rule [^\n]*\n(?:[ ]+[^\n]*\n)*?[ ]+output: ([^\n]*)$", text, re.MULTILINE)
    return {name for line in outputs for name in line.split(", ")}


def look(plan: Plan, folder: str | Path, failed: Collection[str] = ()) -> Overview:
    """The state of every cell and run of a study; for a cell that does not exist, the first job on its way that failed.

    Args:
        folder: the executor's ledger, see `xlgrid.report.ledger`; it need not exist.
        failed: files whose jobs are known to have failed, with or without a message in their log.
    """
    root = Report(plan.study.name).folder
    # One listing of each folder: asking for every file is slow on a network file system.
    files = {f"{at}/{name}" for at, _, names in os.walk(root, followlinks=True) for name in names}
    known = ledger.read(folder, files)
    verdicts: dict[str, Failure | None] = {}

    def verdict(target: str, log: str) -> Failure | None:
        job = known.get(target)
        if job and job.state in ("queued", "running") and target not in failed:
            return None
        said = None
        # Snakemake deletes the log of a job that it starts again.
        with suppress(FileNotFoundError):
            said = last_error(Path(log).read_text(encoding="utf-8", errors="replace")) if log in files else None
        if job and job.state == "failed":
            first = job.message.partition("\n")[0].strip()
            said = last_error(job.message) or said or ""
            reason = ": ".join(part for part in (job.cause, first, said if said not in first else "") if part)
            reason = reason or "it failed without a message"
            return Failure(target, reason, job.log or log, job.cluster, _to_delete(reason))
        reason = said or ("it ended without a message: was it killed?" if target in failed else "")
        return Failure(target, reason, log, damaged=_to_delete(reason)) if reason else None

    def failure(result: Cell | Run) -> Failure | None:
        for product in needs.rests_on(plan, result):
            target = product.path
            if target in files:
                continue
            if target not in verdicts:
                verdicts[target] = verdict(target, needs.log(plan, product))
            if verdicts[target]:
                return verdicts[target]
        return None

    def state(target: str, running: str) -> str:
        job = known.get(target)
        return {"running": running, "queued": "queued"}.get(job.state if job else "", "waiting")

    trained: dict[Run, str] = {}
    for run in plan.runs:
        trained[run] = "done" if run.path in files else "failed" if failure(run) else state(run.path, "training")
    states: dict[Cell, str] = {}
    broken: dict[Cell, Failure] = {}
    for cell in plan.cells:
        if (path := cell.path) in files:
            if problem := _damage(path, *_version(path)):
                job_log = needs.log(plan, cell)
                states[cell], broken[cell] = "failed", Failure(path, problem, job_log, damaged=(path,))
            else:
                states[cell] = "done"
        elif cause := failure(cell):
            states[cell], broken[cell] = "failed", cause
        else:
            states[cell] = state(path, "running")
            if states[cell] == "waiting" and trained[cell.run] in ("training", "queued"):
                states[cell] = trained[cell.run]
    busy = {job for job in known.values() if job.state in ("queued", "running")}
    in_flight = [job for job in busy if any(name.startswith(f"{root}/") and name not in files for name in job.outputs)]
    flight: Counter[tuple[str, str]] = Counter((job.rule, job.state) for job in in_flight)
    left = ""
    if flight:
        cells_done = _mtimes([cell.path for cell, now in states.items() if now == "done"])
        runs_done = _mtimes([run.path for run, now in trained.items() if now == "done"])
        to_come = [sum(now not in ("done", "failed") for now in results.values()) for results in (states, trained)]
        left = time_left(time.time(), cells_done, to_come[0], runs_done, to_come[1])
    return Overview(plan.study.name, states, trained, broken, flight, left)


def _version(path: str) -> tuple[int, int]:
    """Numbers that change when a file does."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


# A file is read again only after it has changed.
@cache
def _damage(path: str, modified: int, size: int) -> str:
    """What is wrong with the file of a cell; empty if nothing is."""
    try:
        cell = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        return f"{path} is damaged ({error})"
    return "" if isinstance(cell, dict) and "scores" in cell else f"{path} is damaged (it has no `scores`)"


def _to_delete(reason: str) -> tuple[str, ...]:
    """The results that an error message tells people to delete."""
    paths = re.findall(r"results/[^\s:,;()'\"]+", reason) if "delete" in reason else []
    return tuple(path for path in dict.fromkeys(paths) if os.path.exists(path))


def _mtimes(paths: list[str]) -> list[float]:
    times = []
    for path in paths:
        with suppress(FileNotFoundError):
            times.append(os.stat(path).st_mtime)
    return times


def time_left(now: float, cells_done: list[float], cells_left: int, runs_done: list[float], runs_left: int) -> str:
    """How much time is left at the rate of late: "about 2 h 10 min left for the whole study at the rate of the last
    15 min".

    Cells come in bursts after their run and runs take longer, so the later of the two ends counts.

    Args:
        now: seconds, as the times at which cells and runs were done.
        cells_left, runs_left: how many are still to come.
    """
    cell, run = _rate(now, cells_done), _rate(now, runs_done)
    if not cells_left or not (cell or (run and runs_left)):
        return ""
    ends = [(left / rate[0], rate[1]) for left, rate in ((cells_left, cell), (runs_left, run)) if rate]
    seconds, span = max(ends)
    what = "left for the whole study" if cell else "until all runs are trained"
    return f"about {_duration(seconds)} {what} at the rate of the last {_duration(span)}"


def _rate(now: float, done: list[float]) -> tuple[float, float] | None:
    """How many a second of late, and over how many seconds; None if too few were done to tell."""
    for window in WINDOWS:
        recent = [moment for moment in done if moment > now - window]
        if len(recent) >= 5:
            before = max((moment for moment in done if moment <= now - window), default=0.0)
            if now - before < 2 * window:
                return len(recent) / window, window
            # Work began within the window, and the first one only marks when.
            span = max(now - min(recent), 1.0)
            return (len(recent) - 1) / span, span
    return None


def _duration(seconds: float) -> str:
    minutes = max(round(seconds / 60), 1)
    hours, days = minutes // 60, minutes // 1440
    units = [(days, "d"), (hours % 24, "h"), (minutes % 60, "min")]
    largest = next(i for i, (number, _) in enumerate(units) if number)
    return " ".join(f"{number} {unit}" for number, unit in units[largest : largest + 2] if number)
