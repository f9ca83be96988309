"""The lines of the log while a training runs."""

import pytest

from xlgrid.training import progress
from xlgrid.training.progress import Progress


def test_a_line_says_losses_speed_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    log = Progress(100, 1000)
    for step in range(101, 161):
        # The clock never shows exactly 30 seconds, and a line comes with the first step after them.
        now += 1.03
        log.add(step, {"MLM": float(step % 2), "NSP": 0.25}, 50, 1e-3)
    assert capsys.readouterr().err.splitlines() == [
        "step 130/1000  MLM 0.5000  NSP 0.2500  49 tokens/s  lr 0.001  14 min 56 s left",
        "step 160/1000  MLM 0.5000  NSP 0.2500  49 tokens/s  lr 0.001  14 min 25 s left",
    ]
