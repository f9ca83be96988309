"""What a study says of a VECO and an mBART from scratch, beside the streams of the core: settings, configurations, losses, work."""

import json
from typing import Any

import pytest

from xlgrid.architectures.scratch import architecture_of
from xlgrid.heads import HEADS
from xlgrid.models.parameters import Count

VECO = {"kind": "xlmr", "architecture": "veco", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "bert"}, "kind"),
        (
            {"reduction": 4},
            "'reduction' is for architecture shared and xmod, and this one is veco: leave it out",
        ),
        ({"architecture": "plain", "adjacent": "next"}, "without `objective`, a row is one input"),
        ({"architecture": "plain", "objective": "mlm+tlm", "nsp": True}, "objective: mlm.tlm"),
        ({"architecture": "shared", "objectiv": "mlm+tlm"}, "unknown key 'objectiv'"),
        ({"architecture": "vico"}, "unknown architecture 'vico', did you mean 'veco'"),
        (
            {"architecture": None},
            r"architecture must be one of plain, .*, got null: name one, or leave it out for plain",
        ),
        ({"trains": "cross-attention"}, "cross-attention needs a pre-trained encoder"),
        ({"masked": {"mono": 0.15, "bitexts": 0.25}}, "did you mean 'bitext'"),
        ({"bitext": [], "bitext_task": "opus"}, "bitext_task opus is for pairs, and `bitext` has none"),
    ],
)
def test_settings_of_streams_that_do_not_go_together_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        architecture_of(VECO | fields)


MBART = {"kind": "xlmr", "architecture": "mbart", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}
PAPER = {
    "masked": {"mono": 0.15, "bitext": 0.25},
    "denoising": {"noise": "tokens", "permute": False, "predict": "masked"},
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "bert"}, "kind"),
        ({"masked": {"mono": 0.2}}, "write `share` in `denoising`, or set its `noise: tokens`"),
        ({"denoising": {"noise": "tokens", "span": 2.0}}, "reads the shares of `masked`, not span"),
        ({"denoising": {"nois": "tokens"}}, "did you mean 'noise'"),
    ],
)
def test_settings_of_an_mbart_that_do_not_go_together_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        architecture_of(MBART | fields)


def test_an_mbart_has_the_layers_of_the_study_on_each_side_and_a_token_for_each_language() -> None:
    scratch = architecture_of(MBART | PAPER | {"shape": "base", "layers": 6})
    config = scratch.configuration(250_002)
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == (6, 6, 768)
    assert (config.encoder_ffn_dim, config.decoder_ffn_dim) == (3072, 3072)
    assert (config.encoder_attention_heads, config.decoder_attention_heads) == (12, 12)
    assert (config.vocab_size, config.languages, config.dropout) == (250_004, ["en", "fr"], 0.1)
    assert architecture_of(json.loads(scratch.model_dump_json(exclude_defaults=True))) == scratch


# A token passes layers with 10 parameters, and as many of cross-attention.
PLAIN = Count(trained=10, stored=10, total=10, passed=10, passed_trained=10, passed_in_evaluation=10)
WHOLE = Count(trained=20, stored=20, total=20, passed=20, passed_trained=20, passed_in_evaluation=20)
# Operations of training with all layers once, in one stream and in the other.
FIRST, SECOND = 60.0 + 5, 120.0 + 10


@pytest.mark.parametrize(
    ("fields", "work"),
    [
        ({"architecture": "plain"}, FIRST),
        ({"architecture": "plain", "objective": "mlm+tlm"}, (1 + 0.5) * FIRST),
        ({"architecture": "plain", "objective": "mlm+tlm", "bitext": []}, FIRST),
        ({"architecture": "plain", "objective": "mlm+tlm", "adjacent": "next"}, (0.5 + 2 * 0.5 + 0.5) * FIRST),
        ({}, (1 + 0.5) * FIRST + SECOND),
        ({"objective": "ca-mlm"}, FIRST + SECOND),
        ({"objective": "ca-mlm", "begin": "a", "trains": "cross-attention"}, 20.0 + 5 / 3 + SECOND - 2 * 10),
        ({"architecture": "shared"}, FIRST),
        ({"architecture": "mbart"}, 60.0 + 3 * 5 + 6 * (1.0 - 0.15) * 100),
        ({"architecture": "mbart", **PAPER}, 60.0 + 3 * 5 + round(6 * (0.5 + 0.5 * 0.15 - 0.15) * 100)),
        (
            {"architecture": "mbart", "denoising": {"predict": "masked"}},
            60.0 + 3 * 5 + round(6 * (0.5 + 0.5 * 0.35 - 0.15) * 100),
        ),
    ],
)
def test_the_work_of_training_on_a_token_has_all_passes_of_the_objective(
    fields: dict[str, object], work: float
) -> None:
    scratch = architecture_of(VECO | fields)
    uncounted = scratch.uncounted_work(5.0, 100, 0.5)
    assert scratch.work(PLAIN, WHOLE, uncounted, 0.5) == pytest.approx(work)


@pytest.mark.parametrize(
    ("fields", "losses"),
    [
        ({}, ("MLM", "CA-MLM", "TLM")),
        ({"bitext": []}, ("MLM", "CA-MLM")),
        ({"objective": "ca-mlm"}, ("MLM", "CA-MLM")),
        ({"architecture": "plain", "objective": "mlm+tlm"}, ("MLM", "TLM")),
    ],
)
def test_the_losses_of_pairs_are_those_of_the_objective(fields: dict[str, object], losses: tuple[str, ...]) -> None:
    nothing: Any = None
    objective, evaluated = architecture_of(VECO | fields).objectives(nothing, nothing)
    assert objective.loss_names == losses and evaluated is HEADS["mlm"]


def test_transformers_knows_no_more_of_cross_attention_than_one_entry() -> None:
    config = architecture_of(VECO | {"s_stream": "cross"}).configuration(50).to_diff_dict()
    plain = architecture_of(VECO | {"architecture": "plain"}).configuration(50).to_diff_dict()
    assert config == plain | {"s_stream": "cross"}
