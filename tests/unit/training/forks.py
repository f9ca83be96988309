"""Code in a process of its own, forked from one that has imported what trains, which takes longer than most of the trainings here."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["xlgrid.training.loop", "xlgrid.training.pretraining", "transformers.models.bert"])


def run(code: str, *arguments: Any, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run code as `python -c` does, with the arguments in `sys.argv`. The exit code is negative if a signal ended the process.

    Raises:
        subprocess.TimeoutExpired: the code takes longer than `timeout` seconds.
    """
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as written:
        files = [Path(written, name) for name in ("stdout", "stderr")]
        process = _CONTEXT.Process(target=_main, args=(code, words, {**os.environ}, files))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(words, timeout)
        output, errors = (file.read_text(errors="replace") for file in files)
    return subprocess.CompletedProcess(words, process.exitcode or 0, output, errors)


def _main(code: str, words: list[str], environment: dict[str, str], files: list[Path]) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *words]
    exec(code, {"__name__": "__main__"})
