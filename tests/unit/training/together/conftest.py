"""The encoders and the data of runs that train together."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from together_fixture import MODELS
from tokens_fixture import write


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("encoders")
    torch.manual_seed(1)
    for name, make in MODELS.items():
        make().save_pretrained(folder / name)
    return {name: folder / name for name in MODELS}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder, rng = tmp_path_factory.mktemp("tokens"), np.random.default_rng(1)

    def of(head: str, source: str) -> Path:
        path = folder / f"{head}-{source}.arrow"
        if not path.exists():
            ids = [[2, *rng.integers(5, 40, rng.integers(3, 20)).tolist(), 3] for _ in range(60)]
            write(path, [[2 + row[1] % 2, *row] for row in ids], head)
        return path

    return of
