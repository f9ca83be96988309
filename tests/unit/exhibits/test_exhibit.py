"""What all kinds of exhibit have in common."""

import subprocess
import sys


def test_importing_every_kind_is_cheap() -> None:
    code = "import sys, xlgrid.exhibits; print({'pandas', 'matplotlib', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
