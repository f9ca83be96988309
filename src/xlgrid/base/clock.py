"""The time that work takes, in seconds on the wall and seconds of CPUs, and in words."""

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
        """Count the time of an earlier, interrupted part of the work.

        Args:
            earlier: what `read` returned then; entries that are missing count as 0 (old states have no `cpu_seconds`).
        """
        self._earlier = {name: earlier.get(name, 0.0) for name in ENTRIES}

    @property
    def of_process(self) -> float:
        """CPU-seconds of all threads of this process, in user and system mode, without the time that `add` counts."""
        return time.process_time() - self._cpu_began

    def read(self) -> dict[str, float]:
        """`seconds` and `cpu_seconds` up to now, earlier parts included, to the millisecond."""
        now = {"seconds": time.monotonic() - self._began, "cpu_seconds": self.of_process + self.others}
        return {name: round(self._earlier[name] + now[name], 3) for name in ENTRIES}


def duration(seconds: float) -> str:
    """A time in words, in its largest unit and the next one unless that is zero: `8.4 s`, `12 min 5 s`, `3 h`, `2 d 3 h`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    largest = next(at for at, (number, _) in enumerate(units) if number)
    return " ".join(f"{number} {unit}" for number, unit in units[largest : largest + 2] if number)


def minutes(seconds: float) -> str:
    """An estimated time in words, in whole minutes, at least one: `2 h 10 min`."""
    return duration(max(60 * round(seconds / 60), 60))
