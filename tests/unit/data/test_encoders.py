"""Miniature encoders, and folders of encoders."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from xlgrid.data.encoders import check_encoder, copy_encoder, fetch_encoder
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.vocabulary import learn_pieces
from xlgrid.training import mini as mini_module
from xlgrid.training.mini import MiniEncoder, make_mini

TINY = {"vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16, "steps": 3, "batch": 4}


def mini(folder, kind, **more):
    texts = {language: folder / f"{language}.parquet" for language in ("en", "fr")}
    folder.mkdir(exist_ok=True)
    for language, path in texts.items():
        make_text(language, path, TextSettings(sentences=60))
    out = folder / kind
    spec = MiniEncoder(kind=kind, languages=("en", "fr"), bitext=(("en", "fr"),), **(TINY | more))
    make_mini(spec, texts, out, lambda line: None)
    return out


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
        make_mini(MiniEncoder(languages=("qa1",), nsp=True, **TINY), {"qa1": tmp_path / "qa1.parquet"}, tmp_path / "e")


def test_pieces_do_not_depend_on_the_order_of_words():
    words = Counter({"abab": 3, "abc": 2, "bcbc": 2, "cab": 1})
    found = learn_pieces(words, 12, "##")
    assert found == learn_pieces(dict(reversed(words.items())), 12, "##")
    assert {"ab", "a", "##b"} <= set(found)


def test_a_language_without_text_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no text in de"):
        make_mini(MiniEncoder(languages=("de",)), {}, tmp_path / "e")


def test_nothing_is_left_of_a_failed_attempt(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("stop")

    monkeypatch.setattr(mini_module, "tokenizer_config", fail)
    with pytest.raises(RuntimeError, match="stop"):
        mini(tmp_path, "bert")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en.parquet", "fr.parquet"]


def test_a_copy_is_whole_and_says_where_it_is_from(encoder, tmp_path):
    copy_encoder(encoder, tmp_path / "copy")
    check_encoder(tmp_path / "copy")
    assert str(encoder) in (tmp_path / "copy" / "encoder.json").read_text()


def test_weights_for_other_libraries_are_not_copied(encoder, tmp_path):
    copy_encoder(encoder, tmp_path / "full")
    (tmp_path / "full" / "vocab.txt").write_text("[PAD]")
    (tmp_path / "full" / "pytorch_model.bin").write_bytes(b"the same again")
    copy_encoder(tmp_path / "full", tmp_path / "copy")
    found = {path.name for path in (tmp_path / "copy").iterdir()}
    assert found - {path.name for path in encoder.iterdir()} == {"vocab.txt"}


def test_another_encoder_leaves_nothing_of_the_one_before(encoder, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "added_tokens.json").write_text("{}")
    copy_encoder(encoder, tmp_path / "copy")
    assert not (tmp_path / "copy" / "added_tokens.json").exists()


def test_weights_in_several_files_are_refused(encoder, tmp_path):
    copy_encoder(encoder, tmp_path / "several")
    (tmp_path / "several" / "model.safetensors").rename(tmp_path / "several" / "model-00001-of-00002.safetensors")
    with pytest.raises(FileNotFoundError, match="its weights are in several files"):
        check_encoder(tmp_path / "several")


def test_cut_weights_are_an_error(encoder, tmp_path):
    copy_encoder(encoder, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged, perhaps cut short"):
        check_encoder(tmp_path / "cut")


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no encoder"):
        check_encoder(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"has no model\.safetensors"):
        check_encoder(tmp_path)


def test_the_hub_is_asked_for_the_locked_commit(encoder, tmp_path, monkeypatch):
    import huggingface_hub

    asked = {}
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda hub, **more: asked.update(more, hub=hub) or str(encoder)
    )
    (tmp_path / "lock.yaml").write_text("model/some/encoder@main: " + "c" * 40)
    fetch_encoder("some/encoder", "main", tmp_path / "fetched", tmp_path / "lock.yaml")
    assert (asked["hub"], asked["revision"]) == ("some/encoder", "c" * 40)
    assert "c" * 40 in (tmp_path / "fetched" / "encoder.json").read_text()


def test_a_tokenizer_of_another_encoder_is_refused_when_the_encoder_is_taken_over(encoder, tmp_path):
    """Otherwise training ends with an IndexError."""
    larger = mini(tmp_path, encoder.name, vocab=400)
    shutil.copytree(encoder, tmp_path / "mixed")
    shutil.copy(larger / "tokenizer.json", tmp_path / "mixed" / "tokenizer.json")
    ids = Tokenizer.from_file(str(larger / "tokenizer.json")).get_vocab().values()
    rows = json.loads((encoder / "config.json").read_text())["vocab_size"]
    message = rf"does not fit its weights: the token .* has the id {max(ids)}, but there are {rows} embeddings"
    with pytest.raises(ValueError, match=message):
        copy_encoder(tmp_path / "mixed", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    copy_encoder(encoder, tmp_path / "copy")


def test_a_damaged_tokenizer_is_named(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "cut")
    text = (encoder / "tokenizer.json").read_text()
    (tmp_path / "cut" / "tokenizer.json").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"cut/tokenizer\.json is damaged .* copy or fetch the encoder again"):
        copy_encoder(tmp_path / "cut", tmp_path / "copy")
