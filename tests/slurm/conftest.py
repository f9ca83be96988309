"""What the tests on a real Slurm ask of the machine, and what they leave behind: nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "executor"))  # `workflow`, which the executor's other tests share

from grid import Grid

# Where cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/xlgrid-slurm/slurm.conf")


@pytest.fixture(scope="session")
def slurm() -> None:
    """The Slurm of cluster.sh: no test here, which cancels jobs and sets nodes down, may run on a site's own."""
    if "SLURM_CONF" not in os.environ and CONF.exists():
        os.environ["SLURM_CONF"] = str(CONF)
    conf = Path(os.environ.get("SLURM_CONF", CONF))
    try:
        ours = conf.read_text().startswith("# SLURM_TEST_DEFAULTS")
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        ours = False
    if not ours:
        pytest.skip("no Slurm here: `tests/slurm/cluster.sh up` starts one")


@pytest.fixture
def grid(slurm: None, tmp_path: Path) -> Iterator[Grid]:
    """An empty project; whatever it started is stopped at the end of the test."""
    made = Grid(tmp_path)
    yield made
    made.stop()
