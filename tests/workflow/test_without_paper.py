"""xlgrid without the folder of a paper: whoever deletes it, and its entry points in pyproject.toml, keeps a working xlgrid."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from project import ROOT
from shipped import PUBLISHED


def without(paper: str, folder: Path) -> Path:
    """Copy this project without a paper: without its folder, its entry points, and its tests."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if f"/papers/{paper}/" not in name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    about = folder / "pyproject.toml"
    about.write_text(re.sub(rf'^[\w-]+ = "xlgrid\.papers\.{paper}\b.*\n', "", about.read_text(), flags=re.MULTILINE))
    lines = ["[console_scripts]", "xlgrid = xlgrid.cli:main"]
    for group, points in tomllib.loads(about.read_text())["project"]["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    # As `pip install --editable` would find the copy.
    installed = folder / "src" / "xlgrid-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: xlgrid\nVersion: 1\nRequires-Python: >=3.11\n")
    (installed / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def run(folder: Path, *command: str) -> str:
    """Run Python in the copy, with the library of the copy, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout + process.stderr


@pytest.mark.slow
@pytest.mark.parametrize("paper", PUBLISHED)
def test_the_demo_is_checked_and_planned_without_a_paper(paper: str, tmp_path: Path) -> None:
    folder = without(paper, tmp_path / "project")
    assert "\n✓ " in run(folder, "-P", "-m", "xlgrid", "check", "demo")
    assert "evaluate" in run(folder, "-P", "-m", "snakemake", "--dry-run")


@pytest.mark.thorough
@pytest.mark.parametrize("paper", PUBLISHED)
def test_the_tests_of_the_core_pass_without_a_paper(paper: str, tmp_path: Path) -> None:
    """All but those of the pages, which tell of the paper.

    The schema of studies is written anew, as it is after any change of a part.
    """
    folder = without(paper, tmp_path / "project")
    run(folder, "docs/study_reference.py")
    left = [f"--ignore=tests/unit/{name}" for name in ("papers", "test_documents.py")]
    run(folder, "-m", "pytest", "-m", "not slow and not thorough", "-p", "no:cacheprovider", "tests/unit", *left)
