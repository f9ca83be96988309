"""Every command of README.md runs."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
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
    folders = {"rules": "*.smk", "src/xlgrid": "*.py"}
    files = [path.name for folder, kind in folders.items() for path in (ROOT / folder).glob(kind)]
    readme = (ROOT / "README.md").read_text()
    assert [name for name in files if name != "__init__.py" and f"  {name} " not in readme] == []


CELL = "results/{study}/cells/wikiann/mini-xlmr/madx/qa1/qa9/seed1.json"


def cell(folder: Path, study: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / CELL.format(study=study)).read_text())
    return found


def own(command: str) -> bool:
    """Whether it is of the section about a language of one's own, whose commands build on each other."""
    return "mine" in command or "my.txt" in command


@pytest.mark.parametrize("command", [one for one in commands() if one not in ELSEWHERE and not own(one)])
def test_a_command_of_the_readme_runs(finished: Path, command: str, request: pytest.FixtureRequest) -> None:
    if "--profile slurm" in command:
        request.getfixturevalue("slurm")
    done = shell(finished, command)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_from_a_text_of_one_s_own_to_the_heatmap(mine: Path) -> None:
    for command in filter(own, commands()):
        done = shell(mine, command)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    with (mine / "results/mine/exhibits/figure10.csv").open() as file:
        assert {row["column"] for row in csv.DictReader(file)} == {"qa1", "qa9"}
    trained = cell(mine, "mine")
    assert "language:qa9" in trained["stack"]

    # What the last command wrote, in the place of training.
    exported = [command for command in commands() if "export-adapter" in command]
    assert shell(mine, exported[0].replace("qa9", "qa1")).returncode == 0
    again = {"extends": "mine", "title": "Again", "methods": {"adapter": {"imported": {"path": "adapters/{language}"}}}}
    again |= {"grids": {"ner-snapshots": None}, "exhibits": {"figure04": None}}
    (mine / "studies" / "again.yaml").write_text(yaml.safe_dump(again))
    done = shell(mine, f"snakemake --profile laptop {CELL.format(study='again')} --config study=again")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert not (mine / "results/again/tokens/mlm").exists(), "adapters that are imported were trained"
    assert cell(mine, "again")["outcomes"] == trained["outcomes"]
