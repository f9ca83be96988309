"""The contract that every method keeps, those of installed packages too, on every kind of model."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from models_fixture import (
    BUCKETS,
    FAMILIES,
    IDS,
    LABELS,
    MODELS,
    POSITIONS,
    SIZE,
    TEXT_MODELS,
    answered,
    config_of,
    logits,
    model_of,
    write_run,
)
from safetensors.torch import load_file, save_file

from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.methods import ALL_METHODS, METHODS, Method, make
from xlgrid.models.deltas import kept, load_mlm_run
from xlgrid.models.parameters import count

# A base alone has its defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    "lora of all linear layers": {"target": "all-linear", "rank": 4, "alpha": 16.0},
    "madx on text": {"tune": "language"},
    "madx by the equations": {"wiring": "paper", "task_reduction": 4},
    "madx without the invertible": {"invertible": False},
    "madx without language": {"language": False, "invertible": False},
    "madx without the last layer": {"leave_out_last": True, "activation": "gelu_new", "task_reduction": 8},
    "madx of the encoder": {"tune": "encoder"},
    "madx after the next norm": {"pre_norm": "norm", "wiring": "paper"},
    "structured-dropout of all weights": {"tune": "full-ft"},
    "qcross of all weights": {"tune": "full-ft"},
    "qcross on text": {"tune": "query"},
    "xmod on text": {"tune": "language"},
    "xmod on text with a norm": {"tune": "language", "embedding_norm": "trained"},
    "madx on text without the last layer": {"tune": "language", "leave_out_last": True, "language_reduction": 4},
}


# Those of papers that are installed.
OPTIONS = {name: options for name, options in _OPTIONS.items() if name.split()[0] in ALL_METHODS.names()}
# A method without runs is in test_as_is.py. Papers test methods for encoder-decoders and for encoders with cross-attention.
BASES = [
    base for base in ALL_METHODS.names() if ALL_METHODS.find(base).is_trained and base not in ("plug-in", "seq2seq")
]


def method_of(base: str, **more: Any) -> Method:
    return make(base.split()[0], {**OPTIONS.get(base, {}), **more})


def fits(base: str, kind: str) -> bool:
    """Whether a method is for a model."""
    return method_of(base).misfit(config_of(kind).to_dict()) is None


PAIRS = [(base, kind) for kind in MODELS for base in (*BASES, *OPTIONS) if fits(base, kind)]
TEXT_PAIRS = [(base, kind) for kind in TEXT_MODELS for base in (*BASES, *OPTIONS) if fits(base, kind)]


def covering(pairs: list[tuple[str, str]]) -> list[Any]:
    """Each method with each family and with each head, in few combinations; the other ones are for `make test-all`."""
    chosen, met = set(), set()
    for number, base in enumerate([*BASES, *OPTIONS]):
        kinds = [kind for each, kind in pairs if each == base]
        start = number % len(kinds)
        # First the kinds of which both the family and the head are new, then those of which one is.
        for least in (2, 1):
            for kind in kinds[start:] + kinds[:start]:
                new = {(base, part) for part in kind.split("-")} - met
                if len(new) >= least:
                    chosen.add((base, kind))
                    met |= new
    return [pytest.param(*pair, marks=[] if pair in chosen else pytest.mark.thorough) for pair in pairs]


each_model = pytest.mark.parametrize(("base", "kind"), covering(PAIRS))
each_model_and_language_model = pytest.mark.parametrize(("base", "kind"), [*covering(PAIRS), *TEXT_PAIRS])


def test_every_method_meets_every_family_and_every_head_that_it_is_for() -> None:
    """Of the combinations that are not for `make test-all` alone."""
    met = {tuple(each.values) for each in covering(PAIRS) if not each.marks}
    for part in (0, -1):
        assert {(base, kind.split("-")[part]) for base, kind in met} == {(b, k.split("-")[part]) for b, k in PAIRS}


# Even a prefix of zeros takes attention from the input.
CHANGING = ("prefix-tuning",)


def installed(base: str, kind: str, **more: Any) -> tuple[Any, Method]:
    model, method = model_of(kind), method_of(base, **more)
    torch.manual_seed(4)
    method.install(model)
    return model.eval(), method


def switched(method: Method, length: int, training: bool = False) -> dict[str, Any]:
    """What the model gets besides IDS if their segments, of three tokens each, are in two languages."""
    pairs, ends = np.array([[0, 1], [0, 1]], np.int16), np.array([0, length, 2 * length])
    ids, contexts = np.zeros(2 * length, np.int32), np.array([3, 3])
    tokens = Tokens("sequence", (), 1, ids, ends, contexts, ("en", "fr"), pairs, Vocabulary(40, 0, ()))
    return method.forward_arguments(tokens, np.arange(2), torch.device("cpu"), training)


@each_model_and_language_model
def test_installing_leaves_the_output_as_it_was_unless_the_method_reads_more_than_the_input(
    base: str, kind: str
) -> None:
    # Where a paper draws new weights at random, the option `init` has them change nothing at first.
    more = {"init": "identity"} if "init" in ALL_METHODS.find(base.split()[0]).model_fields else {}
    change = (logits(installed(base, kind, **more)[0]) - logits(model_of(kind))).abs().max()
    assert change > 1e-6 if base in CHANGING else change <= 1e-6


@each_model_and_language_model
def test_gradients_are_exactly_where_trains_says(base: str, kind: str) -> None:
    model, method = installed(base, kind)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(name))
    answered(model, **switched(method, 6, training=True)).square().sum().backward()
    with_gradient = {name for name, p in model.named_parameters() if p.grad is not None}
    assert with_gradient == {name for name, _ in model.named_parameters() if method.trains(name)}


@each_model
def test_a_saved_delta_gives_the_same_logits(base: str, kind: str, tmp_path: Path) -> None:
    model, method = installed(base, kind)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if method.trains(name):
                parameter.add_(torch.randn_like(parameter))
    save_file(
        {name: p.detach() for name, p in kept(model, method, HEADS[kind.split("-")[1]]).items()},
        tmp_path / "d.safetensors",
    )
    again, _ = installed(base, kind)
    again.load_state_dict(load_file(tmp_path / "d.safetensors"), strict=False)
    torch.testing.assert_close(logits(again), logits(model), atol=0, rtol=0)


@each_model
def test_what_was_trained_on_text_is_all_in_the_classifier_that_begins_with_it(
    base: str, kind: str, tmp_path: Path
) -> None:
    text_model, method = model_of(f"{kind.partition('-')[0]}-mlm", seed=5), method_of(base)
    method.install(text_model)
    saved = {name: p.detach().clone() for name, p in kept(text_model, method, HEADS["mlm"]).items()}
    if not saved:
        pytest.skip("only the head trains, so that an MLM run keeps nothing")
    write_run(tmp_path, saved)
    model, _ = installed(base, kind)
    load_mlm_run(tmp_path, model, method)
    there = dict(model.base_model.named_parameters())
    for name, parameter in text_model.base_model.named_parameters():
        if method.trains(f"{text_model.base_model_prefix}.{name}"):
            assert torch.equal(there[name], parameter), name


@each_model_and_language_model
def test_padding_never_changes_a_result(base: str, kind: str) -> None:
    model, method = installed(base, kind)
    ids = torch.cat([IDS, torch.ones(2, 5, dtype=torch.long)], 1)
    for short, long in (({}, {}), (switched(method, 6), switched(method, 11))):
        padded = logits(model, ids, **long)
        plain = logits(model, **short)
        padded = padded[:, : plain.shape[1]] if kind.endswith(("token", "parse", "span", "mlm")) else padded
        torch.testing.assert_close(padded, plain, atol=1e-5, rtol=0)


def adapter(size: int, inner: int) -> int:
    return 2 * size * inner + size + inner


def counts(kind: str) -> dict[str, int]:
    """Trainable parameters by arithmetic: h hidden, m intermediate, 2 layers."""
    family, _, head = kind.partition("-")
    h, m, layers, labels = SIZE["hidden_size"], SIZE["intermediate_size"], 2, LABELS.get(head, 3)
    classifier, has_biases, has_pooler = labels * h + labels, True, head in ("sequence", "choice")
    if head == "parse":
        arc, relation = 500, 100
        classifier = 2 * (h + 1) * arc + arc * arc + arc + 2 * (h + 1) * relation
        classifier += labels * relation * relation + labels * 2 * relation + labels
    words = SIZE["vocab_size"] * h
    # Embeddings, the weights of their LayerNorm, and weights and biases of the layers and what comes after them.
    embeddings, weights = words + (POSITIONS + 2) * h, layers * (4 * h * h + 2 * h * m + 2 * h)
    biases, pooler = layers * (3 * h + h + h + m + h + h), h * h + h if has_pooler else 0
    on_text = words + POSITIONS * h
    if family == "distilbert":
        embeddings = words + POSITIONS * h
    if family == "deberta":
        embeddings = on_text = words
        # Positions relative to a token, and their LayerNorm.
        weights, biases = weights + 2 * BUCKETS * h + h, biases + h
    if family == "modernbert":
        # No LayerNorm before the first attention, but one after the last layer; a feed-forward block with a gate.
        embeddings, weights = words, layers * (4 * h * h + 3 * h * m + 2 * h)
        on_text, biases, has_biases, pooler = words, 0, False, h * h + h if head != "parse" else 0
    if family == "eurobert":
        # Two heads share keys and values; a gate; a LayerNorm after the last layer.
        embeddings, weights = words, layers * (3 * h * h + 3 * h * m + 2 * h) + h
        on_text, biases, has_biases, pooler = words, 0, False, h * h + h if head == "sequence" else 0
    norm = {"modernbert": h, "eurobert": 0}.get(family, 2 * h)
    top = pooler + classifier
    shared = weights + biases + top
    everything = shared + embeddings + norm
    bitfit = biases + h + top
    cross = layers * (h * h + (h if has_biases else 0))
    nice = 2 * adapter(h // 2, h // 4)
    # The part of ModernBERT's language-modelling head that its classifiers have, too.
    in_head = h * h + h if family == "modernbert" and head != "parse" else 0
    # Two heads of EuroBERT share keys and values.
    kv = h // 2 if family == "eurobert" else h
    # ModernBERT computes the gate by the same matrix, EuroBERT by one of its own.
    up = {"modernbert": h + 2 * m, "eurobert": 2 * (h + m)}.get(family, h + m)
    # Rank times the inputs and outputs of queries and values; and of keys, the output, and the feed-forward block.
    query_value, others = h + h + h + kv, h + kv + h + h + up + m + h
    return {
        "full-ft": everything,
        "bitfit": bitfit,
        "lora": layers * 8 * query_value + top,
        "lora of all linear layers": layers * 4 * (query_value + others) + top,
        "ia3": layers * (2 * kv + m) + top,
        "prefix-tuning": 20 * layers * 2 * kv + top,
        "structured-dropout": bitfit,
        "structured-dropout of all weights": everything,
        "qcross": bitfit + layers * h,
        "qcross of all weights": everything + cross,
        "qcross on text": cross,
        "madx": layers * adapter(h, 1) + top,
        "madx on text": layers * adapter(h, h // 2) + nice + in_head,
        "madx by the equations": layers * adapter(h, h // 4) + top,
        "madx without the invertible": layers * adapter(h, 1) + top,
        "madx without language": layers * adapter(h, 1) + top,
        "madx of the encoder": shared,
        "madx after the next norm": layers * adapter(h, 1) + top,
        "xmod": shared,
        "xmod on text": on_text,
        "xmod on text with a norm": on_text + norm,
        "madx without the last layer": (layers - 1) * adapter(h, h // 8) + top,
        "madx on text without the last layer": (layers - 1) * adapter(h, h // 4) + nice + in_head,
    }


@each_model
def test_trainable_parameters_are_as_many_as_by_hand(base: str, kind: str) -> None:
    if base not in {*ALL_METHODS.own, *OPTIONS}:
        pytest.skip("the package of the method counts its parameters in its own tests")
    assert base in counts(kind), f"count the parameters of {base} by arithmetic in `counts` of this file"
    model, method = installed(base, kind)
    trained = sum(p.numel() for name, p in model.named_parameters() if method.trains(name))
    assert trained == counts(kind)[base]
    head = kind.partition("-")[2]
    counted = count(config_of(kind), HEADS[head], LABELS.get(head, 3), base.split()[0], OPTIONS.get(base, {}))
    assert (counted.trained, counted.total) == (trained, sum(p.numel() for p in model.parameters()))


@pytest.mark.parametrize("base", BASES)
def test_a_misspelt_method_or_option_is_named(base: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{base}'"):
        make(base[:-1] + "_", {})
    with pytest.raises(ValueError, match="options: unknown key 'rnak'"):
        make(base, {"rnak": 3})


@pytest.mark.parametrize(("option", "value"), [("scale", True), ("scale", "much"), ("adds", 3), ("where", "below")])
def test_an_option_has_the_type_that_its_class_states(option: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Scaled(Method):
        scale: float = 1.0
        adds: bool = True
        where: Literal["above", "beside"] = "above"

    monkeypatch.setitem(METHODS, "scaled", Scaled)
    with pytest.raises(ValueError, match=f"options: {option}: "):
        make("scaled", {option: value})


def test_an_option_without_a_default_has_to_be_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "scaled", type("Scaled", (Method,), {"__annotations__": {"scale": float}}))
    with pytest.raises(ValueError, match="`scale` is missing"):
        make("scaled", {})


# Encoders without biases, and one with an attention of its own.
BIASED = [base for base in ("bitfit", "structured-dropout", "qcross") if base in ALL_METHODS.names()]
STRUCTURED = [base for base in (*ALL_METHODS.own, *OPTIONS) if base.startswith(("structured", "qcross"))]
MISFITS = {
    **{(base, family): "has none" for base in BIASED for family in ("modernbert", "eurobert")},
    **{(base, "deberta"): "have terms for positions" for base in (*STRUCTURED, *CHANGING)},
}


def test_methods_are_for_all_families_but_these() -> None:
    tested = {(base, kind.partition("-")[0]) for base, kind in PAIRS}
    # Layers with a LayerNorm after the feed-forward block have no next one, and the option is refused in madx/test_modules.py.
    bases = [*BASES, *(base for base in OPTIONS if base != "madx after the next norm")]
    others = {(base, family) for base in bases for family in FAMILIES} - tested
    assert others == MISFITS.keys()


@pytest.mark.parametrize(("base", "family"), MISFITS)
def test_a_method_that_is_not_for_an_encoder_says_so_before_anything_changes(base: str, family: str) -> None:
    model, method = model_of(f"{family}-token"), method_of(base)
    names = [name for name, _ in model.named_modules()]
    problem = method.misfit({"model_type": model.config.model_type})
    assert problem and MISFITS[base, family] in problem
    assert any(way in problem for way in ("take ", "use ", "set ")), "the sentence says what to do instead"
    with pytest.raises(ValueError, match=MISFITS[base, family]):
        method.install(model)
    assert [name for name, _ in model.named_modules()] == names and model.config._attn_implementation != "structured"
