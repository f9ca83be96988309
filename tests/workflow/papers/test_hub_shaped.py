"""A paper's study on checkpoints and data of one's own, shaped like the Hub's, by what docs/how-to/data.md states and nothing else."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hub
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from project import blocks, make, project
from safetensors.torch import load_file
from shipped import STUDIES
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from xlgrid.data import batches
from xlgrid.data.formats import read_table
from xlgrid.evaluation.trained import model_of, read
from xlgrid.heads import HEADS
from xlgrid.models.load import has_segments, load_model
from xlgrid.results import records

BASE = yaml.safe_load((STUDIES["foroutan2023"]).read_text())
CHECKPOINTS = {"mbert": "bert-base-multilingual-cased", "xlmr-base": "xlm-roberta-base"}
E5_FOLDER = "multilingual-e5-small"
STEMS = {"mbert": "bert", "xlmr-base": "roberta"}
RESULTS = "results/demo"
# task/encoder/method/source/target; the first are those of the exhibit.
SHOWN = [
    f"ruletaker-d0/{encoder}/pair-qcross/en+en-fr/{target}" for encoder in CHECKPOINTS for target in ("en", "en-fr")
]
# Another encoder, whose config.json and tokenizer have different ids for padding.
E5 = "xnli/e5/full-ft/en/en"
ALONE = ["ruletaker-d0/mbert/full-ft/en/en", "xnli/mbert/bitfit/en/en-fr", "lot/xlmr-base/full-ft/en/fr", E5]
# As the Hub's pages and LeapOfThought's README say; RuleTaker has words.
NAMES = {"xnli": ["entailment", "neutral", "contradiction"], "lot": ["false", "true"]}
FILES = {
    "xnli": ("xnli/{}/test-00000-of-00001.parquet", "premise", "hypothesis", "label"),
    "ruletaker-d0": ("ruletaker/{}/test.parquet", "context", "question", "label"),
    "lot": (f"lot/{{}}/{hub.LOT['test']}", "context", "phrase", "answer"),
}


def study() -> dict[str, Any]:
    """The study of docs/how-to/data.md, with fewer steps and seeds, and fewer cells in an exhibit."""
    content = yaml.safe_load(blocks("docs/how-to/data.md", "yaml")[0])
    # The tokenizer of XLM-R gives no token types, so transformers' model of e5 takes all tokens for those of the first segment.
    of_e5 = {"when": {"encoder": "e5"}, "set": {"segments": False}}
    content["training"] = [*BASE["training"], {"set": {"steps": 4, "evaluations": 2}}, of_e5]
    content["grids"] = {name: {"seed": [1]} for name in BASE["grids"]}
    content["encoders"]["e5"] = {"path": f"checkpoints/{E5_FOLDER}"}
    axes = ("task", "encoder", "method", "source", "target")
    content["grids"]["e5"] = {axis: [name] for axis, name in zip(axes, E5.split("/"), strict=True)} | {"seed": [1]}
    select = {"task": "ruletaker-d0", "method": "pair-qcross", "source": "en+en-fr", "target": ["en", "en-fr"]}
    content["exhibits"] = {"table03": {"select": select, "groups": ["mono", "en-X"]}}
    return content


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("hub"), study())
    shutil.copy(STUDIES["foroutan2023"], folder / "studies")
    downloads = folder / "downloads"
    for code in ("en", "fr"):
        hub.write_xnli(downloads / "xnli", code)
        hub.write_ruletaker(downloads / "ruletaker", code)
        hub.write_lot(downloads / "lot", code)
    tables = [read_table(path) for path in sorted(downloads.rglob("*.parquet"))]
    texts = [text for table in tables for column in table.columns[:2] for text in column.to_pylist()]
    hub.write_mbert(folder / "checkpoints" / CHECKPOINTS["mbert"], texts)
    hub.write_xlmr(folder / "checkpoints" / CHECKPOINTS["xlmr-base"], texts)
    hub.write_e5(folder / "checkpoints" / E5_FOLDER, texts)
    targets = [
        *(f"{RESULTS}/exhibits/table03{end}.csv" for end in ("", "-published")),
        *(f"{RESULTS}/cells/{cell}/seed1.json" for cell in ALONE),
    ]
    make(folder, *targets)
    return folder


def read_cell(built: Path, cell: str) -> dict[str, Any]:
    return json.loads((built / RESULTS / "cells" / cell / "seed1.json").read_text())


def downloaded(task: str, target: str) -> Iterator[tuple[str, str, str]]:
    """Both texts and the label's name of each test example, from the files as they came."""
    path, first, second, label = FILES[task]
    codes = target.split("-")
    first_rows, second_rows = (
        read_table(Path("downloads", path.format(code))).to_pylist() for code in (codes[0], codes[-1])
    )
    for row, other in zip(first_rows, second_rows, strict=True):
        if row.get("config", "depth-0") == "depth-0":
            yield row[first], other[second], NAMES[task][row[label]] if task in NAMES else row[label]


@pytest.mark.parametrize("cell", [*ALONE, *(cell for cell in SHOWN if cell.endswith("/en"))])
def test_a_cell_is_what_transformers_makes_of_the_checkpoint_and_the_files(
    built: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    """Those of pair-qcross too, which in one language is the plain encoder."""
    monkeypatch.chdir(built)
    task, encoder, method, source, target = cell.split("/")
    run = f"{RESULTS}/runs/{task}/{encoder}/{method}/{source}/seed1"
    names = json.loads(Path(run, "run.json").read_text())["labels"]
    data = batches.read(f"{RESULTS}/tokens/{task}/{encoder}/{target}/test.arrow", target)
    ours = model_of(read(run), f"{RESULTS}/encoders/{encoder}", data).eval()
    checkpoint = Path("checkpoints", (CHECKPOINTS | {"e5": E5_FOLDER})[encoder])
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    plain = AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=len(names), dtype=torch.float32)
    trained = {name: tensor for name, tensor in load_file(f"{run}/delta.safetensors").items() if ".cross." not in name}
    assert not plain.load_state_dict(trained, strict=False).unexpected_keys
    plain.eval()
    expected = []
    for i, (first, second, label) in enumerate(downloaded(task, target)):
        theirs = tokenizer(first, second, truncation="only_first", max_length=512, return_tensors="pt")
        inputs = HEADS[data.head].collate(data, np.array([i]), has_segments(ours) and "token_type_ids" in theirs)
        assert names[inputs.pop("labels").item()] == label
        with torch.inference_mode():
            logits = plain(**theirs).logits
            torch.testing.assert_close(ours(**inputs).logits, logits, atol=1e-6, rtol=0)
        expected.append([names.index(label), int(logits.argmax())])
    record = read_cell(built, cell)
    assert records.outcomes("cell.json", record) == expected
    assert record["n"] == hub.COUNTS[task.partition("-")[0]][2]
    right = [gold == predicted for gold, predicted in expected]
    assert record["scores"]["accuracy"] == pytest.approx(100 * sum(right) / len(right))


@pytest.mark.parametrize("encoder", CHECKPOINTS)
def test_every_tensor_of_a_checkpoint_is_in_the_encoder(built: Path, encoder: str) -> None:
    """Those of the language-modelling head, and BERT's layer norms under their old names."""
    theirs = load_file(built / "checkpoints" / CHECKPOINTS[encoder] / "model.safetensors")
    data = batches.read(built / RESULTS / "tokens" / "mlm" / encoder / "en-fr" / "train.arrow", "en-fr")
    ours = load_model(built / RESULTS / "encoders" / encoder, HEADS[data.head], 0).state_dict()
    for name, tensor in theirs.items():
        if "pooler" not in name and "seq_relationship" not in name:
            new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            assert torch.equal(ours[new], tensor), name


@pytest.mark.parametrize(("encoder", "pad", "mask", "first"), [("mbert", 0, 103, 101), ("xlmr-base", 1, -1, 0)])
def test_special_tokens_have_the_ids_of_the_original(
    built: Path, encoder: str, pad: int, mask: int, first: int
) -> None:
    data = batches.read(built / RESULTS / "tokens" / "mlm" / encoder / "en-fr" / "train.arrow", "en-fr")
    assert data.pad_id == pad
    assert data.vocabulary.mask_id == mask % data.vocabulary.size
    assert set(data.values[data.offsets[:-1]].tolist()) == {first}


@pytest.mark.parametrize("encoder", CHECKPOINTS)
def test_the_longest_input_is_cut_to_what_the_encoder_takes(built: Path, encoder: str) -> None:
    data = batches.read(built / RESULTS / "tokens" / "ruletaker-d0" / encoder / "en" / "test.arrow", "en")
    assert data.lengths.max() == data.lengths[0] == 512


@pytest.mark.parametrize("encoder", CHECKPOINTS)
def test_text_trains_a_query_in_every_layer_with_which_cells_are_evaluated(built: Path, encoder: str) -> None:
    run = f"{RESULTS}/runs/mlm/{encoder}/query/en-fr/seed1"
    layers = [f"{STEMS[encoder]}.encoder.layer.{i}.attention.self.query.cross" for i in range(2)]
    assert set(load_file(built / run / "delta.safetensors")) == {f"{q}.{w}" for q in layers for w in ("weight", "bias")}
    assert read_cell(built, f"ruletaker-d0/{encoder}/pair-qcross/en+en-fr/en-fr")["speaks"] == [run]


def test_text_has_each_premise_once(built: Path) -> None:
    rows = read_table(built / "downloads/xnli/en/train-00000-of-00001.parquet")["premise"].to_pylist()
    for code in ("en", "fr"):
        assert read_table(built / RESULTS / "text" / f"{code}.parquet").num_rows == len(set(rows)) < len(rows)


def test_the_exhibit_has_every_entry_beside_the_paper_s(built: Path) -> None:
    table = pd.read_csv(built / RESULTS / "exhibits" / "table03.csv").set_index(["encoder", "group"])
    for cell, entry in zip(SHOWN, [(e, c) for e in CHECKPOINTS for c in ("mono", "en-X")], strict=True):
        assert table.loc[entry, "mean"] == pytest.approx(read_cell(built, cell)["scores"]["accuracy"])
    assert len(table) == len(SHOWN)
    assert (table[["n_cells", "n_cells_expected", "n_seeds", "n_seeds_expected"]] == 1).all(axis=None)
    compared = pd.read_csv(built / RESULTS / "exhibits" / "table03-published.csv")
    assert len(compared) == len(SHOWN) and compared[["published", "difference"]].notna().all(axis=None)
