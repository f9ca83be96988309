"""A run is shown on a terminal, or in lines."""

import io
from collections.abc import Iterator

import pytest
from events import planned, started
from pseudo_terminal import Emulator
from rich.console import Console
from rich.live import Live
from xlgrid.report.overview import Failure

from snakemake_logger_plugin_xlgrid.displays import FAILURES, Lines, Terminal
from snakemake_logger_plugin_xlgrid.workflow import Workflow

FAILURE = Failure("results/demo/train1", "no such column", "a.log")


@pytest.fixture
def workflow() -> Workflow:
    workflow = Workflow(0.0)
    workflow.plan(planned(data=2, train=4, evaluate=8).__dict__["stats"])
    workflow.submit(started(1, "train"))
    return workflow


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal of 60 columns and 12 rows, which keeps what is printed."""
    terminal = Terminal(has_color=False)
    terminal.console = Console(file=io.StringIO(), force_terminal=True, width=60, height=12, no_color=True)
    terminal.live = Live(
        console=terminal.console, auto_refresh=False, transient=True, redirect_stderr=False, redirect_stdout=False
    )
    yield terminal
    terminal.live.stop()


def seen(terminal: Terminal) -> Emulator:
    """The rows that a person sees."""
    emulator = Emulator()
    assert isinstance(terminal.console.file, io.StringIO)
    emulator.feed(terminal.console.file.getvalue())
    return emulator


def test_a_screen_is_drawn_in_place(terminal: Terminal, workflow: Workflow) -> None:
    terminal.begin(workflow, 0.0, "snakemake.log")
    for second in range(3):
        terminal.show(workflow, float(second))
    rows = seen(terminal).plain
    assert rows[0] == "demo: 0 of 14 jobs done, 0:02" and rows[4] == "full log: snakemake.log"
    assert [row for row in rows if row.startswith("train")] == [rows[2]]


def test_a_message_stands_above_the_screen(terminal: Terminal, workflow: Workflow) -> None:
    terminal.begin(workflow, 0.0, "")
    terminal.say("the disk is nearly full", is_error=False)
    terminal.show(workflow, 1.0)
    assert seen(terminal).plain[:2] == ["the disk is nearly full", "demo: 0 of 14 jobs done, 0:01"]


def test_a_screen_is_lower_than_the_terminal(terminal: Terminal, workflow: Workflow) -> None:
    for number in range(40):
        workflow.failures[number] = FAILURE._replace(reason=f"reason {number}")
    terminal.begin(workflow, 0.0, "snakemake.log")
    for second in range(3):
        terminal.show(workflow, float(second))
    assert seen(terminal).highest + 1 == 11


def test_the_end_leaves_bars_failures_and_files_in_full_and_the_cursor(terminal: Terminal, workflow: Workflow) -> None:
    long = "no such column " * 10
    workflow.failures[9] = FAILURE._replace(reason=long)
    workflow.reports.append("results/demo/report.html")
    terminal.begin(workflow, 0.0, "snakemake.log")
    terminal.end(workflow, 61.0)
    end = seen(terminal)
    assert end.plain[0] == "demo: 0 of 14 jobs done in 1:01, 14 not done" and end.plain[2].startswith("train ")
    assert f"  reason: {long}".rstrip() in end.plain
    assert [row for row in end.plain if row][-2:] == ["report: results/demo/report.html", "full log: snakemake.log"]
    assert not end.is_hidden


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines, without their times."""
    return [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]


def test_lines_are_a_minute_apart_then_further(workflow: Workflow, capsys: pytest.CaptureFixture[str]) -> None:
    display = Lines(60)
    display.begin(workflow, 0.0, "")
    capsys.readouterr()
    counts = []
    for hour in range(48):
        for second in range(0, 3600, 10):
            display.show(workflow, hour * 3600.0 + second)
        counts.append(len(lines(capsys)))
    assert counts[0] < 30 and counts[-1] == 1 and sum(counts) < 90


def test_a_failure_is_a_line_with_reason_and_log_until_there_are_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    display = Lines(60)
    for _ in range(1000):
        display.fail(FAILURE)
    printed = lines(capsys)
    assert printed[0] == "failed: results/demo/train1: no such column (log: a.log)"
    assert len(printed) == FAILURES + 1 and "only counted" in printed[-1]


def test_lines_say_what_there_is_to_do_what_happens_and_what_to_open(
    workflow: Workflow, capsys: pytest.CaptureFixture[str]
) -> None:
    display = Lines(60)
    display.begin(workflow, 0.0, "snakemake.log")
    display.say("submitit: job 7 waits", is_error=False)
    display.retry(FAILURE)
    workflow.finish(1)
    workflow.reports.append("results/demo/report.html")
    display.end(workflow, 5.0)
    assert lines(capsys) == [
        "14 jobs: data 2, train 4, evaluate 8",
        "full log: snakemake.log",
        "submitit: job 7 waits",
        "tried again: results/demo/train1",
        "demo: 1 of 14 jobs done in 0:05, 13 not done",
        "report: results/demo/report.html",
        "full log: snakemake.log",
    ]
