"""Checkpoints as others publish them become ordinary ones: weights as safetensors, modules under the codes of a study, and as many
layers as the study asks for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole
from xlgrid.base.names import unknown
from xlgrid.heads.families import layer_of
from xlgrid.methods.xmod.names import MODULES, XMOD

WEIGHTS = "model.safetensors"
# The weights in PyTorch's own format, which are read where there are no safetensors.
PICKLED = "pytorch_model.bin"
# The entries of config.json that have the number of layers, of whatever family; DistilBERT has a name of its own.
LAYER_COUNTS = ("num_hidden_layers", "n_layers")


def is_pickled(folder: Path) -> bool:
    """Whether the weights in a folder are in PyTorch's own format only."""
    return not list(folder.glob("model*.safetensors")) and (folder / PICKLED).is_file()


def convert(source: Path, target: Path) -> None:
    """Write the weights in a file in PyTorch's own format as safetensors, those that share memory once. No code in it is run.

    Raises:
        ValueError: the file is damaged, or has other things than tensors.
    """
    import torch
    from safetensors.torch import save_file

    try:
        weights = torch.load(source, map_location="cpu", weights_only=True, mmap=True)
        tensors = {name: tensor for name, tensor in weights.items() if tensor.is_floating_point()}
    except Exception as error:  # Unpickling raises errors of many types.
        raise Damaged(
            f"{source} is damaged, or has other things than tensors ({type(error).__name__}): take a checkpoint with safetensors"
        ) from error
    # A weight that the encoder shares with a head keeps its name in the encoder.
    distinct: dict[tuple[int, Any], str] = {}
    for name in sorted(tensors, key=lambda name: name.startswith(("lm_head.", "cls."))):
        distinct.setdefault((tensors[name].data_ptr(), tensors[name].shape), name)
    save_file({name: tensors[name].contiguous() for name in distinct.values()}, target, {"format": "pt"})


def rename_modules(folder: Path, names: Mapping[str, str]) -> None:
    """Give modules for languages in an encoder's folder other names, in place.

    Args:
        names: the code of a language in the study -> the name of its module.

    Raises:
        ValueError: the encoder has no such module, or no modules, or a module already has one of the codes.
    """
    from safetensors.torch import load_file, save_file

    config = _config(folder)
    if config.get("model_type") != XMOD:
        raise ValueError(
            f"`modules` names modules of an X-MOD, but the encoder is of type {config.get('model_type')}: leave it out"
        )
    for code, name in names.items():
        if name not in config["languages"]:
            raise ValueError(f"modules.{code}: {unknown('module of the encoder', name, config['languages'])}")
    code_of = {name: code for code, name in names.items()}
    languages = [code_of.get(name, name) for name in config["languages"]]
    if doubles := sorted({code for code in languages if languages.count(code) > 1}):
        raise ValueError(f"`modules` gives {doubles[0]} to a module, but another module has this name: leave it out")

    def renamed(name: str) -> str:
        parts = name.split(".")
        if MODULES in parts:
            at = parts.index(MODULES) + 1
            parts[at] = code_of.get(parts[at], parts[at])
        return ".".join(parts)

    tensors = {renamed(name): tensor for name, tensor in load_file(folder / WEIGHTS).items()}
    # The tensors are mapped from the file, which must not be written while they are read.
    with whole(folder / WEIGHTS) as aside:
        save_file(tensors, aside, {"format": "pt"})
    _write_config(folder, config | {"languages": languages})


def layer_count(config: Mapping[str, Any]) -> int | None:
    """The number of an encoder's layers by its config.json; None if it does not say, or describes an encoder-decoder."""
    if config.get("is_encoder_decoder"):
        return None
    return next((config[entry] for entry in LAYER_COUNTS if entry in config), None)


def first_layers(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """The entries of an encoder's config.json that say that it has the first layers alone.

    Raises:
        ValueError: the encoder has fewer layers, or is an encoder-decoder; or `config` is of no encoder.
    """
    if not isinstance(config, Mapping):
        raise ValueError("the encoder's config.json is no mapping of names to values: check the folder")
    most = layer_count(config)
    if most is None:
        raise ValueError(
            f"`layers` is for encoders, whose config.json has {' or '.join(LAYER_COUNTS)}, and not for one of type "
            f"{config.get('model_type')}: leave it out"
        )
    if layers > most:
        raise ValueError(
            f"`layers` asks for the first {layers} layers, and the encoder has {most}: lower it, or leave it out"
        )
    shorter: dict[str, Any] = {entry: layers for entry in LAYER_COUNTS if entry in config}
    # ModernBERT lists the kind of attention of each layer.
    shorter |= {"layer_types": config["layer_types"][:layers]} if config.get("layer_types") else {}
    return shorter


def keep_layers(folder: Path, layers: int) -> None:
    """Leave an encoder's folder the first layers alone, in place. Embeddings, pooler and heads stay.

    Raises:
        ValueError: as `first_layers`; or no weight has a name of a layer that is to go.
    """
    from safetensors.torch import load_file, save_file

    config = _config(folder)
    shorter = first_layers(config, layers)
    stored = load_file(folder / WEIGHTS)
    tensors = {name: tensor for name, tensor in stored.items() if (layer_of(name) or 0) < layers}
    if len(tensors) == len(stored) and layers != layer_count(config):
        raise ValueError(
            f"`layers` asks for the first {layers} of {layer_count(config)} layers, but no name of a weight of this encoder, of type "
            f"{config.get('model_type')}, says that the weight is of a later layer: leave `layers` out, or take another encoder"
        )
    # The tensors are mapped from the file, which must not be written while they are read.
    with whole(folder / WEIGHTS) as aside:
        save_file(tensors, aside, {"format": "pt"})
    _write_config(folder, config | shorter)


def check_modules(folder: Path) -> None:
    """Check that an X-MOD has a module of the right size for each of its languages in each layer; others have none.

    Raises:
        ValueError: a module is missing or of another size.
    """
    from safetensors import safe_open

    config = _config(folder)
    if config.get("model_type") != XMOD:
        return
    hidden = config["hidden_size"]
    inner = hidden // config["adapter_reduction_factor"]
    sizes = {
        "dense1.weight": [inner, hidden],
        "dense2.weight": [hidden, inner],
        "dense1.bias": [inner],
        "dense2.bias": [hidden],
    }
    with safe_open(folder / WEIGHTS, framework="numpy") as weights:
        stored = {name.removeprefix("roberta."): name for name in weights.keys()}  # noqa: SIM118
        for layer in range(config["num_hidden_layers"]):
            for language in config["languages"]:
                for part, size in sizes.items():
                    name = f"encoder.layer.{layer}.output.{MODULES}.{language}.{part}"
                    got = weights.get_slice(stored[name]).get_shape() if name in stored else None
                    if got != size:
                        raise ValueError(
                            f"the module of {language} does not fit the encoder: {name} "
                            f"{f'has shape {got}' if got else 'is missing'}, but config.json asks for {size}: correct `languages` "
                            "or `adapter_reduction_factor` there, or take another checkpoint"
                        )


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def _write_config(folder: Path, config: Mapping[str, Any]) -> None:
    text = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
