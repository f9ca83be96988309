"""What the tests of the executor ask of the machine."""

import os
import subprocess
from pathlib import Path

import pytest

# Where tests/slurm/cluster.sh puts its cluster, unless the environment names another.
CONF = Path("/var/tmp/xlgrid-slurm/slurm.conf")


@pytest.fixture(scope="session")
def slurm() -> None:
    """A Slurm that answers."""
    if "SLURM_CONF" not in os.environ and CONF.exists():
        os.environ["SLURM_CONF"] = str(CONF)
    try:
        subprocess.run(["sinfo", "--noheader"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no Slurm here: tests/slurm/cluster.sh up starts one")
