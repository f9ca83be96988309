"""Weights of another encoder than config.json describes, and weights that are infinite or NaN."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file
from scratch_fixture import encoder_of

from xlgrid.base.errors import Damaged
from xlgrid.data.encoders import check_encoder, copy_encoder


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def encoder(request, tmp_path_factory):
    return encoder_of(tmp_path_factory.mktemp("encoder"), request.param)


def with_config(source, folder, remove=(), **entries):
    """A copy of an encoder's folder, without its origin, whose config.json has other entries."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = json.loads((source / "config.json").read_text()) | entries
    (folder / "config.json").write_text(json.dumps({key: config[key] for key in config if key not in remove}))
    return folder


def renamed(tensors, old, new):
    return {name.replace(old, new, 1) if name.startswith(old) else name: tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda tensors: renamed(tensors, "", "module."), "DataParallel .* save the weights of `model.module`"),
        (lambda tensors: renamed(renamed(tensors, "bert.", "x."), "roberta.", "x."), "lack embeddings.LayerNorm.bias"),
        (
            lambda tensors: {name: tensor for name, tensor in tensors.items() if "layer.0.attention" not in name},
            r"lack encoder.layer.0.attention",
        ),
        (
            lambda tensors: {
                name: tensor[:-1] if "intermediate" in name else tensor for name, tensor in tensors.items()
            },
            r"intermediate.dense.bias has the shape",
        ),
    ],
    ids=["wrapped", "another prefix", "a part", "shapes"],
)
def test_weights_of_another_encoder_are_refused(encoder, tmp_path, change, problem):
    """Transformers would draw the weights that it does not find."""
    source = with_config(encoder, tmp_path / "source")
    save_file(change(load_file(encoder / "model.safetensors")), source / "model.safetensors", {"format": "pt"})
    with pytest.raises(Damaged, match=problem):
        check_encoder(source)
    with pytest.raises(Damaged, match=problem):
        copy_encoder(source, source, tmp_path / "copy")


def test_a_config_with_more_layers_than_the_weights_is_refused(encoder, tmp_path):
    source = with_config(encoder, tmp_path / "source", num_hidden_layers=7)
    with pytest.raises(Damaged, match=r"lack encoder\.layer\.[1-6]"):
        check_encoder(source)


@pytest.mark.parametrize("entries", [{"hidden_act": "gelu_xx"}, {"hidden_size": -4}, {"model_type": ["bert"]}], ids=str)
def test_values_that_no_encoder_has_are_refused_with_the_name_of_the_file(encoder, tmp_path, entries):
    with pytest.raises(Damaged, match=r"source/config\.json "):
        check_encoder(with_config(encoder, tmp_path / "source", **entries))


def test_old_names_of_layer_norms_are_those_of_the_encoder(encoder, tmp_path):
    source = with_config(encoder, tmp_path / "source")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(encoder / "model.safetensors").items()
    }
    save_file(old, source / "model.safetensors", {"format": "pt"})
    check_encoder(source)


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_weights_that_are_no_finite_numbers_are_refused(encoder, tmp_path, number):
    source = with_config(encoder, tmp_path / "source")
    tensors = load_file(encoder / "model.safetensors")
    name = next(name for name in tensors if name.endswith("layer.0.output.dense.bias"))
    tensors[name][3] = number
    save_file({name: tensor.half() for name, tensor in tensors.items()}, source / "model.safetensors", {"format": "pt"})
    with pytest.raises(Damaged, match=rf"1 of the {len(tensors[name])} numbers in {name} are infinite or NaN"):
        copy_encoder(source, source, tmp_path / "copy")
