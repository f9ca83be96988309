"""Every command that a page of this project shows is run by a test, or has a reason why none runs it; README.md's study makes its table."""

import csv
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import ROOT, blocks, commands, shell
from shipped import STUDIES

# Pages whose commands run as they stand, in the project in which the demo has run.
PAGES = (
    "README.md",
    "docs/how-to/cost.md",
    "docs/how-to/export.md",
    "docs/how-to/failed-night.md",
    "docs/how-to/preflight.md",
    "docs/how-to/study.md",
    "docs/reference/commands.md",
    "packages/snakemake-executor-plugin-submitit/README.md",
    "packages/snakemake-logger-plugin-xlgrid/README.md",
)
# Pages whose commands another test reads from the page, and runs or plans.
ELSEWHERE = {
    "docs/tutorial.md": "tests/workflow/test_tutorial.py",
    "docs/how-to/copying.md": "tests/workflow/test_extends.py",
    "docs/how-to/data.md": "tests/workflow/test_plans.py",
    "docs/how-to/language-adapter.md": "tests/workflow/test_readme.py",
    "docs/how-to/method.md": "tests/workflow/test_own_method.py",
    "docs/how-to/architecture.md": "tests/workflow/test_own_architecture.py",
    "docs/how-to/head.md": "tests/workflow/test_own_head.py",
    "docs/how-to/exhibit.md": "tests/workflow/test_own_exhibit.py",
    "docs/how-to/origin.md": "tests/workflow/test_own_origin.py",
    "docs/how-to/cluster-of-your-own.md": "tests/workflow/test_own_cluster.py",
    "docs/how-to/task.md": "tests/workflow/test_benchmarks.py",
    "docs/papers/foroutan2023.md": "tests/workflow/test_plans.py",
    "docs/papers/luo2021.md": "tests/workflow/test_plans.py",
    "docs/papers/pfeiffer2020.md": "tests/workflow/test_plans.py",
    "docs/papers/pfeiffer2022.md": "tests/workflow/test_plans.py",
}
# Commands that no test runs as they stand, and why.
NOT_RUN = {
    "make demo": "the fixture `finished` runs it, and the other commands run after it",
    "make test": "it runs this test",
    "make test-all": "it takes an hour, and its parts are run where they are changed",
    "make test-fast": "its tests are among those of `make test`",
    "make lint": ".ci/run runs it",
    "make format": "`make lint`, which .ci/run runs, fails where it has something to do",
    "pip install -r envs/lock.txt": "tests/workflow/test_container.py runs it, in an environment of its own",
    "pip install --no-deps . ./packages/*": "tests/workflow/test_container.py runs it with --editable, in an environment of its own",
    "pip install ./packages/snakemake-executor-plugin-submitit": "it would change the environment of the tests, in which it is installed",
    "snakemake --executor slurm --jobs 100 --default-resources slurm_partition=gpu --config gpus=1": (
        "snakemake-executor-plugin-slurm is not in the environment of the tests"
    ),
    'sbatch --time=7-00:00:00 --mem=4G --wrap "snakemake --profile slurm"': "the command in it is one of README.md",
}
CLONES = "git clone https://"
# The beginning of a line that is a command.
COMMAND = re.compile(r"\$? *(?:snakemake|xlgrid|make|python3?|pip|pytest|sbatch|git|podman|docker|rm|cp) ")
CELL = "results/{study}/cells/wikiann/mini-xlmr/madx/qa1/qa9/seed1.json"


def pages() -> list[str]:
    """The pages of this project."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.splitlines()


def succeeds(folder: Path, command: str) -> None:
    """Run a command, and fail with the end of its output if it fails."""
    process = shell(folder, command)
    assert process.returncode == 0, f"{command}\n{process.stdout[-2000:]}{process.stderr[-2000:]}"


def test_the_readme_has_the_two_commands_of_the_set_up() -> None:
    assert commands("README.md")[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("page", pages())
def test_a_command_of_a_page_is_run_or_has_a_reason(page: str) -> None:
    if page not in PAGES and page not in ELSEWHERE:
        unknown = [line for line in commands(page) if line not in NOT_RUN and not line.startswith(CLONES)]
        assert unknown == [], f"list {page} in PAGES or ELSEWHERE, or these commands in NOT_RUN"


@pytest.mark.parametrize("page", pages())
def test_a_block_of_commands_of_a_page_is_known_as_such(page: str) -> None:
    """Blocks of other languages, and blocks without a fence, are not read by the tests of commands."""
    lines = (ROOT / page).read_text().splitlines()
    indented = [line.strip() for line in lines if line.startswith("    ")]
    plain = [line for block in blocks(page, "") for line in block.splitlines()]
    assert [line for line in indented + plain if COMMAND.match(line)] == [], "begin the block with ```sh"


def test_the_lists_name_commands_and_tests_that_exist() -> None:
    page_commands = {command for page in pages() for command in commands(page)}
    assert {*NOT_RUN} <= page_commands
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / test).read_text(), f"{test} tests {page}"


@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in commands(page)} - {*NOT_RUN}))
def test_a_command_runs(finished: Path, command: str, request: pytest.FixtureRequest) -> None:
    if "--profile slurm" in command or ("--executor submitit" in command and "--submitit-cluster local" not in command):
        with request.getfixturevalue("slurm")():
            succeeds(finished, command)
    else:
        succeeds(finished, command)


def test_the_study_of_the_readme_is_that_of_its_file() -> None:
    assert blocks("README.md", "yaml") == [(STUDIES["first"]).read_text()]


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
    table = rows((finished / "results/first/exhibits/transfer.md").read_text())
    readme_table = rows((ROOT / "README.md").read_text())
    assert readme_table.keys() == table.keys() and len(readme_table) == 4
    assert all(readme_table[labels] == pytest.approx(table[labels], abs=10) for labels in readme_table)


def cell(folder: Path, study: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / CELL.format(study=study)).read_text())
    return content


@pytest.mark.thorough
def test_from_a_text_of_your_own_to_the_heatmap(mine: Path) -> None:
    """The commands of docs/how-to/language-adapter.md in their order, each of which needs what the one before it has made."""
    for command in commands("docs/how-to/language-adapter.md"):
        succeeds(mine, command)
    with (mine / "results/added-language/exhibits/figure10.csv").open() as file:
        assert {row["column"] for row in csv.DictReader(file)} == {"qa1", "qa9"}
    trained = cell(mine, "added-language")
    assert "language:qa9" in trained["stack"]

    # The exported adapters, imported in the place of training, give the same cell.
    [export] = [command for command in commands("docs/how-to/language-adapter.md") if "export-adapter" in command]
    succeeds(
        mine, export.replace("qa9", "qa1").replace("results/added-language/runs", "results/pfeiffer2020-mini/runs")
    )
    again = {
        "extends": "added-language",
        "title": "Again",
        "methods": {"adapter": {"imported": {"path": "adapters/{language}"}}},
    }
    again |= {"grids": {"ner-snapshots": None}, "exhibits": {"figure04": None}}
    (mine / "studies" / "again.yaml").write_text(yaml.safe_dump(again))
    succeeds(mine, f"snakemake --profile laptop {CELL.format(study='again')}")
    assert not (mine / "results/again/tokens/mlm").exists(), "adapters that are imported were trained"
    assert cell(mine, "again")["outcomes"] == trained["outcomes"]
