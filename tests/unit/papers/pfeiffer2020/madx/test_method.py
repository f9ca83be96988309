"""What a run of MAD-X trains, stores and activates, and what it requires of the MLM run with which it begins."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models_fixture import IDS, model_of, write_run
from safetensors.torch import load_file
from test_modules import LANGUAGE, adapted, each_model
from tokens_fixture import write
from transformers import (
    BertConfig,
    BertForMaskedLM,
)

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models import deltas
from xlgrid.plan.load import load_study
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")


@each_model
@pytest.mark.parametrize("lm_head", ["trained", "frozen"])
def test_on_text_only_the_languages_adapters_and_the_heads_own_layer_train(kind: str, lm_head: str) -> None:
    model, method = adapted(kind, tune="language"), make("madx", {"tune": "language", "lm_head": lm_head})
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(name))
    logits_ = model(input_ids=IDS).logits
    logits_.square().sum().backward()
    with_gradient = {name for name, p in model.named_parameters() if p.grad is not None}
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
    assert with_gradient == adapters | set(head if lm_head == "trained" else [])
    assert set(deltas.kept(model, method, HEADS["mlm"])) == adapters, "the head is not kept"


@pytest.mark.parametrize("kind", ["bert-sequence", "bert-token", "xlmr-sequence", "xlmr-token"])
def test_of_a_task_only_its_adapters_and_its_head_are_kept(kind: str) -> None:
    names = set(deltas.kept(adapted(kind), make("madx", {}), HEADS[kind.split("-")[1]]))
    adapters = {name for name in names if ".LayerNorm.task." in name}
    assert len(adapters) == 2 * 4
    assert all(name.split(".")[0] == "classifier" or ".pooler." in name for name in names - adapters)


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


@pytest.mark.parametrize("text", [{}, {"leave_out_last": True}])
def test_language_adapters_of_all_layers_can_be_used_without_the_last(text: dict[str, Any], tmp_path: Path) -> None:
    text_model, method = adapted("bert-mlm", tune="language", **text), make("madx", {"tune": "language", **text})
    kept = {name: p.detach().clone() for name, p in deltas.kept(text_model, method, HEADS["mlm"]).items()}
    write_run(tmp_path, kept)
    model = adapted("bert-token", leave_out_last=True)
    deltas.load_mlm_run(tmp_path, model, make("madx", {"leave_out_last": True}))
    first = "encoder.layer.0.output.LayerNorm.language.up.weight"
    assert torch.equal(model.base_model.get_parameter(first), text_model.base_model.get_parameter(first))


def test_an_mlm_run_without_adapters_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no adapter to train"):
        make("madx", {"tune": "language", "language": False, "invertible": False})


STUDY = """
title: a study
languages: [en, qu]
encoders: {mini: {scratch: {languages: [en]}}}
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
        ("{base: madx}", "methods.tested: no run trains the language and invertible adapters"),
        ("{base: madx, options: {language: false}}", "no run trains the invertible adapters"),
        (
            "{base: madx, start: {task: mlm, method: whole, pairs: [en, qu]}}",
            "add a `start` whose method has `base: madx`",
        ),
        (
            "{base: madx, options: {invertible: false}, start: {task: mlm, method: adapter, pairs: [en, qu]}}",
            r"option invertible is False here and True in the method of the `start`",
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
            r"grids.main: method tested has no MLM run of en, .*`pairs` of its `start`, which has fr",
        ),
        ("pairs: [fr], at: source", r"grids.main: method tested has no MLM run of en"),
        ("pairs: [en], missing: none", r"grids.main: method tested has no MLM run of fr"),
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
        # The adapters that a target without adapters of its own is evaluated with are trained.
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
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with MLM runs of two languages, which share no word, and a task's run that begins with one of them."""
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
            recipe = Recipe.model_validate({**names, **text, "training": training})
            read = [write(root / f"{source}.arrow", ids[source], "mlm")]
            train(recipe, "encoder", read, read, f"text/{source}")
        task = {"task": "t", "kind": "wikiann", "method": "madx", "source": "en"}
        start = {"task": "mlm", "method": "adapter", "source": "en"}
        recipe = Recipe.model_validate({**names, **task, "training": training, "start": start})
        train(recipe, "encoder", [tokens], [tokens], "run", Path("text/en"))
    return root


def cell(root: Path, target: str) -> Any:
    """The same data of en, whatever the target, with whose adapters they are read."""
    out = root / f"{target}.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        evaluate("run", "encoder", "token.arrow", {"target": target}, out, Path(f"text/{target}"))
    return json.loads(out.read_text())


def test_a_cell_names_the_adapters_that_were_active(root: Path) -> None:
    assert cell(root, "en")["stack"] == ["invertible:en", "language:en", "task:t"]
    assert cell(root, "qu")["stack"] == ["invertible:qu", "language:qu", "task:t"]


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


def test_the_wrong_language_lowers_the_score(root: Path) -> None:
    right, wrong = cell(root, "en"), cell(root, "qu")
    assert (right["stack"][1], wrong["stack"][1]) == ("language:en", "language:qu")
    assert right["scores"]["accuracy"] > wrong["scores"]["accuracy"] + 10


def test_a_cell_has_its_targets_language_adapters_and_the_runs_task_adapters(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    data = batches.read("token.arrow", "qu")
    model = trained.model_of(trained.read("run"), "encoder", data, Path("text/qu"))
    run = load_file("run/delta.safetensors")
    text = load_file("text/qu/delta.safetensors")
    assert len(text) == 2 * 4 + 2 * 4 and len(run) == 2 * 4 + 2
    for name, tensor in {**run, **text}.items():
        assert torch.equal(model.get_parameter(name), tensor), name


def test_a_run_keeps_a_few_tensors_only_and_counts_them(root: Path) -> None:
    # The language model's own layer, its norm and its bias train, and are thrown away.
    for name, thrown_away in (("text/en", 16 * 16 + 16 + 2 * 16 + 50), ("run", 0)):
        folder = root / name
        kept = load_file(folder / "delta.safetensors")
        counts = json.loads((folder / "run.json").read_text())["parameters"]
        assert counts["trained"] - thrown_away == sum(tensor.numel() for tensor in kept.values()) < counts["total"] / 2


def test_the_encoder_trains_below_frozen_adapters_of_a_language() -> None:
    """Pfeiffer et al. 2022, footnote 7 and figure 6."""
    method = make("madx", {"tune": "encoder", "invertible": False})
    assert method.needs_start and method.trains_head
    method.check_start(make("madx", {"tune": "language", "invertible": False}))
    assert method.stack("xnli", "sw") == ("language:sw",)
    model = model_of("xlmr-sequence")
    method.install(model)
    frozen = {
        name.split(".")[1] if "language" not in name else "language"
        for name, _ in model.named_parameters()
        if not method.trains(name)
    }
    assert frozen == {"embeddings", "language"} and not any("task" in name for name, _ in model.named_parameters())
