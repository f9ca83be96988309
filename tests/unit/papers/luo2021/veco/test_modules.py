"""Both streams are what independent implementations compute: transformers' decoder, its plain encoder, and dense numpy."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import erf
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, XLMRobertaForCausalLM, XLMRobertaModel
from veco_fixture import first_stream, model_of, pairs, scratch
from xmod_fixture import TOKENIZER, batch

from xlgrid.architectures.scratch import architecture_of
from xlgrid.heads import HEADS
from xlgrid.models.load import load_model
from xlgrid.papers.luo2021.veco import modules
from xlgrid.papers.luo2021.veco.names import is_cross_attention

pytestmark = pytest.mark.usefixtures("one_thread")
STREAMS = ("self+cross", "cross")


def stream_of_x(model: Any) -> torch.Tensor:
    """S of x with its partner y."""
    first, second = pairs()
    return modules.second_stream(model, first, first_stream(model, second), second["attention_mask"])


def test_s_with_a_causal_mask_is_the_decoder_of_transformers() -> None:
    """A layer with `is_decoder, add_cross_attention` has causal self-attention; under the same mask, S is equal to it."""
    model = model_of()
    config = copy.deepcopy(model.config)
    config.is_decoder = config.add_cross_attention = True
    decoder = XLMRobertaForCausalLM(config).eval()
    decoder.load_state_dict(model.state_dict())
    first, second = pairs()
    real = first["attention_mask"].bool()
    causal = torch.ones(9, 9, dtype=torch.bool).tril() & real[:, None, None]
    with torch.no_grad():
        partners = first_stream(model, second)
        inputs = {"input_ids": first["input_ids"], "attention_mask": causal}
        states = modules.second_stream(model, inputs, partners, second["attention_mask"])
        memory = {"encoder_hidden_states": partners, "encoder_attention_mask": second["attention_mask"]}
        expected = decoder.roberta(**first, **memory, use_cache=False).last_hidden_state
        bidirectional = stream_of_x(model)
    assert float((states - expected)[real].abs().max()) <= 1e-6
    assert float((bidirectional - expected)[real].abs().max()) > 1e-2, "S of pre-training sees the tokens to its right"


def dense(model: Any, s_stream: str) -> np.ndarray:
    """S of the tokens of x in numpy, head by head and token by token (equations 2 to 9, with LayerNorm after each part)."""
    weights = {name: p.detach().double().numpy() for name, p in model.base_model.named_parameters()}
    heads, eps = model.config.num_attention_heads, model.config.layer_norm_eps

    def norm(states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def linear(states: np.ndarray, name: str) -> np.ndarray:
        return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def attend(name: str, states: np.ndarray, others: np.ndarray) -> np.ndarray:
        query, key, value = (
            linear(each, f"{name}.self.{part}")
            for part, each in (("query", states), ("key", others), ("value", others))
        )
        size = query.shape[1] // heads
        mixed = np.zeros_like(query)
        for head in range(heads):
            columns = slice(head * size, (head + 1) * size)
            for at in range(len(states)):
                scores = np.exp(key[:, columns] @ query[at, columns] / np.sqrt(size))
                mixed[at, columns] = scores @ value[:, columns] / scores.sum()
        return norm(linear(mixed, f"{name}.output.dense") + states, f"{name}.output")

    def stream(ids: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
        positions = weights["embeddings.position_embeddings.weight"][2 : 2 + len(ids)]
        words, types = (weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "token_type"))
        states = norm(words[ids] + positions + types[0], "embeddings")
        for layer in range(model.config.num_hidden_layers):
            place = f"encoder.layer.{layer}"
            if memory is None or s_stream == "self+cross":
                states = attend(f"{place}.attention", states, states)
            if memory is not None:
                states = attend(f"{place}.crossattention", states, memory)
            inner = linear(states, f"{place}.intermediate.dense")
            inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
            states = norm(linear(inner, f"{place}.output.dense") + states, f"{place}.output")
        return states

    rows = zip(*(inputs["input_ids"].numpy() for inputs in pairs()), strict=True)
    return np.concatenate([stream(row[row != 1], stream(partner[partner != 1], None)) for row, partner in rows])


@pytest.mark.parametrize("s_stream", STREAMS)
def test_s_in_both_directions_is_that_of_dense_numpy(s_stream: str) -> None:
    model = model_of(s_stream=s_stream)
    real = pairs()[0]["attention_mask"].bool()
    with torch.no_grad():
        single = stream_of_x(model)[real].numpy()
        double = stream_of_x(model.double())[real].numpy()
    expected = dense(model, s_stream)
    assert np.abs(double - expected).max() < 1e-12
    assert np.abs(single - expected).max() < 1e-5


@pytest.mark.parametrize("detach", [True, False])
def test_the_loss_of_s_alone_leaves_the_input_of_h_without_gradient(detach: bool) -> None:
    model = model_of()
    first, second = pairs()
    embedded = model.get_input_embeddings()(second["input_ids"]).detach().requires_grad_()
    inputs = {"inputs_embeds": embedded, "attention_mask": second["attention_mask"]}
    partners = first_stream(model, inputs)
    modules.second_stream(model, first, partners, second["attention_mask"], detach).square().sum().backward()
    assert (embedded.grad is None) == detach
    key = model.base_model.encoder.layer[0].crossattention.self.key.weight
    assert key.grad is not None and float(key.grad.abs().max()) > 0


@pytest.mark.parametrize("s_stream", STREAMS)
def test_h_is_bit_equal_to_xlm_r_with_and_without_cross_attention(s_stream: str, tmp_path: Path) -> None:
    model = model_of(s_stream=s_stream)
    model.save_pretrained(tmp_path)
    plain, about = XLMRobertaModel.from_pretrained(tmp_path, add_pooling_layer=False, output_loading_info=True)
    assert not about["missing_keys"] and not any(map(is_cross_attention, plain.state_dict()))
    inputs = batch(4)
    with torch.no_grad():
        expected = plain.eval()(**inputs).last_hidden_state
        assert torch.equal(first_stream(model, inputs), expected)
        logits = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()(**inputs).logits
        assert torch.equal(load_model(tmp_path, HEADS["mlm"], 0).eval()(**inputs).logits, logits)


def test_padding_of_x_and_of_y_changes_nothing() -> None:
    model = model_of()
    first, second = pairs()
    real = first["attention_mask"].bool()
    with torch.no_grad():
        states = stream_of_x(model)
        for inputs in (first, second):
            for name, fill in (("input_ids", 1), ("attention_mask", 0)):
                inputs[name] = torch.nn.functional.pad(inputs[name], (0, 4), value=fill)
        partners = first_stream(model, second)
        padded = modules.second_stream(model, first, partners, second["attention_mask"])[:, :9]
    torch.testing.assert_close(padded[real], states[real], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("sizes", "millions"),
    [({"shape": "large"}, 660.95), ({"shape": "base", "layers": 6}, 249.95)],
)
def test_the_sizes_of_the_paper(sizes: dict[str, Any], millions: float) -> None:
    """The paper has 662 million parameters (table 1), and 247 million of the small model (table 8)."""
    fields = {"kind": "xlmr", "architecture": "veco", "languages": ("en",), **sizes}
    described = architecture_of(fields)
    with torch.device("meta"):
        model = described.new_model(250_002)
    h, inner, layers = described.hidden, described.intermediate, described.layers
    attention, norm = 4 * (h * h + h), 2 * h
    layer = 2 * attention + 3 * norm + (h * inner + inner) + (inner * h + h)
    embeddings, head = (250_002 + 514 + 1) * h + norm, h * h + h + norm + 250_002
    expected = embeddings + layers * layer + head
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    assert round(expected / 1e6, 2) == millions


def test_weights_of_cross_attention_are_drawn_as_those_of_xlm_r() -> None:
    torch.manual_seed(1)
    model = scratch(hidden=64, heads=4).new_model(TOKENIZER)
    for name, parameter in model.named_parameters():
        if is_cross_attention(name):
            if parameter.dim() > 1:
                assert 0.018 < float(parameter.detach().std()) < 0.022, name
            else:
                assert torch.equal(parameter, torch.full_like(parameter, float("LayerNorm.weight" in name))), name


def test_a_copy_of_a_model_has_streams_of_its_own() -> None:
    model = model_of(s_stream="cross")
    copied = copy.deepcopy(model)
    with torch.no_grad():
        before = stream_of_x(model)
        for parameter in copied.parameters():
            parameter.zero_()
        assert torch.equal(stream_of_x(model), before) and not torch.equal(stream_of_x(copied), before)


def test_other_encoders_are_refused() -> None:
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 20,
    }
    with pytest.raises(ValueError, match="cross-attention needs an XLM-R, got an encoder of type bert"):
        modules.install(BertForMaskedLM(BertConfig(**sizes)))


def test_the_folder_of_an_encoder_gives_its_cross_attention_back(tmp_path: Path) -> None:
    model = model_of()
    model.save_pretrained(tmp_path / "with-head")
    model.base_model.save_pretrained(tmp_path / "without")
    for folder in ("with-head", "without"):
        other = load_model(tmp_path / folder, HEADS["mlm"], 0, new_lm_head=folder == "without").eval()
        assert modules.stream_of(other.config) == "self+cross"
        modules.install(other)
        assert not torch.equal(stream_of_x(other), stream_of_x(model))
        modules.load_cross_attention(other, tmp_path / folder / "model.safetensors")
        assert torch.equal(stream_of_x(other), stream_of_x(model))
    load_model(tmp_path / "without", HEADS["mlm"], 0, new_lm_head=True).save_pretrained(tmp_path / "plain")
    message = r"has no encoder\.layer\.0\.crossattention.*pre-train an encoder with `architecture: veco`"
    with pytest.raises(ValueError, match=message):
        modules.load_cross_attention(other, tmp_path / "plain" / "model.safetensors")
