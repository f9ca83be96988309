"""Commands and code in forks of a process that has imported their packages, which takes longer than most of what runs in tests."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_WORKFLOW = ["snakemake.cli", "xlgrid.cli", "xlgrid.plan.workflow", "pandas", "transformers.modeling_utils"]
_TRAINING = ["xlgrid.training.loop", "xlgrid.training.pretraining", "transformers.models.bert"]


def run(command: Sequence[str], folder: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run `snakemake ...` or `xlgrid ...` in a folder.

    Raises:
        subprocess.TimeoutExpired: the command takes longer than `timeout` seconds.
    """
    path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return _fork(_WORKFLOW, _command, [*command], timeout, folder, PATH=path)


def python(code: str, *arguments: Any, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run code that trains as `python -c` does, with the arguments in `sys.argv`.

    Raises:
        subprocess.TimeoutExpired: the code takes longer than `timeout` seconds.
    """
    return _fork(_TRAINING, _code, ["-c", *map(str, arguments)], timeout, code)


def _fork(
    preload: list[str], target: Callable[..., None], words: list[str], timeout: float, *more: Any, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Call a function with words in a fork. The return code is negative if a signal ended the process."""
    # It has no effect on a server that runs already, which may have imported other packages.
    _CONTEXT.set_forkserver_preload(preload)
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
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    target(words, *more)


def _command(words: list[str], folder: Path) -> None:
    os.chdir(folder)
    program, *arguments = words
    sys.argv = [str(folder / ".venv" / "bin" / program), *arguments]
    if program == "snakemake":
        from snakemake.cli import main
    else:
        from xlgrid.cli import main
    sys.exit(main())


def _code(words: list[str], code: str) -> None:
    sys.argv = words
    exec(code, {"__name__": "__main__"})
