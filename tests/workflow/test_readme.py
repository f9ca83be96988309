"""Every command of README.md runs."""

import re
from pathlib import Path

import pytest
from project import ROOT, shell

# `make demo` built the project that the others run in; `make test` is what runs this.
ELSEWHERE = {"make demo", "make test"}


def commands() -> list[str]:
    """The lines of README.md's `sh` blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_the_readme_has_the_two_commands_of_the_set_up() -> None:
    assert set(commands()) >= ELSEWHERE


def test_links_and_pictures_exist() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert targets and [target for target in targets if not (ROOT / target).exists()] == []


def test_the_tree_names_every_file() -> None:
    folders = {"rules": "*.smk", "src/xlgrid": "*.py", "src/snakemake_executor_plugin_submitit": "*.py"}
    files = [path.name for folder, kind in folders.items() for path in (ROOT / folder).glob(kind)]
    readme = (ROOT / "README.md").read_text()
    assert [name for name in files if name != "__init__.py" and f"  {name} " not in readme] == []


@pytest.mark.parametrize("command", [command for command in commands() if command not in ELSEWHERE])
def test_a_command_of_the_readme_runs(finished: Path, command: str, request: pytest.FixtureRequest) -> None:
    if "--profile slurm" in command:
        request.getfixturevalue("slurm")
    if "mine" in command:
        request.getfixturevalue("mine")
    done = shell(finished, command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
