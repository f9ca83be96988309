"""The device of a training, the memory that it keeps, and its seeds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from xlgrid.models.device import allows, repeats, seed_generators, training_device

MODEL: Any = torch.nn.Linear(2, 2)
# The pages that the system adds to a process in ten rounds of allocating and freeing 24 MB, after a first round.
PAGES = """
import resource, sys
import numpy as np
from xlgrid.models.device import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
np.ones(3 * 2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(3 * 2**20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(mode: str) -> int:
    ended = subprocess.run([sys.executable, "-c", PAGES, mode], capture_output=True, text=True, check=True)
    return int(ended.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries have no mallopt")
def test_the_same_arrays_take_no_new_pages() -> None:
    assert pages("as-is") > 100, "without the setting, the system adds pages in each round, or this test shows nothing"
    assert pages("keep") < 30


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose torch sees a GPU, which nothing here uses."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    fills, cudnn = torch.utils.deterministic.fill_uninitialized_memory, torch.backends.cuda.cudnn_sdp_enabled()
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = fills
    torch.backends.cuda.enable_cudnn_sdp(cudnn)


@pytest.mark.usefixtures("gpu")
def test_a_gpu_trains_with_deterministic_algorithms_alone_and_plans_no_attention_for_each_shape() -> None:
    """With `warn_only`, the backward pass of attention would not be deterministic."""
    assert training_device(strict=True).type == "cuda"
    assert torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert repeats(torch.device("cuda"), MODEL) == {"deterministic": True}


@pytest.mark.usefixtures("gpu")
def test_an_operation_without_a_deterministic_algorithm_is_allowed_and_the_record_says_so() -> None:
    training_device(strict=True)
    assert not allows(RuntimeError("CUDA error: an illegal memory access was encountered"))
    assert repeats(torch.device("cuda"), MODEL) == {"deterministic": True}
    lacking = "cumsum_cuda_kernel does not have a deterministic implementation, but you set 'torch.use_determin"
    assert allows(RuntimeError(lacking))
    assert repeats(torch.device("cuda"), MODEL) == {"deterministic": False}
    assert repeats(torch.device("cpu"), MODEL) == {}, "the records of a CPU are as they were"


@pytest.mark.usefixtures("gpu")
def test_a_model_that_torch_compiles_is_not_said_to_repeat() -> None:
    training_device(strict=True)
    model: Any = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model[0].compile()
    assert repeats(torch.device("cuda"), model) == {"deterministic": False}


@pytest.mark.parametrize("seed", [0, 17, 2**64 - 1])
def test_the_draws_are_those_after_manual_seed(seed: int) -> None:
    torch.manual_seed(seed)
    expected = torch.rand(5), torch.nn.functional.dropout(torch.ones(100)), torch.randperm(9)
    torch.manual_seed(1)
    seed_generators(torch.device("cpu"), seed)
    drawn = torch.rand(5), torch.nn.functional.dropout(torch.ones(100)), torch.randperm(9)
    assert all(map(torch.equal, drawn, expected))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_draws_on_a_gpu_are_those_after_manual_seed() -> None:
    device = torch.device("cuda")
    torch.manual_seed(17)
    expected = torch.rand(5), torch.rand(5, device=device)
    torch.manual_seed(1)
    seed_generators(device, 17)
    assert torch.equal(torch.rand(5), expected[0])
    assert torch.equal(torch.rand(5, device=device), expected[1])
