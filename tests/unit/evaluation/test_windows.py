"""Long sentences of a tagging task: all their windows train, and each word is scored once."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scratch_fixture import pretrain

from xlgrid.architectures.plain import Plain
from xlgrid.data import batches
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.cell import evaluate
from xlgrid.heads import HEADS
from xlgrid.heads.schemes import scheme_of
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method
from xlgrid.models import prediction
from xlgrid.results import records
from xlgrid.training import schedule
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe, Training

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {"vocab": 400, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
CODES = ("qa1", "qb1")
KINDS = ("wikiann", "udpos")
# Special tokens included: shorter than most sentences.
LENGTH = 10


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder, and tokens of windows (short) and of whole sentences (whole)."""
    folder = tmp_path_factory.mktemp("windows")
    texts = {code: folder / f"{code}.parquet" for code in CODES}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind="xlmr", languages=CODES, **TINY), texts, folder / "encoder")
    for kind, code in itertools.product(KINDS, CODES):
        make_meanings(kind, {"n": 40}, folder / "meanings.parquet")
        make_data(kind, {"n": 40}, code, folder / "meanings.parquet", folder / kind / code)
        for name, length in (("short", LENGTH), ("whole", 512)):
            data, out = folder / kind / code / "train.parquet", folder / f"{kind}-{code}-{name}.arrow"
            tokenize([data], folder / "encoder", kind, length, out)
    return folder


def read(world: Path, kind: str, code: str, name: str = "short") -> Tokens:
    return batches.read(world / f"{kind}-{code}-{name}.arrow", code)


class Oracle(torch.nn.Module):
    """Knows the label of the first token of each word."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self.config, self.device = type("Config", (), {"type_vocab_size": 1}), torch.device("cpu")
        labels, ids = tokens.token_columns["labels"], np.asarray(tokens.values)
        rows = list(itertools.pairwise(tokens.offsets))
        self.labels = {tuple(ids[a:b].tolist()): labels[a:b] for a, b in rows}
        self.count = len(tokens.label_names)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logits = torch.zeros(*input_ids.shape, self.count)
        for at, (ids, real) in enumerate(zip(input_ids, attention_mask, strict=True)):
            for place, label in enumerate(self.labels[tuple(ids[: real.sum()].tolist())]):
                logits[at, place, max(label, 0)] = 1
        return type("Output", (), {"logits": logits})


@pytest.mark.parametrize("kind", KINDS)
def test_right_labels_in_all_windows_give_full_marks_to_each_sentence(world: Path, kind: str) -> None:
    """Entities that two windows share count as one."""
    short, whole = (read(world, kind, "qa1", name) for name in ("short", "whole"))
    assert len(short) > len(whole) == short.examples
    outcomes, expected = (
        prediction.outcomes_on(Oracle(tokens), Method(), tokens, 200)  # type: ignore[arg-type]
        for tokens in (short, whole)
    )
    assert outcomes == expected
    metric = HEADS["token"].metric(short.label_names)
    assert metric.score(outcomes) == 100 and metric.name == ("f1" if scheme_of(short.label_names) else "accuracy")


def test_an_entity_may_cross_windows(world: Path) -> None:
    """Otherwise the test above would show less than it says."""
    tokens = read(world, "wikiann", "qa1")
    labels = [
        tokens.token_columns["labels"][a:b][tokens.token_columns["labels"][a:b] != -100]
        for a, b in itertools.pairwise(tokens.offsets)
    ]
    inside = [number for number, name in enumerate(tokens.label_names) if name.startswith("I-")]
    pairs = zip(labels, tokens.example_of, tokens.example_of[1:], labels[1:], strict=False)
    assert any(first == second and after[0] in inside for _, first, second, after in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_counts_all_words_once_and_a_run_trains_on_all_windows(world: Path, kind: str, tmp_path: Path) -> None:
    files = [world / f"{kind}-{code}-short.arrow" for code in CODES]
    names = {"study": "s", "task": "t", "kind": kind, "encoder": "e", "method": "full-ft", "source": "qa1+qb1"}
    settings = {"steps": 2, "batch_tokens": 500, "evaluations": 1}
    recipe = Recipe.model_validate({**names, "seed": 1, "base": "full-ft", "training": settings})
    train(recipe, world / "encoder", files, files, tmp_path / "run")
    evaluate(tmp_path / "run", world / "encoder", files[1], {"target": "qb1"}, tmp_path / "cell.json")
    cell = records.read_cell(tmp_path / "cell.json")
    sentences = read_table(world / kind / "qb1" / "train.parquet")["tokens"].to_pylist()
    assert cell["words"] == sum(map(len, sentences)) and cell["n"] == len(sentences)
    if kind == "udpos":
        assert [len(gold) for gold, _ in records.outcomes("cell.json", cell)] == [len(words) for words in sentences]
    tokens = read(world, kind, "qb1")
    epoch = schedule.epoch(tokens.lengths, np.arange(len(tokens)), Training(batch_tokens=100), seed=1, number=0)
    assert sorted(np.concatenate(epoch).tolist()) == list(range(len(tokens)))


def test_a_mix_has_whole_sentences_where_only_one_part_has_windows(world: Path) -> None:
    parts = [read(world, "wikiann", "qa1", "short"), read(world, "wikiann", "qb1", "whole")]
    mixed = batches.mix(parts, 65)
    assert mixed.examples == parts[0].examples == parts[1].examples and mixed.parts is not None
    for example in range(mixed.examples):
        rows = np.flatnonzero(mixed.example_of == example)
        [part] = set(mixed.parts[rows].tolist())
        expected = parts[part].take(np.flatnonzero(parts[part].example_of == example))
        assert np.array_equal(mixed.take(rows).values, expected.values)
        assert np.array_equal(mixed.take(rows).token_columns["labels"], expected.token_columns["labels"])
    assert set(mixed.parts.tolist()) == {0, 1}
