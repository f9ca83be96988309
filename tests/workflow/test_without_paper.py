"""xlgrid without the folder of a paper: whoever deletes it, and its entry points in pyproject.toml, keeps a working xlgrid."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from project import ROOT, small
from project import project as new_project
from shipped import PUBLISHED

# Tests of the core that no example of a paper's methods is part of.
CORE = ("base", "cli", "languages", "tasks", "synthetic", "exhibits/test_kinds.py", "products/test_product.py")


def without(paper: str, folder: Path) -> Path:
    """Copy the library without a paper, as `pip install` would leave it in a folder of `sys.path`."""
    package = f"xlgrid.papers.{paper}"
    ignored = shutil.ignore_patterns("__pycache__", "shipped", paper)
    shutil.copytree(ROOT / "src" / "xlgrid", folder / "xlgrid", ignore=ignored)
    (folder / "xlgrid" / "shipped").mkdir()
    (folder / "xlgrid" / "shipped" / "studies").symlink_to(ROOT / "studies")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = folder / "xlgrid-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: xlgrid\nVersion: 1\nRequires-Python: >=3.11\n")
    lines = []
    for group, points in project["entry-points"].items():
        kept = {name: value for name, value in points.items() if value.partition(":")[0] != package}
        kept = {name: value for name, value in kept.items() if not value.startswith(f"{package}.")}
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in kept.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def run(site: Path, folder: Path, *command: str) -> str:
    """Run a command of Python with the library in `site`, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-P", "-m", *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout


@pytest.mark.slow
@pytest.mark.parametrize("paper", PUBLISHED)
def test_the_demo_is_checked_and_planned_without_a_paper(paper: str, tmp_path: Path) -> None:
    site, folder = without(paper, tmp_path / "site"), new_project(tmp_path / "here", small())
    assert "\n✓ " in run(site, folder, "xlgrid", "check", "demo")
    assert "evaluate" in run(site, folder, "snakemake", "--dry-run")
    commands = run(site, folder, "xlgrid", "--help")
    assert ("│ attention" in commands) == (paper != "foroutan2023")


@pytest.mark.thorough
@pytest.mark.parametrize("paper", PUBLISHED)
def test_the_tests_of_the_core_pass_without_a_paper(paper: str, tmp_path: Path) -> None:
    site = without(paper, tmp_path / "site")
    tests = [f"tests/unit/{each}" for each in CORE]
    run(site, ROOT, "pytest", "-q", "-m", "not slow and not thorough", "-p", "no:cacheprovider", *tests)
