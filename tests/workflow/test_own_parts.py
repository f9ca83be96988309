"""The packages of docs/how-to/method.md, architecture.md and exhibit.md, installed as the pages say: their studies extend `first`, and run."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from project import (
    FEW,
    ROOT,
    SIZES,
    blocks,
    commands,
    first,
    installed,
    make,
    planned,
    project,
    refused,
    shell,
    shown,
    succeeds,
    write,
)
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, XLMRobertaForTokenClassification

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import HEADS
from xlgrid.methods import ALL_METHODS

METHOD, ARCHITECTURE, EXHIBIT = "docs/how-to/method.md", "docs/how-to/architecture.md", "docs/how-to/exhibit.md"
LORA = "results/lora/runs/ner/mini-xlmr/lora/qa1/seed1"
LORA_CELL = "results/lora/cells/ner/mini-xlmr/lora/qa1/qb1/seed1.json"
DISTILBERT = "results/distilbert/encoders/mini-distilbert"
FIGURE = "results/dots/exhibits/dots"

pytest.importorskip("peft", reason="the method of the page needs peft, which is in the extra `dev`")


def command(page: str, start: str) -> str:
    """The command of the page that begins like this."""
    [line] = [line for line in commands(page) if line.startswith(start)]
    return line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the packages are installed and the commands of the pages have run; the studies are cut down."""
    folder = project(tmp_path_factory.mktemp("project"), first(), "first")
    lora, distilbert = yaml.safe_load(shown(METHOD)), yaml.safe_load(shown(ARCHITECTURE))
    lora["training"][0]["set"] |= {"steps": 20, "evaluations": 2}
    distilbert["encoders"]["mini-distilbert"]["scratch"] |= SIZES
    distilbert["encoders"]["mini-distilbert"]["training"] = FEW
    for name, study in (("lora", lora), ("distilbert", distilbert), ("dots", yaml.safe_load(shown(EXHIBIT)))):
        write(folder, study, name)
    [names] = blocks(EXHIBIT, "csv")
    (folder / "names.csv").write_text(names)
    with ExitStack() as stack:
        for page in (METHOD, ARCHITECTURE, EXHIBIT):
            stack.enter_context(installed(page, folder))
        succeeds(folder, command(METHOD, "snakemake"), *commands(ARCHITECTURE), *commands(EXHIBIT))
        yield folder


@pytest.mark.parametrize(
    ("package", "files"),
    [("xlgrid-lora", [f"{LORA}/run.json", LORA_CELL]), ("xlgrid-distilbert", [f"{DISTILBERT}/run.json"])],
)
def test_a_result_names_the_package_that_it_rests_on(built: Path, package: str, files: list[str]) -> None:
    for file in files:
        assert json.loads((built / file).read_text())["packages"] == {package: "0.1"}


def test_a_run_of_the_method_stores_the_small_matrices_and_the_head(built: Path) -> None:
    names = load_file(built / LORA / "delta.safetensors")
    layers = [f"roberta.encoder.layer.0.attention.self.{layer}" for layer in ("query", "value")]
    matrices = {f"{layer}.lora_{side}.default.weight" for layer in layers for side in "AB"}
    assert {*names} == matrices | {"classifier.weight", "classifier.bias"}


def test_the_model_is_that_of_weights_to_which_the_products_are_added(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W + (alpha / rank) B A in a model of transformers without peft and without the method."""
    monkeypatch.syspath_prepend(built / "installed")
    encoder, delta = built / "results/first/encoders/mini-xlmr", load_file(built / LORA / "delta.safetensors")
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
        model = trained.model_of(trained.read(built / LORA), encoder, tokens).eval()
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        torch.testing.assert_close(model(**inputs).logits, expected(**inputs).logits)
    ALL_METHODS.imported.clear()


def test_the_method_passes_the_tests_of_methods(built: Path) -> None:
    succeeds(ROOT, f"{sys.executable} -m {command(METHOD, 'pytest')} -p no:cacheprovider")


def test_the_cost_counts_the_parameters_of_the_method(built: Path) -> None:
    """Two layers with A and B of rank 4 on an encoder of width 16, and a classifier of seven labels."""
    process = shell(built, command(METHOD, "xlgrid cost"))
    assert process.returncode == 0, process.stderr
    rows = [line.split() for line in process.stdout.splitlines()]
    assert ["mini-xlmr", "lora", f"{2 * 2 * 4 * 16 + 7 * 16 + 7:,}"] in [row[:3] for row in rows]


def test_the_encoder_is_the_one_that_the_package_describes(built: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(built / DISTILBERT)
    assert model.config.model_type == "distilbert" and model.config.n_layers == SIZES["layers"]


def test_the_encoder_is_trained_and_evaluated(built: Path) -> None:
    cells = [*(built / "results/distilbert/cells").rglob("qa1/qb1/seed1.json")]
    assert cells and all(json.loads(cell.read_text())["n"] > 0 for cell in cells)


def texts(built: Path) -> set[str]:
    """The texts of the figure."""
    return {*re.findall(r">([^<>]+)</text>", (built / f"{FIGURE}.svg").read_text())}


def test_the_figure_has_a_dot_for_the_mean_of_each_target_and_method(built: Path) -> None:
    scores: dict[tuple[str, str], list[float]] = {}
    for path in (built / "results/first/cells").rglob("seed*.json"):
        cell = json.loads(path.read_text())
        scores.setdefault((cell["target"], cell["method"]), []).append(cell["scores"]["f1"])
    table = pd.read_csv(built / f"{FIGURE}.csv").set_index(["target", "column"])["mean"]
    assert scores and table.to_dict() == pytest.approx({key: np.mean(each) for key, each in scores.items()})
    assert {"Artificial A1", "Artificial B1", "f1 (%)", "bitfit"} <= texts(built)


def test_a_file_of_the_figure_that_changes_draws_it_again_and_trains_nothing(built: Path) -> None:
    assert planned(built, f"{FIGURE}.png") == {}
    names = built / "names.csv"
    names.write_text(names.read_text().replace("Artificial A1", "The first"))
    assert planned(built, f"{FIGURE}.png") == {"figure": 1}
    make(built, f"{FIGURE}.png")
    assert "The first" in texts(built)


def test_a_file_of_the_figure_that_is_missing_is_told_before_anything_trains(built: Path) -> None:
    names = built / "names.csv"
    names.rename(built / "elsewhere.csv")
    said = refused(built, "xlgrid check dots")
    (built / "elsewhere.csv").rename(names)
    assert "names.csv" in said


def test_a_misspelt_key_of_the_kind_is_told_with_its_neighbour(built: Path) -> None:
    (built / "studies/wrong.yaml").write_text(shown(EXHIBIT).replace("names:", "namess:"))
    said = refused(built, "xlgrid check wrong")
    assert "exhibits.dots.namess" in said and "did you mean 'names'" in said
