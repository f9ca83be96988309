"""Commands of Snakemake and xlgrid in forks of a process that has imported their packages, which takes longer than a dry run."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["snakemake.cli", "xlgrid.cli", "xlgrid.plan.workflow", "pandas"])


def run(command: Sequence[str], folder: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run `snakemake ...` or `xlgrid ...` in a folder.

    Raises:
        subprocess.TimeoutExpired: the command takes longer than `timeout` seconds.
    """
    with tempfile.TemporaryDirectory() as written:
        files = [Path(written, name) for name in ("stdout", "stderr")]
        process = _CONTEXT.Process(target=_main, args=([*command], folder, {**os.environ}, files))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired([*command], timeout)
        output, errors = (file.read_text(errors="replace") for file in files)
    return subprocess.CompletedProcess([*command], process.exitcode or 0, output, errors)


def _main(command: list[str], folder: Path, environment: dict[str, str], files: list[Path]) -> None:
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, PATH=f"{folder / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}")
    program, *arguments = command
    sys.argv = [str(folder / ".venv" / "bin" / program), *arguments]
    if program == "snakemake":
        from snakemake.cli import main
    else:
        from xlgrid.cli import main
    sys.exit(main())
