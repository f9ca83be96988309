"""Encoders of the architecture plain: next sentences, which they alone learn to tell."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, inputs, pretrain, recipe, texts_of

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.training import pretraining

pytestmark = pytest.mark.usefixtures("one_thread")


def scratch(kind: str = "xlmr", **more: Any) -> Architecture:
    fields = {"kind": kind, "languages": ("en", "fr"), "bitext": (("en", "fr"),), **TINY, **more}
    return architecture_of(fields)


def test_next_sentence_prediction_leaves_bert_its_pooler_and_no_other_layer(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, options={"statements": 2})
    for kind, added in (("bert", {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}), ("xlmr", set())):
        pretrain(scratch(kind, nsp=True), texts, tmp_path / f"{kind}-nsp")
        pretrain(scratch(kind), texts, tmp_path / kind)
        with_nsp, without = (load_file(tmp_path / name / "model.safetensors") for name in (f"{kind}-nsp", kind))
        assert with_nsp.keys() - without.keys() == added and without.keys() <= with_nsp.keys()
        assert not any(torch.equal(with_nsp[name], without[name]) for name in without if "word_embeddings" in name)


def test_next_sentence_prediction_takes_two_lines(tmp_path: Path) -> None:
    described = scratch(languages=("qa1",), bitext=(), nsp=True)
    with pytest.raises(ValueError, match="texts of two lines"):
        pretrain(described, texts_of(tmp_path, ("qa1",)), tmp_path / "e")


def test_pairs_alone_are_nothing_to_predict_next_sentences_in(tmp_path: Path) -> None:
    described = scratch("bert", languages=("qa1", "qb1"), bitext=(("qa1", "qb1"),), nsp=True)
    with pytest.raises(ValueError, match="texts of two lines"):
        pretrain(described, texts_of(tmp_path, ("qa1", "qb1")), tmp_path / "e")


def test_the_length_of_an_input_does_not_tell_whether_its_second_line_is_its_own(tmp_path: Path) -> None:
    texts = texts_of(tmp_path, options={"statements": 2})
    files = inputs(scratch("bert", max_length=24), texts, tmp_path / "e")
    training = pretraining.Pretraining(recipe(scratch("bert", nsp=True)), *files, tmp_path / "e")
    lengths: dict[int, list[int]] = {0: [], 1: []}
    for seed in range(20):
        torch.manual_seed(seed)
        batch = training.objective.collate(training.train, np.arange(len(training.train)), token_types=True)
        for kept, of_kind in lengths.items():
            of_kind += batch["attention_mask"].sum(1)[batch["kept"] == kept].tolist()
    assert max(lengths[0]) == max(lengths[1]) <= 24
