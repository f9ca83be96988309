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
    shown,
    succeeds,
    write,
)
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

METHOD, ARCHITECTURE, EXHIBIT = "docs/how-to/method.md", "docs/how-to/architecture.md", "docs/how-to/exhibit.md"
DENSE, SPARSE = (f"results/sparse/runs/text/mini-xlmr/{phase}-text/qa1/seed1" for phase in ("dense", "sparse"))
DISTILBERT = "results/distilbert/encoders/mini-distilbert"
FIGURE = "results/dots/exhibits/dots"


def command(page: str, start: str) -> str:
    """The command of the page that begins like this."""
    [line] = [line for line in commands(page) if line.startswith(start)]
    return line


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project in which the packages are installed and the commands of the pages have run; the studies are cut down."""
    folder = project(tmp_path_factory.mktemp("project"), first(), "first")
    sparse, distilbert = yaml.safe_load(shown(METHOD)), yaml.safe_load(shown(ARCHITECTURE))
    for entry in sparse["training"]:
        entry["set"] |= {"steps": 10, "evaluations": 2}
    distilbert["encoders"]["mini-distilbert"]["scratch"] |= SIZES
    distilbert["encoders"]["mini-distilbert"]["training"] = FEW
    for name, study in (("sparse", sparse), ("distilbert", distilbert), ("dots", yaml.safe_load(shown(EXHIBIT)))):
        write(folder, study, name)
    [names] = blocks(EXHIBIT, "csv")
    (folder / "names.csv").write_text(names)
    with ExitStack() as stack:
        for page in (METHOD, ARCHITECTURE, EXHIBIT):
            stack.enter_context(installed(page, folder))
        succeeds(folder, *commands(METHOD)[:2], *commands(ARCHITECTURE), *commands(EXHIBIT))
        yield folder


@pytest.mark.parametrize(
    ("package", "files"),
    [("xlgrid-sparse", [f"{SPARSE}/run.json"]), ("xlgrid-distilbert", [f"{DISTILBERT}/run.json"])],
)
def test_a_result_names_the_package_that_it_rests_on(built: Path, package: str, files: list[str]) -> None:
    for file in files:
        assert json.loads((built / file).read_text())["packages"] == {package: "0.1"}


def test_the_weights_that_the_first_phase_changed_most_train_again_from_their_first_values(built: Path) -> None:
    first = load_file(built / "results/first/encoders/mini-xlmr/model.safetensors")
    dense, sparse = (load_file(built / run / "delta.safetensors") for run in (DENSE, SPARSE))
    assert dense.keys() == sparse.keys() <= first.keys()
    changes = torch.cat([(dense[name] - first[name]).abs().flatten() for name in dense])
    least = changes.topk(round(0.08 * len(changes))).values[-1]
    again = torch.cat([(sparse[name] - first[name]).flatten() for name in dense])
    chosen = changes >= least
    assert not again[~chosen].any(), "a weight trained that the first phase changed little"
    assert (again[chosen] != 0).float().mean() > 0.9
    assert (again[chosen] - torch.cat([(dense[name] - first[name]).flatten() for name in dense])[chosen]).any()


def test_a_run_on_the_task_begins_with_the_sparse_weights(built: Path) -> None:
    record = json.loads((built / "results/sparse/runs/ner/mini-xlmr/full-ft-sparse/qa1/seed1/run.json").read_text())
    assert record["start"] == SPARSE


def test_the_method_passes_the_tests_of_methods(built: Path) -> None:
    succeeds(ROOT, f"{sys.executable} -m {command(METHOD, 'pytest')} -p no:cacheprovider")


def test_a_run_without_a_first_phase_is_refused(built: Path) -> None:
    (built / "studies/wrong.yaml").write_text(shown(METHOD).replace(", start: {task: text, method: dense-text}", ""))
    assert "add a `start` whose method has `base: full-ft`" in refused(built, "xlgrid check wrong")


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
    assert {"Artificial A1", "Artificial B1", "F1 (%)", "bitfit"} <= texts(built)


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
