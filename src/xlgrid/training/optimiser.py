"""The optimiser of a training, and the clipping of its gradients."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xlgrid.training.recipe import Training

if TYPE_CHECKING:
    import torch


def new_optimiser(weights: Mapping[str, "torch.nn.Parameter"], settings: Training) -> "torch.optim.AdamW":
    """AdamW for these weights. Biases and norms have no weight decay, as usual."""
    import torch

    groups = [
        {"params": [p for p in weights.values() if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in weights.values() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, settings.lr, settings.betas, settings.epsilon, fused=True)


def clip(weights: Mapping[str, "torch.nn.Parameter"], most: float) -> "torch.Tensor":
    """Scale the gradients of all weights so that their norm is at most `most`; return the norm before scaling.

    On a GPU, nothing waits for the norm.
    """
    import torch

    norm = torch.nn.utils.get_total_norm([p.grad for p in weights.values() if p.grad is not None])
    # Scaling by 1 would change nothing, but read all gradients again. To know the norm of a GPU takes longer.
    if norm.device.type != "cpu" or float(norm) + 1e-6 > most:
        torch.nn.utils.clip_grads_with_norm_(weights.values(), most, norm)
    return norm
