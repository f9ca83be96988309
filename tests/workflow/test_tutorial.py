"""The commands of docs/tutorial.md in their order. Those of studies that take long are planned, not run."""

import re
import shutil
from pathlib import Path

import pytest
from project import ROOT, blocks, commands, succeeds

from xlgrid.plan.load import load_plan

PAGE = "docs/tutorial.md"
COMMANDS = commands(PAGE)
DEMO = [command for command in COMMANDS if re.search(r"\bdemo\b|^snakemake --dry-run$", command)]
NEW = [command for command in COMMANDS if command.startswith("xlgrid new ")]
OF_OTHERS = [command for command in COMMANDS if command not in (*DEMO, *NEW, ". .venv/bin/activate")]
SENTENCE = "Amina B-PER\nlives O\nin O\nNairobi B-LOC\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, finished: Path) -> Path:
    """A project in which the demo has run, with the studies and the data of the page."""
    folder = tmp_path_factory.mktemp("tutorial") / "project"
    shutil.copytree(finished, folder, symlinks=True)
    for command in NEW:
        succeeds(folder, command)
    for name, study in written().items():
        (folder / "studies" / f"{name}.yaml").write_text(study)
    for language in ("en", "sw"):
        (folder / "names" / language).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            (folder / "names" / language / f"{split}.txt").write_text(SENTENCE * 20)
    return folder


def written() -> dict[str, str]:
    """Name -> study, of the studies that the page writes."""
    text = (ROOT / PAGE).read_text()
    return dict(re.findall(r"`studies/(\w+)\.yaml`[^`]*\n```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_the_commands_about_the_demo_run(folder: Path) -> None:
    assert DEMO[0] == "make demo" and len(DEMO) == 5
    for command in DEMO[1:]:
        succeeds(folder, command)
    assert (folder / DEMO[-1].split()[-1]).is_file()


@pytest.mark.parametrize("command", OF_OTHERS)
def test_the_commands_about_a_study_of_one_s_own_are_planned(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Hub is not asked: `xlgrid check` says so, and goes on."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    succeeds(folder, command.replace("--profile laptop", "--dry-run"))


def test_the_study_of_two_rates_makes_what_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    plan = load_plan("rates")
    own = [sum(result.study == "rates" for result in results) for results in (plan.runs, plan.cells)]
    shared = [sum(result.study == "mine" for result in results) for results in (plan.runs, plan.cells)]
    assert (own, shared) == ([6, 18], [12, 36])


def test_the_sentence_of_the_page_is_that_of_the_files() -> None:
    assert blocks(PAGE, "") == [SENTENCE.removesuffix("\n")]
