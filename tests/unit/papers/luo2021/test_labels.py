"""Labels that a run gives to sentences without any, held against transformers' model on one sentence at a time."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import pretrain
from transformers import AutoTokenizer, XLMRobertaForTokenClassification

from xlgrid.architectures.plain import Plain
from xlgrid.data import batches
from xlgrid.data.formats import notes, read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.models import deltas
from xlgrid.papers.luo2021.labels import fetch_unlabelled, label_data
from xlgrid.tasks import TASKS
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {"vocab": 400, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
CODES = ("qa1", "qb1")
KIND = "udpos"
LABELS = TASKS[KIND].labels


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder, a run on qa1, and sentences of qb1: with their labels (gold) and without (rows)."""
    folder = tmp_path_factory.mktemp("labels")
    texts = {code: folder / f"{code}.parquet" for code in CODES}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind="xlmr", languages=CODES, **TINY), texts, folder / "encoder")
    make_meanings(KIND, {"n": 60}, folder / "meanings.parquet")
    for code in CODES:
        make_data(KIND, {"n": 60}, code, folder / "meanings.parquet", folder / code)
    tokenize([folder / "qa1/train.parquet"], folder / "encoder", KIND, 64, folder / "qa1.arrow")
    names = {"study": "s", "task": "t", "kind": KIND, "encoder": "e", "method": "full-ft", "source": "qa1"}
    settings = {"steps": 60, "batch_tokens": 256, "evaluations": 1, "lr": 5e-3}
    recipe = Recipe.model_validate({**names, "seed": 1, "base": "full-ft", "training": settings})
    train(recipe, folder / "encoder", [folder / "qa1.arrow"], [folder / "qa1.arrow"], folder / "run")
    source = {"local": str(folder / "{language}/{split}.parquet")}
    fetch_unlabelled(KIND, source, "qb1", folder / "rows.parquet", folder / "lock.yaml")
    return folder


def label(world: Path, out: Path, rows: Path | None = None, max_length: int = 64, kind: str = KIND) -> pa.Table:
    label_data(
        world / "run",
        world / "encoder",
        world / "encoder",
        rows or world / "rows.parquet",
        "qb1",
        kind,
        max_length,
        out,
    )
    return read_table(out)


def expected(world: Path, sentences: list[list[str]]) -> list[list[int]]:
    """The label of the first token of each word, by transformers alone; a word without a token is the unknown one."""
    tokenizer = AutoTokenizer.from_pretrained(world / "encoder")
    model = XLMRobertaForTokenClassification.from_pretrained(world / "encoder", num_labels=len(LABELS)).eval()
    left = model.load_state_dict(load_file(world / "run" / deltas.DELTA), strict=False)
    assert not left.unexpected_keys
    labels = []
    for words in sentences:
        pieces = [
            tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            or [tokenizer.unk_token_id]
            for word in words
        ]
        ids = [tokenizer.bos_token_id, *itertools.chain(*pieces), tokenizer.eos_token_id]
        with torch.inference_mode():
            predicted = model(torch.tensor([ids])).logits[0].argmax(-1).tolist()
        starts = itertools.accumulate(map(len, pieces[:-1]), initial=1)
        labels.append([predicted[start] for start in starts])
    return labels


def test_labels_are_those_of_transformers(world: Path, tmp_path: Path) -> None:
    labelled = label(world, tmp_path / "out.parquet")
    sentences = read_table(world / "rows.parquet")["tokens"].to_pylist()
    assert labelled["tokens"].to_pylist() == sentences
    assert labelled["pos_tags"].to_pylist() == expected(world, sentences)
    assert len({number for row in labelled["pos_tags"].to_pylist() for number in row}) > 3, "the run has learnt little"


def test_the_same_call_writes_the_same_bytes_and_says_who_labelled(world: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        label(world, tmp_path / f"{name}.parquet")
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "second.parquet").read_bytes()
    digest = deltas.read_run(world / "run")["digest"]
    assert notes(tmp_path / "first.parquet") == {"labelled_by": str(world / "run"), "digest": digest}


def test_each_word_of_a_long_sentence_has_a_label(world: Path, tmp_path: Path) -> None:
    """Of one of the windows, none of which has all words."""
    labelled = label(world, tmp_path / "out.parquet", max_length=8)
    sentences = labelled["tokens"].to_pylist()
    assert sentences == read_table(world / "rows.parquet")["tokens"].to_pylist()
    assert [len(row) for row in labelled["pos_tags"].to_pylist()] == [len(words) for words in sentences]
    whole = label(world, tmp_path / "whole.parquet")["pos_tags"].to_pylist()
    assert labelled["pos_tags"].to_pylist() != whole, "windows hide a part of the sentence"


@pytest.mark.parametrize("dropped", ["", "\u0001"], ids=["empty", "control character"])
def test_a_word_without_a_token_is_labelled_as_an_unknown_one(world: Path, tmp_path: Path, dropped: str) -> None:
    """Otherwise the labels of all words after it would move by one, and translations would no longer be parallel."""
    first, second = read_table(world / "rows.parquet")["tokens"].to_pylist()[:2]
    sentences = [[first[0], dropped, *first[1:]], second]
    pq.write_table(pa.table({"tokens": sentences}), tmp_path / "rows.parquet")
    labelled = label(world, tmp_path / "out.parquet", tmp_path / "rows.parquet")
    assert labelled["tokens"].to_pylist() == sentences
    assert labelled["pos_tags"].to_pylist() == expected(world, sentences)


def test_labelled_data_are_training_data(world: Path, tmp_path: Path) -> None:
    labelled = label(world, tmp_path / "out.parquet")
    tokenize([tmp_path / "out.parquet"], world / "encoder", KIND, 64, tmp_path / "out.arrow")
    tokens = batches.read(tmp_path / "out.arrow", "qb1")
    labels = tokens.token_columns["labels"]
    assert labels[labels >= 0].tolist() == [number for row in labelled["pos_tags"].to_pylist() for number in row]


def test_a_run_of_other_labels_and_a_task_without_words_are_refused(world: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"was trained on the labels ADJ.*, but wikiann has O, B-PER"):
        label(world, tmp_path / "out.parquet", kind="wikiann")
    with pytest.raises(ValueError, match="a label for each word, and xnli is not"):
        label(world, tmp_path / "out.parquet", kind="xnli")
    assert not (tmp_path / "out.parquet").exists()
