"""`xlgrid doctor` compares Python and packages with what the project needs, and names what figures cannot show."""

from importlib import metadata
from pathlib import Path

import pytest

from xlgrid.preflight import doctor
from xlgrid.preflight.lines import State


@pytest.mark.parametrize(
    ("version", "state"), [("3.11.7", State.GOOD), ("3.13.1", State.GOOD), ("3.10.4", State.PROBLEM)]
)
def test_a_python_that_is_too_old_is_a_problem(version: str, state: State) -> None:
    assert doctor.python_line(version, ">=3.11").state is state


def test_the_lines_of_a_lock_that_are_for_another_python_do_not_count(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("# a comment\nnumpy==2.1.0\ntomli==2.0 ; python_version < '3.0'\n")
    assert doctor.locked(lock) == {"numpy": "2.1.0"}


def test_packages_of_the_locked_versions_are_in_order(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"torch=={metadata.version('torch').partition('+')[0]}\nnumpy=={metadata.version('numpy')}\n")
    assert doctor.environment_line(lock).state is State.GOOD


def test_missing_packages_and_other_versions_are_named(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("numpy==0.1\nno-such-package==1.0\n")
    line = doctor.environment_line(lock)
    assert line.state is State.PROBLEM
    assert (
        "missing: no-such-package" in line.text
        and "instead of 0.1" in line.text
        and f"pip install -r {lock}" in line.text
    )


def test_without_a_lock_the_packages_are_not_compared(tmp_path: Path) -> None:
    assert doctor.environment_line(tmp_path / "lock.txt").state is State.OPEN


def test_scripts_without_a_font_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlgrid.exhibits.drawing.plots.FONTS", ("DejaVu Sans",))
    line = doctor.font_line()
    assert line.state is State.OPEN and "Hans" in line.text and "Latn" not in line.text


def test_a_full_disk_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.disk_line(tmp_path).state is State.GOOD
    monkeypatch.setattr(doctor, "LITTLE", 10**18)
    assert doctor.disk_line(tmp_path).state is State.PROBLEM


def test_each_part_of_the_machine_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "slurm_lines", lambda submit: [])
    things = [line.thing for line in doctor.machine_lines()]
    assert {"Python", "xlgrid", "snakemake", "packages", "GPUs", "fonts", "results", "disk"} <= {*things}
