"""The optimiser; test_loop_against_pytorch.py compares whole trainings with a loop in plain PyTorch."""

from typing import Any

import pytest
import torch

from xlgrid.training.optimiser import clip, new_optimiser
from xlgrid.training.recipe import Training


def test_matrices_decay_and_vectors_do_not() -> None:
    layer = torch.nn.Linear(3, 2)
    groups: list[Any] = new_optimiser(dict(layer.named_parameters()), Training(weight_decay=0.1, lr=1e-3)).param_groups
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    assert decay == {id(layer.weight): 0.1, id(layer.bias): 0.0}


@pytest.mark.parametrize(("most", "expected"), [(2.5, [1.5, 2.0]), (10.0, [3.0, 4.0])])
def test_gradients_are_scaled_where_their_norm_is_larger_than_the_most(most: float, expected: list[float]) -> None:
    weights: dict[str, Any] = {"a": torch.nn.Parameter(torch.zeros(1)), "b": torch.nn.Parameter(torch.zeros(1))}
    weights["a"].grad, weights["b"].grad = torch.tensor([3.0]), torch.tensor([4.0])
    weights["c"] = torch.nn.Parameter(torch.zeros(1))
    assert float(clip(weights, most)) == pytest.approx(5.0)
    assert [float(weights[name].grad) for name in "ab"] == pytest.approx(expected)
