"""Fixtures of all tests of the plugin."""

import signal
from pathlib import Path

import pytest
from clocked import Clock, Cluster, begin
from real_slurm import slurm

from snakemake_executor_plugin_submitit import dispatch, submission
from snakemake_executor_plugin_submitit.dispatch import Dispatcher

__all__ = ["slurm"]

# Tests send these signals to processes that they start, and a process inherits an ignored signal from `nohup` or from a
# shell that runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the head; its time passes only when the test says so."""
    clock = Clock()
    for module in (dispatch, submission):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def cluster(clock: Clock) -> Cluster:
    """A cluster whose tasks the test ends."""
    return Cluster(clock)


@pytest.fixture
def messages() -> list[str]:
    """What the head says."""
    return []


@pytest.fixture
def head(cluster: Cluster, tmp_path: Path, messages: list[str]) -> Dispatcher:
    """A head that follows no earlier head."""
    return begin(cluster, tmp_path, messages)
