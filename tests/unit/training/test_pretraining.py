"""Encoders from scratch: their files, and that kills do not change them."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, contents, inputs, killed, pretrain, recipe, texts_of

from xlgrid.architectures import Architecture, architecture_of
from xlgrid.architectures.begin import take_weights
from xlgrid.training import pretraining
from xlgrid.training.loop import Loop
from xlgrid.training.pretraining import take_snapshot

pytestmark = pytest.mark.usefixtures("one_thread")


def scratch(kind: str = "xlmr", **more: Any) -> Architecture:
    fields = {"kind": kind, "languages": ("en", "fr"), "bitext": (("en", "fr"),), **TINY, **more}
    return architecture_of(fields)


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_transformers_reads_all_weights_of_it(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    pretrain(scratch(kind), texts_of(tmp_path), tmp_path / kind)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / kind)
    model, about = AutoModelForMaskedLM.from_pretrained(tmp_path / kind, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"]
    assert model.config.model_type == ("bert" if kind == "bert" else "xlm-roberta")
    assert model.config.vocab_size == len(tokenizer) <= 300 and model.config.pad_token_id == tokenizer.pad_token_id
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert tokenizer.model_max_length == 512


def test_it_may_begin_with_an_encoder_without_a_head(tmp_path: Path) -> None:
    """All weights train, so that a head that the encoder lacks is drawn once."""
    from transformers import BertConfig, BertForMaskedLM, BertModel

    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    encoder, model = BertModel(config, add_pooling_layer=False), BertForMaskedLM(config)
    encoder.save_pretrained(tmp_path)
    take_weights(model, tmp_path, print)
    assert all(torch.equal(p, model.bert.get_parameter(name)) for name, p in encoder.named_parameters())


def test_killed_twice_it_has_the_same_bytes(tmp_path: Path) -> None:
    described = scratch("bert", nsp=True)
    files = inputs(described, texts_of(tmp_path, options={"statements": 2}), tmp_path / "e")
    encoder_recipe = recipe(described, steps=8, evaluations=2, snapshots=(4,), checkpoint_seconds=1e-9)
    pretraining.pretrain(encoder_recipe, *files, tmp_path / "whole")
    for at, number, status in ((3, signal.SIGKILL, -signal.SIGKILL), (6, signal.SIGTERM, os.EX_TEMPFAIL)):
        ended = killed(encoder_recipe, files, tmp_path / "killed", at, number)
        assert ended.returncode == status, ended.stderr
        assert not (tmp_path / "killed" / "model.safetensors").exists()
    pretraining.pretrain(encoder_recipe, *files, tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert not (tmp_path / "killed" / "state.pt").exists()
    other = encoder_recipe.model_copy(update={"seed": 1})
    pretraining.pretrain(other, *files, tmp_path / "other")
    assert contents(tmp_path / "other")["model.safetensors"] != contents(tmp_path / "whole")["model.safetensors"]


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
    with pytest.raises(ValueError, match="nsp takes texts of two lines"):
        pretrain(described, texts_of(tmp_path, ("qa1",)), tmp_path / "e")


def test_pairs_alone_are_nothing_to_predict_next_sentences_in(tmp_path: Path) -> None:
    described = scratch("bert", languages=("qa1", "qb1"), bitext=(("qa1", "qb1"),), nsp=True)
    with pytest.raises(ValueError, match="nsp takes texts of two lines"):
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


def test_a_vocabulary_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    vocabulary, train, dev = inputs(scratch("bert"), texts_of(tmp_path), tmp_path / "e")
    with pytest.raises(ValueError, match=r"has no <s>: an encoder of kind xlmr takes its own kind"):
        pretraining.pretrain(recipe(scratch("xlmr")), vocabulary, train, dev, tmp_path / "e")


def test_a_snapshot_is_an_encoder_of_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForMaskedLM

    embeddings: dict[int, torch.Tensor] = {}
    advance = Loop.advance

    def noted(loop: Loop, chosen: Any) -> dict[str, float]:
        losses = advance(loop, chosen)
        embeddings[loop.step] = loop.model.get_input_embeddings().weight.detach().clone()
        return losses

    monkeypatch.setattr(Loop, "advance", noted)
    pretrain(scratch(), texts_of(tmp_path), tmp_path / "e", steps=4, snapshots=(2,))
    take_snapshot(tmp_path / "e", 2, tmp_path / "early")
    model, about = AutoModelForMaskedLM.from_pretrained(tmp_path / "early", output_loading_info=True)
    assert not about["missing_keys"] and torch.equal(model.get_input_embeddings().weight, embeddings[2])
    assert json.loads((tmp_path / "early" / "encoder.json").read_text())["step"] == 2
    with pytest.raises(ValueError, match=r"step3\.safetensors does not exist: only pre-training can make it"):
        take_snapshot(tmp_path / "e", 3, tmp_path / "other")
