"""A page about a running study: one file of HTML without scripts, which is written again and again while Snakemake runs."""

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from xlgrid.base.files import write_text
from xlgrid.plan.load import load_plan, named
from xlgrid.plan.plan import Plan
from xlgrid.products.report import Report
from xlgrid.report import ledger, screen, status
from xlgrid.report.overview import Overview, look
from xlgrid.report.trainings import Training, curves

# The least seconds between two writes of `xlgrid status --page --watch`, and the most of a processor that writing takes.
SECONDS, SHARE = 60, 0.02
# The most troubles that are shown, and matrices that are unfolded.
TROUBLES, UNFOLDED = 40, 12
# Width and height of the drawing of a curve.
WIDTH, HEIGHT = 240.0, 48.0


def render(overview: Overview, folder: Path, seconds: float = 0, note: str = "") -> str:
    """The page about the state of a study.

    Args:
        folder: the folder of the page, from which links to logs lead.
        seconds: a browser loads the page again after so many; 0 for never.
        note: who writes the page, and until when.
    """
    trainings = sorted(overview.trainings, key=lambda training: (-training.share, training.name))
    report = Path(Report(overview.study).path)
    return _template().render(
        overview=overview,
        total=screen.total(overview.stages),
        # The time that is left has a box of its own.
        totals=[line for line in status.totals(overview).plain.splitlines() if line != overview.left],
        beginning=[] if overview.has_begun else status.beginning(overview),
        counts=[(kind, Counter(getattr(overview, kind).values())) for kind in ("cells", "runs")],
        troubles=[*status.troubles(overview, together=True)],
        most=TROUBLES,
        trainings=[(training, *_drawing(training)) for training in trainings],
        matrices=_matrices(overview),
        unfolded=UNFOLDED,
        link=lambda path: os.path.relpath(path, folder),
        report=report if report.exists() else None,
        again=seconds and round(seconds),
        note=note,
        written=time.strftime("%Y-%m-%d %H:%M:%S"),
    )


@cache
def _template() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("xlgrid", "report")
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True).get_template("live.html.j2")


def _matrices(overview: Overview) -> list[tuple[Any, ...]]:
    """For each task, encoder and method, those whose cells are under way first: its name; the numbers of cells in each state;
    its sources and targets; and for each source and target, the text and the state of the entry."""
    matrices = []
    for names, cells in status.by_method(overview).items():
        counts = Counter(state for states in cells.values() for state in states)
        entries = {place: (status.entry(states)[0], _state(states)) for place, states in cells.items()}
        matrices.append((" · ".join(names), counts, *status.axes(cells), entries))
    return sorted(matrices, key=lambda matrix: matrix[1].keys() <= {"done", "waiting"})


def _state(states: list[str]) -> str:
    """The state of an entry: the one that needs a look most, or `part` if some seeds are done, and the others wait."""
    state = next(state for state in status.STATES if state in states)
    return "part" if state == "waiting" and "done" in states else state


def _drawing(training: Training) -> tuple[str, dict[str, str]]:
    """The first and the last values of the curves of a training, as text, and the points of each curve in a drawing."""
    texts, lines = [], {}
    for name, curve in curves(training.log).items():
        values = [*curve.values()]
        texts += [f"{name} {values[0]:.2f}" + (f" → {values[-1]:.2f}" if len(values) > 1 else "")] if values else []
        if len(values) > 1 and training.steps:
            low, span = min(values), max(values) - min(values) or 1.0
            points = [(step / training.steps, 1 - (value - low) / span) for step, value in curve.items()]
            lines[name] = " ".join(f"{WIDTH * x:.1f},{HEIGHT * y:.1f}" for x, y in points)
    return ", ".join(texts), lines


def write(plan: Plan, folder: str | Path, file: str | Path, seconds: float = 0, note: str = "") -> bool:
    """Write the page about a study, whole or not at all; returns whether all cells are done.

    Args:
        folder: the executor's ledger.
        seconds, note: see `render`.

    Raises:
        OSError: the page cannot be written, or a result cannot be read.
    """
    overview = look(plan, folder)
    is_done = set(overview.cells.values()) == {"done"}
    write_text(file, render(overview, Path(file).parent, 0 if is_done else seconds, note))
    return is_done


def start(plans: Sequence[Plan], seconds: int) -> list[Path]:
    """Begin to write the page of each study, in a process that ends after this one; returns the paths of the pages.

    Args:
        seconds: between two writes; 0 to write no page.
    """
    if not seconds or not plans:
        return []
    log = Path(Report(plans[0].study.name).folder, "logs", "status.log")
    command = [sys.executable, "-m", __name__, str(os.getpid()), str(seconds), *map(named, plans)]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as errors:
            # In a session of its own, the process outlives Ctrl-C, and writes how the run has ended.
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True)
    except OSError as error:
        # The run needs no page.
        print(f"there is no page about this run: {error}", file=sys.stderr)
        return []
    return [*map(page_of, plans)]


def page_of(plan: Plan) -> Path:
    """The page about the runs of Snakemake that make a study."""
    return Path(Report(plan.study.name).folder, "status.html")


def follow(pages: Mapping[Path, Plan], seconds: int = SECONDS, head: int | None = None) -> None:
    """Write pages about studies again and again.

    Args:
        seconds: the least time between two writes.
        head: the process that has started this one, and with whose end the writing ends; None: it ends when all cells are
            done.
    """
    while True:
        is_last, before = head is not None and os.getppid() != head, time.process_time()
        note = f"Process {head or os.getpid()} of {socket.gethostname()} keeps this page up to date; if this time is long past, that process has been killed."
        note = "The run has ended." if is_last else note
        is_done = True
        for file, plan in pages.items():
            try:
                is_done = write(plan, ledger.stated(), file, 0 if is_last else seconds, note) and is_done
            except OSError as error:  # of a network file system, or of a full disk
                is_done = False
                print(f"{time.strftime('%H:%M:%S')} {error}", file=sys.stderr, flush=True)
        if is_last or (is_done and head is None):
            return
        until = time.monotonic() + max(seconds, (time.process_time() - before) / SHARE)
        while time.monotonic() < until and (head is None or os.getppid() == head):
            time.sleep(0.5)


if __name__ == "__main__":
    os.nice(19)
    plans = map(load_plan, sys.argv[3:])
    follow({page_of(plan): plan for plan in plans}, seconds=int(sys.argv[2]), head=int(sys.argv[1]))
