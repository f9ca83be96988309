"""LoRA, IA3 and prefix tuning on every family, held in fp64 against their equations in models without peft."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from models_fixture import FAMILIES, IDS, SIZE, answered, model_of, write_run
from safetensors.torch import load_file
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import flash_attention_mask

from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models.deltas import kept, load_mlm_run, named_parameters

PREFIXED = [family for family in FAMILIES if family != "deberta"]
# The last input ends with padding.
PADDED = IDS.clone()
PADDED[1, 4:] = 1
# The places of queries, keys and values in the matrix of ModernBERT.
PARTS = {"query": 0, "key": 1, "value": 2}


def exact(model: Any) -> Tensor:
    with torch.no_grad():
        return answered(model, PADDED)


def with_method(family: str, base: str, head: str = "token", **options: Any) -> tuple[Any, dict[str, Tensor]]:
    """A model in fp64 with random numbers in all that the method adds; and these, by name."""
    model, method = model_of(f"{family}-{head}").double(), make(base, options)
    before = {id(parameter) for parameter in model.parameters()}
    torch.manual_seed(7)
    method.install(model)
    added = {name: p for name, p in model.double().named_parameters() if id(p) not in before}
    with torch.no_grad():
        for parameter in added.values():
            parameter.copy_(torch.randn_like(parameter))
    return model.eval(), {name: p.detach() for name, p in added.items()}


def rows_of(model: Any, layer: str) -> tuple[Any, slice]:
    """The layer with this name in a model without peft, and the rows of its matrix; ModernBERT has three in one."""
    place, _, part = layer.rpartition(".")
    if not place.endswith("Wqkv"):
        return model.get_submodule(layer), slice(None)
    whole = model.get_submodule(place)
    size = whole.out_features // 3
    return whole, slice(PARTS[part] * size, (PARTS[part] + 1) * size)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ({"rank": 4, "alpha": 6}, 6 / 4),
        ({"rank": 3, "target": "all-linear", "dropout": 0.5}, 8 / 3),
    ],
)
def test_lora_adds_the_product_of_its_matrices_to_the_weights(
    family: str, options: dict[str, Any], scale: float
) -> None:
    model, added = with_method(family, "lora", **options)
    expected = model_of(f"{family}-token").double()
    layers = [name.partition(".lora_A")[0] for name in added if "lora_A" in name]
    for layer in layers:
        a, b = (added[f"{layer}.lora_{side}.default.weight"] for side in "AB")
        plain, rows = rows_of(expected, layer)
        plain.weight.data[rows] += scale * b @ a
    assert len(layers) * 2 == len(added) > 0
    torch.testing.assert_close(exact(model), exact(expected), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_lora_is_beside_queries_and_values_or_beside_all_linear_layers(family: str) -> None:
    adapted = {}
    for target in ("query-value", "all-linear"):
        _, added = with_method(family, "lora", target=target)
        adapted[target] = {name.partition(".lora_A")[0].rpartition(".layer")[2] for name in added if "lora_A" in name}
    ends = {name.rpartition(".")[2] for name in adapted["query-value"]}
    assert ends in ({"query", "value"}, {"q_lin", "v_lin"}, {"query_proj", "value_proj"}, {"q_proj", "v_proj"})
    inner = [each for each in model_of(f"{family}-token").base_model.modules() if isinstance(each, torch.nn.Linear)]
    split = 2 * SIZE["num_hidden_layers"] if family == "modernbert" else 0
    assert len(adapted["all-linear"]) == len(inner) + split
    assert adapted["query-value"] < adapted["all-linear"]


@pytest.mark.parametrize("family", FAMILIES)
def test_ia3_scales_keys_values_and_inner_activations(family: str) -> None:
    model, added = with_method(family, "ia3")
    expected = model_of(f"{family}-token").double()
    of_blocks = 0
    for name, vector in added.items():
        plain, rows = rows_of(expected, name.removesuffix(".ia3_l.default"))
        if is_block := len(vector) == SIZE["intermediate_size"]:
            plain.weight.data *= vector
        else:
            plain.weight.data[rows] *= vector[:, None]
            if plain.bias is not None:
                plain.bias.data[rows] *= vector
        of_blocks += is_block
    layers = SIZE["num_hidden_layers"]
    assert (len(added), of_blocks) == (layers * 3, layers)
    torch.testing.assert_close(exact(model), exact(expected), atol=1e-12, rtol=1e-12)


def test_vectors_of_ia3_have_no_weight_decay() -> None:
    _, added = with_method("bert", "ia3")
    assert {vector.dim() for vector in added.values()} == {1}


def dense(tables: Tensor) -> Any:
    """Attention by concatenation, head by head, with the interface of transformers.

    Args:
        tables: [layers, keys and values, heads, P, d].
    """
    order: list[int] = []

    def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **options: Any) -> Any:
        if id(module) not in order:
            order.append(id(module))
        before = tables[order.index(id(module))]
        batch, heads, length, width = query.shape
        group, window = heads // key.shape[1], options.get("sliding_window")
        out = torch.zeros(batch, length, heads, width, dtype=query.dtype)
        for row in range(batch):
            for head in range(heads):
                keys = torch.cat([before[0, head // group], key[row, head // group]])
                values = torch.cat([before[1, head // group], value[row, head // group]])
                for place in range(length):
                    scores = keys @ query[row, head, place] / math.sqrt(width)
                    for other in range(length):
                        is_padding = attention_mask is not None and not attention_mask[row, other]
                        if is_padding or (window and abs(place - other) >= window):
                            scores[len(before[0, 0]) + other] = -math.inf
                    out[row, place, head] = scores.softmax(-1) @ values
        return out, None

    return attend


@pytest.mark.parametrize("family", PREFIXED)
def test_prefixes_are_concatenated_with_keys_and_values(family: str) -> None:
    model, added = with_method(family, "prefix-tuning", length=3)
    [table] = added.values()
    layers, heads = SIZE["num_hidden_layers"], 1 if family == "eurobert" else SIZE["num_attention_heads"]
    width = SIZE["hidden_size"] // SIZE["num_attention_heads"]
    tables = table.reshape(3, layers, 2, heads, width).permute(1, 2, 3, 0, 4)
    expected = model_of(f"{family}-token").double()
    AttentionInterface.register("dense", dense(tables))
    AttentionMaskInterface.register("dense", flash_attention_mask)
    expected.set_attn_implementation("dense")
    real = PADDED != 1
    torch.testing.assert_close(exact(model)[real], exact(expected)[real], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(("base", "family"), [("lora", f) for f in FAMILIES] + [("ia3", f) for f in FAMILIES])
def test_the_weights_of_the_encoder_keep_their_names(base: str, family: str) -> None:
    """A run of the method can then begin with an MLM run of another method."""
    model, added = with_method(family, base)
    assert [name for name in named_parameters(model) if name not in added] == [
        *named_parameters(model_of(f"{family}-token"))
    ]


@pytest.mark.parametrize("base", ["lora", "ia3", "prefix-tuning"])
def test_a_run_begins_with_an_mlm_run_of_all_weights(base: str, tmp_path: Path) -> None:
    family = "modernbert"
    before = model_of(f"{family}-mlm", seed=5)
    full = make("full-ft", {})
    write_run(tmp_path, {name: p.detach().clone() for name, p in kept(before, full, HEADS["mlm"]).items()})
    model, method = model_of(f"{family}-token"), make(base, {})
    method.install(model)
    load_mlm_run(tmp_path, model, method)
    stored = load_file(tmp_path / "delta.safetensors")
    assert stored and all(torch.equal(named_parameters(model)[name], tensor) for name, tensor in stored.items())
    if base != "prefix-tuning":
        plain = model_of(f"{family}-token")
        load_mlm_run(tmp_path, plain, full)
        torch.testing.assert_close(exact(model.eval()), exact(plain), atol=1e-6, rtol=0)
