"""What asks a head to end: the signals, and what a person is told while jobs still run."""

import functools
import inspect
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

# Running jobs that the message names.
NAMED = 3
# A signal that every other program ignores, which here means nothing but that the main thread is to look for signals.
WAKE = signal.SIGURG


class RunningJob(NamedTuple):
    """A job that still runs while the head is asked to end.

    Attributes:
        name: its first output, or its rule.
        until: unix time of its time limit; None if it has none.
    """

    name: str
    until: float | None


class Requests:
    """The signals that ask this head to end. Only the main thread may make it.

    Snakemake's own handler of SIGTERM takes a lock that the interrupted thread may hold, and then waits for itself for ever.
    The handler here sets a flag, which another thread looks at.

    Attributes:
        first: the name of the first SIGTERM, empty before it.
        is_final: whether jobs are being ended, so that further signals change nothing.
        snakemake: has Snakemake's scheduler, which is the argument, start no further job.
    """

    def __init__(self, scheduler: type[Any]) -> None:
        """Take the place of Snakemake's handler.

        Args:
            scheduler: Snakemake's class, whose instance has not installed its handler yet.
        """
        self.first = ""
        self.is_final = False
        self.snakemake: Callable[[Any], None] = inspect.unwrap(scheduler.exit_gracefully)
        original = self.snakemake

        @functools.wraps(original)
        def exit_gracefully(scheduler: Any, number: int, frame: FrameType | None) -> None:
            self.take(number, frame)

        scheduler.exit_gracefully = exit_gracefully

    def hear_hangup(self) -> None:
        """Treat the end of the terminal like Ctrl-C, unless it is ignored, as under nohup."""
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, self.take)

    def take(self, number: int, frame: FrameType | None) -> None:
        """The handler: note the first SIGTERM. The second one, and SIGHUP, end the run like Ctrl-C.

        Raises:
            KeyboardInterrupt: the run is to end at once.
        """
        if self.is_final:
            return
        if number == signal.SIGTERM and not self.first:
            self.first = signal.Signals(number).name
            return
        self.is_final = True
        raise KeyboardInterrupt


def wake_on_signals() -> None:
    """Have the main thread, which is the caller, run the handler of a signal at once, whichever thread received the signal.

    Linux may deliver a signal of the process to a thread that is about to start a command. Python notes the signal, but only the
    main thread runs handlers, and a main thread that waits for a lock would not notice.
    """
    main = threading.get_ident()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(WAKE, lambda *_: None)

    def wake() -> None:
        while True:
            if set(os.read(reader, 1024)) - {WAKE}:
                signal.pthread_kill(main, WAKE)

    threading.Thread(target=wake, daemon=True).start()


def waiting_for(signal_name: str, running: Sequence[RunningJob]) -> str:
    """What a person is told about a head that waits for running jobs."""
    count = len(running)
    names = ", ".join(job.name for job in running[:NAMED]) + (f" and {count - NAMED} more" if count > NAMED else "")
    limits = [job.until for job in running if job.until is not None]
    if len(limits) == count:
        minutes = max(1, math.ceil((max(limits) - time.time()) / 60))
        limit = f"for {minutes} {'minute' if minutes == 1 else 'minutes'} at most"
    else:
        limit = "without a time limit"
    jobs = "the job that runs" if count == 1 else f"the {count} jobs that run"
    return (
        f"{signal_name}: no further job starts. Snakemake waits, {limit}, for {jobs}: {names}. Another SIGTERM "
        f"(kill {os.getpid()}) or Ctrl-C ends the run at once, and the same command continues it"
    )
