"""What of a study is done and under way, and why the rest is not."""

import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from xlgrid.languages import parts
from xlgrid.languages.sources import data_of
from xlgrid.plan.grid import runs, starting_runs
from xlgrid.report import ledger
from xlgrid.results.identity import Cell, Run
from xlgrid.study.schema import Study
from xlgrid.tasks import MLM

WINDOWS = (15 * 60, 60 * 60, 4 * 60 * 60)


class Failure(NamedTuple):
    """A job that ended in an error: the file it should have made, why not, its log, and the executor's cluster, if any."""

    target: str
    reason: str
    log: str
    cluster: str = ""


class Overview(NamedTuple):
    """A study at one moment.

    cells, runs: planned, runs on text and of first tasks among them -> state: done, running, training, queued, failed or
        waiting; a cell that nothing is done for but its run has the run's state.
    broken: cells that wait for a job that failed.
    flight: jobs in the ledger, (rule, running or queued) -> number.
    left: how much time is left, as a sentence; empty if nobody knows.
    """

    study: str
    cells: dict[Cell, str]
    runs: dict[Run, str]
    broken: dict[Cell, Failure]
    flight: Counter[tuple[str, str]]
    left: str


def jobs(study: Study, made: Cell | Run) -> Iterator[tuple[str, str]]:
    """File and log of every job that a cell or run rests on, in the order in which the rules run them; its own is last."""
    results, logs = f"results/{study.name}", f"results/{study.name}/logs"
    sources, targets = data_of(made.source).split("+"), [data_of(made.target)] if isinstance(made, Cell) else []
    # Read, not trained.
    imported = made.task == MLM and study.methods[made.method].imported is not None
    run = made.run if isinstance(made, Cell) else made
    for start in dict.fromkeys([*starting_runs(study, run), *starting_runs(study, made)]):
        yield from jobs(study, start)
    if run.task == MLM and not imported:
        for code in dict.fromkeys(code for source in sources for code in parts(source)):
            yield f"{results}/text/{code}.parquet", f"{logs}/text/{code}.log"
    splits = [(code, split) for code in sources for split in ("train", "dev") if not imported]
    splits += [(code, "test") for code in targets]
    yield from dict.fromkeys(_data(study, made.task, splits) if run.task != MLM else ())
    mini = study.encoders[made.encoder].mini
    for code in mini.languages if mini else ():
        yield f"{results}/text/{code}.parquet", f"{logs}/text/{code}.log"
    yield f"{results}/encoders/{made.encoder}/model.safetensors", f"{logs}/encoders/{made.encoder}.log"
    for code, split in splits:
        name = made.task if run.task == MLM else study.entry(made.task, split)[0]
        place = f"tokens/{name}/{made.encoder}/{code}"
        log = place if run.task == MLM else f"{place}/{split}"
        yield f"{results}/{place}/{split}.arrow", f"{logs}/{log}.log"
    yield f"{run.folder}/run.json", f"{run.folder.replace(results, logs, 1)}.log"
    if isinstance(made, Cell):
        yield made.path, made.path.replace(results, logs, 1).replace(".json", ".log")


def _data(study: Study, task: str, splits: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """File and log of the jobs that make data for a task's runs or cells, of languages and splits."""
    made, fetched = [], []
    for code, split in splits:
        name, entry = study.entry(task, split)
        place = f"data/{name}/{code}"
        if entry.data is None:
            # All splits at once.
            made.append((f"data/{name}/meanings.parquet", f"data/{name}/meanings"))
            fetched.append((f"{place}/test.parquet", place))
        else:
            fetched.append((f"{place}/{split}.parquet", f"{place}/{split}"))
    for file, log in [*made, *fetched]:
        yield f"results/{study.name}/{file}", f"results/{study.name}/logs/{log}.log"


def last_error(text: str) -> str | None:
    """The last error that a log tells of, or None if there is none."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [
        line for line in lines if line.startswith("error:") or line.split(":")[0].endswith(("Error", "Exception"))
    ]
    return errors[-1].removeprefix("error: ") if errors else None


def failed_files(log: str | Path) -> set[str]:
    """The files that failed jobs should have made, from the log of a run of Snakemake."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"^Error in rule [^\n]*\n(?:[ ]+[^\n]*\n)*?[ ]+output: ([^\n]*)$", text, re.MULTILINE)
    return {name for line in found for name in line.split(", ")}


def look(study: Study, planned: list[Cell], folder: str | Path, failed: Collection[str] = ()) -> Overview:
    """What of a study is done and under way, and why cells do not exist: the first job on the way that failed, if any.

    Args:
        folder: the executor's ledger, see `xlgrid.report.ledger`; may be absent.
        failed: files whose jobs are known to have failed, with or without a message in their log.
    """
    root = f"results/{study.name}"
    # One listing of each folder: asking for every file is slow on a network file system.
    made = {f"{at}/{name}" for at, _, names in os.walk(root, followlinks=True) for name in names}
    known = ledger.read(folder, made)
    verdicts: dict[str, Failure | None] = {}

    def verdict(target: str, log: str) -> Failure | None:
        job = known.get(target)
        if job and job.state in ("queued", "running") and target not in failed:
            return None
        said = None
        # Snakemake deletes the log of a job that it starts again.
        with suppress(FileNotFoundError):
            said = last_error(Path(log).read_text(encoding="utf-8", errors="replace")) if log in made else None
        if job and job.state == "failed":
            first = job.message.partition("\n")[0].strip()
            said = last_error(job.message) or said or ""
            reason = ": ".join(part for part in (job.cause, first, said if said not in first else "") if part)
            return Failure(target, reason or "it failed without a message", job.log or log, job.cluster)
        reason = said or ("it ended without a message: was it killed?" if target in failed else "")
        return Failure(target, reason, log) if reason else None

    def failure(one: Cell | Run) -> Failure | None:
        for target, log in jobs(study, one):
            if target in made:
                continue
            if target not in verdicts:
                verdicts[target] = verdict(target, log)
            if found := verdicts[target]:
                return found
        return None

    def state(target: str, running: str) -> str:
        job = known.get(target)
        return {"running": running, "queued": "queued"}.get(job.state if job else "", "waiting")

    trained: dict[Run, str] = {}
    for run in runs(study, planned):
        result = f"{run.folder}/run.json"
        trained[run] = "done" if result in made else "failed" if failure(run) else state(result, "training")
    states: dict[Cell, str] = {}
    broken: dict[Cell, Failure] = {}
    for cell in planned:
        if (path := cell.path) in made:
            states[cell] = "done"
        elif found := failure(cell):
            states[cell], broken[cell] = "failed", found
        else:
            states[cell] = state(path, "running")
            if states[cell] == "waiting" and trained[cell.run] in ("training", "queued"):
                states[cell] = trained[cell.run]
    busy = {job for job in known.values() if job.state in ("queued", "running")}
    ours = [job for job in busy if any(name.startswith(f"{root}/") and name not in made for name in job.outputs)]
    flight: Counter[tuple[str, str]] = Counter((job.rule, job.state) for job in ours)
    left = ""
    if flight:
        cells_done = _mtimes([cell.path for cell, now in states.items() if now == "done"])
        runs_done = _mtimes([f"{run.folder}/run.json" for run, now in trained.items() if now == "done"])
        to_come = [sum(now not in ("done", "failed") for now in some.values()) for some in (states, trained)]
        left = time_left(time.time(), cells_done, to_come[0], runs_done, to_come[1])
    return Overview(study.name, states, trained, broken, flight, left)


def _mtimes(paths: list[str]) -> list[float]:
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            found.append(os.stat(path).st_mtime)
    return found


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
