"""The commands before a study: problems end with status 1, and a study that needs nothing is fetched at once."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app

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


def test_problems_come_first_each_is_one_line_and_they_end_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlgrid.preflight import Line, State

    lines = [Line(State.GOOD, "a", "fine"), Line(State.PROBLEM, "b", "bad:\n  - x"), Line(State.OPEN, "c", "unknown")]
    monkeypatch.setattr("xlgrid.preflight.doctor.machine_lines", lambda submit: lines)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert result.output.splitlines() == ["✗ b: bad: - x", "? c: unknown", "✓ a: fine", "1 problem, 1 open, 1 in order"]


def test_a_study_that_is_generated_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["fetch", "first"])
    assert (result.exit_code, result.output) == (
        0,
        "study first needs nothing from the network: everything is generated or in files here\n",
    )


def test_a_signal_to_a_fetch_lets_snakemake_end(tmp_path: Path) -> None:
    script = tmp_path / "snakemake.sh"
    script.write_text(
        f"trap 'touch {tmp_path}/ended; exit 1' TERM; touch {tmp_path}/began; while true; do sleep 0.05; done\n"
    )
    code = (
        "from xlgrid import cli\nfrom xlgrid.preflight import doctor, fetch\n"
        "fetch.targets = lambda plan: ['something']\n"
        f"fetch.command = lambda plan, wanted: ['bash', {str(script)!r}]\n"
        "doctor.elsewhere = lambda name: ''\ncli.main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, "fetch", "first"], cwd=ROOT)
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=60) == 128 + signal.SIGTERM and (tmp_path / "ended").exists()
