"""What `xlgrid new` writes runs at once, as the command says; here with fewer steps and examples."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from plugin_fixture import install
from project import ROOT, make, on_path, project, small, succeeds


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


@pytest.mark.slow
def test_starting_points_make_their_tables(folder: Path) -> None:
    names = {"study": "mine", "task": "pets", "language": "qa9"}
    for kind, name in names.items():
        succeeds(folder, f"xlgrid new {kind} {name}")
        fewer(folder / "studies" / f"{name}.yaml")
        succeeds(folder, f"xlgrid check {name}")
    make(folder, *(f"results/{name}/exhibits/transfer.md" for name in names.values()))


@pytest.mark.slow
def test_a_method_passes_its_own_test_and_makes_its_table(folder: Path) -> None:
    """The package is installed as `pip install` leaves it."""
    succeeds(folder, "xlgrid new method norm-tuning")
    package = folder / "methods" / "norm-tuning"
    points = {"xlgrid.methods": {"norm-tuning": "xlgrid_norm_tuning:NormTuning"}}
    code = (package / "xlgrid_norm_tuning.py").read_text()
    install(folder / "installed", "xlgrid-norm-tuning", "0.1", code, points)
    fewer(folder / "studies" / "norm-tuning.yaml")
    with on_path(folder / "installed"):
        succeeds(folder, f"{sys.executable} -m pytest -q -p no:cacheprovider {package}")
        make(folder, "results/norm-tuning/exhibits/transfer.md")


@pytest.mark.slow
def test_a_natural_language_is_planned_with_its_lexicon(folder: Path) -> None:
    """The lexicon is written into a copy of the library."""
    library = folder / "library"
    shutil.copytree(ROOT / "src", library)
    with on_path(library):
        succeeds(folder, f"{sys.executable} -m xlgrid new language nl")
        assert (library / "xlgrid/synthetic/lexicons/nl.yaml").exists()
        succeeds(
            folder,
            f"{sys.executable} -m xlgrid check nl",
            "PATH=.venv/bin:$PATH snakemake --dry-run results/nl/exhibits/transfer.md",
        )
