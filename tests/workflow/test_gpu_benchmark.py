"""benchmarks/gpu.py, which is for a GPU, runs on a CPU, too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

TITLES = [
    "Training",
    "Constants of the cost estimate",
    "Lengths as they are",
    "Repeating",
    "An evaluation cell",
    "Cells one after another",
    "Runs together",
    "Methods",
    "Steps that are not finite",
    "Training, compiled",
]


def measured(out: Path, minutes: float) -> str:
    """The tables of a run on the CPU with the smallest sizes."""
    command = [sys.executable, "benchmarks/gpu.py", "--small", f"--minutes={minutes}", f"--out={out}"]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return out.read_text()


@pytest.mark.slow
def test_no_part_fails_on_a_cpu(tmp_path: Path) -> None:
    """The last parts may be left out, because a compilation takes minutes, and so do all parts on a busy machine."""
    text = measured(tmp_path / "gpu.md", minutes=1.5)
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == TITLES
    assert "FAILED" not in text, text
    assert "| 4 x 16 | loop |" in text


@pytest.mark.slow
def test_parts_after_the_time_are_left_out(tmp_path: Path) -> None:
    text = measured(tmp_path / "gpu.md", minutes=0)
    assert text.count("Left out: the time was up.") == len(TITLES)
