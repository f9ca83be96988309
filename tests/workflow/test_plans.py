"""Studies at full size, and that of docs/how-to/language-adapter.md as it stands there: Snakemake plans what the plan says."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from project import ROOT, blocks, commands, planned, project, shell, shown, small
from shipped import STUDIES

from xlgrid.plan.load import load_plan
from xlgrid.products.product import flat
from xlgrid.products.train import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with all studies and that of a page, in which nothing has run."""
    folder = project(tmp_path_factory.mktemp("plans"), small())
    for path in STUDIES.values():
        shutil.copy(path, folder / "studies")
    (folder / "studies" / "added-language.yaml").write_text(shown("docs/how-to/language-adapter.md"))
    (folder / "my.txt").write_text("a line\n")
    return folder


def bring(folder: Path, files: set[str]) -> None:
    """Put empty files where a user puts data and encoders by hand."""
    for file in files:
        if not file.startswith("results/"):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).touch()


@pytest.mark.parametrize(
    ("study", "exhibit"),
    [("xtreme", "panx"), ("foroutan2023", "table12"), ("luo2021", "table04"), ("added-language", "figure10")],
)
def test_an_exhibit_takes_the_runs_and_cells_of_the_plan(folder: Path, study: str, exhibit: str) -> None:
    """`xlgrid cost` and `xlgrid status` count the plan, and Snakemake makes what its rules ask for."""
    plan = load_plan(folder / "studies" / f"{study}.yaml")
    cells = set(plan.study.exhibit(exhibit).cells(plan.cells, plan.study.facts))
    runs = {product for cell in cells for product in plan.rests_on(cell) if isinstance(product, Run)}
    jobs = planned(folder, f"results/{study}/exhibits/{exhibit}.csv")
    assert (jobs["train"], jobs["evaluate"]) == (len(runs), len(cells))


@pytest.mark.thorough
@pytest.mark.parametrize("study", STUDIES)
def test_a_whole_study_is_planned_as_the_plan_has_it(folder: Path, study: str) -> None:
    """With all exhibits, and what the study shares with others."""
    plan = load_plan(folder / "studies" / f"{study}.yaml")
    jobs = planned(folder, f"results/{study}/report.html")
    others = {name: entry.derived.rule for name, entry in plan.study.methods.items() if entry.derived}
    made = Counter(others.get(run.method, "train") for run in plan.runs)
    assert {rule: jobs.get(rule, 0) for rule in made} == made and jobs["evaluate"] == len(plan.cells)
    drawn = sum(number for rule, number in jobs.items() if rule.startswith(("table", "figure")))
    assert drawn == len(plan.study.exhibits)


@pytest.mark.slow
def test_a_study_on_files_of_your_own_is_planned_as_its_page_shows_it(folder: Path) -> None:
    page = "docs/how-to/data.md"
    (folder / "studies" / "own.yaml").write_text(blocks(page, "yaml")[0])
    plan = load_plan(folder / "studies" / "own.yaml")
    products = {product for cell in plan.cells for product in plan.rests_on(cell)}
    bring(folder, {file for product in products for file in flat(product.inputs(plan))})
    # The report takes a minute to plan, and these tables, with all of the files that the page names, a few seconds.
    assert commands(page) == ["snakemake --cores all results/own/report.html"]
    tables = [f"results/own/exhibits/{name}.csv" for name in ("table04", "table05", "table11")]
    jobs = planned(folder, *tables)
    assert jobs["table"] == len(tables) and jobs["fetch_encoder"] == 2


def is_whole(command: str) -> bool:
    """Whether a command makes the report of a whole study, which another test plans."""
    return any(command.endswith(f" results/{study}/report.html") for study in STUDIES)


PAPERS = (
    "docs/papers/foroutan2023.md",
    "docs/papers/pfeiffer2020.md",
    "docs/papers/pfeiffer2022.md",
    "docs/papers/luo2021.md",
    "docs/papers/grids.md",
)


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in PAPERS for command in commands(page) if not is_whole(command)],
)
def test_a_command_of_a_paper_s_page_is_planned(folder: Path, page: str, command: str) -> None:
    """The project has the studies that the page shows, and the files that these name."""
    content = (ROOT / page).read_text()
    for name, study in re.findall(
        r"`studies/([\w-]+)\.yaml`[^`]*\n```yaml\n(.*?)^```$", content, re.MULTILINE | re.DOTALL
    ):
        (folder / "studies" / f"{name}.yaml").write_text(study)
    (folder / "ner").mkdir(exist_ok=True)
    (folder / "ner" / "yo.jsonl").write_text('{"tokens": ["a"], "ner_tags": [0]}\n')
    process = shell(folder, re.sub(r"--(profile \w+|cores all)", "--dry-run", command))
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]
    assert "evaluate" in process.stdout + process.stderr
