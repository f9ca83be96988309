"""The programs that measure training run as they are, with small sizes on a CPU."""

import os
import subprocess
import sys

import pytest
from project import ROOT

pytestmark = pytest.mark.thorough
SMALL = {
    "gpu.py": "--small",
    "loop.py": "--layers 1 --hidden 64 --vocabulary 500 --steps 4 --rounds 1",
    "modular.py": "--languages 2 4 --hidden 256 --layers 1 --tokenizer 500 --length 16 --batch 2 --steps 1",
    "retrieval.py": "--search 50 --mine 120 --dimensions 256 --block 1000",
}


@pytest.mark.parametrize("program", SMALL)
def test_a_program_measures_all_that_it_is_for(program: str) -> None:
    command = [sys.executable, f"benchmarks/{program}", *SMALL[program].split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, env=environment)
    assert process.returncode == 0, process.stderr[-4000:]
    assert process.stdout and "Left out" not in process.stdout and "failed" not in process.stdout
