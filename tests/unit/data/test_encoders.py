"""Folders of encoders: copied, fetched and checked."""

import json
import shutil

import pytest
from mini_fixture import mini
from tokenizers import Tokenizer

from xlgrid.base.errors import Damaged
from xlgrid.data.encoders import check_encoder, copy_encoder, fetch_encoder


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def encoder(request, tmp_path_factory):
    return mini(tmp_path_factory.mktemp("encoder"), request.param)


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
    with pytest.raises(Damaged, match="its weights are in several files"):
        check_encoder(tmp_path / "several")


def test_cut_weights_are_an_error(encoder, tmp_path):
    copy_encoder(encoder, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(Damaged, match=r"model\.safetensors is damaged, perhaps cut short") as refused:
        check_encoder(tmp_path / "cut")
    assert refused.value.paths == (tmp_path / "cut",)


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no encoder"):
        check_encoder(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(Damaged, match=r"has no model\.safetensors"):
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
