"""Every command that a page of this project shows is run by a test, or has a reason why none runs it; README.md's study makes its table."""

import re
import subprocess
from pathlib import Path

import pytest
from project import ROOT, blocks, commands, make, succeeds
from shipped import STUDIES

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
# Other tests, which may read the commands of a page, and run or plan them.
TESTS = [path.read_text() for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__)]
# The beginning of a line that is a command.
COMMAND = re.compile(r"\$? *(?:snakemake|xlgrid|make|python3?|pip|pytest|sbatch|git|podman|docker|rm|cp) ")


def pages() -> list[str]:
    """The pages of this project."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.splitlines()


def test_the_readme_has_the_two_commands_of_the_set_up() -> None:
    assert commands("README.md")[:2] == ["make demo", "make test"]


def as_they_stand() -> list[str]:
    """The commands of all pages that no other test reads from their page."""
    elsewhere = {page for page in pages() if any(f'"{page}"' in test for test in TESTS)}
    shown = {command for page in pages() if page not in elsewhere for command in commands(page)}
    return sorted(command for command in shown - {*NOT_RUN} if not command.startswith(CLONES))


@pytest.mark.parametrize("command", as_they_stand())
def test_a_command_runs(finished: Path, command: str, request: pytest.FixtureRequest) -> None:
    """A command that cannot run in the finished demo needs a test that reads it from its page, or a reason in NOT_RUN."""
    if "--profile slurm" in command or ("--executor submitit" in command and "--submitit-cluster local" not in command):
        with request.getfixturevalue("slurm")():
            succeeds(finished, command)
    else:
        succeeds(finished, command)


def test_a_block_of_commands_is_known_as_such() -> None:
    """Blocks of other languages, and blocks without a fence, are not read by the tests of commands."""
    unread = []
    for page in pages():
        outside = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        indented = [line.strip() for line in outside.splitlines() if line.startswith("    ")]
        plain = [line for block in blocks(page, "") for line in block.splitlines()]
        unread += [(page, line) for line in indented + plain if COMMAND.match(line)]
    assert unread == [], "begin the block with ```sh"


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
    make(finished, "results/first/exhibits/transfer.md")
    table = rows((finished / "results/first/exhibits/transfer.md").read_text())
    readme_table = rows((ROOT / "README.md").read_text())
    assert readme_table.keys() == table.keys() and len(readme_table) == 4
    assert all(readme_table[labels] == pytest.approx(table[labels], abs=10) for labels in readme_table)
