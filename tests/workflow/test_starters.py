"""What `xlgrid new` writes runs at once, as the command says; here with fewer steps and examples."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from plugin_fixture import install
from project import ROOT, project, shell, small


def fewer(study: Path) -> None:
    """Cut a study down, in its text, to what takes seconds."""
    text = study.read_text()
    for old, new in (
        (r"steps: \d+", "steps: 3"),
        (r"options: \{n: \d+\}", "options: {n: 100}"),
        (r"\n( +)n: \d+", r"\n\1n: 100"),
        (r"hidden: \d+", "hidden: 16"),
        (r"intermediate: \d+", "intermediate: 16"),
        (r"seed: \[1, 2, 3\]", "seed: [1]"),
    ):
        text = re.sub(old, new, text)
    study.write_text(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("project"), small())


def put_on_path(packages: Path, patch: pytest.MonkeyPatch) -> None:
    """Let Python find packages without a change of the environment of the tests."""
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])))


def runs(folder: Path, *commands: str) -> None:
    for command in commands:
        process = shell(folder, command)
        assert process.returncode == 0, f"{command}\n{process.stdout[-2000:]}{process.stderr[-4000:]}"


def make(*names: str) -> str:
    """The command that makes the tables of starting points."""
    return " ".join(["snakemake --profile laptop", *(f"results/{name}/exhibits/transfer.md" for name in names)])


@pytest.mark.slow
def test_starting_points_make_their_tables(folder: Path) -> None:
    names = {"study": "mine", "task": "pets", "language": "qa9"}
    for kind, name in names.items():
        runs(folder, f"xlgrid new {kind} {name}")
        fewer(folder / "studies" / f"{name}.yaml")
        runs(folder, f"xlgrid check {name}")
    runs(folder, make(*names.values()))
    missing = [name for name in names.values() if not (folder / f"results/{name}/exhibits/transfer.md").exists()]
    assert not missing


@pytest.mark.slow
def test_a_method_passes_its_own_test_and_makes_its_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is installed as `pip install` leaves it."""
    put_on_path(folder / "installed", monkeypatch)
    runs(folder, "xlgrid new method norm-tuning")
    package = folder / "methods" / "norm-tuning"
    points = {"xlgrid.methods": {"norm-tuning": "xlgrid_norm_tuning:NormTuning"}}
    code = (package / "xlgrid_norm_tuning.py").read_text()
    install(folder / "installed", "xlgrid-norm-tuning", "0.1", code, points)
    fewer(folder / "studies" / "norm-tuning.yaml")
    runs(folder, f"{sys.executable} -m pytest -q -p no:cacheprovider {package}", make("norm-tuning"))


@pytest.mark.slow
def test_a_natural_language_is_planned_with_its_lexicon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lexicon is written into a copy of the library."""
    library = folder / "library"
    shutil.copytree(ROOT / "src", library)
    put_on_path(library, monkeypatch)
    runs(folder, f"{sys.executable} -m xlgrid new language nl")
    assert (library / "xlgrid/synthetic/lexicons/nl.yaml").exists()
    runs(
        folder,
        f"{sys.executable} -m xlgrid check nl",
        f"PATH=.venv/bin:$PATH snakemake --dry-run {make('nl').split()[-1]}",
    )
