"""A job's own process: made ready as Snakemake does it, and, in a fork of the worker, what a shell would have started."""

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from snakemake_executor_plugin_submitit import forked
from snakemake_executor_plugin_submitit.bundles import Bundle, Job

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def threads(count: int) -> dict[str, str]:
    """The variables in which Snakemake tells numerical libraries how many threads to use."""
    libraries = ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
    return {f"{library}_THREADS": str(count) for library in libraries}


def set_environment(bundle: Bundle) -> None:
    """Give this process the environment that Snakemake sets for a shell command; its children inherit it."""
    os.environ.update(threads(bundle.threads))
    temporary = bundle.tmpdir or tempfile.gettempdir()
    for name in ("TMPDIR", "TMP", "TEMPDIR", "TEMP"):
        os.environ[name] = temporary
    os.environ.update(bundle.environment)


def make_ready(job: Job, bundle: Bundle, asked: Callable[[], bool]) -> str | None:
    """What Snakemake does before a job: wait for inputs, remove old outputs, make folders. Returns what is wrong.

    Args:
        asked: whether the worker has to end, so that waiting makes no sense.
    """
    if job.kind == "snakemake":
        return None
    here = Path(bundle.directory)
    deadline = time.time() + bundle.latency_wait
    missing = [path for path in job.inputs if not os.path.lexists(here / path)]
    while missing and time.time() < deadline and not asked():
        time.sleep(0.2)
        missing = [path for path in missing if not os.path.lexists(here / path)]
    if missing:
        return (
            f"these inputs are missing on {socket.gethostname()} after {bundle.latency_wait:g} s (--latency-wait): "
            f"{', '.join(missing)}"
        )
    try:
        os.makedirs(bundle.tmpdir or tempfile.gettempdir(), exist_ok=True)
        for path in job.outputs:
            discard(here / path, path in job.directories)
        for path in job.logs:
            discard(here / path, False)
        for path in (*job.outputs, *job.logs, *([job.benchmark] if job.benchmark else [])):
            (here / path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"cannot make room for the outputs: {error}"
    return None


def discard(path: Path, directory: bool) -> None:
    """Remove an output of old; a folder only if the rule says that it makes one, or it is empty."""
    if str(path) == os.devnull:
        return
    if path.is_dir() and not path.is_symlink():
        if directory:
            shutil.rmtree(path)
        else:
            with contextlib.suppress(OSError):
                path.rmdir()
    else:
        path.unlink(missing_ok=True)


def become(
    job: Job,
    bundle: Bundle,
    command: forked.Plain | None,
    folder: Path,
    output: Path,
    parent: int,
    guard: int | None,
) -> NoReturn:
    """In the fork: become a process like the one that a shell would have started, and run the job.

    Args:
        command: what runs without a new Python, if the job is of that kind.
        folder: of the bundle.
        output: file for what it prints.
        parent: the worker; if it is not any more, all ends here.
        guard: the worker's pipe, which is not the job's.
    """
    try:
        die_with_parent()
        if guard is not None:
            os.close(guard)
        os.setpgid(0, 0)
        if os.getppid() != parent:
            os._exit(1)
        for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        with contextlib.suppress(OSError):
            # Of all in this task, the kernel should rather kill this one when memory runs out.
            Path("/proc/self/oom_score_adj").write_text("1000")
        opened = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        nested = job.kind == "snakemake"
        os.chdir(bundle.origin if nested and bundle.origin else bundle.directory)
        if job.benchmark:
            benchmark(job.benchmark)
        execute(job, command, folder)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)


def execute(job: Job, command: forked.Plain | None, folder: Path) -> NoReturn:
    """Become the job's command; does not return."""
    for name in [name for name in os.environ if name.startswith("SUBMITIT_")]:
        del os.environ[name]
    if job.kind == "snakemake":
        words = shlex.split(job.command) if forked.plain(job.command) else []
        if words[1:3] == ["-m", "snakemake"]:
            forked.run_snakemake(words[3:])
        bash(job.command, folder)
    if command:
        try:
            forked.redirect(command.redirections)
        except OSError as error:
            os.write(2, f"{error.filename}: {error.strerror}\n".encode())
            os._exit(1)
        forked.run(command.words)
    # The trap keeps the shell alive until what it runs has saved its state; what it runs does not inherit it.
    bash(f"trap : USR2 TERM; set -euo pipefail; {job.command}", folder)


def bash(text: str, folder: Path) -> NoReturn:
    """Become a shell that runs a text; does not return."""
    # Python ignores these, which every program but Python would inherit.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    shell = shutil.which("bash") or "bash"
    if len(os.fsencode(text)) < 100_000:
        os.execvp(shell, [shell, "-c", text])
    # Longer than an argument may be.
    with tempfile.NamedTemporaryFile(dir=folder, prefix="command-", suffix=".sh", delete=False) as file:
        file.write(os.fsencode(text))
    os.execvp(shell, [shell, file.name])


def benchmark(path: str) -> None:
    """Fork again, return in the new process, and watch it from this one, which writes Snakemake's benchmark table."""
    from snakemake.benchmark import benchmarked, write_benchmark_records

    watcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        if os.getppid() != watcher:
            os._exit(1)
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    with benchmarked(pid) as record:
        _, ended = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(ended)
    if code == 0:
        write_benchmark_records([record], path, False)
    elif code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(watcher, -code)
    os._exit(code & 0xFF)
