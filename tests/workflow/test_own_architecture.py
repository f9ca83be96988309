"""The package of docs/how-to/architecture.md, installed as the page says: its study pre-trains an encoder and evaluates it."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from plugin_fixture import install
from project import FEW, SIZES, blocks, commands, project, shell
from shipped import STUDIES
from transformers import AutoModelForMaskedLM

PAGE = "docs/how-to/architecture.md"
ENCODER = "results/distilbert/encoders/mini-distilbert"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the table of the page's study, cut down, is made."""
    [code], [about], [study] = blocks(PAGE, "python"), blocks(PAGE, "toml"), blocks(PAGE, "yaml")
    package = tomllib.loads(about)["project"]
    first = yaml.safe_load((STUDIES["first"]).read_text())
    first["tasks"]["ner"]["options"]["n"] = 100
    first["grids"]["all"] |= {"seed": [1], "method": ["full-ft"], "source": ["qa1"]}
    first["training"] = [{"set": {"steps": 20, "batch_tokens": 1024, "evaluations": 2}}]
    folder = project(tmp_path_factory.mktemp("project"), first)
    (folder / "studies" / "demo.yaml").rename(folder / "studies" / "first.yaml")
    install(folder / "installed", package["name"], package["version"], code, package["entry-points"])
    written = yaml.safe_load(study)
    written["encoders"]["mini-distilbert"]["scratch"] |= SIZES
    written["encoders"]["mini-distilbert"]["training"] = FEW
    (folder / "studies" / "distilbert.yaml").write_text(yaml.safe_dump(written))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(filter(None, [str(folder / "installed"), os.environ.get("PYTHONPATH")]))
        )
        for command in commands(PAGE):
            process = shell(folder, command)
            assert process.returncode == 0, process.stderr[-4000:]
        yield folder


def test_the_encoder_is_the_one_that_the_package_describes(built: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(built / ENCODER)
    assert model.config.model_type == "distilbert" and model.config.n_layers == SIZES["layers"]


def test_the_pre_training_names_the_package(built: Path) -> None:
    assert json.loads((built / ENCODER / "run.json").read_text())["packages"] == {"xlgrid-distilbert": "0.1"}


def test_the_encoder_is_trained_and_evaluated(built: Path) -> None:
    [cell] = (built / "results" / "distilbert" / "cells").rglob("qa1/qb1/seed1.json")
    assert json.loads(cell.read_text())["n"] > 0
