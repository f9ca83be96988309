"""The package of docs/how-to/method.md, installed as the page says: its study runs, and its method passes the tests of methods."""

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from plugin_fixture import install
from project import FEW, ROOT, SIZES, blocks, commands, project, shell
from safetensors.torch import load_file
from shipped import STUDIES
from transformers import XLMRobertaForTokenClassification

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import HEADS
from xlgrid.methods import ALL_METHODS

PAGE = "docs/how-to/method.md"
RUN = "results/lora/runs/ner/mini-xlmr/lora/qa1/seed1"
CELL = "results/lora/cells/ner/mini-xlmr/lora/qa1/qb1/seed1.json"

pytest.importorskip("peft", reason="the example of the page needs peft, which is in the extra `dev`")


def command(start: str) -> str:
    """The command of the page that begins like this."""
    [line] = [line for line in commands(PAGE) if line.startswith(start)]
    return line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the package is installed and the table of the page's study, cut down, is made."""
    [code], [about] = blocks(PAGE, "python"), blocks(PAGE, "toml")
    package = tomllib.loads(about)["project"]
    first = yaml.safe_load((STUDIES["first"]).read_text())
    first["encoders"]["mini-xlmr"]["scratch"] |= SIZES
    first["encoders"]["mini-xlmr"]["training"] = FEW
    first["tasks"]["ner"]["options"]["n"] = 100
    first["grids"]["all"]["seed"] = [1]
    for entry in first["training"]:
        entry["set"] |= {"steps": 20, "evaluations": 2}
    folder = project(tmp_path_factory.mktemp("project"), first)
    (folder / "studies" / "demo.yaml").rename(folder / "studies" / "first.yaml")
    install(folder / "installed", package["name"], package["version"], code, package["entry-points"])
    [study] = blocks(PAGE, "yaml")
    (folder / "studies" / "lora.yaml").write_text(study.replace("steps: 500", "steps: 20, evaluations: 2"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(filter(None, [str(folder / "installed"), os.environ.get("PYTHONPATH")]))
        )
        process = shell(folder, command("snakemake"))
        assert process.returncode == 0, process.stderr[-4000:]
        yield folder


def test_these_tests_run_every_command_of_the_page() -> None:
    assert {*commands(PAGE)} == {command(start) for start in ("snakemake", "xlgrid cost", "pytest")}


def test_the_run_and_the_cell_name_the_package(built: Path) -> None:
    for path in (f"{RUN}/run.json", CELL):
        assert json.loads((built / path).read_text())["packages"] == {"xlgrid-lora": "0.1"}


def test_the_run_stores_the_small_matrices_and_the_head(built: Path) -> None:
    names = load_file(built / RUN / "delta.safetensors")
    layers = [f"roberta.encoder.layer.0.attention.self.{layer}" for layer in ("query", "value")]
    matrices = {f"{layer}.lora_{side}.default.weight" for layer in layers for side in "AB"}
    assert {*names} == matrices | {"classifier.weight", "classifier.bias"}


def test_the_model_is_that_of_weights_to_which_the_products_are_added(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W + (alpha / rank) B A in a model of transformers without peft and without the method."""
    monkeypatch.syspath_prepend(built / "installed")
    encoder, delta = built / "results/first/encoders/mini-xlmr", load_file(built / RUN / "delta.safetensors")
    tokens = batches.read(built / "results/first/tokens/ner/mini-xlmr/qb1/test.arrow", "qb1")
    expected = XLMRobertaForTokenClassification.from_pretrained(encoder, num_labels=len(tokens.label_names)).eval()
    with torch.no_grad():
        for name, tensor in delta.items():
            layer, of_a, _ = name.partition(".lora_A.default.weight")
            if of_a:
                product = delta[f"{layer}.lora_B.default.weight"] @ tensor
                assert product.abs().max() > 0, f"{layer} has not learnt"
                expected.get_submodule(layer).weight += 16 / 4 * product
            elif "lora_" not in name:
                expected.get_parameter(name).copy_(tensor)
        batch = HEADS["token"].collate(tokens, np.arange(8), False)
        model = trained.model_of(trained.read(built / RUN), encoder, tokens).eval()
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        torch.testing.assert_close(model(**inputs).logits, expected(**inputs).logits)
    ALL_METHODS.imported.clear()


def test_the_method_passes_the_tests_of_methods(built: Path) -> None:
    process = shell(ROOT, f"{sys.executable} -m {command('pytest')} -p no:cacheprovider")
    # Five tests of eight models; the page leaves the sixth, the number of parameters, to the package.
    assert process.returncode == 0 and process.stdout.count(".") >= 40, process.stdout[-4000:]


def test_the_cost_counts_the_parameters_of_the_method(built: Path) -> None:
    """Two layers with A and B of rank 4 on an encoder of width 16, and a classifier of seven labels."""
    process = shell(built, command("xlgrid cost"))
    assert process.returncode == 0, process.stderr
    rows = [line.split() for line in process.stdout.splitlines()]
    assert ["mini-xlmr", "lora", f"{2 * 2 * 4 * 16 + 7 * 16 + 7:,}"] in [row[:3] for row in rows]
