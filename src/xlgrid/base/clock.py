"""The time that work takes: seconds on the wall, and seconds of CPUs."""

import time
from collections.abc import Mapping

ENTRIES = ("seconds", "cpu_seconds")


class Clock:
    """Counts from the moment when it is made.

    A machine that other work shares lets the wall time grow, and hardly the CPU-seconds.

    Attributes:
        others: CPU-seconds of other processes that share the work.
    """

    def __init__(self) -> None:
        self._began, self._cpu_began = time.monotonic(), time.process_time()
        self._earlier = dict.fromkeys(ENTRIES, 0.0)
        self.others = 0.0

    def add(self, earlier: Mapping[str, float]) -> None:
        """Count the time of an interrupted part of the work, as `read` gave it then. State of before CPU-seconds has none."""
        self._earlier = {name: earlier.get(name, 0.0) for name in ENTRIES}

    @property
    def of_process(self) -> float:
        """CPU-seconds of all threads of this process, in user and system mode, without `earlier` ones."""
        return time.process_time() - self._cpu_began

    def read(self) -> dict[str, float]:
        """`seconds` and `cpu_seconds` up to now, earlier parts included, to the millisecond."""
        now = {"seconds": time.monotonic() - self._began, "cpu_seconds": self.of_process + self.others}
        return {name: round(self._earlier[name] + now[name], 3) for name in ENTRIES}
