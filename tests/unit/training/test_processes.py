"""Several processes of a training: how they start, share the work, exchange numbers, and end."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, inputs, recipe, texts_of

from xlgrid.architectures import Architecture
from xlgrid.architectures.plain import Plain
from xlgrid.training import pretraining, processes
from xlgrid.training.processes import Processes

pytestmark = pytest.mark.usefixtures("one_thread")
# Runs `xlgrid ARGUMENTS` in a process in which something happens before a step.
COMMAND = """
import os, signal, sys
from xlgrid import cli
from xlgrid.training import loop
before, advance = {before!r}, loop.Loop.advance
def watched(self, chosen):
    if self.step == 7:
        exec(before)
    return advance(self, chosen)
loop.Loop.advance = watched
cli.main()
"""
LAUNCH = "import sys; from xlgrid.training.processes import launch; sys.exit(launch(sys.argv[1:], 2))"
Inputs = tuple[Path, list[Path], list[Path]]
CPU = torch.device("cpu")


def test_a_process_that_nothing_has_started_for_sharing_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some clusters set the number of tasks of every job.
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    alone = processes.join(CPU)
    assert (alone.count, alone.rank, alone.writes) == (1, 0, True)
    assert alone.own([5, 6, 7]) == [5, 6, 7] and alone.sums({"a": 2}) == {"a": 2}


def test_each_process_has_its_share_of_the_parts() -> None:
    shares = [list(Processes(3, rank, CPU).own(range(8))) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert [Processes(3, rank, CPU).writes for rank in range(3)] == [True, False, False]


def test_gradients_are_added_and_a_weight_without_any_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has gradients of 10 for the first two of three weights."""

    def all_reduce(flat: torch.Tensor) -> None:
        flat += torch.tensor([10.0] * 4 + [10.0] * 2 + [0.0] + [1.0, 1.0, 0.0])

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    weights: list[Any] = [torch.nn.Parameter(torch.zeros(size)) for size in ((2, 2), (2,), (1,))]
    weights[0].grad = torch.arange(4.0).reshape(2, 2)
    Processes(2, 0, CPU).add_gradients(weights)
    assert weights[0].grad.tolist() == [[10.0, 11.0], [12.0, 13.0]]
    assert weights[1].grad.tolist() == [10.0, 10.0] and weights[2].grad is None


@pytest.mark.parametrize(
    ("error", "expected", "waits"),
    [
        (torch.OutOfMemoryError("as torch says"), torch.OutOfMemoryError, []),
        (RuntimeError("out of memory, as torch says"), RuntimeError, []),
        (RuntimeError("as torch says"), ChildProcessError, [10.0]),
    ],
)
def test_memory_that_runs_out_in_an_exchange_is_no_end_of_another_process(
    monkeypatch: pytest.MonkeyPatch, error: Exception, expected: type[Exception], waits: list[float]
) -> None:
    def all_reduce(tensor: torch.Tensor) -> None:
        raise error

    slept: list[float] = []
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    monkeypatch.setattr(processes.time, "sleep", slept.append)
    with pytest.raises(expected, match="as torch says") as raised:
        Processes(2, 0, CPU).sums({"a": 1})
    assert (raised.type, slept) == (expected, waits)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    return inputs(described(), texts_of(folder, options={"statements": 2}), folder / "e")


def described() -> Architecture:
    return Plain(kind="bert", languages=("en", "fr"), bitext=(("en", "fr"),), nsp=True, dropout=0.1, **TINY)  # type: ignore[arg-type]


ASKED = recipe(
    described(), steps=20, batch_size=8, micro_batch_tokens=80, checkpoint_seconds=1e-9, checkpoints=(4,), lr=1e-3
)


def arguments(files: Inputs, folder: Path) -> list[str]:
    tokenizer, *splits = files
    tokens = [f"--{split}={path}" for split, paths in zip(("train", "dev"), splits, strict=True) for path in paths]
    recipe, pace = (f"--recipe={ASKED.identity()}", f"--pace={ASKED.pace()}")
    return ["pretrain", recipe, pace, f"--tokenizer={tokenizer}", *tokens, f"--output={folder}"]


def shared(files: Inputs, folder: Path, before: str = "") -> tuple[int, str]:
    """The status of a training of two processes, and what it writes to stderr; both do `before` after seven steps."""
    code = COMMAND.format(before=before)
    command = [sys.executable, "-c", LAUNCH, sys.executable, "-c", code, *arguments(files, folder)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    return ended.returncode, ended.stderr


# The process that starts the others gets the signal, or one of the others alone.
@pytest.mark.slow
@pytest.mark.parametrize(
    "asks", [pytest.param("getppid(), signal.SIGUSR2", marks=pytest.mark.thorough), "getpid(), signal.SIGTERM"]
)
def test_two_processes_share_the_work_of_one_whether_or_not_a_signal_stops_them(
    files: Inputs, tmp_path: Path, asks: str
) -> None:
    pretraining.pretrain(ASKED, *files, tmp_path / "one")
    # As the rule calls it.
    ended = subprocess.run([sys.executable, "-m", "xlgrid", *arguments(files, tmp_path / "two"), "--processes=2"])
    assert ended.returncode == 0
    expected, weights = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert expected.keys() == weights.keys()
    assert max(float((expected[name] - weights[name]).abs().max()) for name in expected) < 1e-6
    status, errors = shared(files, tmp_path / "stopped", f"if os.environ['RANK'] == '1': os.kill(os.{asks})")
    assert status == os.EX_TEMPFAIL, errors
    assert "before step" in errors.splitlines()[-1] and errors.count("before step") == 1
    assert (tmp_path / "stopped" / "state.pt").exists()
    assert shared(files, tmp_path / "stopped")[0] == 0
    for name in ("model.safetensors", "step4.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "before", "status", "message"),
    [
        pytest.param(
            0,
            "os.kill(os.getpid(), signal.SIGKILL)",
            128 + signal.SIGKILL,
            "error: process 0 of 2 was ended by SIGKILL",
            marks=pytest.mark.thorough,
        ),
        (1, "raise ValueError('this one is at fault')", 1, "error: this one is at fault"),
    ],
)
def test_a_process_that_fails_ends_the_others_and_says_why(
    files: Inputs, tmp_path: Path, rank: int, before: str, status: int, message: str
) -> None:
    result = shared(files, tmp_path / "e", f"if os.environ['RANK'] == '{rank}': {before}")
    assert result[0] == status and result[1].splitlines()[-1].startswith(message), result
    assert not (tmp_path / "e" / "model.safetensors").exists()


@pytest.mark.thorough
def test_torchrun_may_start_the_processes(files: Inputs, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "xlgrid"]
    assert subprocess.run([*torchrun, *arguments(files, tmp_path / "e")], timeout=120).returncode == 0
    assert '"processes": 2' in (tmp_path / "e" / "run.json").read_text()


def launched(code: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", LAUNCH, sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_all_processes_have_what_the_first_one_computes() -> None:
    # `print` writes a line in two parts, between which another process may write.
    code = """
import os, time, torch
from xlgrid.training import processes
shared = processes.join(torch.device("cpu"))
def compute():
    time.sleep(0.5)
    print("computed by", shared.rank, flush=True)
    return f"from {os.getpid()}"
os.write(1, f"{shared.from_first(compute)}\\n".encode())
"""
    output, errors = launched(code).communicate(timeout=120)
    computed, *texts = output.splitlines()
    assert computed == "computed by 0", errors
    assert len(texts) == 2 and len({*texts}) == 1 and texts[0].startswith("from ")


def test_an_error_of_what_the_first_process_computes_is_told() -> None:
    code = """
import torch
from xlgrid.training import processes
processes.join(torch.device("cpu")).from_first(lambda: open("missing.arrow").read())
"""
    process = launched(code)
    assert "missing.arrow" in process.communicate(timeout=120)[1] and process.returncode == 1


def test_a_signal_that_comes_before_the_processes_listen_waits_for_them() -> None:
    code = """
import os, sys, time
print("started", flush=True)
time.sleep(1)
from xlgrid.training.signals import signals
with signals() as received:
    time.sleep(0.1)
sys.exit(os.EX_TEMPFAIL if received else 1)
"""
    process = launched(code)
    assert process.stdout
    for _ in range(2):
        process.stdout.readline()
    process.send_signal(signal.SIGUSR2)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", os.EX_TEMPFAIL)


def test_processes_end_with_the_one_that_has_started_them() -> None:
    # `print` writes a line in two parts, between which another process may write.
    code = """
import os, time, torch
from xlgrid.training import processes
processes.join(torch.device("cpu"))
os.write(1, f"{os.getpid()}\\n".encode())
time.sleep(60)
"""
    process = launched(code)
    assert process.stdout
    numbers = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()
    # The pipe closes when nobody can write to it any more.
    assert process.stdout.read() == "" and len({*numbers}) == 2


def test_each_process_takes_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"WORLD_SIZE": "4", "RANK": "2", "LOCAL_RANK": "2", processes.MEETING_FILE: "unused"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="4 processes need a GPU each, but torch sees 2"):
        processes.join(torch.device("cuda"))


def test_more_processes_than_cores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with pytest.raises(ValueError, match=r"8 processes need a core each, and this job has 1: .*`cpus_per_task: 8`"):
        processes.launch([sys.executable, "-c", ""], 8)
