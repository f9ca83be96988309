"""What a study says of an encoder from scratch, and the model before its first step."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from scratch_fixture import recipe
from transformers import AutoConfig

from xlgrid.models.parameters import HUB
from xlgrid.training.encoders import EncoderEntry
from xlgrid.training.recipe import Recipe
from xlgrid.training.scratch import SHAPES, Scratch, new_model, scratch_configuration


@pytest.mark.parametrize(
    "entry",
    [{"kind": "bert"}, *({"architecture": name} for name in ("plain", "xmod", "shared", "veco", "mbart"))],
    ids=lambda entry: "-".join(entry.values()),
)
def test_the_type_is_that_of_the_configuration(entry: dict[str, str]) -> None:
    scratch = Scratch.model_validate({"kind": "xlmr", "languages": ["en"], **entry})
    assert scratch_configuration(scratch, 77).model_type == scratch.model_type


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_the_configuration_has_the_sizes_of_the_study_and_room_for_the_longest_input(kind: str) -> None:
    sizes = {"hidden": 8, "layers": 3, "heads": 2, "intermediate": 12, "dropout": 0.1, "max_length": 40}
    scratch = Scratch.model_validate({"kind": kind, "languages": ("en",), **sizes})
    config = scratch_configuration(scratch, 77)
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers, config.intermediate_size) == (77, 8, 3, 12)
    assert config.num_attention_heads == 2 and config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.1
    model = new_model(scratch, 77).eval()
    ids = torch.full((1, 40), 7)
    assert model(input_ids=ids).logits.shape == (1, 40, 77)
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, 41), 7))


def test_a_shape_has_the_sizes_of_xlm_r_but_for_those_that_are_written() -> None:
    fields = {
        "kind": "xlmr",
        "architecture": "xmod",
        "languages": ("en", "fr"),
        "shape": "base",
        "layers": 2,
        "max_length": 512,
    }
    scratch = Scratch.model_validate(fields)
    config = scratch_configuration(scratch, 250_002)
    published = AutoConfig.for_model(**HUB["facebook/xmod-base"])
    for name in (
        "hidden_size",
        "num_attention_heads",
        "intermediate_size",
        "hidden_dropout_prob",
        "max_position_embeddings",
    ):
        assert getattr(config, name) == getattr(published, name), name
    assert (config.num_hidden_layers, config.languages, config.adapter_reduction_factor) == (2, ["en", "fr"], 2)
    assert Scratch.model_validate_json(scratch.model_dump_json()) == scratch
    assert Scratch.model_validate_json(scratch.model_dump_json(exclude_defaults=True)) == scratch


@pytest.mark.parametrize("written", [{}, {"dropout": 0.0}, {"hidden": 128, "layers": 4, "heads": 4}])
def test_a_recipe_keeps_the_sizes_of_a_shape_and_those_that_are_written(written: dict[str, Any]) -> None:
    scratch = Scratch.model_validate({"languages": ("en",), "shape": "base", **written})
    encoder_recipe = recipe(scratch, steps=1)
    assert Recipe.parse(encoder_recipe.identity(), encoder_recipe.pace()).scratch == scratch
    assert {name: getattr(scratch, name) for name in SHAPES["base"]} == SHAPES["base"] | written


def test_the_source_has_all_languages_and_pairs() -> None:
    assert Scratch(languages=("en", "fr"), bitext=(("en", "fr"),)).source == "en+fr+en-fr"  # type: ignore[call-arg]


def test_the_settings_of_pre_training_are_those_of_the_study_over_the_usual_ones() -> None:
    entry = EncoderEntry.model_validate({"scratch": {"languages": ["en"]}, "training": {"steps": 7, "tlm": 0.8}})
    training = entry.pretraining
    assert (training.steps, training.tlm, training.batch_size, training.keep, training.alpha) == (
        7,
        0.8,
        32,
        "last",
        0.7,
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"scratch": {"languages": ["en"]}, "training": {"step": 7}}, "did you mean 'steps'"),
        ({"hub": "a/b", "training": {"steps": 7}}, "only an encoder from `scratch`, or an `lm_head`, is trained"),
        ({"of": "a"}, "an encoder `of` another has `step`, of which it is a snapshot, or `lm_head`"),
        ({"of": "a", "step": 1, "vocabulary": "b"}, "and the vocabulary of that encoder"),
        ({"hub": "a/b", "of": "a", "step": 1}, "exactly one of hub, path, scratch and of, got hub and of"),
        ({"scratch": {}}, "languages"),
        ({"scratch": {"languages": ["en"], "hidden": 10}}, r"hidden \(10\) must be a multiple of heads \(4\)"),
        (
            {"scratch": {"languages": ["en", "en"]}},
            "each language and each pair once, in one order; en is there already",
        ),
        ({"scratch": {"languages": ["en"], "bitext": [["en", "en"]]}}, "has two languages, got en-en"),
        (
            {"scratch": {"languages": ["en", "fr"], "bitext": [["en", "fr"], ["fr", "en"]]}},
            "once, in one order; fr-en is there already",
        ),
        ({"scratch": {"languages": ["en"]}, "training": {"steps": None}}, "training: `alpha` draws .* set `steps`"),
        (
            {"scratch": {"languages": ["en"]}, "training": {"curriculum": [{"share": 0.5, "max_depth": 0}]}},
            "leave out `curriculum`",
        ),
        (
            {"scratch": {"languages": ["en"]}, "training": {"steps": 10, "snapshots": [20]}},
            "training: `snapshots` has step 20 of 10 steps",
        ),
    ],
)
def test_a_mistake_is_named(entry: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EncoderEntry.model_validate(entry)


VECO = {"kind": "xlmr", "architecture": "veco", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "bert"}, "architecture veco is XLM-R with modules, got kind bert"),
        ({"reduction": 4}, "reduction: an encoder of architecture veco has no modules"),
        ({"nsp": True}, "nsp is for one input a row"),
        ({"objective": "mlm+tlm"}, "which takes ca-mlm or ca-mlm"),
        ({"objective": "ca-mlm", "architecture": "plain"}, r"architecture plain, which takes mlm\+tlm, or none"),
        ({"architecture": "plain", "detach": False}, "detach: an encoder of architecture plain has no cross-attention"),
        ({"architecture": "plain", "adjacent": "next"}, "adjacent: without `objective`, a row is one input"),
        (
            {"architecture": "shared", "begin": "a"},
            "begin: an encoder of architecture shared is pre-trained on one input",
        ),
        ({"architecture": "shared", "objective": "mlm+tlm"}, "objective: an encoder of architecture shared"),
        ({"trains": "cross-attention"}, "cross-attention alone learns nothing from an encoder of random weights"),
        ({"masked": {"mono": 0.15, "bitexts": 0.25}}, "did you mean 'bitext'"),
        ({"masked": {"mono": 1.0}}, "less than 1"),
        ({"bitext": [], "bitext_task": "opus"}, "bitext_task opus is for pairs, and `bitext` has none"),
    ],
)
def test_settings_of_streams_that_do_not_go_together_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Scratch.model_validate(VECO | fields)


MBART = {"kind": "xlmr", "architecture": "mbart", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}
PAPER = {
    "masked": {"mono": 0.15, "bitext": 0.25},
    "denoising": {"noise": "tokens", "permute": False, "predict": "masked"},
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "bert"}, "architecture mbart reads the special tokens of XLM-R, got kind bert"),
        ({"objective": "mlm+tlm"}, r"objective mlm\+tlm does not go with architecture mbart, which takes denoising"),
        ({"begin": "a"}, "begin: an mBART is pre-trained by denoising, with all weights and from new ones"),
        ({"nsp": True, "adjacent": "next"}, "adjacent and nsp: an mBART is pre-trained by denoising"),
        ({"reduction": 4}, "reduction: an encoder of architecture mbart has no modules"),
        ({"masked": {"mono": 0.2}}, "write `share` in `denoising`, or set its `noise: tokens`"),
        ({"denoising": {"noise": "tokens", "span": 2.0}}, "reads the shares of `masked`, and not span"),
        ({"denoising": {"nois": "tokens"}}, "did you mean 'noise'"),
        (
            {"architecture": "plain", "objective": "denoising"},
            "denoising is for a decoder, which an encoder of architecture plain",
        ),
        (
            {"architecture": "veco", "denoising": {"share": 0.2}},
            "denoising is for a decoder, which an encoder of architecture veco",
        ),
    ],
)
def test_settings_of_an_mbart_that_do_not_go_together_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Scratch.model_validate(MBART | fields)


def test_an_mbart_has_the_layers_of_the_study_on_each_side_and_a_token_for_each_language() -> None:
    scratch = Scratch.model_validate(MBART | PAPER | {"shape": "base", "layers": 6})
    config = scratch_configuration(scratch, 250_002)
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == (6, 6, 768)
    assert (config.encoder_ffn_dim, config.decoder_ffn_dim) == (3072, 3072)
    assert (config.encoder_attention_heads, config.decoder_attention_heads) == (12, 12)
    assert (config.vocab_size, config.languages, config.dropout) == (250_004, ["en", "fr"], 0.1)
    assert Scratch.model_validate_json(scratch.model_dump_json(exclude_defaults=True)) == scratch
    assert not scratch.takes_pairs and scratch.passes(0.5) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("fields", "share"),
    [({}, 1.0), (PAPER, 0.5 + 0.5 * 0.15), ({"denoising": {"predict": "masked"}}, 0.5 + 0.5 * 0.35)],
)
def test_the_share_of_tokens_that_an_mbart_predicts(fields: dict[str, object], share: float) -> None:
    assert Scratch.model_validate(MBART | fields).predicted_share(0.5) == pytest.approx(share)
    assert Scratch.model_validate(VECO).predicted_share(0.5) == 0.15


def test_pairs_are_read_from_a_task_of_their_own_if_it_is_named() -> None:
    scratch = Scratch.model_validate(VECO | {"bitext_task": "opus"})
    assert [scratch.task_of(part) for part in ("en", "fr", "en-fr")] == ["pretraining", "pretraining", "opus"]
    assert Scratch.model_validate(VECO).task_of("en-fr") == "pretraining"


def test_what_the_objective_of_an_encoder_has() -> None:
    def parts(**fields: object) -> tuple[bool, bool, bool]:
        scratch = Scratch.model_validate(VECO | fields)
        return scratch.takes_pairs, scratch.uses_cross_attention, scratch.joins_bitext

    assert parts() == parts(objective="ca-mlm+tlm") == (True, True, True)
    assert parts(objective="ca-mlm") == parts(bitext=[]) == (True, True, False)
    assert parts(architecture="plain") == (False, False, False)
    assert parts(architecture="plain", objective="mlm+tlm") == (True, False, True)


def test_transformers_knows_no_more_of_cross_attention_than_one_entry() -> None:
    config = scratch_configuration(Scratch.model_validate(VECO | {"s_stream": "cross"}), 50).to_diff_dict()
    plain = scratch_configuration(Scratch.model_validate(VECO | {"architecture": "plain"}), 50).to_diff_dict()
    assert config == plain | {"s_stream": "cross"}
