"""Average a run's weights over several steps of its training, which often improves translation (Vaswani et al. 2017,
section 6.1)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Weights = Mapping[str, torch.Tensor]


def next_mean(mean: "Weights", weights: "Weights", number: int) -> dict[str, "torch.Tensor"]:
    """Update a running mean: `mean` averages `number` - 1 sets of weights, and `weights` is the next set.

    Args:
        number: the number of sets, the new one included. If it is 1, `mean` is not read.
    """
    return {
        name: tensor.clone() if number == 1 else mean[name] + (tensor - mean[name]) / number
        for name, tensor in weights.items()
    }


@contextmanager
def in_place(parameters: "Weights", weights: "Weights") -> Iterator[None]:
    """Replace the values of parameters within a `with` block, and restore them at its end.

    Args:
        weights: name -> new value, for every parameter.
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
