"""The signals that ask a training to save its state and end."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# A scheduler sends SIGTERM or SIGUSR2, and Ctrl-C sends SIGINT.
SIGNALS = (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)


class Stopped(Exception):
    """A signal asked the process to end."""


@contextlib.contextmanager
def signals() -> Iterator[list[signal.Signals]]:
    """A list that receives `SIGNALS` while the block runs. Outside the main thread, it stays empty."""
    received: list[signal.Signals] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number))

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        yield received
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
