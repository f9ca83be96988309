"""MAD-X against its equations, written out in float64, on both encoders; and what a run of it trains, keeps and swaps."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models_fixture import IDS, SIZE, logits, model_of, write_run
from safetensors.torch import load_file
from tokens_fixture import write
from transformers import (
    AutoConfig,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertModel,
    XLMRobertaForTokenClassification,
)

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate
from xlgrid.heads import HEADS
from xlgrid.heads.mlm import language_head
from xlgrid.methods import make
from xlgrid.methods.madx.modules import Invertible
from xlgrid.models import deltas, parameters
from xlgrid.models.parameters import HUB
from xlgrid.plan.load import load_study
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

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


def dense(states: Array, found: dict[str, Array], name: str) -> Array:
    return states @ found[f"{name}.weight"].T + found[f"{name}.bias"]


def normed(states: Array, found: dict[str, Array], name: str, eps: float) -> Array:
    centred = states - states.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return scaled * found[f"{name}.weight"] + found[f"{name}.bias"]


def adapter(states: Array, found: dict[str, Array], name: str, activation: Any = relu) -> Array:
    return dense(activation(dense(states, found, f"{name}.down")), found, f"{name}.up")


def seen(model: Any, module: Any) -> list[tuple[tuple[Array, ...], Array]]:
    """What goes into a module and what comes out, in float64, when the model reads IDS."""
    calls: list[tuple[tuple[Array, ...], Array]] = []

    def note(module: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        calls.append((tuple(one.double().numpy() for one in given), out.double().numpy()))

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
        found = weights(layer.output)
        (((inner, x), out),) = seen(model, layer.output)
        h = dense(inner, found, "dense")

        def norm(states: Array, found: dict[str, Array] = found) -> Array:
            return normed(states, found, "LayerNorm", model.config.layer_norm_eps)

        def apply(name: str, states: Array, found: dict[str, Array] = found) -> Array:
            return adapter(states, found, f"LayerNorm.{name}", activation)

        if adapters != "LT":
            expected = norm(apply("language" if adapters == "L" else "task", norm(h + x)) + h + x)
        elif wiring == "paper":
            above = apply("language", norm(h + x)) + h
            expected = norm(apply("task", above) + h + x)
        else:
            above = apply("language", norm(h + x)) + h
            expected = norm(apply("task", norm(above + x)) + above + x)
        np.testing.assert_allclose(out, expected, atol=1e-5, rtol=0)


def nice(states: Array, found: dict[str, Array], forward: bool) -> Array:
    one, two = np.split(states, 2, -1)
    if forward:
        one = one + adapter(two, found, "F")
        two = two + adapter(one, found, "G")
    else:
        two = two - adapter(one, found, "G")
        one = one - adapter(two, found, "F")
    return np.concatenate([one, two], -1)


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
    found, bert = weights(language_head(model)), kind.startswith("bert")
    at = "predictions.transform." if bert else ""
    hidden = gelu(dense(states, found, f"{at}dense"))
    hidden = normed(hidden, found, f"{at}{'LayerNorm' if bert else 'layer_norm'}", model.config.layer_norm_eps)
    if inverse:
        hidden = nice(hidden, weights(model.base_model.embeddings.dropout.invertible), forward=False)
    embedded = model.base_model.embeddings.word_embeddings.weight.detach().double().numpy()
    expected = hidden @ embedded.T + found["predictions.bias" if bert else "bias"]
    np.testing.assert_allclose(logits(model).numpy(), expected, atol=1e-4, rtol=0)


@each_model
def test_training_and_evaluation_see_the_inverse_too(kind: str) -> None:
    labels = torch.full_like(IDS, -100)
    labels[0, 2] = labels[1, 4] = 7
    found = []
    for inverse in (True, False):
        model = adapted(kind, tune="language", inverse=inverse)
        with torch.no_grad():
            some, _ = HEADS["mlm"].scores(model, {"input_ids": IDS, "labels": labels})
        torch.testing.assert_close(some, logits(model)[labels != -100], atol=1e-5, rtol=0)
        found.append(some)
    assert (found[0] - found[1]).abs().max() > 0.1


@given(st.integers(1, 8), st.sampled_from(["relu", "gelu", "gelu_new"]), st.integers(0, 2**32 - 1))
def test_the_inverse_takes_the_forward_back(half: int, activation: str, seed: int) -> None:
    torch.manual_seed(seed)
    made = Invertible(2 * half, 2, activation, "bert", torch.device("cpu")).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
        states = torch.randn(3, 2 * half, dtype=torch.float64)
        assert (made(states) - states).abs().max() > 1e-3, "it did something"
        torch.testing.assert_close(made.inverse(made(states)), states)


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
    several = [found for found in names.values() if len(found) > 1]
    assert len(several) == 2, several
    assert model.get_output_embeddings().weight is model.base_model.embeddings.word_embeddings.weight


def test_drawn_as_in_the_library_adapters_change_the_output_slightly() -> None:
    for kind in ("bert-token", "xlmr-sequence"):
        model = model_of(kind)
        before = logits(model)
        make("madx", {}).install(model)
        assert 1e-7 < (logits(model) - before).abs().max() < 0.05


@each_model
@pytest.mark.parametrize("lm_head", ["trained", "frozen"])
def test_on_text_only_the_languages_adapters_and_the_heads_own_layer_train(kind: str, lm_head: str) -> None:
    model, method = adapted(kind, tune="language"), make("madx", {"tune": "language", "lm_head": lm_head})
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(name))
    logits_ = model(input_ids=IDS).logits
    logits_.square().sum().backward()
    got = {name for name, p in model.named_parameters() if p.grad is not None}
    head = {
        "bert-mlm": [
            "cls.predictions.bias",
            *(
                f"cls.predictions.transform.{layer}.{what}"
                for layer in ("dense", "LayerNorm")
                for what in ("weight", "bias")
            ),
        ],
        "xlmr-mlm": [
            "lm_head.bias",
            *(f"lm_head.{layer}.{what}" for layer in ("dense", "layer_norm") for what in ("weight", "bias")),
        ],
    }[kind]
    adapters = {name for name, _ in model.named_parameters() if not LANGUAGE.isdisjoint(name.split("."))}
    assert got == adapters | set(head if lm_head == "trained" else [])
    assert set(deltas.kept(model, method)) == adapters, "the head is not kept"


@pytest.mark.parametrize("kind", ["bert-sequence", "bert-token", "xlmr-sequence", "xlmr-token"])
def test_of_a_task_only_its_adapters_and_its_head_are_kept(kind: str) -> None:
    found = set(deltas.kept(adapted(kind), make("madx", {})))
    adapters = {name for name in found if ".LayerNorm.task." in name}
    assert len(adapters) == 2 * 4
    assert all(name.split(".")[0] == "classifier" or ".pooler." in name for name in found - adapters)


def test_what_a_language_swaps_is_all_that_its_text_has_trained_but_the_head() -> None:
    model, method = adapted("xlmr-mlm", tune="language"), make("madx", {"tune": "language"})
    trained = {name for name, _ in model.named_parameters() if method.trains(name)}
    assert {name for name in trained if method.is_language_specific(name)} == {
        n for n in trained if not n.startswith("lm_head.")
    }
    task = adapted("xlmr-token")
    assert not [
        name
        for name, _ in task.named_parameters()
        if make("madx", {}).trains(name) and method.is_language_specific(name)
    ]


def shape_of(encoder: str) -> Any:
    config = AutoConfig.for_model(**HUB[encoder])
    with torch.device("meta"):
        return XLMRobertaForTokenClassification(config)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 8_257_536),
        ({"invertible": False}, 7_962_624),
        ({"invertible": False, "language": False}, 884_736),
    ],
)
def test_weights_are_as_many_as_in_table_5(options: dict[str, Any], expected: int) -> None:
    """Of XLM-R base; biases are not counted there. The largest is printed as 8.25M, cut off."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    before = {id(p) for p in model.parameters()}
    with torch.device("meta"):
        make("madx", options).install(model)
    added = [(name, p) for name, p in model.named_parameters() if id(p) not in before]
    assert sum(p.numel() for name, p in added if name.endswith(".weight")) == expected


def test_no_weights_are_added_to_a_last_layer_that_is_left_out() -> None:
    """Of XLM-R base: language and task adapters in 11 layers, and the invertible one."""
    found = parameters.added(
        AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-base"]), "madx", {"leave_out_last": True}
    )
    assert found.weights == 11 * 2 * 768 * (384 + 48) + 2 * 2 * 384 * 192


def test_a_published_language_adapter_is_as_large_as_ours() -> None:
    """29,551,104 bytes of floats: the 29.6 MB of those of mBERT on the Hub."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    with torch.device("meta"):
        make("madx", {"tune": "language"}).install(model)
    names = [name for name, _ in model.named_parameters() if make("madx", {"tune": "language"}).trains(name)]
    assert sum(dict(model.named_parameters())[name].numel() for name in names) == 7_387_776


def test_the_last_layer_is_the_encoders_own_where_it_is_left_out() -> None:
    for tune in ("task", "language"):
        model = adapted("bert-token", tune=tune, leave_out_last=True)
        first, last = model.base_model.encoder.layer
        assert (type(first.output.LayerNorm).__name__, type(last.output.LayerNorm).__name__) == (
            "AdaptedNorm",
            "LayerNorm",
        )
        (((inner, x), out),) = seen(model, last.output)
        found = weights(last.output)
        expected = normed(dense(inner, found, "dense") + x, found, "LayerNorm", model.config.layer_norm_eps)
        np.testing.assert_allclose(out, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("text", [{}, {"leave_out_last": True}])
def test_language_adapters_of_all_layers_can_be_used_without_the_last(text: dict[str, Any], tmp_path: Path) -> None:
    speaker, method = adapted("bert-mlm", tune="language", **text), make("madx", {"tune": "language", **text})
    kept = {name: p.detach().clone() for name, p in deltas.kept(speaker, method).items()}
    write_run(tmp_path, kept)
    model = adapted("bert-token", leave_out_last=True)
    deltas.load_text_run(tmp_path, model, make("madx", {"leave_out_last": True}))
    first = "encoder.layer.0.output.LayerNorm.language.up.weight"
    assert torch.equal(model.base_model.get_parameter(first), speaker.base_model.get_parameter(first))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tune": "both"}, "option tune must be one of task, language, got 'both'"),
        ({"activation": "tanh"}, "option activation must be one of relu, gelu, gelu_new"),
        ({"wiring": "code"}, "option wiring must be one of library, paper"),
        ({"lm_head": True}, "option lm_head must be one of trained, frozen"),
        ({"init": "zero"}, "option init must be one of bert, identity"),
        ({"inverse": "yes"}, "option inverse must be true or false, got 'yes'"),
        ({"task_reduction": 0}, "option task_reduction .* whole number from 1 up, got 0"),
        ({"language_reduction": 2.5}, "option language_reduction .* got 2.5"),
        ({"invertible_reduction": True}, "option invertible_reduction .* got True"),
        ({"tune": "language", "language": False, "invertible": False}, "no adapter is left to train"),
    ],
)
def test_an_option_that_is_not_allowed_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make("madx", options)


def test_other_encoders_are_refused() -> None:
    with torch.device("meta"):
        model = DistilBertModel(DistilBertConfig(n_layers=1))
        with pytest.raises(ValueError, match="adapters are for BERT and XLM-R, got distilbert"):
            make("madx", {}).install(model)


STUDY = """
title: a study
languages: [en, qu]
encoders: {mini: {mini: {languages: [en]}}}
tasks: {mlm: {kind: mlm}, rt: {kind: ruletaker}}
methods:
  adapter: {base: madx, options: {tune: language}}
  whole: {base: full-ft}
  tested: %s
grids: {main: {task: [rt], encoder: [mini], method: [tested], source: [en], target: [en], seed: [1]}}
"""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("{base: madx}", r"methods.tested: its language and invertible adapters would stay as they are drawn"),
        ("{base: madx, options: {language: false}}", r"its invertible adapters would stay as they are drawn"),
        (
            "{base: madx, start: {task: mlm, method: whole, pairs: [en, qu]}}",
            r"give it a `start` whose method is of base madx",
        ),
        (
            "{base: madx, options: {invertible: false}, start: {task: mlm, method: adapter, pairs: [en, qu]}}",
            r"option invertible is False here and True in the method that it starts with",
        ),
        (
            "{base: madx, options: {activation: gelu}, start: {task: mlm, method: adapter, pairs: [en, qu]}}",
            r"option activation is 'gelu' here and 'relu' in the method",
        ),
    ],
)
def test_a_study_whose_adapters_nothing_trains_is_refused(method: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY % method)
    with pytest.raises(ValueError, match=message):
        load_study(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    "method",
    [
        "{base: madx, start: {task: mlm, method: adapter, pairs: [en, qu]}}",
        "{base: madx, options: {language: false, invertible: false}}",
    ],
)
def test_a_study_whose_adapters_are_all_trained_is_read(method: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY % method)
    load_study(tmp_path / "s.yaml")


TRANSFER = STUDY.replace("qu]", "fr]").replace("target: [en]", "target: [en, fr]")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            "pairs: [fr]",
            r"grids.main: method tested has no run on text of en, .*`pairs` of its `start`, which has fr",
        ),
        ("pairs: [fr], at: source", r"grids.main: method tested has no run on text of en"),
        ("pairs: [en], missing: none", r"grids.main: method tested has no run on text of fr"),
    ],
)
def test_a_language_whose_adapters_nothing_trains_is_refused(start: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(TRANSFER % f"{{base: madx, start: {{task: mlm, method: adapter, {start}}}}}")
    with pytest.raises(ValueError, match=message):
        load_study(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    "method",
    [
        "{base: madx, start: {task: mlm, method: adapter}}",
        "{base: madx, start: {task: mlm, method: adapter, source: fr}}",
        "{base: madx, start: {task: mlm, method: adapter, at: target}}",
        # What a target without adapters of its own speaks through is trained.
        "{base: madx, start: {task: mlm, method: adapter, pairs: [en]}}",
        "{base: madx, start: {task: mlm, method: adapter, pairs: [en], missing: none, at: source}}",
        # Without text, its query is a copy of the encoder's.
        "{base: qcross, start: {task: mlm, method: whole, pairs: [fr], missing: none}}",
    ],
)
def test_a_language_without_adapters_of_its_own_is_read_where_nothing_stays_as_drawn(
    method: str, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(TRANSFER % method)
    load_study(tmp_path / "s.yaml")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs on text of two languages, which share no word, and a task's run that begins with one of them."""
    root = tmp_path_factory.mktemp("root")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    BertForMaskedLM(BertConfig(vocab_size=50, max_position_embeddings=40, **size)).save_pretrained(root / "encoder")
    rng = np.random.default_rng(1)
    words = {"en": (5, 25), "qu": (25, 45)}
    ids = {code: [[*rng.integers(*ends, 12).tolist(), 2] for _ in range(40)] for code, ends in words.items()}
    tokens = write(root / "token.arrow", ids["en"], "token")
    names = {"study": "s", "encoder": "e", "base": "madx", "seed": 1}
    training = {"steps": 30, "batch_tokens": 256, "lr": 0.05, "evaluations": 1, "keep": "last"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for source in ("en", "qu"):
            text = {
                "task": "mlm",
                "kind": "mlm",
                "method": "adapter",
                "source": source,
                "options": {"tune": "language"},
            }
            asked = Recipe.model_validate({**names, **text, "training": training})
            read = [write(root / f"{source}.arrow", ids[source], "mlm")]
            train(asked, "encoder", read, read, f"text/{source}")
        task = {"task": "t", "kind": "wikiann", "method": "madx", "source": "en"}
        start = {"task": "mlm", "method": "adapter", "pairs": ["en", "qu"]}
        asked = Recipe.model_validate({**names, **task, "training": training, "start": start})
        train(asked, "encoder", [tokens], [tokens], "run", Path("text/en"))
    return root


def cell(root: Path, target: str) -> Any:
    """The same data of en, whatever the target, through whose adapters they are read."""
    out = root / f"{target}.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        evaluate("run", "encoder", "token.arrow", target, out, Path(f"text/{target}"))
    return json.loads(out.read_text())


def test_a_cell_names_the_adapters_that_were_active(made: Path) -> None:
    assert cell(made, "en")["stack"] == ["invertible:en", "language:en", "task:t"]
    assert cell(made, "qu")["stack"] == ["invertible:qu", "language:qu", "task:t"]


def test_a_last_layer_that_nobody_trains_is_told() -> None:
    with pytest.raises(ValueError, match="set `leave_out_last: true` here, too"):
        make("madx", {}).check_start(make("madx", {"tune": "language", "leave_out_last": True}))


@pytest.mark.parametrize(
    ("options", "language", "expected"),
    [
        ({}, None, ("invertible:untrained", "language:untrained", "task:t")),
        ({"invertible": False}, "qu", ("language:qu", "task:t")),
        ({"invertible": False, "language": False}, None, ("task:t",)),
        ({"tune": "language"}, "qu", ("invertible:qu", "language:qu")),
    ],
)
def test_a_stack_has_what_the_options_say(options: dict[str, Any], language: str, expected: tuple[str, ...]) -> None:
    assert make("madx", options).stack("t", language) == expected


def test_the_wrong_language_lowers_the_score(made: Path) -> None:
    right, wrong = cell(made, "en"), cell(made, "qu")
    assert (right["stack"][1], wrong["stack"][1]) == ("language:en", "language:qu")
    assert right["scores"]["accuracy"] > wrong["scores"]["accuracy"] + 10


def test_a_cell_speaks_with_its_targets_adapters_and_the_runs_task_adapters(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    data = batches.read("token.arrow", "qu")
    model = trained.model_of(trained.read("run"), "encoder", data, Path("text/qu"))
    run = load_file("run/delta.safetensors")
    text = load_file("text/qu/delta.safetensors")
    assert len(text) == 2 * 4 + 2 * 4 and len(run) == 2 * 4 + 2
    for name, tensor in {**run, **text}.items():
        assert torch.equal(model.get_parameter(name), tensor), name


def test_a_run_keeps_a_few_tensors_only_and_counts_them(made: Path) -> None:
    # The language model's own layer, its norm and its bias train, and are thrown away.
    for name, thrown_away in (("text/en", 16 * 16 + 16 + 2 * 16 + 50), ("run", 0)):
        folder = made / name
        kept = load_file(folder / "delta.safetensors")
        counts = json.loads((folder / "run.json").read_text())["parameters"]
        assert counts["trained"] - thrown_away == sum(tensor.numel() for tensor in kept.values()) < counts["total"] / 2
