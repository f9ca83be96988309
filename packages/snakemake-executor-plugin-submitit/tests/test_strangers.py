"""No other user can use the files of a run to have a command run as the owner of the run."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_for
from workflow import LOCAL, environment

pytestmark = pytest.mark.slow
STRANGER = 65534
SNAKEFILE = """\
rule all:
    input: "fails", "runs"
rule fails:
    output: "fails"
    shell: "exit 3"
rule runs:
    output: "runs"
    shell: "touch begun; while [ ! -e enough ]; do sleep 0.1; done; touch {output}"
"""


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """A project in which a job has failed and another runs, of a person who shares files with a group.

    Where everybody may write, the head refuses to start: see test_finding.py.
    """
    # Only its owner may enter the folder of pytest.
    with tempfile.TemporaryDirectory() as name:
        project, temporary = Path(name, "project"), Path(name, "tmp")
        for folder, mode in ((Path(name), 0o755), (project, 0o755), (temporary, 0o1777)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        (project / "Snakefile").write_text(SNAKEFILE)
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *LOCAL, "--keep-going"],
            cwd=project,
            env={**environment(), "TMPDIR": str(temporary)},
            stderr=subprocess.DEVNULL,
            umask=0o002,
        )
        signs = (project / "begun", project / ".snakemake" / "submitit" / "failures.jsonl")
        try:
            wait_for(lambda: all(path.exists() for path in signs), "the jobs do not run", 60)
            yield project
        finally:
            (project / "enough").touch()
            process.wait(timeout=60)


def test_a_group_can_change_nothing_in_the_ledger_and_the_temporary_folder(running: Path) -> None:
    changeable = []
    for folder in (running / ".snakemake" / "submitit", running.parent / "tmp"):
        for place, folders, files in os.walk(folder):
            if Path(place).stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH):
                paths = [Path(place, name) for name in (*folders, *files)]
                changeable += [path for path in paths if path.lstat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)]
            else:
                folders.clear()
    assert changeable == []


def attempt(action: Callable[[], object]) -> bool:
    """Whether a stranger succeeds with something."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_stranger_can_neither_list_the_ledger_nor_put_anything_there(running: Path) -> None:
    ledger = running / ".snakemake" / "submitit"
    assert attempt(lambda: os.listdir(running)), "the stranger does not even reach the project"
    assert not attempt(lambda: os.listdir(ledger))
    assert not attempt(lambda: (ledger / "array").mkdir())
    assert not attempt(lambda: ledger.rename(running / "moved"))
