"""A job's own process: prepares a job as Snakemake does, and runs its command in a fork of the worker."""

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from snakemake_executor_plugin_submitit import forked
from snakemake_executor_plugin_submitit.bundles import Bundle, Job

# The variable of a task on this machine that states its cores and GPUs.
HOLDS = "SUBMITIT_HOLDS"
# The variable of a task that states the cluster's name of its host, where that may differ from the host's own.
NODE = "SUBMITIT_NODE"
# Between a host and the GPUs of it that a task holds.
_OF_HOST = " GPU "
# The name of a GPU, or of a part of one, in CUDA_VISIBLE_DEVICES.
DEVICE = re.compile(r"\d+|(GPU|MIG)-[\w/-]+")
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
# How the file with the output of a job is opened.
OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Signals that ask a worker or a job to end.
ASKING = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR2}
# Python ignores these signals, and a program would inherit that.
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def threads(count: int) -> dict[str, str]:
    """The variables by which Snakemake limits the threads of numerical libraries."""
    libraries = ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
    return {f"{library}_THREADS": str(count) for library in libraries}


def set_environment(bundle: Bundle) -> None:
    """Set the variables that Snakemake sets for a shell command; the children of this process inherit them."""
    os.environ.update(threads(bundle.threads))
    temporary = bundle.tmpdir or tempfile.gettempdir()
    for name in ("TMPDIR", "TMP", "TEMPDIR", "TEMP"):
        os.environ[name] = temporary
    os.environ.update(bundle.environment)


def environment() -> dict[str, str]:
    """The variables of this process that are for its jobs, too."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SUBMITIT_")}


def visible_devices(visible: str) -> list[str]:
    """The GPUs that a value of CUDA_VISIBLE_DEVICES names."""
    # As in CUDA, a word that names no device ends the list, such as -1, none, or the NoDevFiles of Slurm.
    names = takewhile(DEVICE.fullmatch, (name.strip() for name in visible.split(",")))
    return list(dict.fromkeys(names))


def place() -> str:
    """Where this process runs its jobs: the host, with the GPUs that the task holds if this machine is the cluster."""
    host = os.environ.get(NODE) or socket.gethostname()
    # A Snakemake in a task on this machine may submit to Slurm, whose tasks inherit the variable.
    is_here = os.environ.get("SUBMITIT_EXECUTOR") == "local"
    gpus = os.environ.get(HOLDS, "").partition(":")[2] if is_here else ""
    return f"{host}{_OF_HOST}{gpus}" if gpus else host


def host_of(place: str) -> str:
    """The host of a `place`."""
    return place.partition(_OF_HOST)[0]


def devices_of(place: str) -> list[str]:
    """The GPUs of a `place`; none if it is a host as a whole."""
    return visible_devices(place.partition(_OF_HOST)[2])


def lacks_gpu(bundle: Bundle) -> str | None:
    """An error message if the task of a bundle requested GPUs, and the variable of CUDA says that it has none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    if not bundle.gpus or visible.strip() == "all" or visible_devices(visible):
        return None
    return (
        f"{bundle.gpus} GPUs are requested, but CUDA_VISIBLE_DEVICES is {visible!r} on {socket.gethostname()}, where the job would run on the "
        "CPU: ask those who run the cluster, or request no GPU"
    )


def make_ready(job: Job, bundle: Bundle, must_end: Callable[[], bool]) -> str | None:
    """Prepare a job as Snakemake does: wait for inputs, remove old outputs, make folders. Returns an error message, if any.

    Args:
        must_end: whether the worker has to end, so that waiting makes no sense.
    """
    if job.kind == "snakemake":
        return None
    directory = Path(bundle.directory)
    deadline = time.time() + bundle.latency_wait
    missing = [path for path in job.inputs if not os.path.lexists(directory / path)]
    while missing and time.time() < deadline and not must_end():
        time.sleep(0.2)
        missing = [path for path in missing if not os.path.lexists(directory / path)]
    if missing:
        return (
            f"these inputs are missing on {socket.gethostname()} after {bundle.latency_wait:g} s (--latency-wait): "
            f"{', '.join(missing)}"
        )
    try:
        os.makedirs(bundle.tmpdir or tempfile.gettempdir(), exist_ok=True)
        for path in job.outputs:
            discard(directory / path, path in job.directories)
        for path in job.logs:
            discard(directory / path, False)
        for path in (*job.outputs, *job.logs, *([job.benchmark] if job.benchmark else [])):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"cannot make room for the outputs: {error}"
    return None


def discard(path: Path, is_directory: bool) -> None:
    """Remove an old output. A folder that is not empty is removed only if the output is a directory."""
    if str(path) == os.devnull:
        return
    if path.is_dir() and not path.is_symlink():
        if is_directory:
            shutil.rmtree(path)
        else:
            with contextlib.suppress(OSError):
                path.rmdir()
    else:
        path.unlink(missing_ok=True)


def spawn(job: Job, bundle: Bundle, environment: dict[str, str], folder: Path, output: Path) -> tuple[int, int]:
    """Start a shell command as `become` runs it, but without a fork of this process, whose memory costs more than the shell.

    Returns: the process id, and a pipe. The shell runs the command when it has read a line from the pipe, and ends when the pipe is
    closed before, so that no command runs that the guard does not know.

    Raises:
        OSError: the shell cannot be started, or the file for its output cannot be made.
    """
    os.chdir(bundle.directory)
    words = shell_words(f"read -r _ || exit; exec < {os.devnull}; {traps(job.command)}", folder)
    receiving, sending = os.pipe()
    try:
        pid = os.posix_spawn(
            words[0],
            words,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.fspath(output), OUTPUT, 0o666),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, receiving, 0),
            ],
            setpgroup=0,
            setsigmask=(),
            setsigdef=(*signal.pthread_sigmask(signal.SIG_BLOCK, ()), *IGNORED),
        )
    except OSError:
        os.close(sending)
        raise
    finally:
        os.close(receiving)
    yield_memory(pid)
    return pid, sending


def yield_memory(process: int | str) -> None:
    """When memory runs out, let the kernel kill this job and not the worker."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{process}/oom_score_adj").write_text("1000")


def separate(parent: int, pipes: Iterable[int]) -> None:
    """In the fork: become a process like one that a shell starts.

    Args:
        parent: process id of the worker; if the worker has died meanwhile, this process ends.
        pipes: descriptors of the worker that the process must not inherit.
    """
    die_with_parent()
    for pipe in pipes:
        os.close(pipe)
    os.setpgid(0, 0)
    if os.getppid() != parent:
        os._exit(1)
    for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    yield_memory("self")


def open_output(path: Path) -> None:
    """Let this process write to the file with the output of a job, and read nothing."""
    for source, number in ((os.open(path, OUTPUT, 0o666), 1), (os.open(os.devnull, os.O_RDONLY), 0)):
        os.dup2(source, number)
        if source > 2:
            os.close(source)
    os.dup2(1, 2)


def forget_submitit() -> None:
    """Remove the variables of this process that are not for jobs."""
    for name in os.environ.keys() - environment().keys():
        del os.environ[name]


def become(
    job: Job,
    bundle: Bundle,
    command: forked.Plain | None,
    folder: Path,
    output: Path,
    parent: int,
    pipes: Iterable[int],
) -> NoReturn:
    """In the fork: run the job.

    Args:
        command: the command of a console script that runs without a new Python; None for any other job.
        folder: of the bundle.
        output: file for the output of the job.
        parent, pipes: as for `separate`.
    """
    try:
        separate(parent, pipes)
        open_output(output)
        nested = job.kind == "snakemake"
        os.chdir(bundle.origin if nested and bundle.origin else bundle.directory)
        if job.benchmark:
            benchmark(job.benchmark, command is None)
        execute(job, command, folder)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)


def execute(job: Job, command: forked.Plain | None, folder: Path) -> NoReturn:
    """Become the job's command; does not return."""
    forget_submitit()
    if job.kind == "snakemake":
        words = shlex.split(job.command) if forked.plain(job.command) else []
        if words[1:3] == ["-m", "snakemake"]:
            forked.run_snakemake(words[3:])
        bash(job.command, folder)
    if command:
        redirect_or_exit(command)
        forked.run(command.words)
    bash(traps(job.command), folder)


def redirect_or_exit(command: forked.Plain) -> None:
    """Redirect descriptors of this process for a command; if a file cannot be opened, end the process as a shell would."""
    try:
        forked.redirect(command.redirections)
    except OSError as error:
        os.write(2, f"{error.filename}: {error.strerror}\n".encode())
        os._exit(1)


def traps(command: str) -> str:
    """A command, for a shell that stays alive until its child has saved its state. The child does not inherit the trap."""
    return f"trap : USR2 TERM; set -euo pipefail; {command}"


@cache
def find_bash() -> str:
    """The path of bash."""
    return shutil.which("bash") or "bash"


def shell_words(text: str, folder: Path) -> list[str]:
    """The command line of a shell that runs a script."""
    if len(os.fsencode(text)) < 100_000:
        return [find_bash(), "-c", text]
    # The script is longer than an argument may be.
    with tempfile.NamedTemporaryFile(dir=folder, prefix="command-", suffix=".sh", delete=False) as file:
        file.write(os.fsencode(text))
    return [find_bash(), file.name]


def bash(text: str, folder: Path) -> NoReturn:
    """Become a shell that runs a script; does not return."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    words = shell_words(text, folder)
    os.execvp(words[0], words)


def benchmark(path: str, is_program: bool) -> None:
    """Fork again. The new process returns; this one measures it, writes Snakemake's benchmark table, and exits.

    Args:
        is_program: the new process becomes another program, and the memory of this one, which it has until then, does not count.
    """
    from snakemake.benchmark import benchmarked, write_benchmark_records

    watcher = os.getpid()
    # The sending end closes when the new process becomes a program, or ends.
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        if os.getppid() != watcher:
            os._exit(1)
        if not is_program:
            os.close(sending)
        return
    os.close(sending)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    os.read(receiving, 1)
    with benchmarked(pid) as record:
        _, ended = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(ended)
    if code == 0:
        write_benchmark_records([record], path, False)
    elif code < 0:
        # SIGKILL takes no handler; the kernel refuses to set even the default.
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(watcher, -code)
    os._exit(code & 0xFF)
