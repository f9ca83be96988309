"""The commands before a study: problems end with status 1, and a study that needs nothing is fetched at once."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli import app

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("command", ["check", "fetch"])
def test_a_study_that_does_not_exist_is_told_in_a_line(command: str) -> None:
    result = CliRunner().invoke(app, [command, "demmo"])
    assert result.exit_code == 1 and "did you mean 'demo'" in result.output


def test_a_study_without_problems_ends_with_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["check", "first"])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].startswith("no problems")


def test_a_problem_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlgrid.preflight.lines import Line, State

    lines = [Line(State.GOOD, "a", "fine"), Line(State.PROBLEM, "b", "bad")]
    monkeypatch.setattr("xlgrid.preflight.doctor.machine_lines", lambda submit: lines)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert result.output.splitlines() == ["✗ b: bad", "✓ a: fine", "1 problem, 0 open, 1 in order"]


def test_a_study_that_is_generated_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["fetch", "first"])
    assert (result.exit_code, result.output) == (
        0,
        "study first needs nothing from the network: everything is generated or in files here\n",
    )
