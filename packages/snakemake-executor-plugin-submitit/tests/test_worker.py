"""The worker with a console script of its own: each job ends as it would have alone, whatever happens to the others."""

import errno
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import wait_for

from snakemake_executor_plugin_submitit import worker
from snakemake_executor_plugin_submitit.bundles import Bundle, Job, Status, read_statuses

# A command for everything that a program may do in and to its process.
SCRIPT = """
import atexit, json, os, signal, sys, threading, time
from pathlib import Path

def warm_up(arguments):
    print("warming up", flush=True)
    if arguments[0] == "numpy":
        import numpy
        globals()["numpy"] = numpy

# What leaves something behind is not served.
def serves(arguments):
    return Path(__file__).with_name("served").exists() and arguments[0] not in ("late", "background")

def serve(arguments):
    return main()

def main():
    what = sys.argv[1]
    if what == "tell":
        names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "TMPDIR", "GIVEN"]
        print(json.dumps({
            "argv": sys.argv, "cwd": os.getcwd(), "path": sys.path[0], "stdin": sys.stdin.read(),
            "environment": {name: os.environ.get(name) for name in names},
            "foreign": [name for name in os.environ if name.startswith("SUBMITIT")],
            "encoding": [sys.stdout.encoding, sys.stderr.errors], "name": Path(sys.argv[0]).name,
        }))
    elif what == "random":
        import random
        print(random.random())
    elif what == "numpy":
        print(globals()["numpy"].random.random())
    elif what == "both":
        print("to stdout ä"); print("to stderr ä", file=sys.stderr); os.write(1, b"raw")
    elif what == "pid":
        print(os.getpid())
    elif what == "work":
        began = time.process_time()
        while time.process_time() < began + 0.5: pass
    elif what == "first":
        # Fails in a process that has run it before.
        seen = globals().setdefault("seen", [])
        seen.append(what)
        print(os.getpid(), len(seen))
        assert len(seen) == 1
    elif what == "raise":
        raise ValueError("something is wrong")
    elif what == "memory":
        raise MemoryError("no room")
    elif what == "nan":
        sys.exit("error: the loss is nan")
    elif what == "exit":
        os._exit(int(sys.argv[2]))
    elif what == "leave":
        sys.exit(int(sys.argv[2]))
    elif what == "say":
        sys.exit("a last word")
    elif what == "return":
        return 4
    elif what == "kill":
        os.kill(os.getpid(), int(sys.argv[2]))
    elif what == "late":
        atexit.register(print, "at exit")
        threading.Thread(target=lambda: (time.sleep(0.3), print("from a thread"))).start()
    elif what == "hang":
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        time.sleep(600)
    elif what == "forever":
        time.sleep(600)
    elif what == "resume":
        state = Path(sys.argv[2])
        if not state.exists():
            signal.signal(signal.SIGUSR2, lambda *_: (state.write_text("half"), os._exit(75)))
            time.sleep(600)
        print("resumed from", state.read_text())
    elif what == "background":
        if os.fork() == 0:
            time.sleep(600)
    Path(sys.argv[-1]).write_text("done") if sys.argv[-1].endswith(".out") else None
"""


class Place:
    """An environment with the script, and a folder to run jobs in."""

    def __init__(self, folder: Path, is_served: bool) -> None:
        self.folder, self.is_served = folder, is_served
        self.here = folder / "here"
        self.here.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        self.bin = folder / "env" / "bin"
        [site] = (folder / "env" / "lib").glob("python*/site-packages")
        # Packages of the environment of the tests are available here too.
        source = Path(__file__).parents[1] / "src"
        (site / "tests.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{source}\n")
        (site / "crash.py").write_text(SCRIPT)
        if is_served:
            (site / "served").touch()
        (site / "crash-1.dist-info").mkdir()
        (site / "crash-1.dist-info" / "METADATA").write_text("Name: crash\nVersion: 1\n")
        (site / "crash-1.dist-info" / "entry_points.txt").write_text("[console_scripts]\ncrash = crash:main\n")
        script = f"#!{self.bin / 'python'}\nimport sys\nfrom crash import main\nsys.exit(main())\n"
        (self.bin / "crash").write_text(script)
        (self.bin / "crash").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "SUBMITIT_X": "1"}
        self.environment.pop("PYTHONUNBUFFERED", None)
        self.environment |= {f"{name}_NUM_THREADS": "3" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}

    def bundle(self, commands: list[str], benchmarks: bool = False, **settings: object) -> Path:
        """A bundle with a job per command, each with a log, and with a benchmark table if asked for."""
        jobs = []
        for number, command in enumerate(commands):
            limit = 1.5 if "hang" in command or "forever" in command or "resume" in command else None
            text = f"{command} > {number}.log 2>&1"
            table = f"{number}.tsv" if benchmarks else None
            jobs.append(Job(str(number), "rule", "shell", text, logs=(f"{number}.log",), limit=limit, benchmark=table))
        environment: dict[str, str | None] = {"GIVEN": "yes"}
        folder = self.folder / f"bundle{time.monotonic_ns()}"
        values = {
            "threads": 3,
            "scripts": ("crash",),
            "environment": environment,
            "latency_wait": 0.1,
            "grace": 1,
        } | settings
        Bundle(tuple(jobs), str(self.here), **values).write(folder)  # type: ignore[arg-type]
        return folder

    def start(self, bundle: Path) -> subprocess.Popen[str]:
        command = [str(self.bin / "python"), "-P", "-m", "snakemake_executor_plugin_submitit", "run", str(bundle)]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, commands: list[str], benchmarks: bool = False, **settings: object) -> tuple[dict[int, Status], str]:
        """Statuses of the jobs, and what the worker printed."""
        bundle = self.bundle(commands, benchmarks, **settings)
        worker = self.start(bundle)
        printed, _ = worker.communicate(timeout=60)
        return {number: status for number, status, _ in read_statuses(bundle)}, printed

    def log(self, number: int) -> str:
        return (self.here / f"{number}.log").read_text()


@pytest.fixture(scope="module", params=["forks", "resident"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """With a script whose commands run in a fork each, or one after another in the same process."""
    return Place(tmp_path_factory.mktemp(request.param), request.param == "resident")


# The lines of a traceback that name its file and the frames above `main`.
def bare(log: str) -> str:
    lines = log.splitlines()
    if "Traceback (most recent call last):" in lines:
        at = lines.index("Traceback (most recent call last):")
        lines[at:] = [line for line in lines[at:] if not line.startswith(" ")]
    return "\n".join(lines)


ALIKE = [
    "both",
    "raise",
    "exit 7",
    "exit 0",
    "leave 3",
    "say",
    "return",
    "late",
    "kill 9",
    "kill 15",
    "nan",
    "'a b' \"c\"",
]


@pytest.mark.parametrize(("unbuffered", "benchmarks"), [("", False), ("1", False), ("", True)])
def test_jobs_end_as_they_would_have_alone(
    place: Place, unbuffered: str, benchmarks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code, output and log of a warm job and of a shell's child, side by side."""
    monkeypatch.setitem(place.environment, "PYTHONUNBUFFERED", unbuffered)
    statuses, _ = place.run([f"crash {what}" for what in ALIKE], benchmarks)
    warm = [(statuses[n].message.partition("\n")[0], bare(place.log(n))) for n in range(len(ALIKE))]
    alone = []
    for what in ALIKE:
        log = place.folder / "alone.log"
        process = subprocess.run(
            f"exec crash {what} > {log} 2>&1", shell=True, executable="/bin/bash", env=place.environment, cwd=place.here
        )
        ending = (
            f"signal {signal.Signals(-process.returncode).name}"
            if process.returncode < 0
            else f"exit code {process.returncode}"
        )
        alone.append(("" if process.returncode == 0 else ending, bare(log.read_text())))
    assert dict(zip(ALIKE, warm, strict=True)) == dict(zip(ALIKE, alone, strict=True))


def test_a_job_sees_what_it_would_see_alone(place: Place) -> None:
    place.run(["crash tell 'two words'"])
    report = json.loads(place.log(0))
    assert report["argv"] == [str(place.bin / "crash"), "tell", "two words"]
    assert (report["cwd"], report["path"], report["stdin"]) == (str(place.here), str(place.bin), "")
    assert report["environment"] == {
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "3",
        "TMPDIR": tempfile.gettempdir(),
        "GIVEN": "yes",
    }
    assert report["foreign"] == [], "variables of submitit"
    assert report["encoding"] == ["utf-8", "backslashreplace"]


def test_it_really_runs_warm_and_each_job_in_a_process_of_its_own(place: Place) -> None:
    _, printed = place.run(["crash random", "crash random", "crash both | cat"])
    assert printed.count("warming up") == 2, "once before each fork, and not for what takes a shell"
    assert place.log(0) != place.log(1), "two forks draw the same random numbers"


def test_two_forks_draw_different_numbers_with_numpy(place: Place) -> None:
    pytest.importorskip("numpy")
    place.run(["crash numpy", "crash numpy"])
    assert 0 < float(place.log(0)) != float(place.log(1)) > 0


def test_a_command_whose_files_cannot_be_opened_fails_as_in_a_shell(place: Place) -> None:
    statuses, _ = place.run(["crash both < nowhere.txt", "crash both"])
    assert [statuses[n].state for n in range(2)] == ["failed", "done"]
    assert statuses[0].message.startswith("exit code 1") and "nowhere.txt: No such file" in statuses[0].message


def test_a_command_that_is_longer_than_an_argument_may_be_runs(place: Place) -> None:
    statuses, _ = place.run([f"echo start; true '{'x' * 200_000}'"])
    assert statuses[0].state == "done", statuses[0].message[:500]


def test_letters_that_the_log_of_a_task_lacks_do_not_end_the_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(place.environment, "PYTHONIOENCODING", "ascii")
    job = Job("key", "rule", "shell", "echo text | tee ä.txt", outputs=("ä.txt",))
    folder = place.folder / "letters"
    Bundle((job,), str(place.here), latency_wait=0.1).write(folder)
    place.start(folder).communicate(timeout=30)
    assert [status.state for _, status, _ in read_statuses(folder)] == ["done"]


def test_a_worker_without_a_bundle_says_so(place: Place) -> None:
    worker = place.start(place.folder / "nowhere")
    printed, _ = worker.communicate(timeout=30)
    assert worker.returncode != 0 and "bundle.json is missing or damaged" in printed


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("raise", "exception"),
        ("memory", "out of memory"),
        ("nan", "NaN"),
        ("exit 7", "exception"),
        ("kill 9", "killed"),
        ("kill 11", "killed"),
        ("hang", "timeout"),
        ("forever", "timeout"),
        ("forever; true", "timeout"),
    ],
)
def test_a_job_that_fails_costs_itself_only(
    place: Place, what: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses, _ = place.run(["crash both", f"crash {what}", "crash both"])
    assert [statuses[n].cause for n in range(3)] == [None, cause, None], statuses[1].message
    again = place.is_served and cause != "timeout"
    assert statuses[1].attempt == 1 + again, "of what was run again, only a failure after another job may be"


def test_a_shell_command_fails_the_same_way(place: Place) -> None:
    statuses, _ = place.run(["true", "(crash both | false)", "echo $unset", "true"])
    assert [statuses[n].state for n in range(4)] == ["done", "failed", "failed", "done"]


def test_a_job_that_saves_its_state_goes_on_within_its_bundle(place: Place) -> None:
    state = place.folder / "state"
    statuses, _ = place.run([f"crash resume {state}", "crash both"])
    assert statuses[0].state == "done" and statuses[0].requeues == 1 and "resumed from half" in place.log(0)


def test_what_a_job_leaves_running_ends_with_it(place: Place) -> None:
    worker = place.start(place.bundle(["crash background"]))
    worker.communicate(timeout=30)
    running = subprocess.run(["pgrep", "-f", "crash background"], capture_output=True, text=True).stdout.split()
    assert running == []


def wait_for_running(bundle: Path, count: int) -> None:
    def running() -> int:
        return sum(status.state == "running" for _, status, _ in read_statuses(bundle))

    wait_for(lambda: running() >= count, "the jobs do not start")
    time.sleep(0.3)


def test_jobs_die_with_their_worker_and_the_next_one_goes_on(place: Place) -> None:
    bundle = place.bundle(["crash both", "crash forever", "crash both"], max_requeues=0)
    worker = place.start(bundle)

    def state(job: int) -> str | None:
        return {number: status.state for number, status, _ in read_statuses(bundle)}.get(job)

    wait_for(lambda: state(1) == "running", "the second job does not start")
    worker.kill()
    worker.communicate()
    processes = ["pgrep", "-f", str(bundle)]
    wait_for(
        lambda: subprocess.run(processes, capture_output=True).returncode != 0, "a process of the killed worker goes on"
    )
    place.start(bundle).communicate(timeout=30)
    statuses = {number: status for number, status, _ in read_statuses(bundle)}
    assert [statuses[n].state for n in range(3)] == ["done", "failed", "done"]
    assert statuses[1].cause == "node failure" and [statuses[n].attempt for n in (0, 2)] == [1, 1]


def test_a_warning_before_the_end_stops_the_jobs_and_keeps_their_state(place: Place) -> None:
    state = place.folder / "paused"
    bundle = place.bundle([f"crash resume {state}", "crash both"])
    worker = place.start(bundle)
    wait_for_running(bundle, 1)
    worker.send_signal(signal.SIGUSR2)
    worker.communicate(timeout=30)
    assert state.read_text() == "half"
    assert {n: s.state for n, s, _ in read_statuses(bundle)} == {0: "stopped"}
    place.start(bundle).communicate(timeout=30)
    assert {n: s.state for n, s, _ in read_statuses(bundle)} == {0: "done", 1: "done"}


def test_a_job_whose_status_is_damaged_is_left_to_the_head(place: Place) -> None:
    """The job may have ended, and Snakemake may know that: another run could be killed while it makes the output anew."""
    bundle = place.bundle(["crash both", "true"])
    (bundle / "status" / "0.json").write_text('{"state": "do')
    place.start(bundle).communicate(timeout=30)
    assert [(number, status.state) for number, status, _ in read_statuses(bundle)] == [(1, "done")]


class Unwritable:
    """A ledger that refuses statuses for some seconds, and the clock of the worker that waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.clock, self.seconds, self.is_written = 0.0, seconds, False
        monkeypatch.setattr(worker.time, "time", lambda: self.clock)
        monkeypatch.setattr(worker.time, "sleep", self.sleep)
        monkeypatch.setattr(Status, "write", lambda status, folder, number: self.write())

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def write(self) -> None:
        if self.clock < self.seconds:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.is_written = True

    def note(self) -> None:
        runner: Any = SimpleNamespace(known={}, folder=Path(), tell=lambda kind: None)
        worker.Runner.note(runner, 0, Status("done", 0.0, "here"))


@pytest.mark.parametrize(
    ("seconds", "must_end", "is_written"), [(100, False, True), (150, False, False), (20, True, False)]
)
def test_a_worker_waits_two_minutes_for_a_ledger_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, seconds: float, must_end: bool, is_written: bool
) -> None:
    """A worker that has to end waits for seconds only."""
    ledger = Unwritable(monkeypatch, seconds)
    monkeypatch.setattr(worker, "must_end", lambda: must_end)
    if is_written:
        ledger.note()
    else:
        with pytest.raises(OSError, match="No space left"):
            ledger.note()
    assert ledger.is_written == is_written
    assert ledger.clock < 2 * worker.LEDGER_PATIENCE and (not must_end or ledger.clock < 20)


# Jobs that share a process.


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("served"), True)


def test_jobs_share_a_process_until_one_fails(served: Place) -> None:
    served.run(["crash pid", "crash pid", "crash raise", "crash pid", "crash pid"])
    first, second, _, fourth, fifth = (served.log(number) for number in range(5))
    assert first == second != fourth == fifth


def test_what_fails_after_another_job_succeeds_in_a_process_of_its_own(served: Place) -> None:
    statuses, printed = served.run(["crash first", "crash first", "crash first"])
    assert [statuses[n].state for n in range(3)] == ["done"] * 3
    assert served.log(1).split()[1] == "1" and served.log(1).split()[0] != served.log(0).split()[0]
    assert "job 1 runs again in a process of its own, after exit code 1 in a process that has run other jobs" in printed
    assert [statuses[n].attempt for n in range(3)] == [1, 2, 1]


def test_what_fails_in_a_new_process_fails_at_once(served: Place) -> None:
    statuses, _ = served.run(["crash kill 9", "crash both"])
    assert (statuses[0].cause, statuses[0].attempt, statuses[1].state) == ("killed", 1, "done")


def test_each_job_has_its_own_share_of_the_time_of_the_process(served: Place) -> None:
    statuses, _ = served.run(["crash work", "crash both", "crash work", "crash exit 3"])
    seconds = [statuses[number].cpu_seconds or 0 for number in range(4)]
    assert seconds[0] >= 0.5 and seconds[2] >= 0.5 and seconds[1] < 0.3 and seconds[3] < 0.3


def test_a_process_runs_as_many_jobs_at_a_time_as_there_are_slots(served: Place) -> None:
    served.run(["crash pid", "crash work", "crash pid", "crash pid"], slots=2)
    assert len({served.log(number) for number in (0, 2, 3)}) <= 2


def test_a_job_with_a_benchmark_or_a_descriptor_of_its_own_has_a_process_of_its_own(served: Place) -> None:
    served.run(["crash pid", "crash pid 3>/dev/null", "crash pid"])
    assert served.log(0) == served.log(2) != served.log(1) or len({served.log(n) for n in range(3)}) == 3
    served.run(["crash pid", "crash pid"], benchmarks=True)
    assert served.log(0) != served.log(1)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_without_a_job_makes_room_for_what_has_a_process_of_its_own(served: Place) -> None:
    bundle = served.bundle(["crash pid", "sleep 600"])
    worker = served.start(bundle)
    wait_for(lambda: len(list(read_statuses(bundle))) == 2, "the second job does not start")
    wait_for(lambda: not is_alive(int(served.log(0))), "the process of the first job is still there")
    worker.kill()
    worker.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2, signal.SIGKILL])
def test_no_process_outlives_its_worker(served: Place, number: signal.Signals) -> None:
    bundle = served.bundle(["crash pid", "crash forever"])
    worker = served.start(bundle)
    wait_for(lambda: len(list(read_statuses(bundle))) == 2, "the second job does not start")
    assert is_alive(int(served.log(0)))
    worker.send_signal(number)
    worker.communicate(timeout=30)
    wait_for(lambda: not is_alive(int(served.log(0))), "the process goes on")


def test_a_process_that_dies_without_a_job_costs_no_job(served: Place) -> None:
    """The kernel may choose it when memory runs out."""
    kill = "crash pid; kill $(cat 0.log)"
    statuses, _ = served.run(["crash pid", kill, "crash both"], slots=2)
    assert [statuses[n].state for n in range(3)] == ["done"] * 3
