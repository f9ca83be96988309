"""Each module of a paper can be the first one that a process imports, though the core reads papers by their entry points."""

import pkgutil
import subprocess
import sys

import xlgrid.papers

# Imports each module in a fork of its own, which has imported other libraries, and nothing of xlgrid.
SCRIPT = """
import importlib, os, sys
import pandas, pydantic, torch, typer
for name in sys.argv[1:]:
    if not (child := os.fork()):
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} cannot be imported first")
"""


def test_each_module_of_a_paper_can_be_imported_first() -> None:
    names = [module.name for module in pkgutil.walk_packages(xlgrid.papers.__path__, "xlgrid.papers.")]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
