"""The plugin as every run of Snakemake imports it, nested runs included."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import snakemake_executor_plugin_submitit as plugin
from snakemake_executor_plugin_submitit import failures
from snakemake_executor_plugin_submitit.bundles import Bundle
from snakemake_executor_plugin_submitit.clusters.local import Local
from snakemake_executor_plugin_submitit.clusters.slurm import BUSY, HOPELESS
from snakemake_executor_plugin_submitit.dispatch import Dispatcher, Settings
from snakemake_executor_plugin_submitit.resources import TABLE

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


def test_every_setting_has_a_sentence_of_help_and_a_default() -> None:
    wrong = [field.name for field in fields(plugin.ExecutorSettings) if not field.metadata["help"].endswith(".")]
    assert wrong == []


def test_settings_that_a_resource_overrides_say_so() -> None:
    settings = {field.name: field.metadata["help"] for field in fields(plugin.ExecutorSettings)}
    named = [name for name, (where, _) in TABLE.items() if where in settings and name in settings[where]]
    assert {TABLE[name][0] for name in named} == {"partition", "account", "qos", "constraint", "gres"}


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


def test_what_lies_on_disk_is_for_the_owner_alone(tmp_path: Path) -> None:
    """Values of `envvars` are in it."""
    Bundle((), str(tmp_path), environment={"TOKEN": "secret"}).write(tmp_path / "bundle")
    assert (tmp_path / "bundle" / "bundle.json").stat().st_mode & 0o077 == 0


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
    ],
)
def test_causes_are_those_of_the_last_lines(code: int, logs: list[str], cause: str) -> None:
    assert failures.of_exit(code, logs) == cause


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
    ("word", "cause"),
    [
        ("CANCELLED by 0", failures.CANCELLED),
        ("CANCELLED", failures.CANCELLED),
        ("NODE_FAIL", failures.NODE_FAILURE),
        ("FAILED", failures.KILLED),
        ("", failures.KILLED),
    ],
)
def test_the_cause_of_the_end_of_a_task_is_the_first_word_of_slurm(word: str, cause: str) -> None:
    assert failures.of_state(word) == cause


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


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Batch job submission failed: Invalid partition name specified", "hopeless"),
        ("sbatch: error: invalid partition specified: connectome", "hopeless"),
        ("Requested node configuration is not available", "hopeless"),
        ("Socket timed out on send/recv operation", "busy"),
        ("Unable to contact slurm controller (connect failure)", "busy"),
        ("Invalid job credential", "busy"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "busy"),
        ("Something new", "unknown"),
    ],
)
def test_what_sbatch_says(words: str, kind: str) -> None:
    answer = "hopeless" if HOPELESS.search(words) else "busy" if BUSY.search(words) else "unknown"
    assert answer == kind
