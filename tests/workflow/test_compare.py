"""The commands of docs/how-to/compare.md, with a study that has not run."""

from pathlib import Path

from project import commands, shell, shown

PAGE = "docs/how-to/compare.md"


def test_the_settings_that_a_study_changes_are_shown_before_it_runs(finished: Path) -> None:
    (finished / "studies/lower.yaml").write_text(shown(PAGE))
    [command] = commands(PAGE)
    output = shell(finished, command).stdout
    assert "cells are in both studies" in output and "full-ft" not in output
    [rate] = [line for line in output.splitlines() if "training.lr" in line]
    assert rate.split()[2] == "0.01" and "ner mini-xlmr bitfit" in rate
