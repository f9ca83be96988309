"""The contract that every method keeps, those of installed packages too, on every kind of model."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models_fixture import IDS, LABELS, MODELS, SIZE, answered, logits, model_of, write_run
from safetensors.torch import load_file, save_file

from xlgrid.base.arrays import Segments
from xlgrid.heads import HEADS
from xlgrid.methods import ALL_METHODS, METHODS, Method, make
from xlgrid.models.deltas import kept, load_text_run

# A base alone has its defaults.
OPTIONS: dict[str, dict[str, Any]] = {
    "madx on text": {"tune": "language"},
    "madx by the equations": {"wiring": "paper", "task_reduction": 4},
    "madx without the invertible": {"invertible": False},
    "madx without language": {"language": False, "invertible": False},
    "madx without the last layer": {"leave_out_last": True, "activation": "gelu_new", "task_reduction": 8},
    "madx of the encoder": {"tune": "encoder"},
    "xmod on text": {"tune": "language"},
    "xmod on text with a norm": {"tune": "language", "embedding_norm": "trained"},
    "madx on text without the last layer": {"tune": "language", "leave_out_last": True, "language_reduction": 4},
}


# A method without runs is in test_as_is.py, one of encoder-decoders in test_seq2seq.py, and one for
# encoders with cross-attention in veco/test_method.py.
BASES = [
    base
    for base in ALL_METHODS.names()
    if ALL_METHODS.find(base).is_trained and ALL_METHODS.find(base).decoders != "only" and base != "plug-in"
]
pytestmark = [pytest.mark.parametrize("base", [*BASES, *OPTIONS]), pytest.mark.parametrize("kind", MODELS)]


def made(base: str, **more: Any) -> Method:
    return make(base.split()[0], {**OPTIONS.get(base, {}), **more})


def installed(base: str, kind: str, **more: Any) -> tuple[Any, Method]:
    model, method = model_of(kind), made(base, **more)
    torch.manual_seed(4)
    method.install(model)
    return model.eval(), method


def switched(method: Method, length: int, training: bool = False) -> dict[str, Any]:
    """What the model gets besides IDS if their segments, of three tokens each, are in two languages."""
    languages = np.array([[0, 1], [0, 1]], np.int16)
    segments = Segments(np.array([3, 3]), ("en", "fr"), languages, length)
    return method.arrange(segments, torch.device("cpu"), training)


def test_installing_leaves_the_output_as_it_was(base: str, kind: str) -> None:
    # Where a paper draws new weights at random, the option `init` has them change nothing at first.
    more = {"init": "identity"} if "init" in {field.name for field in fields(ALL_METHODS.find(base.split()[0]))} else {}
    torch.testing.assert_close(logits(installed(base, kind, **more)[0]), logits(model_of(kind)), atol=1e-6, rtol=0)


def test_gradients_are_exactly_where_trains_says(base: str, kind: str) -> None:
    model, method = installed(base, kind)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(name))
    answered(model, **switched(method, 6, training=True)).square().sum().backward()
    got = {name for name, p in model.named_parameters() if p.grad is not None}
    assert got == {name for name, _ in model.named_parameters() if method.trains(name)}


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


def test_what_was_trained_on_text_is_all_in_the_classifier_that_begins_with_it(
    base: str, kind: str, tmp_path: Path
) -> None:
    text_model, method = model_of(f"{kind.partition('-')[0]}-mlm", seed=5), made(base)
    method.install(text_model)
    saved = {name: p.detach().clone() for name, p in kept(text_model, method, HEADS["mlm"]).items()}
    if not saved:
        pytest.skip("only the head trains, so that a run on text keeps nothing")
    write_run(tmp_path, saved)
    model, _ = installed(base, kind)
    load_text_run(tmp_path, model, method)
    there = dict(model.base_model.named_parameters())
    for name, parameter in text_model.base_model.named_parameters():
        if method.trains(f"{text_model.base_model_prefix}.{name}"):
            assert torch.equal(there[name], parameter), name


def test_padding_never_changes_a_result(base: str, kind: str) -> None:
    model, method = installed(base, kind)
    ids = torch.cat([IDS, torch.ones(2, 5, dtype=torch.long)], 1)
    for short, long in (({}, {}), (switched(method, 6), switched(method, 11))):
        padded = logits(model, ids, **long)
        padded = padded[:, : IDS.shape[1]] if kind.endswith(("token", "span")) else padded
        torch.testing.assert_close(padded, logits(model, **short), atol=1e-5, rtol=0)


def counts(kind: str) -> dict[str, int]:
    """Trainable parameters by arithmetic: h hidden, m intermediate, 2 layers."""
    h, m, layers, labels = SIZE["hidden_size"], SIZE["intermediate_size"], 2, LABELS.get(kind.split("-")[1], 3)
    pooler = h * h if kind.endswith(("sequence", "choice")) else 0
    head_weights, head_biases = pooler + labels * h, labels + (h if pooler else 0)
    biases = layers * (3 * h + h + h + m + h + h) + h + head_biases
    embeddings = (SIZE["vocab_size"] + 32 + 2) * h
    head = head_weights + head_biases

    def adapter(size: int, inner: int) -> int:
        return 2 * size * inner + size + inner

    everything = biases + head_weights + embeddings + h + layers * (4 * h * h + 2 * h * m + 2 * h)
    # Without the embeddings and their LayerNorm.
    shared = everything - embeddings - 2 * h
    return {
        "full-ft": everything,
        "bitfit": biases + head_weights,
        "structured-dropout": biases + head_weights,
        "qcross": biases + layers * h + head_weights,
        "madx": layers * adapter(h, 1) + head,
        "madx on text": layers * adapter(h, h // 2) + 2 * adapter(h // 2, h // 4),
        "madx by the equations": layers * adapter(h, h // 4) + head,
        "madx without the invertible": layers * adapter(h, 1) + head,
        "madx without language": layers * adapter(h, 1) + head,
        "madx of the encoder": shared,
        "xmod": shared,
        "xmod on text": (SIZE["vocab_size"] + 32) * h,
        "xmod on text with a norm": (SIZE["vocab_size"] + 34) * h,
        "madx without the last layer": (layers - 1) * adapter(h, h // 8) + head,
        "madx on text without the last layer": (layers - 1) * adapter(h, h // 4) + 2 * adapter(h // 2, h // 4),
    }


def test_trainable_parameters_are_as_many_as_by_hand(base: str, kind: str) -> None:
    if base not in {*METHODS, *OPTIONS}:
        pytest.skip("the package of the method counts its parameters in its own tests")
    assert base in counts(kind), f"count the parameters of {base} by arithmetic in `counts` of this file"
    model, method = installed(base, kind)
    assert sum(p.numel() for name, p in model.named_parameters() if method.trains(name)) == counts(kind)[base]


def test_a_misspelt_method_or_option_is_named(base: str, kind: str) -> None:
    base = base.split()[0]
    with pytest.raises(ValueError, match=f"did you mean '{base}'"):
        make(base[:-1] + "_", {})
    with pytest.raises(ValueError, match=r"unknown option of method '.*' 'rnak'"):
        make(base, {"rnak": 3})
