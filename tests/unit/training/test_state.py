"""A state is taken up whole, by the run that wrote it, and by nothing else. `test_loop.py` resumes trainings with it."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from xlgrid.training import state

CPU = torch.device("cpu")


def read(folder: Path, **changes: Any) -> dict[str, Any] | None:
    return state.read(
        **{"folder": folder, "digest": "d", "inputs": "i", "checkpoints": (3, 8), "device": CPU, **changes}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run that was interrupted after step 5, with its checkpoint of step 3."""
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
        ({"checkpoints": (3, 4)}, "step4.safetensors is missing"),
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


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Path]]:
    """The calls of `fingerprint`, of files whose changes need not be a minute old."""
    calls: list[list[Path]] = []
    fingerprint = state.fingerprint
    monkeypatch.setattr(state, "RECENT", -1.0)
    monkeypatch.setattr(state, "fingerprint", lambda files: (calls.append(files), fingerprint(files))[1])
    return calls


def test_files_that_are_as_they_were_are_not_read_again(tmp_path: Path, hashed: list[list[Path]]) -> None:
    files = [tmp_path / name for name in ("a", "b", "missing")]
    for file in files[:2]:
        file.write_text(file.name)
    first = state.inputs_of(tmp_path, files)
    assert state.inputs_of(tmp_path, files) == first and len(hashed) == 1
    state.remove(tmp_path)
    assert state.inputs_of(tmp_path, files) == first and len(hashed) == 2


@pytest.mark.parametrize("change", ["contents", "order", "damage"])
def test_other_files_are_read(tmp_path: Path, hashed: list[list[Path]], change: str) -> None:
    """Even where a program gives a file of equal size the time of modification that it had."""
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    first = state.inputs_of(tmp_path, files)
    if change == "contents":
        before = files[0].stat()
        files[0].write_text("c")
        os.utime(files[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "order":
        files.reverse()
    else:
        (tmp_path / "inputs.json").write_text("{")
    assert (state.inputs_of(tmp_path, files) == first) is (change == "damage")
    assert len(hashed) == 2


def test_a_file_that_has_just_changed_is_read_again(
    tmp_path: Path, hashed: list[list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "RECENT", 60.0)
    (tmp_path / "a").write_text("a")
    for _ in range(2):
        state.inputs_of(tmp_path, [tmp_path / "a"])
    assert len(hashed) == 2
