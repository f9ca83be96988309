"""A page about a running study: one file of HTML without scripts, which is written again and again while Snakemake runs."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from xlgrid.base.files import write_text
from xlgrid.plan.load import load_plan, named
from xlgrid.plan.plan import Plan
from xlgrid.products.report import Report
from xlgrid.report import ledger, screen, status
from xlgrid.report.overview import Overview, look
from xlgrid.report.trainings import Training, curves

# The least seconds between two writes of `xlgrid status --page --watch`, and the most of a processor that writing takes.
SECONDS, SHARE = 60, 0.02
# The most trainings with a curve, troubles, and matrices that are unfolded.
TRAININGS, TROUBLES, UNFOLDED = 60, 40, 12
# Width and height of the drawing of a curve.
WIDTH, HEIGHT = 240.0, 48.0


class Matrix(NamedTuple):
    """The sources and targets of a task, encoder and method.

    Attributes:
        rows: each source, and for each target the text and the state of its entry; None for an entry that is not planned.
        done, planned: numbers of cells.
        note: the numbers of cells in other states, in words.
        is_unfolded: whether a reader sees it at once, because its cells are under way.
    """

    name: str
    targets: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, str] | None]]]
    done: int
    planned: int
    note: str
    is_unfolded: bool


def render(overview: Overview, folder: Path, seconds: float = 0, note: str = "") -> str:
    """The page about the state of a study.

    Args:
        folder: the folder of the page, from which links to logs lead.
        seconds: a browser loads the page again after so many; 0 for never.
        note: who writes the page, and until when.
    """
    troubles = [*status.troubles(overview, together=True)]
    trainings = sorted(overview.trainings, key=lambda training: (-training.share, training.name))
    report = Path(Report(overview.study).path)
    return _template().render(
        overview=overview,
        total=screen.total(overview.stages),
        # The time that is left has a box of its own.
        totals=[line for line in status.totals(overview).plain.splitlines() if line != overview.left],
        beginning=[] if overview.has_begun else status.beginning(overview),
        counts=[(kind, [*states.values()].count("done"), len(states)) for kind, states in _axes(overview)],
        troubles=troubles[:TROUBLES],
        more_troubles=len(troubles) - TROUBLES,
        trainings=[(training, *_drawing(training)) for training in trainings[:TRAININGS]],
        more_trainings=len(trainings) - TRAININGS,
        matrices=[*_matrices(overview)],
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


def _axes(overview: Overview) -> Iterator[tuple[str, Mapping[Any, str]]]:
    yield "cells", overview.cells
    yield "runs", overview.runs


def _matrices(overview: Overview) -> Iterator[Matrix]:
    unfolded = 0
    for names, entries in status.by_method(overview).items():
        sources, targets = status.axes(entries)
        states = [state for each in entries.values() for state in each]
        counts = {state: number for state in status.STATES if (number := states.count(state))}
        rows = [
            (source, [_entry(entries[place]) if (place := (source, target)) in entries else None for target in targets])
            for source in sources
        ]
        others = ", ".join(f"{number:,} {state}" for state, number in counts.items() if state != "done")
        is_unfolded = counts.keys() not in ({"done"}, {"waiting"}) and unfolded < UNFOLDED
        unfolded += is_unfolded
        yield Matrix(" · ".join(names), targets, rows, counts.get("done", 0), len(states), others, is_unfolded)


def _entry(states: list[str]) -> tuple[str, str]:
    """The text and the state of an entry; the state `part` if some of its seeds are done, and the others wait."""
    state = next(state for state in status.STATES if state in states)
    return status.entry(states)[0], "part" if state == "waiting" and "done" in states else state


def _drawing(training: Training) -> tuple[str, dict[str, str]]:
    """The first and the last values of the curves of a training, as text, and the points of each curve in a drawing."""
    texts, lines = [], {}
    for name, curve in curves(training.log).items():
        values = [*curve.values()]
        if not values:
            continue
        texts.append(f"{name} {values[0]:.2f}" + (f" → {values[-1]:.2f}" if len(values) > 1 else ""))
        low, span = min(values), max(values) - min(values) or 1.0
        if len(values) > 1 and training.steps:
            lines[name] = " ".join(
                f"{WIDTH * step / training.steps:.1f},{HEIGHT * (1 - (value - low) / span):.1f}"
                for step, value in curve.items()
            )
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
        note = f"Process {head or os.getpid()} of {socket.gethostname()} keeps this page up to date; if this time is long ago, it was killed."
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


def main(head: str, seconds: str, *studies: str) -> None:
    """Write the page of each study in its results while the process `head` lives."""
    os.nice(19)
    plans = [load_plan(study) for study in studies]
    follow({page_of(plan): plan for plan in plans}, int(seconds), int(head))


if __name__ == "__main__":
    main(*sys.argv[1:])
