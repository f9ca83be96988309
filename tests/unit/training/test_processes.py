"""The exchange between the processes of a training; test_pretraining.py trains with two."""

from typing import Any

import pytest
import torch

from xlgrid.training import processes
from xlgrid.training.processes import Processes

CPU = torch.device("cpu")


def test_a_process_that_torchrun_has_not_started_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some clusters set the number of tasks of every job.
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    alone = processes.join(CPU)
    assert (alone.count, alone.rank, alone.writes) == (1, 0, True)
    assert alone.own([5, 6, 7]) == [5, 6, 7] and alone.sums({"a": 2}) == {"a": 2}


def test_each_process_has_its_share_of_the_parts() -> None:
    shares = [list(Processes(3, rank, CPU).own(range(8))) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert [Processes(3, rank, CPU).writes for rank in range(3)] == [True, False, False]


def test_gradients_are_added_and_a_weight_without_any_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has gradients of 10 for the first two of three weights."""

    def all_reduce(flat: torch.Tensor) -> None:
        flat += torch.tensor([10.0] * 4 + [10.0] * 2 + [0.0] + [1.0, 1.0, 0.0])

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    weights: list[Any] = [torch.nn.Parameter(torch.zeros(size)) for size in ((2, 2), (2,), (1,))]
    weights[0].grad = torch.arange(4.0).reshape(2, 2)
    Processes(2, 0, CPU).add_gradients(weights)
    assert weights[0].grad.tolist() == [[10.0, 11.0], [12.0, 13.0]]
    assert weights[1].grad.tolist() == [10.0, 10.0] and weights[2].grad is None
