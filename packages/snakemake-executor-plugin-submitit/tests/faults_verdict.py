"""Checks of the outcome of a trial of `faults`, by the jobs' own log, the head's records and the controller's log."""

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import faults_head

if TYPE_CHECKING:
    from faults_trial import Trial

MAX_REQUEUES = 3
# Failures by design: the job's last words, and the cause that has to be reported.
DESIGNED = {"failed": "exception", "dies": "killed", "hangs": "timeout"}
# What a fault on its task may be reported as.
FAULTS = {
    "kill worker": {"killed"},
    "FAILED": {"killed"},
    "OUT_OF_MEMORY": {"out of memory"},
    "CANCELLED": {"cancelled"},
    "TIMEOUT": {"timeout"},
    "limit": {"timeout"},
    "USR2": {"timeout"},
}


class Run(NamedTuple):
    """One start of a job: when, in which task, and what it said afterwards."""

    time: float
    task: str
    words: list[str]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_runs(path: Path) -> tuple[dict[str, list[Run]], list[str]]:
    """The runs of each job in order, and the jobs that ran twice at the same time."""
    runs: dict[str, list[Run]] = defaultdict(list)
    processes: dict[tuple[str, str], Run] = {}
    overlaps = []
    for line in path.read_text().splitlines() if path.exists() else []:
        job, task, process, when, word = line.split(" ")
        if word == "overlap":
            overlaps.append(f"{job} in task {task}")
        elif word == "start":
            processes[job, process] = Run(float(when), task, [])
            runs[job].append(processes[job, process])
        else:
            processes[job, process].words.append(word)
    return runs, overlaps


def violations(trial: "Trial", folder: Path) -> list[str]:
    """Return the violations of a trial, one line each; empty if all is well."""
    runs, overlaps = read_runs(folder / "runs.log")
    records, events = read(folder / "records.jsonl"), read(folder / "controller.jsonl")
    wrong = [f"two runs at a time of {overlap}" for overlap in overlaps]
    for event in events:
        if event["kind"] in ("stuck", "left", "survivors"):
            wrong.append(f"{event}")
        if event["kind"] == "head ended" and event["code"] not in (0, -9, faults_head.INTERRUPTED, faults_head.REFUSED):
            wrong.append(f"a head crashed: exit code {event['code']}")
        if event["kind"] == "finished" and event["alive"]:
            wrong.append(f"still in the queue when the head had finished: {event['alive']}")
    successes = {r["job"] for r in records if r["what"] == "success"}
    lost = {r["job"] for r in records if r["what"] == "failure" and r["last"]} - successes
    for plan in trial.plans:
        reachable = plan.needs is None or plan.needs in successes
        if reachable and plan.name not in successes | lost:
            wrong.append(f"{plan} has no verdict")
        if plan.name in successes and plan.kind in ("fails", "endless"):
            wrong.append(f"{plan} was reported as a success")
        if plan.name in successes and not faults_head.whole(folder, plan.name):
            wrong.append(f"{plan} was a success, but its output is not whole in the end")
        wrong += doubled(plan.name, plan.needs, runs, records, events)
    for record in records:
        if record["what"] == "success":
            before = [run for run in runs[record["job"]] if run.time < record["time"]]
            if not record["whole"] or not before or before[-1].words[-1:] != ["end"]:
                wrong.append(f"success of {record['job']} reported, but its last run: {before[-1:]}")
        elif record["what"] == "failure" and not (record["cause"] == "refused by the cluster" and trial.refuse):
            wrong += unexplained(record, runs[record["job"]], events)
    return wrong + leftovers(folder, records, events)


def doubled(
    job: str,
    needs: str | None,
    runs: dict[str, list[Run]],
    records: list[dict[str, Any]],
    events: list[dict[str, Any]],
) -> list[str]:
    """Runs of a job after its first that have no cause."""
    wrong = []
    for before, after in zip(runs[job], runs[job][1:], strict=False):
        failed = before.words and before.words[-1] in ("failed", "dies", "hangs")
        reasons = [
            event
            for event in events
            if event["time"] < after.time
            and (
                # Its run was cut short,
                (event["kind"] == "fault" and event.get("task") == before.task and event["time"] > before.time - 0.2)
                # by an interrupted head too,
                or (event["kind"] == "cancelled by the head" and interrupted(event["time"], records))
                # or what is known of it was damaged.
                or (event["kind"] == "damage" and job in event["jobs"] and not event["path"].endswith(".closed"))
            )
        ]
        renewed = any(before.time < run.time < after.time for run in runs[needs]) if needs else False
        reported = any(
            r["job"] == job and r["what"] == "failure" and before.time < r["time"] < after.time for r in records
        )
        if not failed and not reasons and not renewed and not reported:
            wrong.append(f"{job} ran again without a cause: {before}, then {after}")
    return wrong


def interrupted(when: float, records: list[dict[str, Any]]) -> bool:
    return any(r["what"] == "interrupted" and r["time"] - 0.1 < when < r["time"] + 6 for r in records)


def unexplained(record: dict[str, Any], runs: list[Run], events: list[dict[str, Any]]) -> list[str]:
    """A reported failure whose cause is not the design of the job nor what was done to its task."""
    job, task, cause = record["job"], record["task"], record["cause"]
    # A task that the queue has forgotten goes by the name of its array.
    submitted = [event for event in events if event["kind"] == "submitted"]
    tasks = {task} | {event["task"] for event in submitted if Path(event["folder"]).parent.name == task}
    last = [run for run in runs if run.time < record["time"] and run.task in tasks][-1:]
    if last and any(DESIGNED.get(word) == cause for word in last[0].words):
        return []
    held = {event["task"] for event in submitted if job in event["jobs"]}
    faults = [
        event for event in events if event["kind"] == "fault" and event["time"] < record["time"] and "task" in event
    ]
    if any(cause in FAULTS.get(event["fault"], ()) for event in faults if event["task"] in tasks):
        return []
    # A requeued worker that finds its bundle damaged ends at once.
    damaged = [event for event in events if event["kind"] == "damage" and event["path"].endswith("bundle.json")]
    if "its worker died" in record["message"] and any(job in event["jobs"] for event in damaged):
        return []
    # On a full disk an interrupted head cannot note for the next one that it has cancelled a task.
    stopped = any(event["kind"] == "cancelled by the head" and event["task"] == task for event in events)
    if cause == "cancelled" and stopped and any(event.get("fault") == "full disk" for event in events):
        return []
    # Of a task that is forgotten before it ran anything, nobody knows more.
    if "before it started" in record["message"] and not last and any(event["task"] in tasks for event in faults):
        return []
    # A task that has not started is given up if the queue seems to be empty twice.
    blind = any(
        event["kind"] == "fault" and event.get("fault") == "blind queue" and event["time"] < record["time"]
        for event in events
    )
    if "before it started" in record["message"] and not last and blind:
        return []
    # Without accounting, nobody knows what became of the task.
    if "(GONE)" in record["message"] and any(event["task"] in tasks for event in faults):
        return []
    # Cut short once more than it may be.
    blows = [event for event in faults if event["task"] in held]
    blows += [event for event in events if event["kind"] == "damage" and event["time"] < record["time"]]
    if len(blows) > MAX_REQUEUES and ("times" in record["message"]):
        return []
    return [f"failure of {job} in task {task} reported as {cause!r} ({record['message']!r}), but its last run: {last}"]


def leftovers(folder: Path, records: list[dict[str, Any]], events: list[dict[str, Any]]) -> list[str]:
    """Files in the ledger that nobody needs any more."""
    # The one thing that a head that was killed at the wrong moment leaves: successes that nobody will ask about.
    last = {r["job"]: r["what"] for r in records}
    untold = {job for job, what in last.items() if what == "success"}
    jobs = {Path(event["folder"]): set(event["jobs"]) for event in events if event["kind"] == "submitted"}
    # A bundle that a waiting worker got was never submitted.
    for bundle in (folder / "ledger").glob("*/*/bundle.json"):
        jobs[bundle.parent] = {Path(job["outputs"][0]).name for job in json.loads(bundle.read_text())["jobs"]}
    wrong = []
    for chunk in (path for path in (folder / "ledger").iterdir() if path.is_dir()):
        kept = {job for where, names in jobs.items() if where.parent == chunk for job in names}
        if not kept & untold:
            files = sorted(str(path.relative_to(folder)) for path in chunk.rglob("*") if path.is_file())
            wrong.append(f"left in the ledger: {files[:8]} of {kept}")
    return wrong
