"""Adapters that the `adapters` library saved compute here what they compute there, and ours are written as it writes them.

`adapters_fixture.py` made the models, adapters and numbers in adapters/ with the library.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, BertForMaskedLM, XLMRobertaForMaskedLM
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.methods import make
from xlgrid.papers.pfeiffer2020.adapters import export_adapter
from xlgrid.papers.pfeiffer2020.madx import MadX, adapterhub
from xlgrid.training.recipe import Recipe

FOLDER = Path(__file__).parent / "adapters"
KINDS = {"bert": BertForMaskedLM, "xlmr": XLMRobertaForMaskedLM}
LANG = {"tune": "language"}
PLAIN = {"tune": "language", "invertible": False, "activation": "gelu_new"}
TASK = {"language": False, "invertible": False, "task_reduction": 8}
SHORT = {"leave_out_last": True}
each_model = pytest.mark.parametrize("kind", KINDS)


def method_of(options: dict[str, Any]) -> MadX:
    method = make("madx", options)
    assert isinstance(method, MadX)
    return method


def installed(kind: str, options: dict[str, Any]) -> tuple[Any, MadX]:
    model = KINDS[kind].from_pretrained(FOLDER / kind)
    method = method_of(options)
    method.install(model)
    return model.eval(), method


@torch.no_grad()
def put(model: Any, tensors: dict[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        model.get_parameter(name).copy_(tensor)


def numbers(kind: str) -> dict[str, torch.Tensor]:
    return load_file(FOLDER / kind / "outputs.safetensors")


@torch.no_grad()
def outputs(model: Any, kind: str) -> Any:
    tensors = numbers(kind)
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask")}
    return model(**inputs, output_hidden_states=True)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@each_model
@pytest.mark.parametrize(
    ("name", "folder", "options"),
    [
        ("lang", "lang", LANG),
        ("plain", "plain", PLAIN),
        ("task", "task", TASK),
        ("lang", "legacy-lang", LANG),
        ("plain", "legacy-plain", PLAIN),
        ("gelu", "legacy-gelu", {**LANG, "activation": "gelu_new"}),
    ],
)
def test_a_single_adapter_computes_what_it_does_in_the_library(
    kind: str, name: str, folder: str, options: dict[str, Any]
) -> None:
    model, method = installed(kind, options)
    put(model, adapterhub.read(FOLDER / kind / folder, model, method))
    close(outputs(model, kind).hidden_states[-1], numbers(kind)[f"{name}.states"])


@each_model
def test_a_stack_computes_what_it_does_in_the_library(kind: str) -> None:
    model, method = installed(kind, {"task_reduction": 8})
    text_model, text = installed(kind, LANG)
    put(model, adapterhub.read(FOLDER / kind / "lang", text_model, text))
    put(model, adapterhub.read(FOLDER / kind / "task", model, method))
    close(outputs(model, kind).hidden_states[-1], numbers(kind)["stack.states"])


@each_model
def test_a_stack_without_the_last_layer_computes_what_it_does_in_the_library(kind: str) -> None:
    model, method = installed(kind, {"task_reduction": 8, **SHORT})
    text_model, text = installed(kind, {**LANG, **SHORT})
    put(model, adapterhub.read(FOLDER / kind / "lang", text_model, text))
    put(model, adapterhub.read(FOLDER / kind / "short-task", model, method))
    close(outputs(model, kind).hidden_states[-1], numbers(kind)["short.states"])


@each_model
def test_the_invertible_adapter_computes_what_it_does_in_the_library(kind: str) -> None:
    model, method = installed(kind, LANG)
    put(model, adapterhub.read(FOLDER / kind / "lang", model, method))
    output = outputs(model, kind)
    close(output.hidden_states[0], numbers(kind)["lang.embedded"])
    close(output.logits, numbers(kind)["lang.logits"])


@each_model
def test_the_numbers_of_the_library_tell_its_adapters_apart(kind: str) -> None:
    tensors = numbers(kind)
    states = [tensors[f"{name}.states"] for name in ("lang", "plain", "task", "stack", "short", "gelu")]
    for i, state in enumerate(states):
        assert all((state - other).abs().max() > 0.1 for other in states[:i])
    model, method = installed(kind, {**LANG, "inverse": False})
    put(model, adapterhub.read(FOLDER / kind / "lang", model, method))
    assert (outputs(model, kind).logits - tensors["lang.logits"]).abs().max() > 0.1


@each_model
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lang", LANG),
        ("plain", PLAIN),
        ("task", TASK),
        ("short-lang", {**LANG, **SHORT}),
        ("short-task", {**TASK, **SHORT}),
    ],
)
def test_what_is_written_is_what_the_library_writes(
    kind: str, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    model, method = installed(kind, options)
    theirs = FOLDER / kind / name
    tensors = adapterhub.read(theirs, model, method)
    adapterhub.write(tmp_path, tensors, model.config.to_dict(), method, name)
    config, library_config = (json.loads((folder / "adapter_config.json").read_text()) for folder in (tmp_path, theirs))
    assert config["config"].items() <= library_config["config"].items()
    assert {**config, "config": 0, "model_name": 0} == {**library_config, "config": 0, "model_name": 0}
    (file,) = (path for path in theirs.iterdir() if path.suffix != ".json")
    expected = load_file(file) if file.suffix == ".safetensors" else torch.load(file, weights_only=True)
    state_dict = torch.load(tmp_path / "pytorch_adapter.bin", weights_only=True)
    assert state_dict.keys() == expected.keys()
    assert all(torch.equal(tensor, expected[key]) for key, tensor in state_dict.items())
    again = adapterhub.read(tmp_path, model, method)
    assert again.keys() == tensors.keys() and all(torch.equal(again[key], tensors[key]) for key in again)


def test_a_last_layer_that_is_left_out_is_read_and_written_without_it(tmp_path: Path) -> None:
    model, method = installed("bert", {**LANG, "leave_out_last": True})
    tensors = adapterhub.read(FOLDER / "bert" / "lang", model, method)
    assert not [name for name in tensors if ".layer.1." in name] and [name for name in tensors if ".layer.0." in name]
    adapterhub.write(tmp_path, tensors, model.config.to_dict(), method, "qu")
    assert json.loads((tmp_path / "adapter_config.json").read_text())["config"]["leave_out"] == [1]
    assert adapterhub.read(tmp_path, model, method).keys() == tensors.keys()
    whole, all_layers = installed("bert", LANG)
    with pytest.raises(ValueError, match="leaves out the last layer: set the method's option `leave_out_last: true`"):
        adapterhub.read(tmp_path, whole, all_layers)


def test_a_model_without_weights_does_for_reading() -> None:
    method = method_of(LANG)
    with torch.device("meta"):
        model = BertForMaskedLM(AutoConfig.from_pretrained(FOLDER / "bert"))
        method.install(model)
    tensors = adapterhub.read(FOLDER / "bert" / "lang", model, method)
    assert len(tensors) == 2 * 4 + 2 * 4 and not [name for name, tensor in tensors.items() if tensor.is_meta]


def test_what_a_repository_holds_beside_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "lang"
    shutil.copytree(FOLDER / "bert" / "lang", folder)
    for name in ("._adapter_config.json", "._pytorch_adapter.bin"):
        (folder / name).write_bytes(b"\x00\x05\x16\x07")
    (folder / "head_config.json").write_text("{}")
    model, method = installed("bert", LANG)
    assert adapterhub.read(folder, model, method)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language_reduction": 4}, "has language_reduction 2, the method 4: set its option `language_reduction: 2`"),
        ({"invertible_reduction": 4}, "set its option `invertible_reduction: 2`"),
        ({"activation": "gelu_new"}, "has activation 'relu', the method 'gelu_new': set its option `activation: relu`"),
        ({"invertible": False}, "set its option `invertible: true`"),
        ({"language": False}, "set `language: true`"),
    ],
)
def test_an_option_that_differs_is_named_with_its_value(options: dict[str, Any], message: str) -> None:
    model, method = installed("bert", {**LANG, **options})
    with pytest.raises(ValueError, match=message):
        adapterhub.read(FOLDER / "bert" / "lang", model, method)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {"mh_adapter": True}}, "has mh_adapter True, but only False is supported"),
        ({"config": {"original_ln_before": False}}, "has original_ln_before False"),
        ({"config": {"ln_after": True}}, "has ln_after True"),
        ({"config": {"is_parallel": True}}, "has is_parallel True"),
        ({"config": {"inv_adapter": "glow"}}, "has an invertible adapter 'glow', but only 'nice' is supported"),
        (
            {"config": {"non_linearity": "swish"}},
            "has the activation 'swish', but only relu, gelu, gelu_new are supported: choose",
        ),
        ({"config": {"architecture": "lora"}}, "is not a bottleneck adapter, but has the architecture 'lora'"),
        ({"config": {"reduction_factor": {"0": 2, "default": 4}}}, "has a language_reduction that differs from layer"),
        ({"config": {"leave_out": [0]}}, r"leaves out the layers \[0\], but only the last layer, 1, can be left out"),
        ({"model_type": "xlm-roberta"}, "for an encoder of model_type 'xlm-roberta', this one has 'bert'"),
        ({"hidden_size": 768}, "for an encoder of hidden_size 768, this one has 16"),
    ],
)
def test_an_adapter_of_another_architecture_says_what_differs(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    shutil.copytree(FOLDER / "bert" / "lang", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "adapter_config.json"
    config = json.loads(path.read_text())
    inner = {**config["config"], **changes.get("config", {})}
    path.write_text(json.dumps({**config, **changes, "config": inner}))
    model, method = installed("bert", LANG)
    with pytest.raises(ValueError, match=message):
        adapterhub.read(tmp_path, model, method)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no config", r"adapter_config\.json does not exist: name the folder of one adapter"),
        ("no json", r"adapter_config\.json is damaged or does not describe an adapter"),
        ("no weights", r"has none of adapter\.safetensors, pytorch_adapter\.bin: fetch"),
        ("cut", r"pytorch_adapter\.bin is damaged, or contains objects that are not tensors"),
        ("code", r"pytorch_adapter\.bin is damaged, or contains objects that are not tensors"),
        ("less", r"it lacks 'bert\.encoder\.layer\.0\.output\.LayerNorm\.language\.down\.weight'$"),
        # Of several names that differ, the first one is enough.
        ("much less", r"it lacks 'bert\.encoder\.layer\.0\.output\.LayerNorm\.language\.down\.weight'$"),
        ("much more", r"method: it has 'bert\.encoder\.layer\.0\.[^']*\.2\.bias', which they lack$"),
        ("more", r"it has 'bert\.encoder\.layer\.2.*', which they lack"),
        ("another", r"it has 'bert\.encoder\.layer\.0\.output\.prefix', which they lack"),
        ("shape", r"'bert\.encoder\.layer\.0\..*\.down\.weight' is \[4, 16\] there and \[8, 16\] here"),
    ],
)
def test_a_spoilt_folder_is_told(how: str, message: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "bert" / "lang", tmp_path, dirs_exist_ok=True)
    config, weights = tmp_path / "adapter_config.json", tmp_path / "pytorch_adapter.bin"
    tensors = torch.load(weights, weights_only=True)
    down = "bert.encoder.layer.0.output.adapters.lang.adapter_down.0.weight"
    if how == "no config":
        config.unlink()
    elif how == "no json":
        config.write_text("[]")
    elif how == "no weights":
        weights.unlink()
    elif how == "cut":
        weights.write_bytes(weights.read_bytes()[:-500])
    elif how == "code":
        torch.save({down: Path("code")}, weights)
    elif how == "less":
        torch.save({key: tensor for key, tensor in tensors.items() if key != down}, weights)
    elif how == "much less":
        torch.save(
            {key: tensor for key, tensor in tensors.items() if not key.endswith("adapter_down.0.weight")}, weights
        )
    elif how == "much more":
        others = {f"bert.encoder.layer.0.output.adapters.lang.adapter_down.2.{name}" for name in ("weight", "bias")}
        torch.save(tensors | dict.fromkeys(others, tensors[down]), weights)
    elif how == "more":
        torch.save({**tensors, down.replace(".0.", ".2.", 1): tensors[down]}, weights)
    elif how == "another":
        torch.save({**tensors, "bert.encoder.layer.0.output.prefix": tensors[down]}, weights)
    else:
        torch.save({**tensors, down: tensors[down][:4]}, weights)
    model, method = installed("bert", LANG)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        adapterhub.read(tmp_path, model, method)


def run_of(folder: Path, options: dict[str, Any], base: str = "madx") -> dict[str, torch.Tensor]:
    """A run's folder, as training leaves it, of the adapters in the fixture."""
    names = {"study": "s", "task": "mlm", "kind": "mlm", "encoder": "e", "method": "m", "source": "zh-yue", "seed": 1}
    recipe = Recipe.model_validate({**names, "base": base, "options": options, "training": {}})
    record = {"recipe": recipe.model_dump(mode="json"), "digest": recipe.digest(), "labels": []}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(record))
    model, method = installed("bert", LANG)
    tensors = adapterhub.read(FOLDER / "bert" / "lang", model, method)
    head = {
        name: p.detach() for name, p in model.named_parameters() if name.startswith("cls.") and "decoder" not in name
    }
    save_file({**tensors, **head}, folder / "delta.safetensors", {"digest": recipe.digest()})
    return tensors


def test_a_run_is_exported_without_its_head_under_the_name_of_its_language(tmp_path: Path) -> None:
    tensors = run_of(tmp_path / "run", LANG)
    export_adapter(tmp_path / "run", FOLDER / "bert", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert (config["name"], config["model_type"], config["hidden_size"]) == ("zh-yue", "bert", 16)
    model, method = installed("bert", LANG)
    again = adapterhub.read(tmp_path / "out", model, method)
    assert again.keys() == tensors.keys() and all(torch.equal(again[key], tensors[key]) for key in again)


@pytest.mark.parametrize(
    ("options", "base", "encoder", "message"),
    [
        ({}, "full-ft", "bert", "is of method full-ft, which has no adapters"),
        ({}, "madx", "bert", "none of the .* tensors belongs to a task adapter"),
        ({**LANG, "language": False}, "madx", "bert", "no invertible adapter without language adapters"),
        ({"wiring": "paper"}, "madx", "bert", "supports only `wiring: library`"),
        (LANG, "madx", "nowhere", r"config\.json does not exist: name the folder of the run's encoder with --encoder"),
    ],
)
def test_a_run_that_has_no_such_adapter_is_not_exported(
    options: dict[str, Any], base: str, encoder: str, message: str, tmp_path: Path
) -> None:
    run_of(tmp_path / "run", options, base)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        export_adapter(tmp_path / "run", FOLDER / encoder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_exports_and_says_what_is_wrong(tmp_path: Path) -> None:
    run_of(tmp_path / "run", LANG)
    command = ["export-adapter", str(tmp_path / "run"), "--encoder", str(FOLDER / "bert")]
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"adapter_config.json", "pytorch_adapter.bin"}
    (tmp_path / "run" / "delta.safetensors").unlink()
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "other")])
    assert (
        result.exit_code == 1 and "delta.safetensors does not exist: check the path, or rerun training" in result.output
    )


def test_each_adapter_is_written_with_the_reduction_of_its_own_option(tmp_path: Path) -> None:
    model, method = installed("bert", {**LANG, "language_reduction": 4, "invertible_reduction": 2})
    tensors = {name: p.detach() for name, p in model.named_parameters() if method.trains(name)}
    adapterhub.write(tmp_path, tensors, model.config.to_dict(), method, "lang")
    config = json.loads((tmp_path / "adapter_config.json").read_text())["config"]
    assert (config["reduction_factor"], config["inv_adapter_reduction_factor"]) == (4, 2)
