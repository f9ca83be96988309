"""Structured self-attention against its formula, written out cell by cell, on both encoders."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

from xlgrid.base.arrays import Segments
from xlgrid.methods import make
from xlgrid.papers.foroutan2023 import structured
from xlgrid.papers.foroutan2023.structured import Layout

HEADS, WIDTH = 3, 8


@pytest.fixture(autouse=True, scope="module", params=[structured.LONG, 0], ids=["short", "long"])
def long_from(request: pytest.FixtureRequest) -> Iterator[None]:
    """Inputs are short, and strict masks attend to them as to long ones, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structured, "LONG", request.param)
        yield


SIZE = {
    "vocab_size": 50,
    "hidden_size": HEADS * WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
}


MODELS = {"bert": (BertConfig, BertModel), "xlmr": (XLMRobertaConfig, XLMRobertaModel)}


# Tokens of the first segment and of both: padded, unpadded, of one language, and a second segment of one token.
CONTEXTS, LENGTHS, SWITCHED = [4, 9, 5, 11], [7, 14, 10, 12], [True, True, False, True]


LENGTH = max(LENGTHS)


REAL = torch.arange(LENGTH) < torch.tensor(LENGTHS)[:, None]


def model_of(kind: str, cross: bool = True) -> Any:
    config, maker = MODELS[kind]
    torch.manual_seed(1)
    model = maker(config(**SIZE, hidden_dropout_prob=0, attention_probs_dropout_prob=0), add_pooling_layer=False)
    structured.install(model, cross)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def inputs() -> dict[str, torch.Tensor]:
    ids = torch.randint(2, 50, (len(LENGTHS), LENGTH), generator=torch.Generator().manual_seed(2))
    return {"input_ids": ids.masked_fill(~REAL, 1), "attention_mask": REAL.long()}


def segments(contexts: list[int], switched: list[bool], length: int = 12) -> Segments:
    """The segments of inputs, of which some are in two languages."""
    languages = np.array([[0, int(both)] for both in switched], np.int16)
    return Segments(np.array(contexts), ("en", "fr"), languages, length)


def layout(share: float = 0.0, **options: Any) -> Layout:
    also = torch.rand(4, LENGTH, LENGTH, generator=torch.Generator().manual_seed(3)) < share
    return Layout(torch.tensor(CONTEXTS), torch.tensor(SWITCHED), also if share else None, **options)


def by_hand(arrangement: Layout, example: int, cross: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the exponentials of Q and Q_cross count in each cell (section 4.1, figures 2 and 3; note 1.2)."""
    length, context = LENGTHS[example], CONTEXTS[example]
    own, other = np.zeros((length, length)), np.zeros((length, length))
    for i in range(length):
        for j in range(length):
            if not SWITCHED[example]:
                own[i, j] = 1
                continue
            same = (i < context) == (j < context)
            both = arrangement.bridge and (i == 0 or j == 0)
            both = both or (arrangement.unmasked is not None and bool(arrangement.unmasked[example, i, j]))
            own[i, j], other[i, j] = same or both, cross and (not same or both)
            if both and cross and arrangement.overlap == "halve":
                own[i, j] = other[i, j] = 0.5
    return own, other


def dense(layer: Any, hidden: torch.Tensor, arrangement: Layout, cross: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """The attention of one layer in float64, example by example: its weights, H × L × L, and what comes out."""
    weights = {name: p.detach().double().numpy() for name, p in layer.named_parameters()}
    results = []
    for example, length in enumerate(LENGTHS):
        states = hidden[example, :length].double().numpy()
        names = ("query", "key", "value", *(["query.cross"] if cross else []))
        q, k, v, *x = (states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"] for name in names)
        own, other = by_hand(arrangement, example, cross)
        heads, shares = [], []
        for at in range(0, HEADS * WIDTH, WIDTH):
            part = slice(at, at + WIDTH)
            row = own * np.exp(q[:, part] @ k[:, part].T / np.sqrt(WIDTH))
            if cross:
                row += other * np.exp(x[0][:, part] @ k[:, part].T / np.sqrt(WIDTH))
            shares.append(row / row.sum(1, keepdims=True))
            heads.append(shares[-1] @ v[:, part])
        results.append((np.stack(shares), np.concatenate(heads, 1)))
    return results


LAYOUTS = {
    "strict": layout(),
    "interfering": layout(0.3),
    "strict, halved": layout(overlap="halve"),
    "interfering, halved": layout(0.3, overlap="halve"),
    "strict, no bridge": layout(bridge=False),
    "interfering, no bridge": layout(0.3, bridge=False),
}


each_layout = pytest.mark.parametrize("arrangement", LAYOUTS.values(), ids=LAYOUTS)


each_model = pytest.mark.parametrize("kind", MODELS)


@each_model
@each_layout
@pytest.mark.parametrize("cross", [True, False], ids=["cross", "dropout"])
def test_every_layer_is_the_formula(kind: str, arrangement: Layout, cross: bool) -> None:
    if arrangement.overlap == "halve" and not cross:
        pytest.skip("without a cross query nothing overlaps")
    for layer, hidden, out in layers_of(kind, arrangement, cross):
        for example, (_, expected) in enumerate(dense(layer, hidden, arrangement, cross)):
            ours = out[example, : LENGTHS[example]].numpy()
            np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=0, err_msg=f"example {example}")


def layers_of(kind: str, arrangement: Layout | None, cross: bool) -> list[tuple[Any, torch.Tensor, torch.Tensor]]:
    """Each layer, what went in and what came out."""
    model, calls = model_of(kind, cross), []
    for layer in structured.layers(model):
        layer.register_forward_hook(
            lambda layer, positional, options, out: calls.append((layer, (*positional, *options.values())[0], out[0])),
            with_kwargs=True,
        )
    with torch.no_grad():
        model(**inputs(), layout=arrangement)
    assert len(calls) == 2
    return calls


@each_model
@each_layout
@pytest.mark.parametrize("cross", [True, False], ids=["cross", "dropout"])
def test_weights_are_those_of_the_formula(kind: str, arrangement: Layout, cross: bool) -> None:
    if arrangement.overlap == "halve" and not cross:
        pytest.skip("without a cross query nothing overlaps")
    for layer, hidden, _ in layers_of(kind, arrangement, cross):
        with torch.no_grad():
            weights = structured.weights(layer, hidden, REAL, arrangement)
        for example, (expected, _) in enumerate(dense(layer, hidden, arrangement, cross)):
            ours = weights[example, :, : LENGTHS[example]].numpy()
            padded = np.pad(expected, ((0, 0), (0, 0), (0, LENGTH - LENGTHS[example])))
            np.testing.assert_allclose(ours, padded, atol=1e-5, rtol=0, err_msg=f"example {example}")


@each_model
@pytest.mark.parametrize("cross", [True, False])
def test_weights_without_a_layout_are_plain_attention(kind: str, cross: bool) -> None:
    config, maker = MODELS[kind]
    plain = maker(config(**SIZE, attn_implementation="eager"), add_pooling_layer=False).eval()
    ours = model_of(kind, cross)
    plain.load_state_dict({name: t for name, t in ours.state_dict().items() if ".cross." not in name})
    with torch.no_grad():
        expected = plain(**inputs(), output_attentions=True).attentions
        for (layer, hidden, _), theirs in zip(layers_of(kind, None, cross), expected, strict=True):
            torch.testing.assert_close(structured.weights(layer, hidden, REAL, None), theirs, atol=1e-5, rtol=0)


@each_layout
def test_in_float64_the_weights_are_the_formula_to_the_last_digits(arrangement: Layout) -> None:
    """A half that was rounded to float32 before its logarithm was added would be wrong in the tenth digit."""
    torch.manual_seed(5)
    own, cross, key = (torch.randn(len(LENGTHS), HEADS, LENGTH, WIDTH, dtype=torch.float64) for _ in range(3))
    joint_weights = structured.joint_weights(own, cross, key, arrangement.biases(LENGTH, REAL, torch.float64), 0.3)
    for example, length in enumerate(LENGTHS):
        factors = by_hand(arrangement, example, cross=True)
        rows = [np.exp(0.3 * (q[example, :, :length] @ key[example, :, :length].mT).numpy()) for q in (own, cross)]
        weights = factors[0] * rows[0] + factors[1] * rows[1]
        expected = weights / weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(
            joint_weights[example, :, :length, :length].numpy(), expected, atol=1e-14, rtol=1e-12
        )


@each_layout
@pytest.mark.parametrize("cross", [True, False], ids=["cross", "dropout"])
def test_gradients_are_those_of_the_formula(arrangement: Layout, cross: bool) -> None:
    """Autograd differentiates the formula as it stands, in float64, example by example without padding."""
    if arrangement.overlap == "halve" and not cross:
        pytest.skip("without a cross query nothing overlaps")
    torch.manual_seed(8)
    batch = len(LENGTHS)
    key, value, own, *other = (
        torch.randn(batch, HEADS, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(3 + cross)
    )
    weights = torch.randn(batch, HEADS, LENGTH, WIDTH, dtype=torch.float64) * REAL[:, None, :, None]
    queries = torch.cat([own, *other], 1)
    out = structured.attend(torch.nn.Module(), queries, key, value, REAL, 0.3, 0.0, arrangement)[0].transpose(1, 2)
    expected = torch.zeros((), dtype=torch.float64)
    for example, length in enumerate(LENGTHS):
        k, v, *both = (states[example, :, :length] for states in (key, value, own, *other))
        factors = by_hand(arrangement, example, cross)
        row = sum(torch.from_numpy(m) * (0.3 * q @ k.mT).exp() for q, m in zip(both, factors, strict=False))
        attended = (row / row.sum(-1, keepdim=True)) @ v
        expected = expected + (attended * weights[example, :, :length]).sum()
    inputs = [key, value, own, *other]
    gradients = torch.autograd.grad((out * weights).sum(), inputs), torch.autograd.grad(expected, inputs)
    for name, ours, formula in zip(("key", "value", "own", "cross"), *gradients, strict=False):
        torch.testing.assert_close(ours, formula, atol=1e-13, rtol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_dropout_drops_a_cell_of_both_queries_as_a_whole(share: float) -> None:
    """With values that are one-hot, the output has the weights after dropout: zero, or twice the weight."""
    torch.manual_seed(7)
    own, cross, key = (torch.randn(4, HEADS, LENGTH, WIDTH) for _ in range(3))
    value, masks = torch.eye(LENGTH).expand(4, HEADS, LENGTH, LENGTH), layout(share)
    whole, dropped = (
        structured.attend(torch.nn.Module(), torch.cat([own, cross], 1), key, value, None, 0.3, p, masks)[0]
        for p in (0.0, 0.5)
    )
    kept = dropped != 0
    assert 0.4 < kept[whole > 0].float().mean() < 0.6
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_dropout_of_attention_changes_nothing_in_the_mean(share: float) -> None:
    torch.manual_seed(6)
    own, cross, key, value = (torch.randn(4, HEADS, LENGTH, WIDTH) for _ in range(4))
    queries = torch.cat([own, cross], 1)
    attended = [
        structured.attend(torch.nn.Module(), queries, key, value, None, 0.3, p, layout(share))[0]
        for p in [0.0] + [0.5] * 500
    ]
    assert not torch.equal(attended[1], attended[2])
    torch.testing.assert_close(torch.stack(attended[1:]).mean(0), attended[0], atol=0.2, rtol=0)


@each_model
def test_inputs_in_one_language_are_attended_to_as_ever(kind: str) -> None:
    config, maker = MODELS[kind]
    model, plain = model_of(kind), maker(config(**SIZE, attn_implementation="sdpa"), add_pooling_layer=False).eval()
    plain.load_state_dict({name: t for name, t in model.state_dict().items() if ".cross." not in name})
    with torch.no_grad():
        expected, ours = plain(**inputs()).last_hidden_state, model(**inputs()).last_hidden_state
        mixed = model(**inputs(), layout=layout(0.3)).last_hidden_state
    torch.testing.assert_close(ours[REAL], expected[REAL], atol=0, rtol=0)
    length = LENGTHS[2]
    torch.testing.assert_close(mixed[2, :length], expected[2, :length], atol=1e-5, rtol=0)


@each_model
def test_a_cross_query_that_is_a_copy_counts_the_bridge_twice_and_changes_nothing_else(kind: str) -> None:
    model = model_of(kind)
    for layer in model.encoder.layer:
        query = layer.attention.self.query
        query.cross.load_state_dict({"weight": query.weight, "bias": query.bias})
    with torch.no_grad():
        plain = model(**inputs()).last_hidden_state
        halved = model(**inputs(), layout=layout(overlap="halve", bridge=False)).last_hidden_state
        added = model(**inputs(), layout=layout()).last_hidden_state
    torch.testing.assert_close(halved[REAL], plain[REAL], atol=1e-5, rtol=0)
    assert (added[0] - plain[0]).abs().max() > 1e-3, "the bridge does not count twice"


@each_model
def test_another_cross_query_changes_switched_inputs_alone(kind: str) -> None:
    model = model_of(kind)
    with torch.no_grad():
        before = model(**inputs(), layout=layout()).last_hidden_state
        for layer in model.encoder.layer:
            layer.attention.self.query.cross.weight.normal_()
        after = model(**inputs(), layout=layout()).last_hidden_state
    for example, (length, switched) in enumerate(zip(LENGTHS, SWITCHED, strict=True)):
        same = torch.equal(before[example, :length], after[example, :length])
        assert same != switched, f"example {example}"


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=4), st.floats(0, 1), st.booleans())
def test_every_pair_of_tokens_meets(rows: list[tuple[int, bool]], share: float, bridge: bool) -> None:
    """M1 and M2 cover every cell between them, and overlap in no more than the bridge and what was drawn."""
    also = torch.rand(len(rows), 9, 9) < share if share else None
    arrangement = Layout(torch.tensor([c for c, _ in rows]), torch.tensor([s for _, s in rows]), also, bridge)
    own, cross = arrangement.masks(9)
    assert bool((own | cross).all())
    expected = torch.zeros_like(own) if also is None else also.clone()
    if bridge:
        expected[:, 0] = expected[:, :, 0] = True
    assert torch.equal(own & cross, expected & arrangement.switched[:, None, None])


@each_model
@pytest.mark.parametrize(("swap", "names"), [("weight", {"weight"}), ("weight+bias", {"weight", "bias"})])
def test_a_target_brings_its_own_cross_query_with_its_bias_where_asked(kind: str, swap: str, names: set[str]) -> None:
    method = make("qcross", {"swap": swap})
    parameters = [name for name, _ in model_of(kind).named_parameters() if method.is_language_specific(name)]
    assert parameters and len(parameters) == len(names) * SIZE["num_hidden_layers"]
    assert {name.partition(".query.cross.")[2] for name in parameters} == names
