"""The base class of the operations that merge the weights of runs."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.settings import Strict

if TYPE_CHECKING:
    import torch

    from xlgrid.merging.member import Member


class Parameter(NamedTuple):
    """Some values of one parameter of the runs that are merged. All tensors are flat, in float64, and of one length.

    Attributes:
        name: the name of the parameter in the model.
        at: which of the flat values of the parameter these are.
        first: θ_0, the value with which the runs begin; zeros for what the encoder lacks, such as adapters and heads.
        values: θ_i of each member of the merge.
        weights: w_i of each member, not 0.
        facts: what `Operation.fact` has returned for each member.
        seed: the seed of the merged run.
    """

    name: str
    at: slice
    first: "torch.Tensor"
    values: "Sequence[torch.Tensor]"
    weights: Sequence[float]
    facts: Sequence[Any]
    seed: int

    @property
    def task_vectors(self) -> "Iterator[torch.Tensor]":
        """τ_i = θ_i - θ_0 of each member (Ilharco et al. 2023, section 2)."""
        return (value - self.first for value in self.values)

    def sum(self, tensors: "Iterable[torch.Tensor]") -> "torch.Tensor":
        """Σ w_i x_i. Word embeddings are large, so that not all products are in memory at once."""
        weighted = (weight * tensor for weight, tensor in zip(self.weights, tensors, strict=True))
        return reduce(add, weighted)


class Operation(Strict):
    """An operation that merges the weights of runs, the members of the merge. The fields are its options.

    An operation merges one parameter after another. It does not see members of weight 0.
    """

    def weigh(self, stated: Sequence[float] | None, count: int) -> list[float]:
        """The weights of `count` members.

        Args:
            stated: the `weights` of the study, spread over the members; None if it states none.

        Raises:
            ValueError: the operation needs weights, or cannot use these.
        """
        if stated is None:
            raise ValueError("the operation needs a weight for each entry of `of`: add `weights`")
        return [*stated]

    def reads(self, member: Any, plan: Any) -> list[Any]:
        """The tokens (`xlgrid.products.encode.Tokens`) that `fact` reads for a member, an `xlgrid.products.train.Run`."""
        return []

    @property
    def gradients(self) -> int:
        """The number of examples of each member for which `fact` computes gradients, for `xlgrid cost`."""
        return 0

    def fact(self, member: "Member") -> Any:
        """What the operation has to know of a whole member before it merges single parameters."""
        return None

    def merge(self, of: Parameter) -> "torch.Tensor":
        """The merged parameter."""
        raise NotImplementedError

    def merge_head(self, of: Parameter) -> "torch.Tensor":
        """A merged parameter of the head of the task, of the members with a head: the weighted mean.

        Heads begin with random weights, so that they have no task vectors.
        """
        return of._replace(weights=convex(of.weights)).sum(of.values)


def convex(weights: Sequence[float]) -> list[float]:
    """Weights divided by their sum, which is above 0."""
    return [weight / sum(weights) for weight in weights]
