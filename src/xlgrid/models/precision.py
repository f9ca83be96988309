"""The setting `precision: bf16`: compute matrix products in bf16 on hardware that supports it. Weights stay in fp32."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def uses_bf16(device: "torch.device", precision: str) -> bool:
    """Whether a run with this `precision` computes in bf16 on a device. A CPU needs instructions for bf16."""
    import torch

    if precision != "bf16":
        return False
    capabilities = torch.cpu.get_capabilities()
    return device.type == "cuda" or bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def autocast(device: "torch.device", bf16: bool) -> "torch.autocast":
    """The context of a forward pass: `torch.autocast` to bf16 on a GPU and on a CPU without AMX, otherwise disabled."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=bf16 and not _has_amx(device))


@contextmanager
def arithmetic(device: "torch.device", bf16: bool) -> Iterator[None]:
    """The context of a forward and a backward pass in bf16. It changes how a CPU computes them, and nothing on a GPU.

    A CPU with AMX multiplies fp32 matrices in bf16 and adds in fp32, because `torch.autocast` does not speed up the
    backward pass on such a CPU. On a CPU without AMX, `torch.autocast` halves the time, while this way saves a tenth.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not bf16 or device.type == "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    if _has_amx(device):
        torch.set_float32_matmul_precision("medium")
    try:
        # The fused attention kernel multiplies small blocks. In bf16, it takes ten times as long as in fp32 with AMX,
        # and its backward pass takes twice as long without AMX.
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _has_amx(device: "torch.device") -> bool:
    import torch

    return device.type == "cpu" and bool(torch.cpu.get_capabilities().get("amx_bf16"))
