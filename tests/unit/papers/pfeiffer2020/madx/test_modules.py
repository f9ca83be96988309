"""The adapters of MAD-X against the paper's equations, written out in float64, on both encoders."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models_fixture import IDS, SIZE, logits, model_of
from transformers import AutoModelForMaskedLM, ElectraConfig, ElectraModel, RemBertConfig

from xlgrid.heads import HEADS
from xlgrid.heads.language_modelling.mlm import language_head
from xlgrid.methods import make
from xlgrid.papers.pfeiffer2020.madx.modules import Invertible

KINDS = ("bert-mlm", "xlmr-mlm")


LANGUAGE = {"language", "invertible"}


each_model = pytest.mark.parametrize("kind", KINDS)


Array = np.ndarray


pytestmark = pytest.mark.usefixtures("one_thread")


def adapted(kind: str, **options: Any) -> Any:
    """A model with large adapters, each weight and bias of which matters."""
    model = model_of(kind)
    torch.manual_seed(4)
    make("madx", options).install(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not {"task", *LANGUAGE}.isdisjoint(name.split(".")):
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def weights(module: Any) -> dict[str, Array]:
    return {name: p.detach().double().numpy() for name, p in module.named_parameters()}


def relu(z: Array) -> Array:
    return np.maximum(z, 0)


def gelu(z: Array) -> Array:
    return z * (1 + np.vectorize(math.erf)(z / math.sqrt(2))) / 2


def gelu_new(z: Array) -> Array:
    return z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2


def dense(states: Array, parameters: dict[str, Array], name: str) -> Array:
    return states @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def normed(states: Array, parameters: dict[str, Array], name: str, eps: float) -> Array:
    centred = states - states.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return scaled * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def adapter(states: Array, parameters: dict[str, Array], name: str, activation: Any = relu) -> Array:
    return dense(activation(dense(states, parameters, f"{name}.down")), parameters, f"{name}.up")


def seen(model: Any, module: Any) -> list[tuple[tuple[Array, ...], Array]]:
    """What goes into a module and what comes out, in float64, when the model reads IDS."""
    calls: list[tuple[tuple[Array, ...], Array]] = []

    def note(module: Any, inputs: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        calls.append((tuple(tensor.double().numpy() for tensor in inputs), out.double().numpy()))

    handle = module.register_forward_hook(note)
    logits(model)
    handle.remove()
    return calls


@each_model
@pytest.mark.parametrize("wiring", ["library", "paper"])
@pytest.mark.parametrize(
    ("adapters", "activation"), [("L", relu), ("T", relu), ("LT", relu), ("LT", gelu), ("LT", gelu_new)]
)
def test_every_layer_is_the_equations(kind: str, wiring: str, adapters: str, activation: Any) -> None:
    model = adapted(
        kind,
        tune="task" if "T" in adapters else "language",
        language="L" in adapters,
        invertible=adapters == "L",
        wiring=wiring,
        activation=activation.__name__,
    )
    for layer in model.base_model.encoder.layer:
        parameters = weights(layer.output)
        (((inner, x), out),) = seen(model, layer.output)
        h = dense(inner, parameters, "dense")

        def norm(states: Array, parameters: dict[str, Array] = parameters) -> Array:
            return normed(states, parameters, "LayerNorm", model.config.layer_norm_eps)

        def apply(name: str, states: Array, parameters: dict[str, Array] = parameters) -> Array:
            return adapter(states, parameters, f"LayerNorm.{name}", activation)

        if adapters != "LT":
            expected = norm(apply("language" if adapters == "L" else "task", norm(h + x)) + h + x)
        elif wiring == "paper":
            above = apply("language", norm(h + x)) + h
            expected = norm(apply("task", above) + h + x)
        else:
            above = apply("language", norm(h + x)) + h
            expected = norm(apply("task", norm(above + x)) + above + x)
        np.testing.assert_allclose(out, expected, atol=1e-5, rtol=0)


def nice(states: Array, parameters: dict[str, Array], forward: bool) -> Array:
    first, second = np.split(states, 2, -1)
    if forward:
        first = first + adapter(second, parameters, "F")
        second = second + adapter(first, parameters, "G")
    else:
        second = second - adapter(first, parameters, "G")
        first = first - adapter(second, parameters, "F")
    return np.concatenate([first, second], -1)


@each_model
def test_embeddings_go_through_the_invertible_adapter_after_their_norm(kind: str) -> None:
    model = adapted(kind)
    embeddings = model.base_model.embeddings
    ((_, plain),) = seen(model, embeddings.LayerNorm)
    ((_, out),) = seen(model, embeddings)
    expected = nice(plain, weights(embeddings.dropout.invertible), forward=True)
    np.testing.assert_allclose(out, expected, atol=1e-5, rtol=0)


@each_model
@pytest.mark.parametrize("inverse", [True, False])
def test_the_inverse_comes_right_before_the_decoder(kind: str, inverse: bool) -> None:
    model = adapted(kind, tune="language", inverse=inverse)
    ((states,), _) = seen(model, language_head(model))[0]
    parameters, bert = weights(language_head(model)), kind.startswith("bert")
    at = "predictions.transform." if bert else ""
    hidden = gelu(dense(states, parameters, f"{at}dense"))
    hidden = normed(hidden, parameters, f"{at}{'LayerNorm' if bert else 'layer_norm'}", model.config.layer_norm_eps)
    if inverse:
        hidden = nice(hidden, weights(model.base_model.embeddings.dropout.invertible), forward=False)
    embedded = model.base_model.embeddings.word_embeddings.weight.detach().double().numpy()
    expected = hidden @ embedded.T + parameters["predictions.bias" if bert else "bias"]
    np.testing.assert_allclose(logits(model).numpy(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", [ElectraConfig, RemBertConfig])
def test_embeddings_that_are_narrower_than_layers_have_a_narrower_invertible_adapter(kind: Any) -> None:
    torch.manual_seed(1)
    sizes = {"embedding_size": 8, "input_embedding_size": 8, "output_embedding_size": 8}
    model = AutoModelForMaskedLM.from_config(kind(**SIZE, **sizes)).eval()
    assert model.get_input_embeddings().embedding_dim < model.config.hidden_size
    before = logits(model)
    make("madx", {"tune": "language", "lm_head": "frozen", "init": "identity"}).install(model)
    torch.testing.assert_close(logits(model), before, atol=1e-6, rtol=0)
    nice = model.base_model.embeddings.dropout.invertible
    assert sum(parameter.numel() for parameter in nice.parameters()) == 2 * (2 * 4 * 2 + 2 + 4)
    torch.nn.init.ones_(nice.F.up.weight)
    ((_, states),) = seen(model, model.base_model.embeddings)
    assert states.shape[-1] == 8
    assert type(model.get_output_embeddings()).__name__ == "InverseDecoder"


def test_an_inverse_of_another_size_than_the_decoder_is_refused() -> None:
    config = RemBertConfig(**SIZE, input_embedding_size=8, output_embedding_size=12)
    model = AutoModelForMaskedLM.from_config(config)
    with pytest.raises(ValueError, match=r"the size 8, but .* decodes states of size 12: set `inverse: false`"):
        make("madx", {"tune": "language"}).install(model)


def test_a_language_modelling_head_with_other_names_is_to_be_frozen() -> None:
    model = AutoModelForMaskedLM.from_config(ElectraConfig(**SIZE))
    with pytest.raises(ValueError, match=r"in an encoder of type electra, such as .*: set `lm_head: frozen`"):
        make("madx", {"tune": "language"}).install(model)


@each_model
def test_training_and_evaluation_see_the_inverse_too(kind: str) -> None:
    labels = torch.full_like(IDS, -100)
    labels[0, 2] = labels[1, 4] = 7
    scores = []
    for inverse in (True, False):
        model = adapted(kind, tune="language", inverse=inverse)
        with torch.no_grad():
            some, _ = HEADS["mlm"].scores(model, {"input_ids": IDS, "labels": labels})
        torch.testing.assert_close(some, logits(model)[labels != -100], atol=1e-5, rtol=0)
        scores.append(some)
    assert (scores[0] - scores[1]).abs().max() > 0.1


@given(st.integers(1, 8), st.sampled_from(["relu", "gelu", "gelu_new"]), st.integers(0, 2**32 - 1))
def test_the_inverse_takes_the_forward_back(half: int, activation: str, seed: int) -> None:
    torch.manual_seed(seed)
    invertible = Invertible(2 * half, 2, activation, "bert", torch.device("cpu")).double()
    with torch.no_grad():
        for parameter in invertible.parameters():
            parameter.normal_()
        states = torch.randn(3, 2 * half, dtype=torch.float64)
        assert (invertible(states) - states).abs().max() > 1e-3, "it did something"
        torch.testing.assert_close(invertible.inverse(invertible(states)), states)


@each_model
def test_a_copy_of_a_model_has_an_inverse_of_its_own(kind: str) -> None:
    model = adapted(kind, wiring="paper")
    before, twin = logits(model), copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            if "invertible" in name:
                parameter.zero_()
    assert torch.equal(logits(model), before)
    head = language_head(twin)
    states = torch.randn(2, SIZE["hidden_size"])
    plain = getattr(head, "predictions", head).decoder
    torch.testing.assert_close(plain(states), states @ plain.weight.T + plain.bias)


@each_model
def test_each_parameter_has_one_name_but_for_what_the_encoder_ties(kind: str) -> None:
    model = adapted(kind)
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    several = [aliases for aliases in names.values() if len(aliases) > 1]
    assert len(several) == 2, several
    assert model.get_output_embeddings().weight is model.base_model.embeddings.word_embeddings.weight


def test_drawn_as_in_the_library_adapters_change_the_output_slightly() -> None:
    for kind in ("bert-token", "xlmr-sequence"):
        model = model_of(kind)
        before = logits(model)
        make("madx", {}).install(model)
        assert 1e-7 < (logits(model) - before).abs().max() < 0.05


def test_the_last_layer_is_the_encoders_own_where_it_is_left_out() -> None:
    for tune in ("task", "language"):
        model = adapted("bert-token", tune=tune, leave_out_last=True)
        first, last = model.base_model.encoder.layer
        assert (type(first.output.LayerNorm).__name__, type(last.output.LayerNorm).__name__) == (
            "AdaptedNorm",
            "LayerNorm",
        )
        (((inner, x), out),) = seen(model, last.output)
        parameters = weights(last.output)
        expected = normed(dense(inner, parameters, "dense") + x, parameters, "LayerNorm", model.config.layer_norm_eps)
        np.testing.assert_allclose(out, expected, atol=1e-5, rtol=0)


def test_other_encoders_are_refused() -> None:
    with torch.device("meta"):
        model = ElectraModel(ElectraConfig(num_hidden_layers=1))
        model.encoder.layer[0].output = torch.nn.Identity()
        with pytest.raises(
            ValueError, match=r"adapters need an encoder of type bert, .* got electra: use one of these"
        ):
            make("madx", {}).install(model)


@each_model
def test_a_layer_that_ends_with_a_norm_has_no_other_one_to_read_through(kind: str) -> None:
    with pytest.raises(
        ValueError, match="option pre_norm needs an encoder whose layers have LayerNorms before their blocks, got "
    ):
        adapted(kind, pre_norm="norm")
