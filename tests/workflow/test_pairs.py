"""The study of docs/how-to/pairs.md, cut down: its tables of pairs are checked, and its exhibits are drawn from real cells."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project import blocks, commands, planned, project, refused, shown, succeeds, tiny

PAGE = "docs/how-to/pairs.md"
EXHIBITS = "results/pairs/exhibits"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the commands of the page have run."""
    study = tiny(yaml.safe_load(shown(PAGE)))
    study["tasks"]["ner"]["options"]["n"] = 60
    study["grids"]["all"]["source"] = ["qa1", "qb2", "qc1"]
    folder = project(tmp_path_factory.mktemp("project"), study, "pairs")
    [table] = blocks(PAGE, "csv")
    (folder / "distances.csv").write_text(table)
    check, _ = commands(PAGE)
    files = [f"{EXHIBITS}/{name}.csv" for name in study["exhibits"]]
    succeeds(folder, check, f"snakemake --profile laptop {' '.join(files)}")
    return folder


def scores(folder: Path) -> pd.DataFrame:
    """The score of each cell."""
    cells = [json.loads(path.read_text()) for path in (folder / "results/pairs/cells").rglob("*.json")]
    keys = ("method", "source", "target")
    return pd.DataFrame([{key: cell[key] for key in keys} | {"score": cell["scores"]["f1"]} for cell in cells])


def test_a_scatter_has_a_point_for_each_cell_of_transfer_and_the_value_of_its_pair(built: Path) -> None:
    points = pd.read_csv(built / f"{EXHIBITS}/distance.csv").set_index(["method", "source", "target"])
    cells = scores(built)
    expected = cells[cells["source"] != cells["target"]].set_index(["method", "source", "target"])["score"]
    assert len(expected) == 45
    assert points["mean"].to_dict() == pytest.approx(expected.to_dict())
    assert points.loc[("bitfit", "qa1", "qb2"), "value"] == points.loc[("bitfit", "qb2", "qa1"), "value"] == 0.71
    assert pd.isna(points.loc[("bitfit", "qb2", "qc2"), "value"])
    assert "1 of 15 pairs have no value in grammar" in (built / f"{EXHIBITS}/distance.md").read_text()


@pytest.mark.parametrize("name", ["distance", "family", "groups", "choice", "methods"])
def test_each_exhibit_has_its_files(built: Path, name: str) -> None:
    files = [built / f"{EXHIBITS}/{name}{suffix}" for suffix in (".csv", ".md", ".tex", ".png", ".svg", ".pdf")]
    assert all(file.stat().st_size > 0 for file in files)


def test_a_ranking_has_a_choice_for_each_target(built: Path) -> None:
    choices = pd.read_csv(built / f"{EXHIBITS}/choice.csv")
    of_family = choices[(choices["what"] == "choice") & (choices["by"] == "same-family")].set_index("target")
    assert of_family["nearest"].to_dict()["qb1"] == "qb2" and (of_family["regret"] >= 0).all()


def test_a_change_of_the_table_renders_its_exhibits_again_and_trains_nothing(built: Path) -> None:
    both = " ".join(f"{EXHIBITS}/{name}.csv" for name in ("distance", "family", "groups", "choice", "methods"))
    assert planned(built, both) == {}
    table = built / "distances.csv"
    before = table.read_text()
    table.write_text(before.replace("0.71", "0.17"))
    again = planned(built, both)
    table.write_text(before)
    assert again == {"figure": 2}


def test_the_check_tells_what_the_table_lacks(built: Path) -> None:
    path = built / "studies/wrong.yaml"
    path.write_text((built / "studies/pairs.yaml").read_text().replace("against: grammar", "against: gramar"))
    said = refused(built, "xlgrid check wrong")
    assert "exhibits.distance.against: unknown table of pairs 'gramar', did you mean 'grammar'" in said
