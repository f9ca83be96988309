"""The device of a training, the memory that it keeps, and its seeds."""

import subprocess
import sys

import pytest
import torch

from xlgrid.models.device import seed_generators

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
