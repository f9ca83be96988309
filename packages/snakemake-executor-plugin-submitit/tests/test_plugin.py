"""The plugin as every run of Snakemake imports it, nested runs included."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from stub import Stub

from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import Bundle
from snakemake_executor_plugin_submitit.clusters.local import Local
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings

LOAD = """
import sys
import snakemake_interface_executor_plugins.executors.remote, snakemake_interface_executor_plugins.utils
before = set(sys.modules)
import snakemake_executor_plugin_submitit
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_loading_it_imports_nothing_that_takes_time() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"submitit", "torch", "numpy", "pandas", "snakemake", "xlgrid", "cloudpickle"}
    assert heavy.isdisjoint(loaded), loaded


ANOTHER = """
import sys
from pathlib import Path
from snakemake_executor_plugin_submitit.bundles import Bundle
from snakemake_executor_plugin_submitit.clusters.local import Local
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings

settings = Settings(Path(sys.argv[1]), 1000, 600, Bundle((), "."))
try:
    Dispatcher(Local((), 1, 1, 90), settings)
except RuntimeError as error:
    print(error)
"""


def test_two_heads_do_not_share_a_folder(tmp_path: Path) -> None:
    settings = Settings(tmp_path, 1000, 600, Bundle((), "."))
    head = Dispatcher(Local((), 1, 1, 90), settings)
    process = subprocess.run([sys.executable, "-c", ANOTHER, str(tmp_path)], capture_output=True, text=True, check=True)
    assert f"another Snakemake (process {os.getpid()} on" in process.stdout and "--submitit-folder" in process.stdout
    head.hold.close()
    process = subprocess.run([sys.executable, "-c", ANOTHER, str(tmp_path)], capture_output=True, text=True, check=True)
    assert process.stdout == "", "the lock of a head that has ended holds"


def test_the_tests_that_hold_a_promise_of_the_documentation_exist() -> None:
    folder = Path(__file__).parents[1]
    table = (folder / "README.md").read_text().partition("| Promise | Held by |\n")[2].partition("\n\n")[0]
    named = re.findall(r"`([\w/]+\.py)`", table)
    assert named and [name for name in named if not (folder / name).exists()] == []


ADVICE = """\
Search for `cudaErrorUnknown' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


@pytest.mark.parametrize(
    ("code", "logs", "cause"),
    [
        (1, ["Traceback\nValueError: no"], failures.EXCEPTION),
        (1, ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"], failures.OUT_OF_MEMORY),
        (1, ["error: the loss is nan and the gradient norm nan at step 3"], failures.NAN),
        (1, ["out of memory at step 3: the same batch again\na\nb\nc\nFileNotFoundError: x"], failures.EXCEPTION),
        (1, ["ValueError: cannot convert float NaN to integer"], failures.EXCEPTION),
        (1, ["", "MemoryError"], failures.OUT_OF_MEMORY),
        (-9, [""], failures.KILLED),
        (137, [""], failures.KILLED),
        (128, [""], failures.EXCEPTION),
        (129, [""], failures.KILLED),
        (192, [""], failures.KILLED),
        (193, [""], failures.EXCEPTION),
        (255, [""], failures.EXCEPTION),
        (-9, ["MemoryError"], failures.OUT_OF_MEMORY),
        (1, [f"torch.AcceleratorError: CUDA error: out of memory\n{ADVICE}"], failures.OUT_OF_MEMORY),
        (1, [f"[rank3]: torch.AcceleratorError: CUDA error: out of memory\n{ADVICE}"], failures.OUT_OF_MEMORY),
        (1, [f"torch.AcceleratorError: CUDA error: invalid argument\n{ADVICE}"], failures.EXCEPTION),
        (
            1,
            ["RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(h)`"],
            failures.OUT_OF_MEMORY,
        ),
        (
            1,
            ["numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.2 TiB for an array"],
            failures.OUT_OF_MEMORY,
        ),
        (1, ["MemoryError: Unable to allocate 512. MiB for an array with shape (2,)"], failures.OUT_OF_MEMORY),
        (1, ["srun: error: Unable to allocate resources: Invalid partition name"], failures.EXCEPTION),
        (
            134,
            [
                f"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n{'Aborted' * 3}"
            ],
            failures.OUT_OF_MEMORY,
        ),
        (
            134,
            ["terminate called after throwing an instance of 'c10::OutOfMemoryError'\n" + "frame #0: f()\n" * 40],
            failures.OUT_OF_MEMORY,
        ),
        (
            1,
            ["RuntimeError: [enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"],
            failures.OUT_OF_MEMORY,
        ),
        (1, ["Error: cannot allocate vector of size 3.4 Gb\nExecution halted"], failures.OUT_OF_MEMORY),
        (
            1,
            [
                "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory"
            ],
            failures.OUT_OF_MEMORY,
        ),
        (1, ["torch.OutOfMemoryError: CUDA out of memory.\n" + "step\n" * 20 + "stopped"], failures.EXCEPTION),
        (
            1,
            ["torch.OutOfMemoryError: no\nTraceback (most recent call last):\nValueError: no\n" + "x\n" * 4],
            failures.EXCEPTION,
        ),
    ],
)
def test_causes_are_those_of_the_last_exception_or_the_last_lines(code: int, logs: list[str], cause: str) -> None:
    assert failures.of_exit(code, logs) == cause


# What a nested Snakemake prints after its job.
AFTER = """\
[Fri Nov  7 07:58:07 2026]
Error in rule a:
    message: None
    output: a.txt
    shell:
        out of memory
Shutting down, this might take some time.
Exiting because a job execution failed. Look above for error messages
Elapsed time: 0:00:05.329740
WorkflowError:
At least one job did not complete successfully.
"""
PROGRAM = """\
RuleException:
CalledProcessError in file "Snakefile", line 9:
Command 'set -euo pipefail;  echo out of memory' returned non-zero exit status 1.
"""
RUN = """\
RuleException:
{} in file "Snakefile", line 6:
{}
  File "Snakefile", line 6, in __rule_a
  File "a.py", line 6, in f
  File "a.py", line 7, in g
"""


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory\n" + PROGRAM, failures.OUT_OF_MEMORY),
        (f"torch.AcceleratorError: CUDA error: out of memory\n{ADVICE}\n" + PROGRAM, failures.OUT_OF_MEMORY),
        ("ValueError: no\n" + PROGRAM, failures.EXCEPTION),
        ("out of memory, again\na\nb\nValueError: no\n" + PROGRAM, failures.EXCEPTION),
        (RUN.format("MemoryError", "Unable to allocate 3. GiB for an array"), failures.OUT_OF_MEMORY),
        (RUN.format("RuntimeError", "CUDA error: out of memory"), failures.OUT_OF_MEMORY),
        ("out of memory, again\n" + RUN.format("ValueError", "no"), failures.EXCEPTION),
        ("", failures.EXCEPTION),
    ],
)
def test_the_cause_below_a_nested_snakemake_is_that_of_its_job(log: str, cause: str) -> None:
    """Its own report, in which the command of the job is cited, says nothing about the cause."""
    assert failures.of_exit(1, [f"Building DAG of jobs...\n{log}{AFTER}"]) == cause


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "exit code 1"),
        (-9, "signal SIGKILL"),
        (137, "signal SIGKILL"),
        (129, "signal SIGHUP"),
        (128, "exit code 128"),
        (192, "signal SIGRTMAX"),
        (193, "exit code 193"),
        (161, "exit code 161"),
    ],
)
def test_an_exit_code_that_stands_for_a_signal_is_shown_as_the_signal(code: int, words: str) -> None:
    """161 would be signal 33, which has no name."""
    assert failures.ending(code) == words


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device: 'out/1.txt'",
        "bash: line 1: echo: write error: No space left on device",
        "OSError: [Errno 122] Disk quota exceeded",
        "OSError: [Errno 5] Input/output error",
        "cp: cannot stat 'x': Stale file handle",
        "touch: cannot touch 'x': Read-only file system",
        "OSError: [Errno 107] Transport endpoint is not connected: '/scratch'",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "RuntimeError: No CUDA GPUs are available",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        "torch.AcceleratorError: CUDA error: no CUDA-capable device is detected",
    ],
)
def test_a_disk_or_a_gpu_that_fails_is_the_trouble_of_its_host(line: str) -> None:
    assert failures.of_exit(1, [f"some words\n{line}\n"]) == failures.HOST
    assert Stub().cause("FAILED", f"the log:\n{line}\n") == failures.HOST
    assert failures.reason(f"exit code 1\nlog:\n{line}\nthe end") == line


@pytest.mark.parametrize(
    "log",
    [
        "no space left on device: trying again\na\nb\nc\nValueError: no",
        "RuntimeError: CUDA error: device-side assert triggered",
        "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
        "PermissionError: [Errno 13] Permission denied: 'x'",
        "ValueError: no space in the name",
        "KeyError: 28",
    ],
)
def test_a_mistake_of_a_job_is_no_trouble_of_its_host(log: str) -> None:
    assert failures.of_exit(1, [log]) == failures.EXCEPTION


def test_a_kernel_that_does_not_tell_has_killed_nothing(tmp_path: Path) -> None:
    assert failures.memory_kills(tmp_path, tmp_path) == 0
    (tmp_path / "cgroup").write_text("0::/job_1\n")
    assert failures.memory_kills(tmp_path, tmp_path) == 0
    (tmp_path / "job_1").mkdir()
    (tmp_path / "job_1" / "memory.events").write_text("oom 4\n")
    assert failures.memory_kills(tmp_path, tmp_path) == 0


@pytest.mark.parametrize(
    ("group", "file"),
    [("0::/job_1", "job_1/memory.events"), ("9:memory:/slurm/job_1", "memory/slurm/job_1/memory.oom_control")],
)
def test_what_the_kernel_killed_for_want_of_memory_is_counted(tmp_path: Path, group: str, file: str) -> None:
    (tmp_path / "cgroup").write_text(f"3:cpu:/\n{group}\n")
    counts = tmp_path / "groups" / file
    counts.parent.mkdir(parents=True)
    counts.write_text("oom 4\noom_kill 2\n")
    assert failures.memory_kills(tmp_path, tmp_path / "groups") == 2
