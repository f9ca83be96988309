"""A study of twelve cells in a folder of its own, and a ledger of its jobs."""

import io
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console

from xlgrid.plan.load import load_plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.report import ledger, overview, status

STUDY = """\
title: Tiny
languages: [qa1, qa2, qb1]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qa2, qb1]}}}
tasks: {ner: {kind: wikiann}}
methods: {full-ft: {}}
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft], source: [qa1, qa2], target: [mono], seed: [1, 2]}
"""


RUN = Run("tiny", "ner", "tiny", "full-ft", "qa1", 1)


CELL = Cell(*RUN[:-1], "qb1", RUN.seed)


RESULT = f"{RUN.folder}/run.json"


DONE = json.dumps(
    {
        **CELL._asdict(),
        "head": "token",
        "labels": [],
        "scores": {"f1": 50.0},
        "metric": {"name": "f1"},
        "n": 0,
        "outcomes": "",
    }
)


RUN_LOG = "results/tiny/logs/runs/ner/tiny/full-ft/qa1/seed1.log"


NOW = 1_000_000.0


def write(path: str | Path, text: str = "", when: float | None = None) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if when:
        os.utime(path, (when, when))
    return path


def bundle(
    place: str, *jobs: tuple[str, dict[str, Any] | None], rule: str = "train", when: float = NOW, submitted: bool = True
) -> None:
    """A bundle of jobs with one output each; a job without a status is queued."""
    folder = ledger.FOLDER / place
    if submitted:
        write(folder.parent / "array.json", json.dumps({"cluster": "slurm", "tasks": ["1"], "submitted": when}))
    entries = [{"rule": rule, "outputs": [output]} for output, _ in jobs]
    write(folder / "bundle.json", json.dumps({"jobs": entries}), when)
    for number, (_, job_status) in enumerate(jobs):
        if job_status:
            write(folder / f"status/{number}.json", json.dumps(job_status))


def failed(output: str, when: float, cause: str = "out of memory", message: str = "") -> None:
    line = {"outputs": [output], "rule": "train", "cause": cause, "message": message, "logs": ["a.log"], "time": when}
    path = ledger.FOLDER / "failures.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def running(when: float = NOW) -> dict[str, Any]:
    return {"state": "running", "started": when, "host": "node1", "attempt": 1}


def states() -> dict[str, str]:
    return {output: job.state for output, job in ledger.read(ledger.FOLDER).items()}


def look(failed: tuple[str, ...] = ()) -> overview.Overview:
    return overview.look(load_plan("tiny"), ledger.FOLDER, failed)


def text(view: overview.Overview, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    for table in status.matrices(view, width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
