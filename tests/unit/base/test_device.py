"""The device on which a process computes, where it was given a GPU or not."""

import pytest
import torch

from xlgrid.base import device


@pytest.fixture(autouse=True)
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that sees no GPU, in a process that was given none."""

    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old\n(found version 11040).")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"):
        monkeypatch.delenv(name, raising=False)


def test_the_device_is_the_gpu_where_torch_sees_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.default_device() == torch.device("cuda")


def test_the_device_is_the_cpu_where_no_gpu_was_given() -> None:
    assert device.default_device() == torch.device("cpu")


@pytest.mark.parametrize("value", ["0", "1,0", " 2", "GPU-8932f937", "MIG-GPU-8932f937/1/0"])
@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"])
def test_a_gpu_that_was_given_and_cannot_be_used_is_an_error_with_the_reason_of_torch(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The training would take weeks on one core, while nobody notices."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=rf"{name}={value} names a GPU, .*driver on your system is too old \(found"):
        device.default_device()


@pytest.mark.parametrize("value", ["", " ", "-1", "NoDevFiles", "none", "void"])
def test_a_variable_that_names_no_gpu_hides_all(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Also those that Slurm has given, for whoever wants to compute on the CPU."""
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert device.default_device() == torch.device("cpu")
