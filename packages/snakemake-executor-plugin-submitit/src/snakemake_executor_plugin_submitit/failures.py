"""The causes of failures, and how they are recognised by exit codes, logs and Slurm's states."""

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

# Slurm's states of a task that did not end by itself.
STATES = {
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "TIMEOUT": TIMEOUT,
    "DEADLINE": TIMEOUT,
    "PREEMPTED": PREEMPTED,
    "NODE_FAIL": NODE_FAILURE,
    "BOOT_FAIL": NODE_FAILURE,
    "REVOKED": NODE_FAILURE,
    "CANCELLED": CANCELLED,
}
# Causes for which a job is not to blame, so that it is submitted again.
OTHERS_FAULT = {PREEMPTED, NODE_FAILURE}

# Only the last lines of a log are searched, because an error further up may have been overcome.
_LINES = 3
_SIGNS = [
    (OUT_OF_MEMORY, re.compile(r"OutOfMemoryError|out of memory|\bMemoryError\b|Cannot allocate memory", re.I)),
    (NAN, re.compile(r"\b(loss|gradient|norm)\b.{0,40}\b(nan|inf|infinite)\b|FloatingPointError", re.I)),
]


def of_exit(code: int, logs: Iterable[str]) -> str:
    """The cause of a failure by its exit code (negative for a signal) and the ends of its logs."""
    last_lines = [line for log in logs for line in log.strip().splitlines()[-_LINES:]]
    for cause, sign in _SIGNS:
        if any(sign.search(line) for line in last_lines):
            return cause
    # A shell reports a signal as 128 + its number.
    return KILLED if code < 0 or 128 < code <= 192 else EXCEPTION


def of_state(state: str) -> str:
    """The cause of a failure by Slurm's state of the task ("CANCELLED by 0", for example)."""
    return STATES.get(state.split()[0] if state else "", KILLED)


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
