"""Where a run is shown: a screen that is drawn again and again on a terminal, or lines where there is no terminal."""

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from xlgrid.report import screen
from xlgrid.report.overview import Failure

from snakemake_logger_plugin_xlgrid.workflow import Workflow

if TYPE_CHECKING:
    from rich.text import Text

# Failures that are printed as lines; the others are only counted.
FAILURES = 20
# Two lines are at most so many seconds apart.
LONGEST = 3600.0
# Lines about failures at the end of a run on a terminal.
AT_END = 15


class Display(Protocol):
    """Shows a run from `begin` to `end`; before and after, only messages."""

    def begin(self, workflow: Workflow, now: float, log: str) -> None:
        """The jobs are known and begin; `log` is Snakemake's log, empty if there is none."""

    def show(self, workflow: Workflow, now: float) -> None:
        """Some time has passed."""

    def fail(self, failure: Failure) -> None:
        """A job has failed."""

    def retry(self, failure: Failure) -> None:
        """A job that has failed is tried again."""

    def say(self, message: str, is_error: bool) -> None:
        """A message of Snakemake."""

    def end(self, workflow: Workflow, now: float) -> None:
        """No job runs any more."""


class Terminal:
    """A screen below what was printed before. Messages appear above the screen."""

    def __init__(self, has_color: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self.console = Console(stderr=True, highlight=False, no_color=not has_color)
        # The display is refreshed by `show` only, and is gone at the end, when the last state is printed.
        self.live = Live(console=self.console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self.log = ""

    def begin(self, workflow: Workflow, now: float, log: str) -> None:
        self.log = log
        self.live.start()
        self.show(workflow, now)

    def show(self, workflow: Workflow, now: float) -> None:
        from rich.console import Group

        self.live.update(Group(*self.lines(workflow, now)), refresh=True)

    def lines(self, workflow: Workflow, now: float) -> list["Text"]:
        """The lines that fit the terminal as it is now. The last row stays free for the cursor."""
        width, height = self.console.size
        return screen.draw(workflow.screen(now, notes(self.log)), width, height - 1)

    def fail(self, failure: Failure) -> None:
        """The screen shows failures until the end."""

    def retry(self, failure: Failure) -> None:
        """The screen does not show the failure any more."""

    def say(self, message: str, is_error: bool) -> None:
        from rich.text import Text

        self.console.print(Text(message, "red" if is_error else ""), soft_wrap=True)

    def end(self, workflow: Workflow, now: float) -> None:
        from rich.text import Text

        self.live.stop()
        self.console.print(Text(workflow.end(now), "bold"), soft_wrap=True)
        lines = screen.bars(workflow.stages(), self.console.width)
        failures = [*workflow.failures.values()]
        for line in [*lines, *screen.failure_lines(failures, AT_END), *map(Text, notes(self.log, workflow.reports))]:
            # Nothing is cut any more, so that a reason can be read to its end.
            self.console.print(line, soft_wrap=True)


class Lines:
    """A line now and then, and one for each of the first failures."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.printed = 0.0
        self.failures = 0
        self.log = ""

    def begin(self, workflow: Workflow, now: float, log: str) -> None:
        self.log = log
        stages = ", ".join(f"{stage.name} {stage.jobs:,}" for stage in workflow.stages())
        self.write(f"{screen.total(workflow.stages()).jobs:,} jobs: {stages}")
        for note in notes(log):
            self.write(note)
        self.printed = now

    def show(self, workflow: Workflow, now: float) -> None:
        pause = min(LONGEST, max(self.seconds, (now - workflow.began) / 10))
        if now - self.printed >= pause:
            self.write(workflow.line())
            self.printed = now

    def fail(self, failure: Failure) -> None:
        self.failures += 1
        if self.failures <= FAILURES:
            self.write(f"failed: {failure.target}: {failure.reason} (log: {failure.log})")
        elif self.failures == FAILURES + 1:
            self.write("more jobs have failed; further failures are only counted")

    def retry(self, failure: Failure) -> None:
        if self.failures <= FAILURES:
            self.write(f"tried again: {failure.target}")

    def say(self, message: str, is_error: bool) -> None:
        self.write(message)

    def end(self, workflow: Workflow, now: float) -> None:
        self.write(workflow.end(now))
        for note in notes(self.log, workflow.reports):
            self.write(note)

    def write(self, text: str) -> None:
        print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def notes(log: str, reports: Sequence[str] = ()) -> list[str]:
    """The last lines: what to open, and where the full log is."""
    return [*(f"report: {path}" for path in reports), *([f"full log: {log}"] if log else [])]
