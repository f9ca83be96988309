"""Snakemake with commands of Slurm that never return."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for
from workflow import SLURM, environment, project

COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "srun")
# Notes that it was called, and hangs; its argument distinguishes its processes from all others.
HANGS = '#!/bin/bash\ntouch "$0.called"\nsleep {seconds}\n'
SNAKEFILE = """
rule all:
    input: "a", "b"

rule job:
    output: "{name}"
    shell: "touch {output}"
"""


class Head:
    """Snakemake in a project, with scripts in place of Slurm's commands."""

    def __init__(self, folder: Path, *options: str, **scripts: str) -> None:
        # As many seconds as no other process sleeps.
        self.seconds = f"{10_000 + os.getpid()}.{time.time_ns() % 1_000_000}"
        self.bin = project(folder, SNAKEFILE) / "bin"
        self.bin.mkdir()
        for name in COMMANDS:
            (self.bin / name).write_text(scripts.get(name, HANGS).format(seconds=self.seconds))
            (self.bin / name).chmod(0o755)
        variables = environment()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--nocolor", *SLURM, "--seconds-between-status-checks", "1", *options],
            cwd=folder,
            env={**variables, "PATH": f"{self.bin}{os.pathsep}{variables['PATH']}"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, command: str) -> None:
        """Wait until a command has been called."""
        wait_for((self.bin / f"{command}.called").exists, f"{command} was not called", 90)

    def left(self) -> list[str]:
        """The processes of commands that still hang."""
        return subprocess.run(["pgrep", "-f", f"sleep {self.seconds}"], capture_output=True, text=True).stdout.split()

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        for pid in self.left():
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(params=["sbatch", "squeue"])
def head(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Head]:
    """A head that waits for sbatch, or one whose tasks are in the queue and that waits for squeue."""
    answers = {"scontrol": "#!/bin/bash\n", "sbatch": "#!/bin/bash\necho Submitted batch job 77\n"}
    head = Head(tmp_path, **{name: script for name, script in answers.items() if name != request.param})
    try:
        head.wait_for(request.param)
        yield head
    finally:
        head.stop()


def test_ctrl_c_does_not_wait_for_slurm(head: Head) -> None:
    """Snakemake ends in seconds on a quiet machine; the command of Slurm would take hours."""
    head.process.send_signal(signal.SIGINT)
    try:
        _, err = head.process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        raise AssertionError("Snakemake still runs after 60 s") from None
    assert "Traceback" not in err, err
    assert "please cancel: " in err, err
    assert head.left() == [], "commands of Slurm go on without Snakemake"
