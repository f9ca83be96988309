"""The mean of a run's weights at several steps of its training, with which models often translate (Vaswani et al. 2017, section
6.1)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Weights = Mapping[str, torch.Tensor]


def next_mean(mean: "Weights", weights: "Weights", number: int) -> dict[str, "torch.Tensor"]:
    """The mean of several sets of weights, from that of all but the last one (`mean`) and the last one (`weights`).

    Args:
        number: how many sets there are with the last one; with 1, `mean` is not read.
    """
    return {
        name: tensor.clone() if number == 1 else mean[name] + (tensor - mean[name]) / number
        for name, tensor in weights.items()
    }


@contextmanager
def in_place(parameters: "Weights", weights: "Weights") -> Iterator[None]:
    """Give parameters other values for a while.

    Args:
        weights: the values by name, of all parameters.
    """
    import torch

    def put(values: "Weights") -> None:
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(values[name])

    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    put(weights)
    try:
        yield
    finally:
        put(before)
