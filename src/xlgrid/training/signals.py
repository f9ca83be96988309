"""The signals that ask a training to save its state and end."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Stopped(Exception):
    """A signal asked the process to end."""


@contextlib.contextmanager
def signals() -> Iterator[list[signal.Signals]]:
    """A list that receives SIGTERM and SIGUSR2 while the block runs (in the main thread; else it stays empty)."""
    got: list[signal.Signals] = []

    def note(number: int, frame: FrameType | None) -> None:
        got.append(signal.Signals(number))

    if threading.current_thread() is not threading.main_thread():
        yield got
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGUSR2)}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
