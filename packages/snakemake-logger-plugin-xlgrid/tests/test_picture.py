"""The picture of a recorded session, which docs/terminal.py makes."""

import importlib.util
import io
from pathlib import Path
from types import ModuleType

import pytest
from events import planned, started
from pseudo_terminal import Recording
from rich.console import Console
from rich.live import Live
from xlgrid.report.trainings import Training

from snakemake_logger_plugin_xlgrid.displays import Terminal
from snakemake_logger_plugin_xlgrid.workflow import Workflow

SCRIPT = Path(__file__).parents[3] / "docs" / "terminal.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("terminal", SCRIPT)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def recording() -> Recording:
    """A session with two trainings, of which one is in progress in the middle."""
    terminal = Terminal(has_color=True)
    terminal.console = Console(file=io.StringIO(), force_terminal=True, width=100, height=26)
    terminal.live = Live(console=terminal.console, auto_refresh=False, transient=True, redirect_stderr=False)
    workflow, pieces = Workflow(0.0), []
    assert isinstance(terminal.console.file, io.StringIO)

    def piece(second: float) -> None:
        pieces.append((second, terminal.console.file.getvalue()[sum(len(text) for _, text in pieces) :]))

    workflow.plan(planned(train=2).__dict__["stats"])
    workflow.submit(started(1, "train"))
    terminal.begin(workflow, 0.0, "snakemake.log")
    piece(0.0)
    workflow.look(1.0, {1}, {1: Training("ner mini full-ft qa1 seed1", 60, 300, 88.2)})
    terminal.show(workflow, 1.0)
    piece(1.0)
    workflow.finish(1)
    workflow.reports.append("results/demo/report.html")
    terminal.end(workflow, 2.0)
    piece(2.0)
    return Recording([*pieces, (2.1, "Open results/demo/report.html\r\n")], 0)


def test_the_picture_has_the_command_a_moment_with_trainings_and_the_end(
    script: ModuleType, recording: Recording
) -> None:
    rows = [script.Text.from_ansi(row).plain.strip() for row in script.rows(recording)]
    assert rows[0] == "$ make demo" and len(rows) <= script.LINES
    middle, end = rows[: rows.index("…")], rows[rows.index("…") :]
    assert "▶ ner mini full-ft qa1 seed1  step 60/300  dev 88.20" in middle
    assert end[-1] == "Open results/demo/report.html" and "report: results/demo/report.html" in end


def test_the_picture_is_drawn_as_svg(script: ModuleType, recording: Recording) -> None:
    picture = script.picture(script.rows(recording))
    assert picture.startswith("<svg") and "dev&#160;88.20" in picture


def test_neither_a_new_picture_nor_that_of_the_documentation_loads_a_font(
    script: ModuleType, recording: Recording
) -> None:
    pictures = (script.picture(script.rows(recording)), (script.DOCS / "terminal.svg").read_text())
    assert [picture for picture in pictures if "@font-face" in picture or "url(http" in picture] == []
