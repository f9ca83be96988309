"""Waiting for what another process does."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], problem: str, seconds: float = 20) -> None:
    """Wait until a condition holds, and fail with `problem` if it still does not after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, problem
        time.sleep(0.05)
