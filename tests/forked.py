"""Commands and code in forks of a process that has imported their packages, which takes longer than most of what runs in tests."""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.managers import BaseManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from xlgrid import warm

_FORK = multiprocessing.get_context("fork")
_CONTEXT = multiprocessing.get_context("forkserver")
# Half of the time of an import of transformers is that of the classes of models.
_MODELS = [f"transformers.models.{name}.modeling_{name}" for name in ("bert", "mbart", "xlm_roberta")]
_COMMANDS = [library for libraries in warm.LIBRARIES.values() for library in libraries]
_CONTEXT.set_forkserver_preload(
    ["snakemake.cli", "submitit.local.local", "xlgrid.cli.app", "xlgrid.plan.workflow", *_COMMANDS, *_MODELS]
)


def run(command: Sequence[str], folder: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run `snakemake ...` or `xlgrid ...` in a folder.

    Raises:
        subprocess.TimeoutExpired: the command takes longer than `timeout` seconds.
    """
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return _fork(_command, [*command], timeout, folder, PATH=path)


def python(code: str, *arguments: Any, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run code that trains as `python -c` does, with the arguments in `sys.argv`.

    Raises:
        subprocess.TimeoutExpired: the code takes longer than `timeout` seconds.
    """
    return _fork(_code, ["-c", *map(str, arguments)], timeout, code)


def _fork(
    target: Callable[..., None], words: list[str], timeout: float, *more: Any, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Call a function with words in a fork. The return code is negative if a signal ended the process."""
    with tempfile.TemporaryDirectory() as written:
        files = [Path(written, name) for name in ("stdout", "stderr")]
        arguments = (target, words, {**os.environ, **variables}, files, *more)
        process = _CONTEXT.Process(target=_begin, args=arguments)
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(words, timeout)
        output, errors = (file.read_text(errors="replace") for file in files)
    return subprocess.CompletedProcess(words, process.exitcode or 0, output, errors)


def _begin(
    target: Callable[..., None], words: list[str], environment: dict[str, str], files: list[Path], *more: Any
) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    target(words, *more)


def _command(words: list[str], folder: Path) -> None:
    os.chdir(folder)
    program, *arguments = words
    sys.argv = [str(folder / ".venv" / "bin" / program), *arguments]
    if program == "snakemake":
        from snakemake.cli import main

        _fork_tasks()
    else:
        from xlgrid.cli import main
    sys.exit(main())


def _code(words: list[str], code: str) -> None:
    sys.argv = words
    exec(code, {"__name__": "__main__"})


def _fork_tasks() -> None:
    """Let the tasks of submitit on this machine be forks. Snakemake starts the controller of a task, which starts the task."""
    from submitit.local import local

    # The nursery has this from now on, and so have the controllers, which are its forks.
    local.subprocess = SimpleNamespace(Popen=_Task)  # type: ignore[attr-defined]
    nursery = _Nursery(ctx=_FORK)
    nursery.start()

    def controller(*arguments: Any, **options: Any) -> Any:
        task = nursery.Task(*arguments, **options)  # type: ignore[attr-defined]
        task.pid = task.number()
        return task

    # Snakemake itself asks the nursery.
    local.subprocess = SimpleNamespace(Popen=controller)  # type: ignore[attr-defined]


class _Task:
    """Runs a command `env ... python ... -m module ...` in a fork. Submitit calls it in place of `subprocess.Popen`."""

    def __init__(self, command: list[str], env: dict[str, str], stdout: Any = None, **_: Any) -> None:
        self._process = _FORK.Process(target=_module, args=(command, env, stdout))
        self._process.start()
        self.pid = self._process.pid

    def number(self) -> int | None:
        return self.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.pid and self.poll() is None:
            os.kill(self.pid, number)


class _Nursery(BaseManager):
    """A process that forks for Snakemake, which has threads and open files by then."""


_Nursery.register("Task", _Task)


def _module(words: list[str], environment: dict[str, str], written: Any) -> None:
    import torch

    if written:
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    before, arguments = words[: words.index("-m")], words[words.index("-m") + 1 :]
    if before[:2] == ["env", "-u"]:
        os.environ.pop(before[2], None)
    os.environ.update(word.split("=", 1) for word in before if "=" in word)
    # OpenMP read the variable when torch was imported.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
