"""Structured self-attention in encoders of several families, against its formula, written out cell by cell in float64."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models_fixture import config_of
from transformers import BertModel, DistilBertModel, EuroBertModel, ModernBertModel, XLMRobertaModel

from xlgrid.methods import make
from xlgrid.papers.foroutan2023 import structured
from xlgrid.papers.foroutan2023.structured import Layout

HEADS, WIDTH, WINDOW = 2, 8, 2
# Tokens of the first segment and of both: padded, unpadded, of one language, and a second segment of one token.
CONTEXTS, LENGTHS, SWITCHED = [4, 9, 5, 11], [7, 14, 10, 12], [True, True, False, True]
LENGTH = max(LENGTHS)
REAL = torch.arange(LENGTH) < torch.tensor(LENGTHS)[:, None]
# The class, and the paths of a layer's attention, of its projections, and of the projection of what it returns (none in BERT).
MODELS = {
    "bert": (BertModel, "attention.self", ("query", "key", "value"), ""),
    "xlmr": (XLMRobertaModel, "attention.self", ("query", "key", "value"), ""),
    "distilbert": (DistilBertModel, "attention", ("q_lin", "k_lin", "v_lin"), "out_lin"),
    "modernbert": (ModernBertModel, "attn", ("Wqkv",), "Wo"),
    "eurobert": (EuroBertModel, "self_attn", ("q_proj", "k_proj", "v_proj"), "o_proj"),
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True, scope="module", params=[structured.LONG, 0], ids=["short", "long"])
def long_from(request: pytest.FixtureRequest) -> Iterator[None]:
    """Inputs are short, and strict masks attend to them as to long ones, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structured, "LONG", request.param)
        yield


def model_of(kind: str, cross: bool) -> Any:
    torch.manual_seed(1)
    model = MODELS[kind][0](config_of(f"{kind}-token"))
    structured.install(model, cross)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def inputs() -> dict[str, torch.Tensor]:
    ids = torch.randint(2, 40, (len(LENGTHS), LENGTH), generator=torch.Generator().manual_seed(2))
    return {"input_ids": ids.masked_fill(~REAL, 1), "attention_mask": REAL.long()}


def layout(share: float = 0.0, **options: Any) -> Layout:
    also = torch.rand(4, LENGTH, LENGTH, generator=torch.Generator().manual_seed(3)) < share
    return Layout(torch.tensor(CONTEXTS), torch.tensor(SWITCHED), also if share else None, **options)


def factors(arrangement: Layout | None, example: int, cross: bool, window: int) -> tuple[np.ndarray, np.ndarray]:
    """What the exponentials of Q and Q_cross count in each cell (section 4.1, figures 2 and 3), of cells within the window."""
    length, context = LENGTHS[example], CONTEXTS[example]
    own, other = np.zeros((length, length)), np.zeros((length, length))
    for i in range(length):
        for j in range(max(0, i - window), min(length, i + window + 1)):
            if arrangement is None or not SWITCHED[example]:
                own[i, j] = 1
                continue
            same = (i < context) == (j < context)
            both = (arrangement.bridge and 0 in (i, j)) or (
                arrangement.unmasked is not None and bool(arrangement.unmasked[example, i, j])
            )
            own[i, j], other[i, j] = same or both, cross and (not same or both)
            if both and cross and arrangement.overlap == "halve":
                own[i, j] = other[i, j] = 0.5
    return own, other


def rotated(states: np.ndarray, theta: float | None) -> np.ndarray:
    """Rotary position embeddings (Su et al. 2021) of [L, d], of which component j is rotated with component j + d / 2."""
    if theta is None:
        return states
    half = WIDTH // 2
    angles = np.arange(len(states))[:, None] * theta ** (-np.arange(half) / half)
    turned = (states[:, :half] + 1j * states[:, half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


def dense(
    kind: str,
    layer: Any,
    hidden: torch.Tensor,
    arrangement: Layout | None,
    cross: bool,
    theta: float | None,
    window: int,
) -> Any:
    """The attention of one layer, example by example: its weights, H × L × L, and what comes out."""
    parameters = {name: p.detach().double().numpy() for name, p in layer.named_parameters()}
    projections = MODELS[kind][2]
    for example, length in enumerate(LENGTHS):
        states = hidden[example, :length].double().numpy()

        def project(name: str, states: np.ndarray = states) -> np.ndarray:
            return states @ parameters[f"{name}.weight"].T + parameters.get(f"{name}.bias", 0)

        q, k, v = np.split(project("Wqkv"), 3, -1) if kind == "modernbert" else map(project, projections)
        queries = [q, *([project(f"{projections[0]}.cross")] if cross else [])]
        if kind == "eurobert":
            # One head of keys and values for two of queries.
            k, v = np.tile(k, HEADS), np.tile(v, HEADS)
        weights, out = [], []
        for at in range(0, HEADS * WIDTH, WIDTH):
            part = slice(at, at + WIDTH)
            keys = rotated(k[:, part], theta)
            exponentials = [np.exp(rotated(query[:, part], theta) @ keys.T / np.sqrt(WIDTH)) for query in queries]
            row = sum(m * e for m, e in zip(factors(arrangement, example, cross, window), exponentials, strict=False))
            weights.append(row / row.sum(1, keepdims=True))
            out.append(weights[-1] @ v[:, part])
        yield np.stack(weights), np.concatenate(out, 1)


def place_of(kind: str, model: Any, number: int) -> tuple[float | None, int]:
    """The base of the rotations of a layer, and how far away the tokens are to which a token attends."""
    parameters = getattr(model.config, "rope_parameters", None)
    if kind == "modernbert":
        name = model.config.layer_types[number]
        return parameters[name]["rope_theta"], WINDOW if name == "sliding_attention" else LENGTH
    return (parameters["rope_theta"] if kind == "eurobert" else None), LENGTH


LAYOUTS = {
    "strict": layout(),
    "interfering": layout(0.3),
    "strict, halved": layout(overlap="halve"),
    "interfering, halved": layout(0.3, overlap="halve"),
    "strict, no bridge": layout(bridge=False),
    "interfering, no bridge": layout(0.3, bridge=False),
}


@pytest.mark.parametrize("arrangement", [None, *LAYOUTS.values()], ids=["none", *LAYOUTS])
@pytest.mark.parametrize("cross", [True, False], ids=["cross", "dropout"])
@pytest.mark.parametrize("kind", MODELS)
def test_every_layer_is_the_formula(kind: str, arrangement: Layout | None, cross: bool) -> None:
    """So are the weights that exhibits show."""
    if arrangement is not None and arrangement.overlap == "halve" and not cross:
        pytest.skip("without a cross query nothing overlaps")
    model, calls = model_of(kind, cross), []
    layers = structured.layers(model)
    for layer in layers:
        arguments: list[Any] = []
        layer.register_forward_pre_hook(
            lambda layer, positional, named, to=arguments: to.append((positional, named)), with_kwargs=True
        )
        if projection := MODELS[kind][3]:
            layer.get_submodule(projection).register_forward_pre_hook(
                lambda module, tensors, to=arguments: to.append(tensors[0])
            )
        else:
            layer.register_forward_hook(lambda module, tensors, out, to=arguments: to.append(out[0]))
        calls.append((layer, arguments))
    with torch.no_grad():
        model(**inputs(), **({} if arrangement is None else {"layout": arrangement}))
    assert len(calls) == 2
    for number, (layer, ((positional, named), out)) in enumerate(calls):
        theta, window = place_of(kind, model, number)
        hidden, rotary = (*positional, *named.values())[0], named.get("position_embeddings")
        with torch.no_grad():
            weights = structured.weights(layer, hidden, REAL, arrangement, rotary)
        formula = dense(kind, layer, hidden, arrangement, cross, theta, window)
        for example, (shares, attended) in enumerate(formula):
            length, message = LENGTHS[example], f"layer {number}, example {example}"
            np.testing.assert_allclose(out[example, :length].numpy(), attended, atol=1e-5, rtol=0, err_msg=message)
            ours = weights[example, :, :length, :length].numpy()
            np.testing.assert_allclose(ours, shares, atol=1e-5, rtol=0, err_msg=message)
        assert bool(torch.isfinite(out).all()), "padding far from all tokens has weights, too"


@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_weights_without_a_layout_are_those_of_transformers(kind: str, cross: bool) -> None:
    ours, hidden = model_of(kind, cross), []
    config = config_of(f"{kind}-token")
    config._attn_implementation = "eager"
    plain = MODELS[kind][0](config).eval()
    plain.load_state_dict({name: tensor for name, tensor in ours.state_dict().items() if ".cross." not in name})
    layers = structured.layers(ours)
    for layer in layers:
        layer.register_forward_pre_hook(
            lambda layer, positional, named: hidden.append((*positional, *named.values())[0]), with_kwargs=True
        )
    with torch.no_grad():
        expected = plain(**inputs(), output_attentions=True).attentions
        ours(**inputs())
        for layer, states, theirs in zip(layers, hidden, expected, strict=True):
            torch.testing.assert_close(structured.weights(layer, states, REAL, None), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", MODELS)
def test_without_a_layout_the_encoder_is_that_of_transformers(kind: str) -> None:
    model = model_of(kind, cross=True)
    plain = MODELS[kind][0](config_of(f"{kind}-token")).eval()
    plain.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if ".cross." not in name})
    with torch.no_grad():
        ours, theirs = (each(**inputs()).last_hidden_state for each in (model, plain))
        mixed = model(**inputs(), layout=layout(0.3)).last_hidden_state
    torch.testing.assert_close(ours[REAL], theirs[REAL], atol=0 if kind in ("bert", "xlmr") else 1e-6, rtol=0)
    in_one_language = SWITCHED.index(False)
    real = REAL[in_one_language]
    torch.testing.assert_close(mixed[in_one_language, real], theirs[in_one_language, real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", MODELS)
def test_a_cross_query_begins_as_a_copy_of_the_query(kind: str) -> None:
    torch.manual_seed(1)
    model = MODELS[kind][0](config_of(f"{kind}-token")).eval()
    with torch.no_grad():
        plain = model(**inputs()).last_hidden_state
        structured.install(model, cross=True)
        halved = model(**inputs(), layout=layout(overlap="halve", bridge=False)).last_hidden_state
        added = model(**inputs(), layout=layout()).last_hidden_state
    torch.testing.assert_close(halved[REAL], plain[REAL], atol=1e-5, rtol=0)
    assert (added[0] - plain[0]).abs().max() > 1e-4, "the bridge does not count twice"


@pytest.mark.parametrize("arrangement", LAYOUTS.values(), ids=LAYOUTS)
def test_in_float64_the_weights_are_the_formula_to_the_last_digits(arrangement: Layout) -> None:
    """A half that was rounded to float32 before its logarithm was added would be wrong in the tenth digit."""
    torch.manual_seed(5)
    own, cross, key = (torch.randn(len(LENGTHS), HEADS, LENGTH, WIDTH, dtype=torch.float64) for _ in range(3))
    joint_weights = structured.joint_weights(own, cross, key, arrangement.biases(LENGTH, REAL, torch.float64), 0.3)
    for example, length in enumerate(LENGTHS):
        counted = factors(arrangement, example, True, LENGTH)
        rows = [np.exp(0.3 * (q[example, :, :length] @ key[example, :, :length].mT).numpy()) for q in (own, cross)]
        weights = counted[0] * rows[0] + counted[1] * rows[1]
        expected = weights / weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(
            joint_weights[example, :, :length, :length].numpy(), expected, atol=1e-14, rtol=1e-12
        )


@pytest.mark.parametrize("arrangement", LAYOUTS.values(), ids=LAYOUTS)
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
        counted = factors(arrangement, example, cross, LENGTH)
        row = sum(torch.from_numpy(m) * (0.3 * q @ k.mT).exp() for q, m in zip(both, counted, strict=False))
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


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_another_cross_query_changes_switched_inputs_alone(kind: str) -> None:
    model = model_of(kind, cross=True)
    with torch.no_grad():
        before = model(**inputs(), layout=layout()).last_hidden_state
        for layer in structured.layers(model):
            layer.query.cross.weight.normal_()
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


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
@pytest.mark.parametrize(("swap", "names"), [("weight", {"weight"}), ("weight+bias", {"weight", "bias"})])
def test_a_target_brings_its_own_cross_query_with_its_bias_where_asked(kind: str, swap: str, names: set[str]) -> None:
    method = make("qcross", {"swap": swap})
    parameters = [
        name for name, _ in model_of(kind, cross=True).named_parameters() if method.is_language_specific(name)
    ]
    assert parameters and len(parameters) == len(names) * 2
    assert {name.partition(".query.cross.")[2] for name in parameters} == names
