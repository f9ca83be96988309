"""Fixtures of more than one file."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from queries_fixture import queries

__all__ = ["queries"]

# How long an example takes is no property of the code on a busy machine.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Models this small wait for each other's threads on a busy machine; subprocesses must sum in the same order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)
