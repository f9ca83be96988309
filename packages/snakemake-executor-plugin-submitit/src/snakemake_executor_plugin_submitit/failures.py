"""Why jobs fail, in one word each."""

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

# What Slurm calls the end of a job that did not end by itself.
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
# Not the job's fault: it gets another place.
OTHERS_FAULT = {PREEMPTED, NODE_FAILURE}

# Looked for in the last lines of a log, where the error is; further up may stand one that was overcome.
_LINES = 3
_SIGNS = [
    (OUT_OF_MEMORY, re.compile(r"OutOfMemoryError|out of memory|\bMemoryError\b|Cannot allocate memory", re.I)),
    (NAN, re.compile(r"\b(loss|gradient|norm)\b.{0,40}\b(nan|inf|infinite)\b|FloatingPointError", re.I)),
]


def of_exit(code: int, logs: Iterable[str]) -> str:
    """The cause of an exit code (negative: a signal), given the ends of the logs."""
    lasts = [line for log in logs for line in log.strip().splitlines()[-_LINES:]]
    for cause, sign in _SIGNS:
        if any(sign.search(line) for line in lasts):
            return cause
    # A shell reports a signal as 128 + its number.
    return KILLED if code < 0 or 128 < code <= 192 else EXCEPTION


def of_state(state: str) -> str:
    """The cause of a job's end by Slurm's word for it ("CANCELLED by 0", ...)."""
    return STATES.get(state.split()[0] if state else "", KILLED)


def ending(code: int) -> str:
    """An exit code in words; a shell reports a signal as 128 + its number."""
    number = -code if code < 0 else code - 128 if 128 < code <= 192 else None
    try:
        return f"exit code {code}" if number is None else f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


def memory_kills(process: Path = Path("/proc/self"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processes of this one's control group the kernel has killed for want of memory, as far as it tells."""
    with suppress(OSError):
        for line in (process / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                counts = groups / controllers / path.lstrip("/")
                for name in ("memory.events", "memory.oom_control"):
                    with suppress(OSError):
                        found = dict(entry.split() for entry in (counts / name).read_text().splitlines())
                        return int(found.get("oom_kill", 0))
    return 0
