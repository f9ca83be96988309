"""The study and the commands of the page about bash loops, on generated names and with tiny encoders in folders."""

from pathlib import Path

import pytest
import yaml
from hub import write_mbert, write_xlmr
from project import blocks, project, small, succeeds

PAGE = "docs/how-to/bash-loop.md"


def shown() -> list[str]:
    """The commands in the table of the page."""
    rows = [
        line.split("|") for line in (Path(__file__).parents[2] / PAGE).read_text().splitlines() if line.startswith("| ")
    ]
    return [row[-2].strip().strip("`") for row in rows if row[1].strip().isdecimal()]


def test_the_study_has_twelve_lines_and_the_page_six_commands() -> None:
    [study] = blocks(PAGE, "yaml")
    assert len(study.splitlines()) == 12 and len(shown()) == 6


@pytest.mark.slow
def test_the_study_and_the_commands_run(tmp_path: Path) -> None:
    folder = project(tmp_path, small())
    texts = [f"Ada wa Kano {place}" for place in ("hau", "ibo", "swa", "yor")]
    for code in ("hau", "ibo", "swa", "yor"):
        (folder / "names" / code).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            lines = [f"Ada B-PER\n{code}{split}{i} O\nKano B-LOC\n" for i in range(6)]
            (folder / "names" / code / f"{split}.txt").write_text("\n".join(lines))
    write_xlmr(folder / "xlmr", texts)
    write_mbert(folder / "afro", texts)
    [study] = map(yaml.safe_load, blocks(PAGE, "yaml"))
    study["encoders"] = {name: {"path": name} for name in study["encoders"]}
    study["training"] = [{"set": {"steps": 2, "batch_size": 4}}]
    study["grids"]["all"] |= {"seed": [1], "source": ["ha", "sw"]}
    (folder / "studies" / "names.yaml").write_text(yaml.safe_dump(study))
    # Slurm's profile differs in where jobs run; nothing is left for it to make.
    for command in shown():
        succeeds(folder, command.replace("--profile slurm", "--profile laptop"))
    table = (folder / "results/names/exhibits/scores.md").read_text()
    assert "Cells with a result: 16 of 16" in table
