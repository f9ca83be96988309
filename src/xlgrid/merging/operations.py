"""The operations of xlgrid. τ_i = θ_i - θ_0 is the task vector of a member, and w_i its weight."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from xlgrid.merging.operation import Operation, Parameter, convex

if TYPE_CHECKING:
    import torch

    from xlgrid.merging.member import Member


class Sum(Operation):
    """The weighted sum θ = Σ w_i θ_i. With weights λ and 1 - λ on two language adapters, it is the language arithmetic of
    Klimaszewski et al. (2025)."""

    def merge(self, of: Parameter) -> "torch.Tensor":
        return of.sum(of.values)


class Mean(Operation):
    """The base class of operations whose weights count only in relation to one another; they are equal if a study states none."""

    def weigh(self, stated: Sequence[float] | None, count: int) -> list[float]:
        if stated is not None and (min(stated) < 0 or not sum(stated)):
            raise ValueError(f"the weights of a mean are 0 or more and not all 0, got {', '.join(map(str, stated))}")
        return convex(stated or [1.0] * count)


class Average(Sum, Mean):
    """The weighted mean θ = Σ w_i θ_i / Σ w_i. With equal weights, it is a uniform soup (Wortsman et al. 2022)."""


class TaskArithmetic(Operation):
    """Task arithmetic, θ = θ_0 + Σ w_i τ_i (Ilharco et al. 2023, section 2). With a negative weight, a model unlearns a task."""

    def merge(self, of: Parameter) -> "torch.Tensor":
        return of.first + of.sum(of.task_vectors)


class Dare(TaskArithmetic):
    """DARE (Yu et al. 2024, section 3.2): task arithmetic on task vectors of which each value is dropped with probability p, and
    otherwise divided by 1 - p. The seed of the merged run decides which values are dropped."""

    rate: float = Field(
        0.9, ge=0, lt=1, description="p, the probability with which a value of a task vector is dropped"
    )

    def merge(self, of: Parameter) -> "torch.Tensor":
        import torch

        generator = np.random.default_rng([of.seed, zlib.crc32(of.name.encode()), of.at.start or 0])
        stay = [torch.from_numpy(generator.random(of.first.shape) >= self.rate) for _ in of.values]
        dropped = (torch.where(stays, vector, 0.0) for stays, vector in zip(stay, of.task_vectors, strict=True))
        return of.first + of.sum(dropped) / (1 - self.rate)


class Ties(Mean):
    """TIES (Yadav et al. 2023, algorithm 1): θ = θ_0 + λ τ, where τ is computed from the task vectors in three steps.

    Trim: the values of a task vector with the largest magnitudes stay, and the others become 0. Elect: the sign of a value of
    τ is that of the weighted sum of the trimmed values. Merge: a value of τ is the weighted mean of the trimmed values with
    this sign, or 0 if there are none. The paper has equal weights.
    """

    density: float = Field(0.2, gt=0, le=1, description="the share of the values of a task vector that stay")
    scale: float = Field(1.0, description="λ, the factor of the merged task vector")

    def fact(self, member: "Member") -> float:
        """The smallest magnitude that stays, among the values of the whole task vector."""
        import torch

        sizes = torch.cat([vector.abs() for vector in member.task_vector()])
        return float(sizes.kthvalue(len(sizes) - max(1, round(self.density * len(sizes))) + 1).values)

    def merge(self, of: Parameter) -> "torch.Tensor":
        import torch

        vectors = zip(of.task_vectors, of.facts, strict=True)
        trimmed = [torch.where(vector.abs() >= least, vector, 0.0) for vector, least in vectors]
        elected = of.sum(trimmed).sign()
        agree = [(vector * elected > 0).double() for vector in trimmed]
        total = of.sum(vector * agrees for vector, agrees in zip(trimmed, agree, strict=True))
        weight = of.sum(agree)
        return of.first + self.scale * torch.where(weight > 0, total / weight, 0.0)
