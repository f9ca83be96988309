"""Wall time and CPU time of work in parts."""

import threading
import time

import pytest

from xlgrid.base.clock import Clock, duration, minutes


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_clock_counts_all_threads_and_no_sleep() -> None:
    clock = Clock()
    time.sleep(0.2)
    asleep = clock.read()
    assert asleep["seconds"] >= 0.2 and asleep["cpu_seconds"] < 0.1
    threads = [threading.Thread(target=burn, args=(0.1,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    awake = clock.read()
    assert 0.2 <= awake["cpu_seconds"] - asleep["cpu_seconds"] < 0.4


def test_what_was_before_the_clock_does_not_count() -> None:
    burn(0.05)
    assert Clock().read()["cpu_seconds"] < 0.04


def test_parts_of_interrupted_work_and_other_processes_add_up() -> None:
    clock = Clock()
    clock.add({"seconds": 1000.0, "cpu_seconds": 3000.0, "step": 7})
    clock.others = 500.0
    assert 1000.0 <= clock.read()["seconds"] < 1010.0 and 3500.0 <= clock.read()["cpu_seconds"] < 3510.0
    assert clock.of_process < 10.0
    clock.add({"seconds": 1000.0})
    assert 500.0 <= clock.read()["cpu_seconds"] < 510.0


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.0 s"),
        (8.44, "8.4 s"),
        (59.96, "1 min"),
        (119.7, "2 min"),
        (725, "12 min 5 s"),
        (3599.9, "1 h"),
        (12_000, "3 h 20 min"),
        (86_400, "1 d"),
        (100_000, "1 d 3 h"),
    ],
)
def test_a_duration_has_two_units(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, "1 min"), (95, "2 min"), (3_599, "1 h"), (7_800, "2 h 10 min")])
def test_an_estimate_has_whole_minutes(seconds: float, expected: str) -> None:
    assert minutes(seconds) == expected
