"""The layers of a decoder, the first weights of its cross-attention, and the weights that it shares with its encoder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders_fixture import KINDS, SIZE, model_of, some_translations, write_encoder
from safetensors.torch import load_file, save_file
from transformers import XLMRobertaConfig

from xlgrid.heads import HEADS
from xlgrid.methods import ALL_METHODS, make
from xlgrid.models.deltas import kept, named_parameters
from xlgrid.models.load import load_model, shapes
from xlgrid.papers.luo2021.seq2seq import HEAD
from xlgrid.papers.luo2021.seq2seq.head import generate
from xlgrid.papers.luo2021.veco.names import STREAM

pytestmark = pytest.mark.usefixtures("one_thread")
LAYERS, H, INNER = SIZE["num_hidden_layers"], SIZE["hidden_size"], SIZE["intermediate_size"]
# The shapes of table 8 of Luo et al. (2021): layers, hidden size, attention heads, intermediate size; and millions of parameters.
VECO = {"large": (24, 1024, 16, 4096, 660.95), "small": (6, 768, 12, 3072, 249.95)}


@pytest.fixture(params=KINDS)
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder", request.param)


def installed(encoder: Path, **options: Any) -> Any:
    model = model_of(encoder)
    torch.manual_seed(6)
    make("seq2seq", options).install(model)
    return model


def layers(model: Any) -> Any:
    return model.decoder.base_model.encoder.layer


@pytest.mark.parametrize(
    ("decoder", "numbers"), [("full", [0, 1, 2]), ("first-2", [0, 1]), ("last-2", [1, 2]), ("last-3", [0, 1, 2])]
)
def test_the_decoder_has_the_chosen_layers_of_the_encoder(encoder: Path, decoder: str, numbers: list[int]) -> None:
    model = installed(encoder, decoder=decoder, init="cross")
    stored = load_file(encoder / "model.safetensors")
    for place, number in enumerate(numbers):
        (prefix,) = {name.split("encoder.layer.")[0] for name in stored if f"encoder.layer.{number}." in name}
        for name, parameter in layers(model)[place].named_parameters():
            assert torch.equal(parameter, stored[f"{prefix}encoder.layer.{number}.{name}"]), name
    assert len(layers(model)) == len(numbers) == model.config.decoder.num_hidden_layers
    assert len(model.encoder.encoder.layer) == LAYERS, "the encoder stays whole"


@pytest.mark.parametrize("tie", ["embeddings", "all"])
def test_a_cut_decoder_searches_with_a_cache_as_without(encoder: Path, tie: str) -> None:
    model, tokens = installed(encoder, decoder="last-2", init="cross", tie=tie, longest=20), some_translations()
    batch = HEAD.collate(tokens, np.arange(len(tokens)), False)
    sources = {name: batch[name] for name in ("input_ids", "attention_mask")}
    cached, uncached = (generate(model, sources, tokens, use_cache=cache) for cache in (True, False))
    assert cached == uncached and max(map(len, cached)) > 4


def test_cross_attention_begins_with_self_attention(encoder: Path) -> None:
    for layer in layers(installed(encoder, init="self", decoder="last-2")):
        own = dict(layer.attention.named_parameters())
        cross = dict(layer.crossattention.named_parameters())
        assert own.keys() == cross.keys() and len(own) == 10
        assert all(torch.equal(own[name], cross[name]) and own[name] is not cross[name] for name in own)


def test_cross_attention_begins_at_random_though_the_encoder_stores_one(encoder: Path) -> None:
    stored = load_file(encoder / "model.safetensors")
    model = installed(encoder, init="random")
    for layer in layers(model):
        cross = dict(layer.crossattention.named_parameters())
        values = {name: parameter.detach() for name, parameter in cross.items()}
        assert 0.015 < float(values["self.query.weight"].std()) < 0.025
        assert not values["self.query.bias"].any() and (values["output.LayerNorm.weight"] == 1).all()
    queries = [tensor for name, tensor in stored.items() if name.endswith("crossattention.self.query.weight")]
    assert not any(torch.equal(layers(model)[0].crossattention.self.query.weight, query) for query in queries)


def test_a_model_of_random_weights_has_the_sizes_of_the_encoder_alone(encoder: Path) -> None:
    """No weight matrix or embedding stays, and the parts share what they share with weights of the encoder."""
    stored = {name: tensor for name, tensor in load_file(encoder / "model.safetensors").items() if tensor.dim() == 2}
    model = installed(encoder, weights="random", tie="all")
    parameters = {name: parameter.detach() for name, parameter in named_parameters(model).items()}
    matrices = {name: tensor for name, tensor in parameters.items() if tensor.dim() == 2}
    for name, drawn in matrices.items():
        assert not any(torch.equal(drawn, tensor) for tensor in stored.values()), name
        assert 0.01 < float(drawn.std()) < 0.03, name
    assert sum(p.numel() for p in model.parameters()) == parameters_of("all", LAYERS)
    words = model.encoder.get_input_embeddings()
    assert words.weight is model.decoder.get_output_embeddings().weight
    assert words.padding_idx is not None and not words.weight[words.padding_idx].any()
    norms = [tensor for name, tensor in parameters.items() if name.endswith("LayerNorm.weight")]
    assert norms and all((norm == 1).all() for norm in norms)
    torch.manual_seed(7)
    other = model_of(encoder)
    make("seq2seq", {"weights": "random", "tie": "all"}).install(other)
    assert not torch.equal(words.weight, other.encoder.get_input_embeddings().weight)


def test_random_weights_leave_no_cross_attention_to_begin_with() -> None:
    with pytest.raises(ValueError, match=r"init: cross uses weights of the encoder, but `weights: random`"):
        make("seq2seq", {"weights": "random", "init": "cross"})


def test_the_encoders_own_cross_attention_has_to_be_there(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "plain", "xlmr", cross=False)
    with pytest.raises(ValueError, match=r"init: cross .* the encoder has none: .*`architecture: veco`, or set"):
        installed(encoder, init="cross")
    installed(encoder, init="self")


def test_a_decoder_with_more_layers_than_the_encoder_is_refused(encoder: Path) -> None:
    with pytest.raises(
        ValueError, match=r"last-6 needs 6 layers, but the encoder has 3: write last-1 to last-3, or full"
    ):
        installed(encoder, decoder="last-6")


def test_a_model_without_a_decoder_is_refused(encoder: Path) -> None:
    with pytest.raises(ValueError, match=r"needs an encoder-decoder: name a task of kind seq2seq or translation"):
        make("seq2seq", {}).install(load_model(encoder, HEADS["token"], 3))


@pytest.mark.parametrize("decoder", ["last", "middle-3", "last-0"])
def test_the_layers_of_a_decoder_have_names(decoder: str) -> None:
    with pytest.raises(ValueError, match=f"decoder: must be full, first-N or last-N, such as last-6, got '{decoder}'"):
        make("seq2seq", {"decoder": decoder})


def test_greedy_search_has_no_hypotheses_to_rank_by_length() -> None:
    with pytest.raises(ValueError, match="`beams: 1` has a single hypothesis: leave it out, or raise `beams`"):
        make("seq2seq", {"beams": 1, "length_penalty": 0.6})


def test_beam_search_has_the_settings_of_the_method(encoder: Path) -> None:
    settings = installed(encoder, beams=5, length_penalty=0.6, longest=30).generation_config
    assert (settings.num_beams, settings.length_penalty, settings.max_new_tokens) == (5, 0.6, 30)
    assert installed(encoder, beams=1).generation_config.early_stopping is False


def parameters_of(tie: str, count: int) -> int:
    """Parameters by arithmetic, of a decoder with `count` layers."""
    attention = 4 * H * H + 4 * H + 2 * H
    layer = attention + 2 * H * INNER + INNER + H + 2 * H
    words, others = SIZE["vocab_size"] * H, (SIZE["max_position_embeddings"] + 2) * H + 2 * H
    output = H * H + H + 2 * H + SIZE["vocab_size"]
    decoder = count * attention + output + (count * layer + others if tie == "embeddings" else 0)
    return words + others + LAYERS * layer + decoder


@pytest.mark.parametrize("tie", ["embeddings", "all"])
@pytest.mark.parametrize(("decoder", "count"), [("full", 3), ("first-1", 1)])
def test_parameters_are_as_many_as_by_hand(encoder: Path, tie: str, decoder: str, count: int) -> None:
    model = installed(encoder, tie=tie, decoder=decoder)
    assert sum(p.numel() for p in model.parameters()) == parameters_of(tie, count)


@pytest.mark.parametrize("name", VECO)
def test_veco_has_as_many_parameters_as_the_paper_and_the_release_say(name: str) -> None:
    """662 million and 247 million in tables 1 and 5 there, 660 million in the release."""
    *shape, millions = VECO[name]
    sizes = zip(("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"), shape, strict=True)
    words = {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1}
    model = shapes(XLMRobertaConfig(**words, **dict(sizes)), HEAD)
    make("seq2seq", {"tie": "all", "init": "cross"}).install(model)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(1e6 * millions, abs=6e3)


def test_a_shared_weight_is_trained_for_both_parts(encoder: Path) -> None:
    model = installed(encoder, tie="all", decoder="last-1", init="cross")
    weight = model.encoder.encoder.layer[2].intermediate.dense.weight
    assert layers(model)[0].intermediate.dense.weight is weight
    with torch.no_grad():
        weight.zero_()
    assert not layers(model)[0].intermediate.dense.weight.any()
    assert (
        layers(model)[0].crossattention.self.key.weight is not model.encoder.encoder.layer[2].attention.self.key.weight
    )


@pytest.mark.parametrize("options", [{}, {"tie": "all"}, {"decoder": "first-2", "init": "self"}])
def test_a_saved_delta_gives_the_same_scores(encoder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    method = make("seq2seq", options)
    batch = HEAD.collate(some_translations(), np.arange(6), False)
    model = installed(encoder, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        expected = HEAD.scores(model, batch)[0]
        save_file({name: p.detach() for name, p in kept(model, method, HEAD).items()}, tmp_path / "d.safetensors")
        again, delta = installed(encoder, **options), load_file(tmp_path / "d.safetensors")
        for name, parameter in named_parameters(again).items():
            parameter.copy_(delta[name])
        torch.testing.assert_close(HEAD.scores(again, batch)[0], expected, atol=0, rtol=0)


def test_bitfit_trains_biases_and_cross_attention_which_is_new(encoder: Path) -> None:
    model, method = model_of(encoder), make("bitfit", {})
    method.install(model)
    names = {name for name in named_parameters(model) if method.trains(name)}
    assert {name.split(".")[1] for name in names} == {"encoder", "decoder"}
    new = {name for name in named_parameters(model) if ".crossattention." in name}
    assert len(new) == LAYERS * 10 and new <= names and all(".bias" in name for name in names - new)


def test_a_run_stores_an_output_that_the_encoder_lacks(tmp_path: Path) -> None:
    """BitFit does not train the layer, which the next process would draw anew."""
    encoder = write_encoder(tmp_path / "encoder", "xlmr", cross=False)
    stored = load_file(encoder / "model.safetensors")
    method = make("bitfit", {})
    layer = "encoder_decoder.decoder.lm_head.dense.weight"
    assert layer not in kept(model_of(encoder), method, HEAD)
    bare = {name: tensor for name, tensor in stored.items() if not name.startswith("lm_head")}
    save_file(bare, encoder / "model.safetensors", {"format": "pt"})
    assert layer in kept(model_of(encoder), method, HEAD)


def test_methods_of_the_core_are_for_encoder_decoders_and_those_with_modules_are_not() -> None:
    model = HEAD.described({"model_type": "xlm-roberta", STREAM: "input"})
    refused = {
        base for base, method in ALL_METHODS.own.items() if "is an encoder-decoder" in (method().misfit(model) or "")
    }
    assert refused == set(ALL_METHODS.own) - {"full-ft", "bitfit", "as-is", "seq2seq"}
