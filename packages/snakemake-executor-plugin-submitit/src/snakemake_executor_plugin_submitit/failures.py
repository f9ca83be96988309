"""The causes of failures, and how they are recognised by exit codes and logs."""

import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

OUT_OF_MEMORY = "out of memory"
TIMEOUT = "timeout"
PREEMPTED = "preempted"
NODE_FAILURE = "node failure"
CANCELLED = "cancelled"
NAN = "NaN"
EXCEPTION = "exception"
KILLED = "killed"
REFUSED = "refused by the cluster"
REJECTED = "rejected by Snakemake"
UNREADABLE = "unreadable status"
HOST = "trouble of the host"

# Causes for which a job is not to blame, so that it is submitted again.
OTHERS_FAULT = {PREEMPTED, NODE_FAILURE, HOST}

# Only the last lines of a log are searched, because an error further up may have been overcome: these many, or the last exception and what
# it prints below its name, such as advice, if it is no longer than so many lines.
_LINES, _EXCEPTION = 3, 12
_NAME = re.compile(r"(\[rank\d+\]: )?([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception)(:|$)")
# The C++ library prints this before it aborts the process.
_ABORT = "terminate called "
# Signs that a GPU is broken, or in the hands of others: torch has not even got the first of its memory.
_OF_GPU = re.compile(
    r"Of the allocated memory 0 bytes is allocated by PyTorch|"
    r"CUDA(-capable)? (driver initialization failed|devices?\b.{0,12} (busy|unavailable)|unknown error)|"
    r"no CUDA-capable device|uncorrectable (NVLink|ECC) error|No CUDA GPUs are available|cudaErrorDevicesUnavailable|"
    r"cudaErrorInitializationError|CUDA_ERROR_(NO_DEVICE|NOT_INITIALIZED|SYSTEM_NOT_READY|ECC_UNCORRECTABLE)",
    re.I,
)
_OF_DISK = re.compile(
    r"No space left on device|Disk quota exceeded|Input/output error|Stale (NFS )?file handle|Read-only file system|"
    r"Transport endpoint is not connected|\[Errno (5|28|30|107|116|122)\]",
    re.I,
)
_SIGNS = [
    (HOST, _OF_GPU),
    (
        OUT_OF_MEMORY,
        re.compile(
            r"OutOfMemory|out of memory|MemoryError\b|cannot allocate (memory|vector)|can't allocate memory|bad_alloc|"
            r"STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|Unable to allocate [\d.]+ ([KMGTPE]i?B|bytes)|not enough memory|"
            r"\boom[_-]kill",
            re.I,
        ),
    ),
    (HOST, _OF_DISK),
    (NAN, re.compile(r"\b(loss|gradient|norm)\b.{0,40}\b(nan|inf|infinite)\b|FloatingPointError", re.I)),
]
# A nested Snakemake prints this report after its job.
_REPORT = re.compile(r"^\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\]\nError in (rule|group) ", re.M)
# Snakemake prints the exception of a job below this line. A job that is another program has printed its own, and this one says only that
# the program has failed.
_RULE_EXCEPTION, _OF_A_PROGRAM = "\nRuleException:\n", "CalledProcessError "


def of_exit(code: int, logs: Iterable[str]) -> str:
    """The cause of a failure by its exit code (negative for a signal) and the ends of its logs."""
    last_lines = [line for log in logs for line in _last_lines(log)]
    for cause, sign in _SIGNS:
        if any(sign.search(line) for line in last_lines):
            return cause
    # A shell reports a signal as 128 + its number.
    return KILLED if code < 0 or 128 < code <= 192 else EXCEPTION


def reason(message: str) -> str:
    """The line of a message that tells why the host is to blame for a failure, or else the first one."""
    lines = message.splitlines() or [""]
    return next((line for line in reversed(lines) if _OF_GPU.search(line) or _OF_DISK.search(line)), lines[0])


def is_of_gpu(message: str) -> bool:
    """Whether a GPU of the host, and not the host as a whole, is to blame for a failure."""
    return _OF_GPU.search(reason(message)) is not None


def _last_lines(log: str) -> list[str]:
    """The lines at the end of a log that tell why the job ended."""
    if report := _REPORT.search(log):
        log = log[: report.start()]
    log, named, exception = f"\n{log}".rpartition(_RULE_EXCEPTION)
    if named and not exception.startswith(_OF_A_PROGRAM):
        return exception.splitlines()
    lines = (log if named else exception).strip().splitlines()
    last = [n for n, line in enumerate(lines) if line.startswith(_ABORT)]
    last += [n for n, line in enumerate(lines) if n >= len(lines) - _EXCEPTION and _NAME.match(line)]
    return lines[min(max(last, default=len(lines)), max(0, len(lines) - _LINES)) :]


def ending(code: int) -> str:
    """An exit code in words. A shell reports a signal as 128 + its number."""
    number = -code if code < 0 else code - 128 if 128 < code <= 192 else None
    try:
        return f"exit code {code}" if number is None else f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


def memory_kills(process: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processes of this process's control group the kernel has killed for lack of memory; 0 if it does not tell."""
    with suppress(OSError):
        for line in (process / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                counts = groups / controllers / path.lstrip("/")
                for name in ("memory.events", "memory.oom_control"):
                    with suppress(OSError):
                        counters = dict(entry.split() for entry in (counts / name).read_text().splitlines())
                        return int(counters.get("oom_kill", 0))
    return 0
