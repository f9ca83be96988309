"""Folders of encoders and vocabularies: copied, fetched and checked."""

import json
import shutil

import pytest
from scratch_fixture import encoder_of
from tokenizers import Tokenizer

from xlgrid.base.errors import Damaged
from xlgrid.data.encoders import (
    check_encoder,
    check_vocabulary,
    copy_encoder,
    copy_vocabulary,
    fetch_encoder,
    fetch_vocabulary,
)


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def encoder(request, tmp_path_factory):
    return encoder_of(tmp_path_factory.mktemp("encoder"), request.param)


def test_a_copy_is_whole_and_says_where_it_is_from(encoder, tmp_path):
    copy_encoder(encoder, encoder, tmp_path / "copy")
    check_encoder(tmp_path / "copy")
    assert str(encoder) in (tmp_path / "copy" / "encoder.json").read_text()
    copy_vocabulary(encoder, tmp_path / "vocabulary")
    assert str(encoder) in (tmp_path / "vocabulary" / "origin.json").read_text()


def test_weights_for_other_libraries_are_not_copied(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "full")
    (tmp_path / "full" / "vocab.txt").write_text("[PAD]")
    (tmp_path / "full" / "pytorch_model.bin").write_bytes(b"the same again")
    copy_encoder(tmp_path / "full", tmp_path / "full", tmp_path / "copy")
    copied = {path.name for path in (tmp_path / "copy").iterdir()}
    assert copied - {path.name for path in encoder.iterdir()} == {"vocab.txt"}
    copy_vocabulary(tmp_path / "full", tmp_path / "vocabulary")
    names = {"config.json", "origin.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert {path.name for path in (tmp_path / "vocabulary").iterdir()} == names


def test_an_encoder_has_the_tokenizer_of_its_vocabulary_not_that_of_its_origin(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").unlink()
    (tmp_path / "bare" / "added_tokens.json").write_text("{}")
    copy_encoder(tmp_path / "bare", encoder, tmp_path / "copy")
    assert (tmp_path / "copy" / "tokenizer.json").read_bytes() == (encoder / "tokenizer.json").read_bytes()
    assert not (tmp_path / "copy" / "added_tokens.json").exists()


def test_a_copied_vocabulary_tokenises_as_its_origin_does(encoder, tmp_path):
    """Many tokenizers on the Hub name no class; transformers takes it from the type of the model."""
    from transformers import AutoTokenizer

    shutil.copytree(encoder, tmp_path / "hub")
    (tmp_path / "hub" / "tokenizer_config.json").unlink()
    copy_vocabulary(tmp_path / "hub", tmp_path / "copy")
    copied, origin = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path / "copy", tmp_path / "hub"))
    assert type(copied) is type(origin)
    assert copied("Anne is big.", "Bob")["input_ids"] == origin("Anne is big.", "Bob")["input_ids"]
    assert (copied.pad_token_id, copied.mask_token_id) == (origin.pad_token_id, origin.mask_token_id)


def test_a_folder_without_a_tokenizer_is_no_vocabulary(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*: check the path of the vocabulary"):
        copy_vocabulary(tmp_path / "nowhere", tmp_path / "copy")
    with pytest.raises(Damaged, match=r"has no tokenizer\.json, of which a vocabulary consists"):
        copy_vocabulary(tmp_path, tmp_path / "copy")


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (
            ["spm.model", "vocab.txt"],
            r"but spm\.model, .*AutoTokenizer.*save_pretrained.* and the packages sentencepiece and protobuf; then name",
        ),
        (
            ["merges.txt", "vocab.json"],
            r"but vocab\.json, .*AutoTokenizer.*save_pretrained\(\.\.\.\)` with transformers; then",
        ),
        (["config.json"], "consists: save, make or fetch it"),
    ],
    ids=["SentencePiece", "BPE", "nothing"],
)
def test_a_folder_with_an_older_tokenizer_says_how_to_convert_it(names, advice, tmp_path):
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(Damaged, match=rf"has no tokenizer\.json, of which a vocabulary .*{advice}"):
        copy_vocabulary(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_another_encoder_leaves_nothing_of_the_one_before(encoder, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "added_tokens.json").write_text("{}")
    copy_encoder(encoder, encoder, tmp_path / "copy")
    assert not (tmp_path / "copy" / "added_tokens.json").exists()


def test_weights_in_several_files_are_refused(encoder, tmp_path):
    copy_encoder(encoder, encoder, tmp_path / "several")
    (tmp_path / "several" / "model.safetensors").rename(tmp_path / "several" / "model-00001-of-00002.safetensors")
    with pytest.raises(Damaged, match="its weights are in several files"):
        check_encoder(tmp_path / "several")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "has no `model_type`: take"),
        ('{"model_type": "bertt"}', r"has the unknown model_type 'bertt', did you mean 'bert'\?"),
    ],
)
def test_a_config_that_describes_no_encoder_is_an_error(encoder, tmp_path, config, problem):
    shutil.copytree(encoder, tmp_path / "other")
    (tmp_path / "other" / "config.json").write_text(config)
    with pytest.raises(Damaged, match=rf"other/config\.json {problem}"):
        check_encoder(tmp_path / "other")


def test_cut_weights_are_an_error(encoder, tmp_path):
    copy_encoder(encoder, encoder, tmp_path / "cut")
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

    arguments = {}
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda hub, **more: arguments.update(more, hub=hub) or str(encoder)
    )
    (tmp_path / "lock.yaml").write_text("model/some/encoder@main: " + "c" * 40)
    fetch_encoder("some/encoder", "main", encoder, tmp_path / "fetched", tmp_path / "lock.yaml")
    assert (arguments["hub"], arguments["revision"]) == ("some/encoder", "c" * 40)
    assert "tokenizer*" not in arguments["allow_patterns"], "the tokenizer is fetched with the vocabulary"
    assert "c" * 40 in (tmp_path / "fetched" / "encoder.json").read_text()
    fetch_vocabulary("some/encoder", "main", tmp_path / "vocabulary", tmp_path / "lock.yaml")
    assert (arguments["hub"], arguments["revision"]) == ("some/encoder", "c" * 40)
    assert not any("safetensors" in pattern for pattern in arguments["allow_patterns"]), "weights are large"
    assert "c" * 40 in (tmp_path / "vocabulary" / "origin.json").read_text()


def test_a_vocabulary_with_more_tokens_than_embeddings_is_refused_when_the_encoder_is_taken_over(encoder, tmp_path):
    """Otherwise training ends with an IndexError."""
    larger = encoder_of(tmp_path, encoder.name, vocab=400)
    ids = Tokenizer.from_file(str(larger / "tokenizer.json")).get_vocab().values()
    rows = json.loads((encoder / "config.json").read_text())["vocab_size"]
    message = rf"does not fit the encoder .*: the token .* has the id {max(ids)}, but there are {rows} embeddings"
    with pytest.raises(ValueError, match=message):
        copy_encoder(encoder, larger, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    check_vocabulary(encoder, larger)


def test_a_damaged_tokenizer_is_named(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "cut")
    text = (encoder / "tokenizer.json").read_text()
    (tmp_path / "cut" / "tokenizer.json").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"cut/tokenizer\.json is damaged .* copy or fetch the vocabulary again"):
        copy_vocabulary(tmp_path / "cut", tmp_path / "copy")
