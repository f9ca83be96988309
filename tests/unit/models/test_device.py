"""The device of a training, and the memory that it keeps."""

import subprocess
import sys

import pytest

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
