"""A translation task from its data to a cell: an encoder-decoder learns a handful of sentences by heart."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from scratch_fixture import pretrain

from xlgrid.architectures.plain import Plain
from xlgrid.data import batches
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate
from xlgrid.results.records import outcomes, read_cell
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

PAIR = "qa1-qb1"
SETTINGS = {"steps": 300, "batch_size": 8, "lr": 5e-3, "evaluations": 2, "keep": "last", "label_smoothing": 0.1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, and the tokens of sentences of one language with their translations into another."""
    folder = tmp_path_factory.mktemp("translation")
    texts = {code: folder / f"{code}.parquet" for code in PAIR.split("-")}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    size = {"vocab": 300, "hidden": 32, "layers": 2, "heads": 2, "intermediate": 64}
    pretrain(Plain(kind="xlmr", languages=tuple(texts), **size), texts, folder / "encoder")
    make_meanings("translation", {"n": 20}, folder / "meanings.parquet")
    make_data("translation", {"n": 20}, PAIR, folder / "meanings.parquet", folder / "data")
    tokenize([folder / "data/train.parquet"], folder / "encoder", "translation", 64, folder / "train.arrow")
    return folder


def new_run(folder: Path, run: str, base: str = "seq2seq", options: Any = None, **settings: Any) -> dict[str, Any]:
    """The record of a new run."""
    named = {"study": "s", "task": "t", "kind": "translation", "encoder": "e", "method": "m", "source": PAIR, "seed": 1}
    recipe = {
        **named,
        "base": base,
        "options": {"longest": 20} if options is None else options,
        "training": SETTINGS | settings,
    }
    tokens = folder / "train.arrow"
    train(Recipe.model_validate(recipe), folder / "encoder", [tokens], [tokens], folder / run)
    return json.loads((folder / run / "run.json").read_text())


def cell(folder: Path, run: str) -> dict[str, Any]:
    """The cell of a run on the sentences that it has trained on."""
    path = folder / run / "cell.json"
    evaluate(folder / run, folder / "encoder", folder / "train.arrow", {"target": PAIR}, path)
    return read_cell(path)


def test_sentences_are_learnt_by_heart(folder: Path) -> None:
    record = new_run(folder, "run", options={"init": "self", "decoder": "last-1", "longest": 40})
    evaluated = cell(folder, "run")
    assert evaluated["metric"]["name"] == "bleu"
    assert evaluated["metric"]["implementation"].startswith("sacrebleu: nrefs:1|")
    assert evaluated["n"] == 14 and {len(outcome) for outcome in outcomes("here", evaluated)} == {10}
    assert evaluated["scores"]["bleu"] > 80
    assert record["dev_score"] == pytest.approx(evaluated["scores"]["bleu"])


def test_label_smoothing_reaches_the_loss_of_training(folder: Path) -> None:
    first = {}
    for share in (0.0, 0.4):
        new_run(folder, f"smooth{share}", label_smoothing=share, steps=1, evaluations=1)
        (line,) = (folder / f"smooth{share}/curve.jsonl").read_text().splitlines()
        first[share] = json.loads(line)["loss"]
    assert first[0.0] != first[0.4]


@pytest.mark.parametrize(("base", "is_all"), [("full-ft", True), ("bitfit", False)])
def test_other_methods_train_encoder_decoders_too(folder: Path, base: str, is_all: bool) -> None:
    """The results of a run have its cross-attention, which was drawn at random: no second draw shows in evaluation."""
    record = new_run(folder, base, base=base, options={}, steps=2, evaluations=1)
    assert (record["parameters"]["trained"] == record["parameters"]["total"]) is is_all
    tokens, loaded = batches.read(folder / "train.arrow", PAIR), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        loaded.append(trained.model_of(trained.read(folder / base), folder / "encoder", tokens).state_dict())
    assert all(torch.equal(tensor, loaded[1][name]) for name, tensor in loaded[0].items())
