"""The programs that measure training run as they are, with small sizes on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).parents[2]


def measured(*command: str) -> str:
    process = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stderr[-4000:]
    return process.stdout


def test_every_part_of_the_program_for_a_gpu_writes_its_table(tmp_path: Path) -> None:
    printed = measured("benchmarks/gpu.py", "--small", "--out", str(tmp_path / "gpu.md"))
    written = (tmp_path / "gpu.md").read_text()
    assert written == printed
    assert "Two runs of 12 steps: the same bytes" in written
    for row in ("| 8 x 32 | loop |", "| 8 x 32 | Trainer |", "| 4 x 16 | loop, compiled |", "| 64 | task adapters |"):
        assert written.count(row) == 1, row
    assert "| computation |" in written
    # Which of the two follows from the times of the steps.
    assert ("TFLOP/s, and" in written) != ("The steps do not grow with their operations" in written)
    assert "Left out" not in written and "failed" not in written


def test_the_loop_is_measured_beside_the_trainer() -> None:
    printed = measured(
        "benchmarks/loop.py",
        *["--layers", "1", "--hidden", "64", "--vocabulary", "500", "--steps", "4", "--rounds", "1"],
    )
    assert [line.partition("  ")[0] for line in printed.splitlines()[-3:]] == [
        "the loop",
        "Trainer",
        "Trainer, grouped by length",
    ]


def test_modules_for_languages_are_measured_beside_transformers() -> None:
    printed = measured(
        "benchmarks/modular.py",
        *["--languages", "2", "4", "--hidden", "256", "--layers", "1", "--vocabulary", "500"],
        *["--length", "16", "--batch", "2", "--steps", "1"],
    )
    rows = {line[:26].strip(): line.split() for line in printed.splitlines()[1:]}
    assert [*rows][2:] == [f"{name}, {number} languages" for number in (2, 4) for name in ("X-MOD", "transformers")]
    gradients = {name: float(row[row.index("gradients") + 1]) for name, row in rows.items()}
    assert gradients["X-MOD, 2 languages"] == gradients["X-MOD, 4 languages"] == gradients["SHARED"]
    assert gradients["transformers, 4 languages"] > gradients["SHARED"]


def test_search_and_mining_are_measured() -> None:
    sizes = ["--search", "50", "--mine", "120", "--dimensions", "256", "--block", "1000"]
    rows = [line.split() for line in measured("benchmarks/retrieval.py", *sizes).splitlines()[1:]]
    assert [(" ".join(row[:-5]), row[-5], row[-1]) for row in rows] == [
        ("search by cosine", "50", "100.0%"),
        ("search by ratio", "50", "100.0%"),
        ("mining", "120", "100.0%"),
    ]
