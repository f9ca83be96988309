"""Every command of README.md and of the pages in docs/ that show commands runs, and README.md's study makes its table."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import ROOT, blocks, shell

# `make demo` built the project in which the other commands run; `make test` runs this test.
SETUP = {"make demo", "make test"}
PAGES = (
    "README.md",
    "docs/reference/commands.md",
    "docs/how-to/export.md",
    "docs/how-to/failed-night.md",
    "docs/how-to/preflight.md",
    "docs/how-to/study.md",
)
# Pages whose commands other tests run or plan. Those of the African study clone public repositories, which no test does.
ELSEWHERE = {
    "docs/tutorial.md": "tests/workflow/test_tutorial.py",
    "docs/how-to/language-adapter.md": "tests/workflow/test_readme.py",
    "docs/how-to/method.md": "tests/workflow/test_own_method.py",
    "docs/how-to/task.md": "tests/workflow/test_benchmarks.py",
    **{
        f"docs/papers/cost-{study}.md": "tests/unit/report/test_cost.py"
        for study in (
            "foroutan2023",
            "luo2021",
            "luo2021-released",
            "pfeiffer2020",
            "pfeiffer2022",
            "pfeiffer2022-released",
        )
    },
}
CLONES = "docs/papers/africa.md"
CELL = "results/{study}/cells/wikiann/mini-xlmr/madx/qa1/qa9/seed1.json"


def commands(page: str) -> list[str]:
    """The lines of a page's `sh` blocks, without comments."""
    lines = [line.partition("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def succeeds(folder: Path, command: str) -> None:
    """Run a command, and fail with the end of its output if it fails."""
    done = shell(folder, command)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def test_the_readme_has_the_two_commands_of_the_set_up() -> None:
    assert set(commands("README.md")) >= SETUP


def test_no_page_shows_commands_that_no_test_knows() -> None:
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if blocks(page, "sh")} == {*PAGES, *ELSEWHERE, CLONES} - {"README.md"}
    assert all(line.startswith("git clone https://") for line in commands(CLONES))
    for page, test in ELSEWHERE.items():
        assert Path(page).stem.removeprefix("cost-") in (ROOT / test).read_text(), f"{test} tests {page}"


@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in commands(page)} - SETUP))
def test_a_command_runs(finished: Path, command: str, request: pytest.FixtureRequest) -> None:
    if "--profile slurm" in command:
        request.getfixturevalue("slurm")
    succeeds(finished, command)


def test_the_study_of_the_readme_is_that_of_its_file() -> None:
    assert blocks("README.md", "yaml") == [(ROOT / "studies" / "first.yaml").read_text()]


def rows(table: str) -> dict[tuple[str, ...], list[float]]:
    """Labels -> means, of the rows of a Markdown table whose entries are `mean ± standard deviation`."""
    lines = [line.strip("| ").split("|") for line in table.splitlines() if "±" in line and line.startswith("|")]
    split = [[entry.strip() for entry in line] for line in lines]
    return {
        tuple(entry for entry in line if "±" not in entry): [float(e.split()[0]) for e in line if "±" in e]
        for line in split
    }


def test_the_study_of_the_readme_makes_its_table(finished: Path) -> None:
    """Another kind of CPU or version of PyTorch moves the means by some points, so that digits may differ."""
    succeeds(finished, "snakemake --profile laptop results/first/exhibits/transfer.md")
    made = rows((finished / "results/first/exhibits/transfer.md").read_text())
    shown = rows((ROOT / "README.md").read_text())
    assert shown.keys() == made.keys() and len(shown) == 4
    assert all(shown[labels] == pytest.approx(made[labels], abs=10) for labels in shown)


def cell(folder: Path, study: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / CELL.format(study=study)).read_text())
    return content


def test_from_a_text_of_your_own_to_the_heatmap(mine: Path) -> None:
    """The commands of docs/how-to/language-adapter.md in their order, each of which needs what the one before it has made."""
    for command in commands("docs/how-to/language-adapter.md"):
        succeeds(mine, command)
    with (mine / "results/mine/exhibits/figure10.csv").open() as file:
        assert {row["column"] for row in csv.DictReader(file)} == {"qa1", "qa9"}
    trained = cell(mine, "mine")
    assert "language:qa9" in trained["stack"]

    # The exported adapters, imported in the place of training, give the same cell.
    [export] = [command for command in commands("docs/how-to/language-adapter.md") if "export-adapter" in command]
    succeeds(mine, export.replace("qa9", "qa1").replace("results/mine/runs", "results/pfeiffer2020-mini/runs"))
    again = {"extends": "mine", "title": "Again", "methods": {"adapter": {"imported": {"path": "adapters/{language}"}}}}
    again |= {"grids": {"ner-snapshots": None}, "exhibits": {"figure04": None}}
    (mine / "studies" / "again.yaml").write_text(yaml.safe_dump(again))
    succeeds(mine, f"snakemake --profile laptop {CELL.format(study='again')}")
    assert not (mine / "results/again/tokens/mlm").exists(), "adapters that are imported were trained"
    assert cell(mine, "again")["outcomes"] == trained["outcomes"]
