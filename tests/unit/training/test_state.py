"""A state is taken up whole, by the run that wrote it, and by nothing else. `test_loop.py` resumes trainings with it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from xlgrid.training import state

CPU = torch.device("cpu")


def read(folder: Path, **changes: Any) -> dict[str, Any] | None:
    return state.read(**{"folder": folder, "digest": "d", "inputs": "i", "snapshots": (3, 8), "device": CPU, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run that was interrupted after step 5, with its snapshot of step 3."""
    state.write(tmp_path, "d", "i", {"step": 5, "weights": {"x": torch.arange(3.0)}})
    (tmp_path / "step3.safetensors").touch()
    return tmp_path


def test_what_was_written_is_read(folder: Path) -> None:
    values = read(folder)
    assert values is not None and values["step"] == 5
    assert torch.equal(values["weights"]["x"], torch.arange(3.0))


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"digest": "other"}, "belongs to another recipe (d)"),
        ({"inputs": "other"}, "the encoder or the data have changed"),
        ({"snapshots": (3, 4)}, "step4.safetensors is gone"),
    ],
)
def test_a_state_that_is_of_no_use_says_why(
    changes: dict[str, Any], note: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert read(folder, **changes) is None
    assert note in capfd.readouterr().err


def test_what_a_killed_process_left_half_written_is_removed(folder: Path) -> None:
    for name in (".state.abc.pt", ".step8.abc.safetensors"):
        (folder / name).touch()
    (folder / "state.pt").write_bytes((folder / "state.pt").read_bytes()[:50])
    assert read(folder) is None
    assert sorted(path.name for path in folder.iterdir()) == ["state.pt", "step3.safetensors"]
