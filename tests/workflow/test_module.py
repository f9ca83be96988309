"""A workflow of someone else takes in these rules as a module, from another folder, with a study file that lies in a third one.

The results then move, and their notebook is run where they are.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from project import FEW, ROOT, SIZES

STUDY = {
    "extends": "first",
    "title": "A study of someone else",
    "languages": ["qa1", "qb1"],
    "text": {"sentences": 200},
    "encoders": {"mini-xlmr": {"scratch": {"languages": ["qa1", "qb1"], **SIZES}, "training": FEW}},
    "tasks": {"ner": {"options": {"n": 100}}},
    "training": [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2}}],
    "grids": {"all": {"method": ["full-ft"], "source": ["qa1"], "seed": [1]}},
    "exhibits": {"transfer": {"rows": ["source"]}},
}
# As `snakedeploy deploy-workflow` writes it, with a rule of one's own.
WORKFLOW = f"""\
from snakemake.utils import min_version

min_version("6.10.0")


configfile: "config/config.yaml"


module xlgrid:
    snakefile:
        "{ROOT}/workflow/Snakefile"
    config:
        config


use rule * from xlgrid


rule mine:
    input:
        "results/own/report.html",
        "results/own/summary.csv",
    output:
        "results/size.txt",
    shell:
        "wc --bytes {{input}} > {{output}}"
"""


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["snakemake", *arguments],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.fixture(scope="module")
def outer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workflow of someone else, beside the folder with the study; nothing has run."""
    base = tmp_path_factory.mktemp("module")
    folder = base / "a workflow"
    for name in ("workflow", "config"):
        (folder / name).mkdir(parents=True)
    (base / "elsewhere").mkdir()
    (base / "elsewhere/own.yaml").write_text(yaml.safe_dump(STUDY))
    (folder / "workflow/Snakefile").write_text(WORKFLOW)
    (folder / "config/config.yaml").write_text("study: ../elsewhere/own.yaml\nsamples: of someone else\n")
    return folder


@pytest.fixture(scope="module")
def finished(outer: Path) -> Path:
    # The executor imports libraries once, and not for each job.
    executor = (
        "--executor",
        "submitit",
        "--jobs",
        "unlimited",
        "--submitit-cluster",
        "local",
        "--submitit-scripts",
        "xlgrid",
    )
    process = snakemake(outer, *executor, "results/size.txt")
    assert process.returncode == 0, process.stderr[-4000:]
    return outer


@pytest.mark.slow
def test_a_module_makes_a_study_with_its_report(finished: Path) -> None:
    page = (finished / "results/own/report.html").read_text()
    assert "A study of someone else" in page and "2<small> / 2</small></b>cells" in page
    assert "table.exhibit .incomplete" in page, "the page has the style sheet of the template"
    assert (finished / "results/size.txt").read_text().count("results/own/") == 2
    again = snakemake(finished, "--dry-run", "results/size.txt")
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.slow
def test_results_that_move_can_be_read_where_they_are(finished: Path, tmp_path: Path) -> None:
    """The notebook is run in its own folder, as Jupyter runs it, without the project and without the study file."""
    shutil.copytree(finished / "results", tmp_path / "results")
    place = tmp_path / "results/own"
    notebook = nbformat.read(place / "report.ipynb", as_version=4)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    text = (place / "report.ipynb").read_text()
    assert str(ROOT) not in text and str(finished.parent) not in text and "chdir" not in text and "pickle" not in text

    [table] = [cell.outputs for cell in notebook.cells if cell.get("id") == "exhibits"]
    [overview] = [cell.outputs for cell in notebook.cells if cell.get("id") == "overview"]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(place)}}).execute()

    again = {cell.get("id"): cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    assert (again["exhibits"][0]["data"], again["overview"][0]["data"]) == (table[0]["data"], overview[0]["data"])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before, "a file was written"


def test_the_rules_of_a_module_ask_for_what_they_need(outer: Path) -> None:
    """As other executors read it, and of the GPUs that the settings name."""
    planned = snakemake(outer, "--dry-run", "--forceall", "--config", "gpus=1", "--", "results/own/report.html")
    assert planned.returncode == 0, planned.stderr
    jobs = dict(re.findall(r"^rule (\w+):\n((?: +.*\n)+)", planned.stdout + planned.stderr, re.MULTILINE))
    assert all(part in jobs["train"] for part in ("mem_mb=8000", "runtime=240", "gpu=1")), jobs["train"]
    assert "mem_mb=8000" in jobs["tokens"] and "gpu=" not in jobs["tokens"]
