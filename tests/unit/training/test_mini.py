"""Miniature encoders: architecture, tokenizer, and pre-training from scratch."""

import numpy as np
import pytest
import torch
from mini_fixture import TINY, mini, pretrain

from xlgrid.data.text import TextSettings, make_text
from xlgrid.training import mini as mini_module
from xlgrid.training.mini import MiniEncoder, make_mini


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def encoder(request, tmp_path_factory):
    return mini(tmp_path_factory.mktemp("encoder"), request.param)


def test_transformers_reads_it(encoder):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModelForMaskedLM.from_pretrained(encoder)
    assert model.config.model_type == ("bert" if encoder.name == "bert" else "xlm-roberta")
    assert model.config.vocab_size == len(tokenizer) <= 300
    assert model.config.pad_token_id == tokenizer.pad_token_id
    logits = model(**tokenizer("Anne is big.", "Bob", return_tensors="pt")).logits
    assert logits.shape[-1] == len(tokenizer)


def test_special_tokens_stand_where_they_do_in_the_original(encoder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    ids = [tokenizer.convert_tokens_to_ids(token) for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    if encoder.name == "xlmr":
        assert ids == [0, 1, 2, 3, len(tokenizer) - 1]
    else:
        assert tokenizer.pad_token_id == 0


def test_case_and_accents_survive(encoder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokens = tokenizer.tokenize("Charlie est carré")
    assert "é" in "".join(tokens) and "C" in "".join(tokens), tokens


def test_training_again_gives_the_same_files(encoder, tmp_path):
    again = mini(tmp_path, encoder.name)
    for name in ("tokenizer.json", "model.safetensors"):
        assert (again / name).read_bytes() == (encoder / name).read_bytes(), name


def test_all_that_is_drawn_comes_from_the_seed(tmp_path):
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        made.append(mini(tmp_path / str(seed), "xlmr", nsp=True) / "model.safetensors")
    assert made[0].read_bytes() == made[1].read_bytes()


def test_next_sentence_prediction_changes_the_encoder_and_leaves_bert_its_pooler(encoder, tmp_path):
    from safetensors.torch import load_file
    from transformers import AutoModelForSequenceClassification

    made = mini(tmp_path / "nsp", encoder.name, nsp=True, tlm=0)
    plain = mini(tmp_path / "plain", encoder.name, tlm=0)
    found, without = (load_file(folder / "model.safetensors") for folder in (made, plain))
    added = {"bert.pooler.dense.weight", "bert.pooler.dense.bias"} if encoder.name == "bert" else set()
    assert found.keys() - without.keys() == added
    assert not any(torch.equal(found[name], without[name]) for name in without if "word_embeddings" in name)
    classifier = AutoModelForSequenceClassification.from_pretrained(made).state_dict()
    assert all(torch.equal(classifier[name], found[name]) for name in added)


def test_half_of_the_texts_get_the_second_line_of_another():
    drawn, others = ([(f"{word} {i}", f"{word} {i}") for i in range(400)] for word in ("own", "other"))
    made, kept = mini_module._some_exchanged(drawn, others, np.random.default_rng(1))
    assert 150 < kept.sum() < 250
    for (first, second), (own, _), (other, _), keeps in zip(made, drawn, others, kept, strict=True):
        assert (first, second) == (own, own if keeps else other)


def test_next_sentence_prediction_takes_two_lines(tmp_path):
    make_text("qa1", tmp_path / "qa1.parquet", TextSettings(sentences=60))
    with pytest.raises(ValueError, match="nsp takes texts of two lines"):
        pretrain(MiniEncoder(languages=("qa1",), nsp=True, **TINY), {"qa1": tmp_path / "qa1.parquet"}, tmp_path / "e")


def test_a_language_without_text_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no text in de"):
        make_mini(MiniEncoder(languages=("de",)), {}, tmp_path / "v", tmp_path / "e")


def test_nothing_is_left_of_a_failed_attempt(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("stop")

    monkeypatch.setattr(mini_module, "copy_tokenizer", fail)
    with pytest.raises(RuntimeError, match="stop"):
        mini(tmp_path, "bert")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert-vocabulary", "en.parquet", "fr.parquet"]
