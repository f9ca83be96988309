"""The adapters of MAD-X in encoders whose layers are not those of BERT, against the equations of test_modules.py in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from models_fixture import IDS, logits, model_of
from test_modules import Array, adapted, adapter, nice, weights

from xlgrid.heads.language_modelling.mlm import language_head
from xlgrid.methods import make

# The paths of the input of the feed-forward block, and of the LayerNorm that reads the sum of it and of its input.
POST_NORM = {"distilbert": ("ffn", "output_layer_norm"), "deberta": ("intermediate", "output.LayerNorm")}
PRE_NORM = {
    "modernbert": ("mlp_norm", "attn_norm", "final_norm"),
    "eurobert": ("post_attention_layernorm", "input_layernorm", "norm"),
}

pytestmark = pytest.mark.usefixtures("one_thread")


def numbers(tensor: torch.Tensor) -> Array:
    return tensor.detach().double().numpy()


def seen(model: Any, *modules: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What goes into each module, and what comes out of it, when the model reads IDS."""
    calls: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def note(module: Any, inputs: Any, output: Any) -> None:
        calls[id(module)] = inputs[0], output[0] if isinstance(output, tuple) else output

    handles = [module.register_forward_hook(note) for module in modules]
    logits(model)
    for handle in handles:
        handle.remove()
    return [calls[id(module)] for module in modules]


def layer_norm(module: Any, states: Array, eps: float) -> Array:
    centred, parameters = states - states.mean(-1, keepdims=True), weights(module)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * parameters["weight"]
    return scaled + parameters.get("bias", 0)


def root_mean_square_norm(module: Any, states: Array, eps: float) -> Array:
    return states / np.sqrt((states**2).mean(-1, keepdims=True) + eps) * weights(module)["weight"]


def expected(s: Array, h: Array, norm: Any, adapters: Any, wiring: str) -> Array:
    """s2, or TA + x."""
    parameters = weights(adapters)
    language, task = (lambda states, name=name: adapter(states, parameters, name) for name in ("language", "task"))
    if wiring == "paper":
        return task(language(norm(s)) + h) + s
    above = s + language(norm(s))
    return above + task(norm(above))


@pytest.mark.parametrize("wiring", ["library", "paper"])
@pytest.mark.parametrize("family", POST_NORM)
def test_a_layer_with_a_norm_at_its_end_is_the_equations(family: str, wiring: str) -> None:
    model = adapted(f"{family}-token", wiring=wiring)
    block, last = POST_NORM[family]
    part = getattr(model.base_model, "transformer", None) or model.base_model.encoder
    for layer in part.layer:
        feed_forward, adapters = layer.get_submodule(block), layer.get_submodule(last)
        (x, _), (_, out) = seen(model, feed_forward, layer)
        with torch.no_grad():
            h = layer.ffn(x) if family == "distilbert" else layer.output.dense(layer.intermediate(x))
        s = numbers(h) + numbers(x)

        def norm(states: Array, module: Any = adapters, eps: float = adapters.eps) -> Array:
            return layer_norm(module, states, eps)

        np.testing.assert_allclose(
            numbers(out), norm(expected(s, numbers(h), norm, adapters, wiring)), atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("wiring", ["library", "paper"])
@pytest.mark.parametrize("pre_norm", ["sum", "norm"])
@pytest.mark.parametrize("family", PRE_NORM)
def test_a_layer_with_norms_before_its_blocks_is_the_equations_without_the_last_norm(
    family: str, pre_norm: str, wiring: str
) -> None:
    """Adapters read the sum itself, or what the next layer reads of it."""
    model = adapted(f"{family}-token", wiring=wiring, pre_norm=pre_norm)
    block, following, last = PRE_NORM[family]
    first, second = model.base_model.layers
    formula = layer_norm if family == "modernbert" else root_mean_square_norm
    for layer, reader in ((first, second.get_submodule(following)), (second, model.base_model.get_submodule(last))):
        (x, inner), (_, out) = seen(model, layer.get_submodule(block), layer)
        with torch.no_grad():
            h = numbers(layer.mlp(inner))

        def norm(states: Array, module: Any = reader) -> Array:
            return formula(module, states, 1e-5) if pre_norm == "norm" else states

        np.testing.assert_allclose(
            numbers(out), expected(numbers(x) + h, h, norm, layer.adapters, wiring), atol=1e-5, rtol=0
        )


EMBEDDED = {
    "distilbert": "embeddings.dropout",
    "deberta": "embeddings.dropout",
    "modernbert": "embeddings.drop",
    "eurobert": "embed_tokens",
}


@pytest.mark.parametrize("family", EMBEDDED)
def test_the_first_layer_reads_what_the_invertible_adapter_returns(family: str) -> None:
    plain, model = model_of(f"{family}-mlm"), adapted(f"{family}-mlm", tune="language")
    (_, before), (_, after) = (
        seen(each, each.base_model.get_submodule(EMBEDDED[family]))[0] for each in (plain, model)
    )
    invertible = weights(model.base_model.get_submodule(f"{EMBEDDED[family]}.invertible"))
    np.testing.assert_allclose(numbers(after), nice(numbers(before), invertible, forward=True), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", EMBEDDED)
def test_the_decoder_reads_what_the_inverse_returns(family: str) -> None:
    """With the inverse, logits are those of the output embeddings on the inverse of what they read without it."""
    without, model = (adapted(f"{family}-mlm", tune="language", inverse=inverse) for inverse in (False, True))
    decoder = without.get_output_embeddings()
    [(states, _)] = seen(without, decoder)
    invertible = weights(model.base_model.get_submodule(f"{EMBEDDED[family]}.invertible"))
    inverse = nice(numbers(states), invertible, forward=False)
    bias = 0 if decoder.bias is None else numbers(decoder.bias)
    np.testing.assert_allclose(numbers(logits(model)), inverse @ numbers(decoder.weight).T + bias, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", EMBEDDED)
def test_the_language_head_is_that_of_the_model(family: str) -> None:
    model = adapted(f"{family}-mlm", tune="language")
    with torch.no_grad():
        states = model.base_model(input_ids=IDS).last_hidden_state
        head = language_head(model)
        assert head is not None
        torch.testing.assert_close(head(states), logits(model), atol=1e-6, rtol=0)


@pytest.mark.parametrize("lm_head", ["trained", "frozen"])
@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("distilbert", {"vocab_transform.weight", "vocab_layer_norm.weight", "vocab_projector.bias"}),
        ("deberta", {"cls.predictions.transform.dense.weight", "cls.predictions.bias"}),
        ("modernbert", {"head.dense.weight", "head.norm.weight", "decoder.bias"}),
        ("eurobert", set()),
    ],
)
def test_the_head_of_a_language_model_trains_without_the_output_embeddings(
    family: str, names: set[str], lm_head: str
) -> None:
    method = make("madx", {"tune": "language", "lm_head": lm_head})
    model = adapted(f"{family}-mlm", tune="language")
    prefix = f"{model.base_model_prefix}."
    trained = {name for name, _ in model.named_parameters() if method.trains(name) and not name.startswith(prefix)}
    assert names <= trained if lm_head == "trained" else not trained
    assert not trained & {"decoder.weight", "vocab_projector.weight", "lm_head.weight"}
    assert bool(trained) == bool(names and lm_head == "trained")
