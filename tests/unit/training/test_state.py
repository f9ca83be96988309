"""A saved state comes back for the same recipe, encoder and data, and for no other."""

from pathlib import Path
from typing import Any

import pytest
import torch

from xlgrid.training import state

VALUES = {"step": 7, "weights": torch.arange(3)}


def read(folder: Path, digest: str = "d", inputs: str = "i", snapshots: tuple[int, ...] = ()) -> dict[str, Any] | None:
    return state.read(folder, digest, inputs, snapshots, torch.device("cpu"))


def test_a_state_comes_back(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    state.write(tmp_path, "d", "i", VALUES)
    found = read(tmp_path)
    assert found is not None and found["step"] == 7 and torch.equal(found["weights"], VALUES["weights"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"digest": "other"}, "belongs to another recipe (d)"),
        ({"inputs": "other"}, "the encoder or the data have changed"),
        ({"snapshots": (5, 7)}, "step5.safetensors is gone"),
    ],
)
def test_another_state_starts_over(tmp_path: Path, changes: dict[str, Any], message: str, capsys: Any) -> None:
    state.write(tmp_path, "d", "i", VALUES)
    assert read(tmp_path, **changes) is None
    assert message in capsys.readouterr().err


def test_a_damaged_state_starts_over(tmp_path: Path, capsys: Any) -> None:
    state.write(tmp_path, "d", "i", VALUES)
    path = tmp_path / state.STATE
    path.write_bytes(path.read_bytes()[:-50])
    assert read(tmp_path) is None
    assert "truncated or damaged" in capsys.readouterr().err


def test_files_of_a_killed_attempt_are_removed(tmp_path: Path) -> None:
    for name in (".state.123.pt", ".step5.123.safetensors"):
        (tmp_path / name).touch()
    assert read(tmp_path) is None and not list(tmp_path.iterdir())
