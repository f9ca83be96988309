"""The package of docs/how-to/exhibit.md, installed as the page says: its figure has a point for each cell, and follows the file that it reads."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from plugin_fixture import install
from project import FEW, ROOT, SIZES, blocks, commands, planned, project, shell

PAGE = "docs/how-to/exhibit.md"
FIGURE = "results/distance/exhibits/distance"
FILES = {f"{FIGURE}{suffix}" for suffix in (".csv", ".md", ".tex", ".png", ".svg")}
KEYS = ["source", "target", "seed"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the figure of the page's study, cut down, is made."""
    [code], [about], [values] = blocks(PAGE, "python"), blocks(PAGE, "toml"), blocks(PAGE, "csv")
    [study] = blocks(PAGE, "yaml")
    package = tomllib.loads(about)["project"]
    first = yaml.safe_load((ROOT / "studies" / "first.yaml").read_text())
    first["encoders"]["mini-xlmr"]["scratch"] |= SIZES
    first["encoders"]["mini-xlmr"]["training"] = FEW
    first["tasks"]["ner"]["options"]["n"] = 100
    first["grids"]["all"] |= {"method": ["full-ft"], "seed": [1, 2]}
    first["training"] = [{"set": {"steps": 5, "batch_tokens": 512, "evaluations": 1}}]
    first["methods"] = {"full-ft": {}}
    folder = project(tmp_path_factory.mktemp("project"), first)
    (folder / "studies" / "demo.yaml").rename(folder / "studies" / "first.yaml")
    (folder / "studies" / "distance.yaml").write_text(study)
    (folder / "distances.csv").write_text(values)
    install(folder / "installed", package["name"], package["version"], code, package["entry-points"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(filter(None, [str(folder / "installed"), os.environ.get("PYTHONPATH")]))
        )
        for command in commands(PAGE):
            process = shell(folder, command)
            assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-4000:]
        yield folder


def points(built: Path) -> pd.DataFrame:
    return pd.read_csv(built / f"{FIGURE}.csv").set_index(KEYS)


def test_every_file_of_the_figure_is_made(built: Path) -> None:
    assert {path for path in FILES if not (built / path).is_file()} == set()


def test_each_cell_whose_pair_has_a_value_is_a_point(built: Path) -> None:
    values = pd.read_csv(built / "distances.csv").set_index(["source", "target"])["value"]
    expected = {}
    for path in (built / "results/first/cells").rglob("seed*.json"):
        cell = json.loads(path.read_text())
        if (pair := (cell["source"], cell["target"])) in values:
            expected[(*pair, cell["seed"])] = (cell["scores"]["f1"], values[pair])
    table = points(built)
    assert expected and expected.keys() == {*table.index}
    got = {key: (row["score"], row["value"]) for key, row in table.iterrows()}
    assert all(got[key] == pytest.approx(expected[key]) for key in expected)


def test_the_axes_of_the_figure_say_what_they_are(built: Path) -> None:
    texts = re.findall(r">([^<>]+)</text>", (built / f"{FIGURE}.svg").read_text())
    assert {"distance of the target from the source", "f1 (%)"} <= {*texts}


def test_the_file_of_values_renders_the_figure_again_and_trains_nothing(built: Path) -> None:
    assert planned(built, f"{FIGURE}.png") == {}
    table = built / "distances.csv"
    table.write_text(table.read_text().replace("0.9", "0.7"))
    assert planned(built, f"{FIGURE}.png") == {"figure": 1}
    process = shell(built, f"snakemake --profile laptop {FIGURE}.png")
    assert process.returncode == 0, process.stderr[-4000:]
    assert set(points(built).loc[("qa1", "qb1"), "value"]) == {0.7}


def test_a_file_that_is_missing_is_told_before_anything_trains(built: Path) -> None:
    table = built / "distances.csv"
    table.rename(built / "elsewhere.csv")
    try:
        process = shell(built, "xlgrid check distance")
    finally:
        (built / "elsewhere.csv").rename(table)
    assert process.returncode != 0
    assert "distances.csv" in process.stdout + process.stderr


def test_a_misspelt_key_of_the_kind_is_told_with_its_neighbour(built: Path) -> None:
    study = built / "studies" / "distance.yaml"
    (built / "studies" / "wrong.yaml").write_text(study.read_text().replace("quantity:", "quantitty:"))
    process = shell(built, "xlgrid check wrong")
    assert "exhibits.distance.quantitty" in process.stderr and "did you mean 'quantity'" in process.stderr
