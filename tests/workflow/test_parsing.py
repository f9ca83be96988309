"""The study of docs/how-to/parsing.md, cut down: trees of generated languages, from data to a table."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import commands, first, project, shown, succeeds, write

from xlgrid.results import records

PAGE = "docs/how-to/parsing.md"
TABLE = "results/trees/exhibits/attachment"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the commands of the page have run."""
    folder = project(tmp_path_factory.mktemp("project"), first(), "first")
    study: dict[str, Any] = yaml.safe_load(shown(PAGE))
    study["tasks"]["trees"]["options"] |= {"n": 100, "arc_size": 20, "relation_size": 20}
    study["training"] = [{"set": {"steps": 60, "lr": 5e-3, "batch_tokens": 512, "evaluations": 2}}]
    study["grids"]["all"] |= {"method": ["full-ft"]}
    write(folder, study, "trees")
    succeeds(folder, *commands(PAGE))
    return folder


def cells_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The cell of each target."""
    paths = folder.glob("results/trees/cells/trees/mini-xlmr/full-ft/qa1/*/seed1.json")
    return {path.parent.name: records.read_cell(path) | {"path": path} for path in paths}


def test_cells_have_the_attachment_scores_of_their_outcomes(built: Path) -> None:
    found = cells_of(built)
    assert {*found} == {"qa1", "qa2", "qb1"}
    for cell in found.values():
        outcomes = records.outcomes(cell["path"], cell)
        words = [word for outcome in outcomes for word in zip(*outcome, strict=True)]
        attached = sum(gold == head for gold, _, head, _ in words)
        right = sum(word[:2] == word[2:] for word in words)
        assert cell["words"] == len(words) and cell["unread"] == 0 and cell["n"] == 20
        assert cell["scores"]["uas"] == pytest.approx(100 * attached / len(words))
        assert cell["scores"]["las"] == pytest.approx(100 * right / len(words))
        assert cell["metric"]["name"] == "las" and cell["chance"]["uas"] > cell["chance"]["las"] > 0


def test_a_parser_learns_the_language_of_its_source(built: Path) -> None:
    cell = cells_of(built)["qa1"]
    assert cell["scores"]["uas"] > cell["chance"]["uas"] + 20, cell["scores"]


def test_the_table_has_both_metrics(built: Path) -> None:
    with (built / f"{TABLE}.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert {(row["metric"], row["target"]) for row in rows} >= {("las", "qa1"), ("uas", "qa1"), ("uas", "qb1")}
    text = (built / f"{TABLE}.md").read_text()
    assert "LAS" in text.upper() and "UAS" in text.upper()
