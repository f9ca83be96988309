"""Folders of encoders and tokenizers: copied, fetched and checked."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from scratch_fixture import encoder_of
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

from xlgrid.base.errors import Damaged
from xlgrid.data.encoders import (
    check_encoder,
    check_fits,
    copy_encoder,
    copy_tokenizer,
    fetch_encoder,
    fetch_tokenizer,
    token_ids,
)


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def encoder(request, tmp_path_factory):
    return encoder_of(tmp_path_factory.mktemp("encoder"), request.param)


def test_a_copy_is_whole_and_says_where_it_is_from(encoder, tmp_path):
    copy_encoder(encoder, encoder, tmp_path / "copy")
    check_encoder(tmp_path / "copy")
    assert str(encoder) in (tmp_path / "copy" / "encoder.json").read_text()
    copy_tokenizer(encoder, tmp_path / "tokenizer")
    assert str(encoder) in (tmp_path / "tokenizer" / "origin.json").read_text()


def test_weights_for_other_libraries_are_not_copied(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "full")
    (tmp_path / "full" / "vocab.txt").write_text("[PAD]")
    (tmp_path / "full" / "pytorch_model.bin").write_bytes(b"the same again")
    copy_encoder(tmp_path / "full", tmp_path / "full", tmp_path / "copy")
    copied = {path.name for path in (tmp_path / "copy").iterdir()}
    assert copied - {path.name for path in encoder.iterdir()} == {"vocab.txt"}
    copy_tokenizer(tmp_path / "full", tmp_path / "tokenizer")
    names = {"config.json", "origin.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert {path.name for path in (tmp_path / "tokenizer").iterdir()} == names


def test_an_encoder_has_the_tokenizer_of_its_tokenizer_not_that_of_its_origin(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").unlink()
    (tmp_path / "bare" / "added_tokens.json").write_text("{}")
    copy_encoder(tmp_path / "bare", encoder, tmp_path / "copy")
    assert (tmp_path / "copy" / "tokenizer.json").read_bytes() == (encoder / "tokenizer.json").read_bytes()
    assert not (tmp_path / "copy" / "added_tokens.json").exists()


def test_a_copied_tokenizer_tokenises_as_its_origin_does(encoder, tmp_path):
    """Many tokenizers on the Hub name no class; transformers takes it from the type of the model."""
    from transformers import AutoTokenizer

    shutil.copytree(encoder, tmp_path / "hub")
    (tmp_path / "hub" / "tokenizer_config.json").unlink()
    copy_tokenizer(tmp_path / "hub", tmp_path / "copy")
    copied, origin = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path / "copy", tmp_path / "hub"))
    assert type(copied) is type(origin)
    assert copied("Anne is big.", "Bob")["input_ids"] == origin("Anne is big.", "Bob")["input_ids"]
    assert (copied.pad_token_id, copied.mask_token_id) == (origin.pad_token_id, origin.mask_token_id)


def test_a_folder_without_a_tokenizer_is_no_tokenizer(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*: check the path of the tokenizer"):
        copy_tokenizer(tmp_path / "nowhere", tmp_path / "copy")
    with pytest.raises(Damaged, match=r"has no tokenizer\.json: save, make or fetch it"):
        copy_tokenizer(tmp_path, tmp_path / "copy")


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
        (["config.json"], "save, make or fetch it"),
    ],
    ids=["SentencePiece", "BPE", "nothing"],
)
def test_a_folder_with_an_older_tokenizer_says_how_to_convert_it(names, advice, tmp_path):
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(Damaged, match=rf"has no tokenizer\.json.*{advice}"):
        copy_tokenizer(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_another_encoder_leaves_nothing_of_the_one_before(encoder, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "added_tokens.json").write_text("{}")
    copy_encoder(encoder, encoder, tmp_path / "copy")
    assert not (tmp_path / "copy" / "added_tokens.json").exists()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "has no `model_type`: take the config.json that was saved with the weights"),
        (
            '{"hidden_size": 1024, "vocab_size": 250002}',
            "has no `model_type`: .*, which has 1,024 hidden units, 250,002 tokens",
        ),
        ('{"architectures": ["XLMRobertaForMaskedLM"]}', 'has no `model_type`: write `"model_type": "xlm-roberta"`'),
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
    with pytest.raises(
        Damaged, match=r"model\.safetensors is damaged, perhaps cut short.*copy or fetch it again"
    ) as refused:
        check_encoder(tmp_path / "cut")
    assert "delete" not in str(refused.value), "the folder is the user's own"
    assert not refused.value.paths


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_of_one_s_own_is_copied_again_and_not_removed(encoder, tmp_path, name):
    own = tmp_path / "own"
    copy_encoder(encoder, encoder, own)
    (own / "encoder.json").unlink()
    for damage in (lambda path: path.write_bytes(path.read_bytes()[:-9]), lambda path: path.unlink()):
        damage(own / name)
        with pytest.raises(Damaged) as refused:
            check_encoder(own)
        assert "delete" not in str(refused.value) and not refused.value.paths


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no encoder"):
        check_encoder(tmp_path / "nowhere")
    with pytest.raises(Damaged, match=r"has no config\.json"):
        check_encoder(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(Damaged, match=r"has neither model\.safetensors nor pytorch_model\.bin: name"):
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
    assert "tokenizer*" not in arguments["allow_patterns"], "the tokenizer is fetched with the tokenizer"
    assert "c" * 40 in (tmp_path / "fetched" / "encoder.json").read_text()
    fetch_tokenizer("some/encoder", "main", tmp_path / "tokenizer", tmp_path / "lock.yaml")
    assert (arguments["hub"], arguments["revision"]) == ("some/encoder", "c" * 40)
    assert not any("safetensors" in pattern for pattern in arguments["allow_patterns"]), "weights are large"
    assert "c" * 40 in (tmp_path / "tokenizer" / "origin.json").read_text()


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused_when_the_encoder_is_taken_over(encoder, tmp_path):
    """Otherwise training ends with an IndexError."""
    larger = encoder_of(tmp_path, encoder.name, vocab=400)
    ids = Tokenizer.from_file(str(larger / "tokenizer.json")).get_vocab().values()
    rows = json.loads((encoder / "config.json").read_text())["vocab_size"]
    message = rf"does not fit the encoder .*: the token .* has the id {max(ids)}, but there are {rows} embeddings"
    with pytest.raises(ValueError, match=message):
        copy_encoder(encoder, larger, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    check_fits(encoder, larger)


def test_a_damaged_tokenizer_is_named(encoder, tmp_path):
    shutil.copytree(encoder, tmp_path / "cut")
    text = (encoder / "tokenizer.json").read_text()
    (tmp_path / "cut" / "tokenizer.json").write_text(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"cut/tokenizer\.json is damaged .* copy or fetch the tokenizer again"):
        copy_tokenizer(tmp_path / "cut", tmp_path / "copy")


def with_config(source, folder, remove=(), **entries):
    """A copy of an encoder's folder, without its origin, whose config.json has other entries."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = json.loads((source / "config.json").read_text()) | entries
    (folder / "config.json").write_text(json.dumps({key: config[key] for key in config if key not in remove}))
    return folder


@pytest.fixture(scope="module")
def as_e5(tmp_path_factory):
    """A BERT with the tokenizer of XLM-R, whose `<pad>` has the id 1, as multilingual-e5-small and Multilingual-MiniLM have it."""
    folder = tmp_path_factory.mktemp("e5")
    bert, xlmr = (encoder_of(folder, kind) for kind in ("bert", "xlmr"))
    (bert / "encoder.json").unlink()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(xlmr / name, bert / name)
    return with_config(bert, folder / "as-e5", tokenizer_class="XLMRobertaTokenizer", pad_token_id=0)


@pytest.mark.parametrize("padding", [0, None, -1, 250_000], ids=str)
def test_an_encoder_takes_the_padding_of_its_tokenizer_where_positions_do_not_depend_on_it(
    as_e5, tmp_path, capsys, padding
):
    source = with_config(as_e5, tmp_path / "source", pad_token_id=padding)
    copy_encoder(source, source, tmp_path / "copy")
    assert json.loads((tmp_path / "copy" / "config.json").read_text())["pad_token_id"] == 1
    about = json.loads((tmp_path / "copy" / "encoder.json").read_text())
    assert about["pad_token_id"] == {"origin": padding, "tokenizer": 1}
    assert f"`pad_token_id` {padding}, and the tokenizer pads with 1" in capsys.readouterr().err


def test_another_id_of_padding_changes_no_output(as_e5, tmp_path):
    copy_encoder(as_e5, as_e5, tmp_path / "copy")
    ids, mask = torch.tensor([[0, 9, 8, 2], [0, 7, 2, 1]]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    before, after = (
        AutoModel.from_pretrained(folder).eval()(ids, attention_mask=mask).last_hidden_state[mask.bool()]
        for folder in (as_e5, tmp_path / "copy")
    )
    assert torch.equal(before, after)


@pytest.mark.parametrize(("entries", "got"), [({"pad_token_id": 0}, 0), ({"pad_token_id": None}, None)])
def test_another_padding_is_refused_where_positions_depend_on_it(tmp_path, entries, got):
    source = with_config(encoder_of(tmp_path, "xlmr"), tmp_path / "source", **entries)
    with pytest.raises(
        ValueError, match=rf"its padding has the id 1, and the padding of the encoder has the id {got}, by which"
    ):
        copy_encoder(source, source, tmp_path / "copy")


def test_a_config_without_padding_has_that_of_its_type(tmp_path, encoder):
    """Both tokenizers have the ids of their kind, 0 of BERT and 1 of XLM-R, which transformers takes for these types."""
    source = with_config(encoder, tmp_path / "source", remove=("pad_token_id",))
    copy_encoder(source, source, tmp_path / "copy")
    assert "pad_token_id" not in json.loads((tmp_path / "copy" / "encoder.json").read_text())


def test_a_tokenizer_without_padding_changes_nothing(as_e5, tmp_path):
    source = with_config(as_e5, tmp_path / "source")
    (source / "tokenizer.json").write_text((source / "tokenizer.json").read_text().replace("<pad>", "<filler>"))
    (source / "tokenizer_config.json").write_text("{}")
    copy_encoder(source, source, tmp_path / "copy")
    assert (tmp_path / "copy" / "config.json").read_bytes() == (source / "config.json").read_bytes()
    (source / "tokenizer_config.json").write_text('{"pad_token": "<filler>"}')
    copy_encoder(source, source, tmp_path / "copy")
    assert json.loads((tmp_path / "copy" / "config.json").read_text())["pad_token_id"] == 1, "the name is no matter"


def test_a_padding_that_the_tokenizer_lacks_has_no_embedding(as_e5, tmp_path):
    """Transformers would add a token for it after all others."""
    source = with_config(as_e5, tmp_path / "source")
    (source / "tokenizer_config.json").write_text('{"pad_token": {"content": "<filler>"}}')
    rows = json.loads((source / "config.json").read_text())["vocab_size"]
    assert len(Tokenizer.from_file(str(source / "tokenizer.json")).get_vocab()) == rows
    with pytest.raises(ValueError, match=rf"the token '<filler>' has the id {rows}, but there are {rows} embeddings"):
        copy_encoder(source, source, tmp_path / "copy")


def test_a_pointer_of_git_lfs_is_no_encoder(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 9\n"
    (tmp_path / "tokenizer.json").write_text(pointer)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_text(pointer)
    with pytest.raises(ValueError, match=r"tokenizer\.json is a pointer of Git LFS"):
        token_ids(tmp_path)
    with pytest.raises(ValueError, match=r"model\.safetensors is a pointer of Git LFS"):
        check_encoder(tmp_path)


@pytest.mark.parametrize(
    "written",
    [
        {"mask_token": "<new>"},
        {"extra_special_tokens": ["<new>"]},
        {"extra_special_tokens": {"image_token": "<new>"}},
    ],
    ids=str,
)
def test_a_special_token_that_the_tokenizer_lacks_has_no_embedding(encoder, tmp_path, written):
    """Transformers adds it after all others, as `AutoTokenizer` shows."""
    source = with_config(encoder, tmp_path / "source")
    about = json.loads((encoder / "tokenizer_config.json").read_text()) | written
    (source / "tokenizer_config.json").write_text(json.dumps(about))
    number = AutoTokenizer.from_pretrained(source).convert_tokens_to_ids("<new>")
    with pytest.raises(ValueError, match=f"the token '<new>' has the id {number}, but there are"):
        copy_encoder(source, source, tmp_path / "copy")
