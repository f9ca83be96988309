"""A miniature grid on Slurm: the Snakefile, the runs of Snakemake, and the states of jobs and tasks."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from real_slurm import seen_by_slurm
from workflow import SLURM, environment

# Quick to notice the ends of tasks; the local rule `all.txt` needs no array of its own.
OPTIONS = [*SLURM, "--seconds-between-status-checks", "1", "--latency-wait", "2", "--rerun-incomplete"]
# Each start of a job is one line of this file.
STARTS = "starts.log"


class Grid:
    """A project folder with the jobs out/0.txt, out/1.txt, ... and all.txt, which joins them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heads: list[subprocess.Popen[bytes]] = []
        self.ledger = folder / ".snakemake" / "submitit"

    def write(self, jobs: int, command: str = "", resources: str = "", local: bool = True) -> None:
        """Write the Snakefile.

        Args:
            command: what a job does between the note of its start and its output; its number is {wildcards.job}.
            resources: of a job, as in a Snakefile.
            local: whether the head itself joins the jobs.
        """
        (self.folder / "Snakefile").write_text(
            f"""\
{"localrules: join" if local else ""}

rule join:
    input: expand("out/{{job}}.txt", job=range({jobs}))
    output: "all.txt"
    shell: "cat {{input}} > {{output}}"

rule job:
    output: "out/{{job}}.txt"
    log: "logs/{{job}}.txt"
    resources: {resources or "gpus=0"}
    shell:
        r'''
        echo {{wildcards.job}} $(date +%s.%N) $$ >> {STARTS}
        {command}
        echo {{wildcards.job}} > {{output}}
        '''
""",
            encoding="utf-8",
        )

    def start(self, *options: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start Snakemake, whose output is in `said`."""
        with (self.folder / "head.log").open("ab") as log:
            head = subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--nocolor", *OPTIONS, *options],
                cwd=self.folder,
                env={**environment(), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.heads.append(head)
        return head

    def submit_head(self, *options: str, arguments: Sequence[str] = ()) -> str:
        """Run Snakemake in a job of Slurm, with options of sbatch and arguments of Snakemake; returns the job's number."""
        command = shlex.join([sys.executable, "-m", "snakemake", *OPTIONS, *arguments])
        place = ("--parsable", "--time=5", f"--chdir={self.folder}", "--output=head.log")
        return slurm("sbatch", *place, *options, "--wrap", command, env=environment()).strip()

    def run(self, *options: str, env: dict[str, str] | None = None, timeout: float = 120) -> int:
        """Run Snakemake to its end; its exit code."""
        return self.end(self.start(*options, env=env), timeout)

    def end(self, head: subprocess.Popen[bytes], timeout: float = 120) -> int:
        """Wait for a Snakemake; its exit code."""
        try:
            return head.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Snakemake still ran after {timeout:g} s; {self.report()}") from None

    def kill(self, head: subprocess.Popen[bytes]) -> None:
        """Send SIGKILL to the head, and remove Snakemake's lock as a person would."""
        head.kill()
        head.wait()
        self.unlock()

    def unlock(self) -> None:
        """Take away the lock that a killed head left."""
        subprocess.run(
            [sys.executable, "-m", "snakemake", "--unlock"],
            cwd=self.folder,
            env=environment(),
            check=True,
            capture_output=True,
            timeout=30,
        )

    def said(self) -> str:
        """Return the output of all runs of Snakemake so far."""
        return (self.folder / "head.log").read_text(errors="replace")

    def report(self) -> str:
        """Describe the state of the grid for the message of a failed test."""
        return f"tasks: {self.tasks()}; all tasks: {self.history()}; starts: {self.starts()}\n{seen_by_slurm()}\n{self.said()[-4000:]}"

    def starts(self) -> Counter[str]:
        """How often each job was started."""
        path = self.folder / STARTS
        return Counter(line.split()[0] for line in path.read_text().splitlines()) if path.exists() else Counter()

    def processes(self) -> set[str]:
        """The process IDs of the jobs that run. Slurm calls a task pending before the processes of its job have ended."""
        pids = {line.split()[2] for line in (self.folder / STARTS).read_text().splitlines()}
        return {pid for pid in pids if Path(f"/proc/{pid}").exists()}

    def outputs(self) -> set[str]:
        """The jobs whose output is there, and right."""
        return {path.stem for path in (self.folder / "out").glob("*.txt") if path.read_text() == f"{path.stem}\n"}

    def open(self, name: str = "go") -> None:
        """Make a file that jobs wait for (`until [ -e go ]; do sleep 0.1; done`)."""
        (self.folder / name).touch()

    def tasks(self, *options: str) -> dict[str, str]:
        """State of each of this project's tasks that is queued or running."""
        lines = slurm("squeue", "--noheader", "--array", "--format=%i|%T|%Z", *options).splitlines()
        rows = [line.split("|") for line in lines]
        return {task: state for task, state, folder in rows if folder == str(self.folder)}

    def history(self) -> dict[str, str]:
        """The same of those that have ended, too; Slurm remembers them for five minutes, and its accounting lags."""
        return self.tasks("--states=all")

    def stop(self) -> None:
        """Stop all processes and tasks that the test started."""
        for head in self.heads:
            if head.poll() is None:
                os.killpg(head.pid, signal.SIGKILL)
                head.wait()
        tasks = self.tasks()
        if tasks:
            slurm("scancel", *tasks)


def slurm(*command: str, env: dict[str, str] | None = None) -> str:
    """Return the output of a command of Slurm."""
    process = subprocess.run(command, capture_output=True, text=True, timeout=30, env=env)
    assert process.returncode == 0, f"{' '.join(command)} failed: {process.stderr}"
    return process.stdout


def wrapper(grid: Grid, name: str, before: str) -> dict[str, str]:
    """Put a script before a command of Slurm, which is $real there; it knows how often it was called before as $n."""
    folder = grid.folder / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / name
    lines = ["#!/bin/bash", 'n=$(wc -l < "$0.log"); echo "$@" >> "$0.log"', f"real={shutil.which(name)}", before]
    script.write_text("\n".join([*lines, 'exec $real "$@"\n']))
    (folder / f"{name}.log").touch()
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{environment()['PATH']}"}


def wait(what: str, check: Callable[[], bool], seconds: float = 60, report: Callable[[], str] = str) -> None:
    """Wait until a condition holds."""
    deadline = time.time() + seconds
    while not check():
        assert time.time() < deadline, f"{what}: not so after {seconds:g} s; {report()}"
        time.sleep(0.1)
