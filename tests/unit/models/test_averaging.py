"""The mean of weights is that of numpy, and stands in for a while."""

import numpy as np
import pytest
import torch

from xlgrid.models.averaging import in_place, next_mean

NAMES = ("layer.weight", "layer.bias")


def weights(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in zip(NAMES, [(4, 3), (4,)], strict=True)}


@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_mean_is_that_of_numpy(count: int) -> None:
    mean: dict[str, torch.Tensor] = {}
    for number in range(1, count + 1):
        mean = next_mean(mean, weights(number), number)
    for name in NAMES:
        expected = np.mean([weights(number)[name].numpy() for number in range(1, count + 1)], axis=0)
        np.testing.assert_allclose(mean[name], expected, rtol=1e-5, atol=1e-6)


def test_the_first_mean_is_a_copy() -> None:
    first = weights(1)
    mean = next_mean({}, first, 1)
    first[NAMES[0]].zero_()
    assert mean[NAMES[0]].any()


def test_parameters_get_their_own_values_back() -> None:
    parameters = {name: torch.nn.Parameter(tensor) for name, tensor in weights(1).items()}
    with pytest.raises(RuntimeError, match="stop"), in_place(parameters, weights(2)):
        assert all(torch.equal(parameters[name], weights(2)[name]) for name in NAMES)
        raise RuntimeError("stop")
    assert all(torch.equal(parameters[name], weights(1)[name]) for name in NAMES)
