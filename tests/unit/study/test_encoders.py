"""The configuration of an encoder is that of its files where they are, and what the study says where they are not."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from transformers import BertConfig

from xlgrid.data.tokenizer import HubTokenizer, TrainedTokenizer
from xlgrid.heads import HEADS
from xlgrid.models.parameters import count
from xlgrid.study.encoders import (
    AnyEncoder,
    EncoderEntry,
    EncoderWithHead,
    FolderEncoder,
    HubEncoder,
    ScratchEncoder,
    encoders_before,
    pretraining_task,
    replicas,
)

MINI = ScratchEncoder(scratch={"languages": ("qa1",), "vocab": 123})  # type: ignore[arg-type]


def encoder(fields: dict[str, Any]) -> EncoderEntry:
    read: EncoderEntry = TypeAdapter(AnyEncoder).validate_python(fields)
    return read


def test_an_encoder_that_is_made_is_as_its_files_say(tmp_path: Path) -> None:
    assert MINI.configuration(tmp_path).vocab_size == 123
    BertConfig(vocab_size=77).save_pretrained(tmp_path)
    assert MINI.configuration(tmp_path).vocab_size == 77


def test_an_encoder_in_a_folder_is_as_that_folder_says(tmp_path: Path) -> None:
    BertConfig(vocab_size=77).save_pretrained(tmp_path / "mine")
    assert FolderEncoder(path=str(tmp_path / "mine")).configuration(tmp_path / "not yet").vocab_size == 77


def test_an_encoder_of_the_hub_is_known_or_has_to_be_fetched(tmp_path: Path) -> None:
    known = HubEncoder(hub="FacebookAI/xlm-roberta-base")
    assert known.configuration(tmp_path).vocab_size == 250002
    with pytest.raises(ValueError, match=rf"size of the encoder a/b is not known .* {tmp_path}/model\.safetensors"):
        HubEncoder(hub="a/b").configuration(tmp_path)
    BertConfig(vocab_size=77).save_pretrained(tmp_path)
    assert HubEncoder(hub="a/b").configuration(tmp_path).vocab_size == 77
    assert known.configuration(tmp_path).vocab_size == 250002, "a table would depend on what has been fetched"


@pytest.mark.parametrize("hub", ["intfloat/multilingual-e5-small", "jhu-clsp/mmBERT-base"])
def test_the_first_layers_of_an_encoder_are_fewer_parameters(hub: str, tmp_path: Path) -> None:
    whole, half = (HubEncoder(hub=hub, layers=layers).configuration(tmp_path) for layers in (None, 6))
    sizes = [count(each, HEADS["token"], 3, "full-ft", {}) for each in (whole, half)]
    left_out = (whole.num_hidden_layers - 6) / whole.num_hidden_layers
    assert half.num_hidden_layers == 6
    assert sizes[0].total - sizes[1].total == pytest.approx(left_out * sizes[0].passed, rel=0.01)
    with pytest.raises(ValueError, match="keeps the first 40 layers, but the encoder has "):
        HubEncoder(hub=hub, layers=40).configuration(tmp_path)


def test_a_folder_says_how_many_layers_there_are_to_keep(tmp_path: Path) -> None:
    """Its copy here may have fewer, from an earlier number in the study."""
    for name, layers in (("mine", 5), ("copy", 2)):
        BertConfig(num_hidden_layers=layers).save_pretrained(tmp_path / name)
    entry = FolderEncoder(path=str(tmp_path / "mine"), layers=4)
    assert entry.configuration(tmp_path / "copy").num_hidden_layers == 4


@pytest.mark.parametrize(("layers", "text"), [(8, "8"), (None, "all")])
def test_a_copy_that_was_cut_to_fewer_layers_does_not_pass_for_the_encoder(
    layers: int | None, text: str, tmp_path: Path
) -> None:
    BertConfig(num_hidden_layers=6).save_pretrained(tmp_path)
    (tmp_path / "encoder.json").write_text('{"layers": 6}')
    with pytest.raises(ValueError, match=f"only the first 6 layers, .* {text}: delete "):
        HubEncoder(hub="a/b", layers=layers).configuration(tmp_path)
    assert HubEncoder(hub="a/b", layers=6).configuration(tmp_path).num_hidden_layers == 6
    assert HubEncoder(hub="a/b", layers=4).configuration(tmp_path).num_hidden_layers == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"batch_tokens": 4096},
            "`batch_size` has a default .* wins over `batch_tokens`: .*`batch_size: null`",
        ),
        ({"epochs": 2}, "`steps` has a default .* wins over `epochs`: .*`steps: null`"),
        ({"dropout": 0.1}, "an encoder from scratch has the dropout of `scratch`"),
    ],
)
def test_a_setting_of_pretraining_that_would_do_nothing_is_refused(settings: dict[str, Any], message: str) -> None:
    scratch = {"languages": ["en"]}
    with pytest.raises(ValueError, match=message):
        ScratchEncoder.model_validate({"scratch": scratch, "training": settings})
    ScratchEncoder.model_validate({"scratch": scratch, "training": {"batch_tokens": 4096, "batch_size": None}})


def test_a_head_is_trained_for_another_encoder() -> None:
    entry = EncoderWithHead.model_validate(
        {"of": "e5", "lm_head": {"languages": ["en", "sw"]}, "training": {"steps": 7}}
    )
    recipe = entry.recipe("s", "e5-mlm")
    assert (recipe.source, recipe.training.steps, recipe.training.lr) == ("en+sw", 7, 3e-3)
    assert (recipe.task, recipe.kind, recipe.scratch) == ("pretraining", "mlm", None)
    assert entry.parts == {"en": "pretraining", "sw": "pretraining"} and entry.before == "e5"
    assert pretraining_task([entry]) and encoders_before({"e5-mlm": entry, "e5": HubEncoder(hub="a/b")}, "e5-mlm") == [
        "e5"
    ]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"hub": "a/b", "lm_head": {"languages": ["en"]}}, "exactly one of .*, got hub and lm_head"),
        ({"of": "e5", "step": 3, "lm_head": {"languages": ["en"]}}, "exactly one of .*, got step and lm_head"),
        ({"hubb": "a/b"}, "unknown key 'hubb', did you mean 'hub'"),
        ({"of": "e5"}, r"exactly one of hub, path, scratch, step \(with of\) and lm_head \(with of\), got none"),
        ({}, "got none"),
        (
            {"of": "e5", "tokenizer": "v", "step": 1},
            "key 'tokenizer' is for an encoder with `hub` or `path` or `scratch`, and this one has `step`: leave it out",
        ),
        ({"scratch": {"languages": ["en"]}, "layers": 2}, "key 'layers' is for an encoder with `hub` or `path`"),
        ({"scratch": {"languages": ["en"]}, "modules": {"en": "en_XX"}}, "key 'modules' is for"),
        ({"hub": "a/b", "training": {"steps": 3}}, "key 'training' is for an encoder with `scratch` or `lm_head`"),
        ({"path": "x", "tokenzer": "v"}, "unknown key 'tokenzer', did you mean 'tokenizer'"),
        (
            {"of": "e5", "lm_head": {"languages": ["en"]}, "training": {"checkpoints": [3]}},
            "has no checkpoints: leave out",
        ),
        ({"scratch": {"languages": ["en"]}, "training": {"step": 7}}, "did you mean 'steps'"),
        ({"scratch": {"languages": ["en"]}, "training": {"steps": None}}, "training: `alpha` .* set `steps`"),
        ({"scratch": {"languages": ["en"]}, "training": {"together": 4}}, "training: .*alone: leave out `together`"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        encoder(entry)


def test_a_key_with_null_counts_as_absent() -> None:
    assert encoder({"hub": None, "path": "x"}) == FolderEncoder(path="x")


def test_the_size_of_a_tokenizer_is_known_where_it_is_trained_here_or_of_a_known_encoder() -> None:
    trained = TrainedTokenizer(kind="xlmr", languages=("en",), size=300)
    hub = HubTokenizer(hub="FacebookAI/xlm-roberta-base")
    assert [each.most_entries for each in (trained, hub, HubTokenizer(hub="a/b"))] == [300, 250002, None]
    scratch = encoder({"tokenizer": "xlmr", "scratch": {"kind": "xlmr", "languages": ["en"]}})
    assert scratch.configuration("nowhere", hub.most_entries).vocab_size == 250002


def test_published_encoders_with_modules_have_the_parameters_of_their_languages() -> None:
    """7.09 million for each language, beside the 278.3 million that all share (Pfeiffer et al. 2022, section 4.2)."""
    sizes = {}
    for name in ("13-125k", "60-265k"):
        config = HubEncoder(hub=f"facebook/xmod-base-{name}").configuration("nowhere")
        sizes[name] = count(config, HEADS["mlm"], 0, "full-ft", {}).total
    assert (sizes["60-265k"] - sizes["13-125k"]) / 47 == 12 * (2 * 768 * 384 + 768 + 384)
    assert round((sizes["13-125k"] - 13 * 12 * (2 * 768 * 384 + 768 + 384)) / 1e6, 1) == 278.3


def test_encoders_before_another_are_those_from_which_it_is_made() -> None:
    entries = {
        "hub": {"hub": "a/b"},
        "first": {"scratch": {"languages": ["en"], "begin": "hub"}, "training": {"checkpoints": [9]}},
        "early": {"of": "first", "step": 9},
        "second": {"scratch": {"languages": ["en"], "begin": "early"}},
        "circle": {"scratch": {"languages": ["en"], "begin": "circle"}},
    }
    encoders = {name: encoder(entry) for name, entry in entries.items()}
    assert encoders_before(encoders, "second") == ["early", "first", "hub"]
    assert encoders_before(encoders, "hub") == encoders_before(encoders, "unknown") == []
    assert encoders_before(encoders, "circle") == ["circle"]


def test_replicas_of_an_encoder_differ_by_seeds_alone() -> None:
    """Also by the seed of the encoder from which a pre-training begins, or whose checkpoint an encoder is."""
    entries = {
        "late-b": {"of": "b", "step": 10},
        "a": {"scratch": {"languages": ("qa1",), "seed": 1}},
        "b": {"scratch": {"languages": ("qa1",), "seed": 2}},
        "other": {"scratch": {"languages": ("qa1",), "seed": 2}, "training": {"steps": 7}},
        "late-a": {"of": "a", "step": 10},
        "from-a": {"scratch": {"languages": ("qa1",), "begin": "a"}},
        "from-b": {"scratch": {"languages": ("qa1",), "begin": "b", "seed": 3}},
        "ordered": {"scratch": {"languages": ("qb1",), "seed": 1}, "training": {"steps": 7, "lr": 0.1}},
        "otherwise": {"scratch": {"languages": ("qb1",), "seed": 2}, "training": {"lr": 0.1, "steps": 7}},
        "hub": {"hub": "x/y"},
        "again": {"hub": "x/y"},
        "head-a": {"of": "hub", "lm_head": {"languages": ["en"], "seed": 1}},
        "head-b": {"of": "hub", "lm_head": {"languages": ["en"], "seed": 2}},
        "head-of-other": {"of": "hub", "lm_head": {"languages": ["fr"], "seed": 2}},
    }
    first = replicas({name: encoder(entry) for name, entry in entries.items()})
    others = {name: draw for name, draw in first.items() if name != draw}
    assert others == {"b": "a", "late-a": "late-b", "from-b": "from-a", "otherwise": "ordered", "head-b": "head-a"}
    assert set(first) == set(entries)
