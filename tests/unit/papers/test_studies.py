"""The studies of this project plan what their papers ran."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from shipped import STUDIES

from xlgrid.plan.grid import cells, runs
from xlgrid.plan.load import load_study
from xlgrid.report import page as report
from xlgrid.results import records

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", STUDIES.values(), ids=lambda path: path.stem)
def test_every_study_is_read_and_plans_something(path: Path) -> None:
    assert cells(load_study(path))


@pytest.mark.parametrize("path", STUDIES.values(), ids=lambda path: path.stem)
def test_a_claim_says_what_it_is_about(path: Path) -> None:
    """A report groups claims by verdict and quotes one of them alone, so that no claim may refer to the one before it."""
    pronouns = ("So ", "And ", "But ", "It ", "They ", "This ", "These ", "The same ")
    assert [name for name, claim in load_study(path).claims.items() if claim.says.startswith(pronouns)] == []


def test_reading_the_studies_imports_nothing_slow() -> None:
    """Every command and each start of Snakemake reads a study, so no part imports such a library with its module."""
    code = "import sys; from pathlib import Path; from xlgrid.plan.load import load_plan\n"
    code += "for path in sys.argv[1:]: load_plan(Path(path))\n"
    code += "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code, *STUDIES.values()], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "[]"


# The sections are made in one way for all studies. These have MLM runs, bare encoders, several tasks, and several seeds.
SHOWN = ("africa", "demo", "xtreme")
SECTIONS = [
    pytest.param(path, marks=[] if path.stem in SHOWN else pytest.mark.thorough, id=path.stem)
    for path in STUDIES.values()
]


@pytest.mark.slow
@pytest.mark.parametrize("path", SECTIONS)
def test_every_section_of_a_study_s_report_is_drawn(path: Path) -> None:
    """Of cells and runs without their files, some with more seeds than others, as the study has them."""
    study = load_study(path)
    identities = [(cell.path, {**cell._asdict(), "run": cell.run.folder}) for cell in cells(study)]
    frame = records.read_cells(identities, study.metrics).assign(score=50.0, n=100.0, seconds=1.0)
    trained = pd.DataFrame([run._asdict() | {"step": step, "score": 50.0} for run in runs(study) for step in (0, 100)])
    parts = {"exhibits": {}, "languages": {}, "runs": [], "preparation": pd.DataFrame()}
    whole = report.Report(
        study.name,
        study.title,
        study.description,
        cells=frame,
        curves=trained,
        **parts,  # type: ignore[arg-type]
    )
    sections = {
        "overview": report.overview(whole),
        "spread": report.spread(frame),
        "learning curves": report.learning_curves(trained, frame),
    }
    # Bare encoders have no runs, and a spread takes several seeds of a cell.
    absent = {"learning curves"} if trained.empty else set()
    seeds = frame.groupby(["task", "encoder", "method", "source", "target"])["seed"].nunique()
    absent |= {"spread"} if seeds.max() == 1 else set()
    assert {name for name, html in sections.items() if 'class="missing"' in html} == absent
    assert report.summary(frame)["n_seeds"].sum() == len(frame)
