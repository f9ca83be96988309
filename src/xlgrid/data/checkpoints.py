"""Convert published checkpoints: write weights as one file of safetensors, and keep only the first layers."""

import json
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged, check_is_whole_file, first_sentence
from xlgrid.base.files import whole
from xlgrid.heads.families import EMBEDDINGS, layer_of

WEIGHTS = "model.safetensors"
# The weights in PyTorch's pickle format, which are read only if there are no safetensors.
PICKLED = "pytorch_model.bin"
# The suffix of an index, a file that says which of several files (shards) contains each tensor.
INDEX = ".index.json"
# The files in which transformers looks for the weights or the index of the shards. The first file that exists is used.
LAYOUTS = (WEIGHTS, WEIGHTS + INDEX, PICKLED, PICKLED + INDEX)
# The entries of config.json with the number of layers. DistilBERT uses the second one.
LAYER_COUNTS = ("num_hidden_layers", "n_layers")
# The name of a shard: the stem, the dash before the number, the number, the number of all shards, and the suffix.
_SHARD = re.compile(r"(model|pytorch_model)([-_])(\d+)-of-(\d+)(\.safetensors|\.bin)")

# Weights in formats that are not read here: pattern of names -> library.
OTHER_WEIGHTS = {
    "flax_model*": "Flax",
    "tf_model*": "TensorFlow",
    "*.ckpt*": "TensorFlow 1",
    "*.onnx": "ONNX",
    "*.gguf": "llama.cpp",
    "rust_model.ot": "rust-bert",
    "adapter_model.*": "PEFT, for an adapter only",
    "*.pt": "fairseq or PyTorch",
}


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights of an encoder; empty if the folder has no weights. Shards in the index may be missing.

    Raises:
        ValueError: the index of weights in several files is damaged.
    """
    found = next((name for name in LAYOUTS if (folder / name).is_file()), None)
    if found is None:
        return []
    return [folder / name for name in _shards(folder / found)] if found.endswith(INDEX) else [folder / found]


def _shards(index: Path) -> list[str]:
    """The names of the shards in an index."""
    return sorted({*_weight_map(index).values()})


def _weight_map(index: Path) -> dict[str, str]:
    """The name of each tensor -> the name of its file.

    Raises:
        ValueError: the file is damaged or is not an index.
    """
    if index.is_file():
        check_is_whole_file(index)
    try:
        files: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if not files or not all(Path(name).name == name for name in files.values()):
            raise ValueError("`weight_map` names no files of this folder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(
            f"{index} is damaged, or is not an index of weights in several files ({type(error).__name__}: {error}): "
            "copy or download it again"
        ) from error
    return files


def weights_problem(place: str, names: Collection[str]) -> str | None:
    """The error message about missing or unsupported weights of an encoder; None if the weights are complete.

    Args:
        place: the path of the folder, or the name of the repository, for the message.
        names: the names of the files there.
    """
    shards = [match for match in map(_SHARD.fullmatch, sorted(names)) if match]
    found = next((name for name in LAYOUTS if name in names), None)
    if found and found.endswith(INDEX):
        whole = Path(found.removesuffix(INDEX))
        of_index = [shard for shard in shards if (shard[1], shard[5]) == (whole.stem, whole.suffix)]
        missing = [
            name
            for stem, dash, number, total, kind in (shard.groups() for shard in of_index[:1])
            for i in range(1, int(total) + 1)
            if (name := f"{stem}{dash}{i:0{len(number)}}-of-{total}{kind}") not in names
        ]
        # The numbers of shards with other names are not known, so only the index can show that one is missing.
        if missing or not any(name.endswith(whole.suffix) for name in names):
            lacks = f"lacks {', '.join(missing)}" if missing else f"has none of the files that {found} names"
            return (
                f"{place} has its weights in several files, and {lacks}: name another revision, or add the missing "
                "files to a folder of your own"
            )
    if found:
        return None
    wanted = f"{place} has neither {WEIGHTS} nor {PICKLED}"
    if shards:
        return (
            f"{wanted}, but weights in several files, such as {shards[0][0]}, without "
            f"{shards[0][1]}{shards[0][5]}{INDEX}: add this file"
        )
    for pattern, library in OTHER_WEIGHTS.items():
        if other := next((name for name in sorted(names) if fnmatch(Path(name).name, pattern)), None):
            return (
                f"{wanted}, but {other}, weights for {library}: name another repository, or convert the weights with "
                "`save_pretrained` of transformers (`from_flax` and `from_tf` need a version before 5) and name the "
                "folder as the `path` of the encoder"
            )
    return f"{wanted}: name a repository or a folder in the layout of transformers"


def are_pickled(files: Collection[Path]) -> bool:
    """Whether the files of weights are in PyTorch's pickle format."""
    return any(file.suffix != ".safetensors" for file in files)


def join_weights(folder: Path, target: Path) -> None:
    """Write the weights in a folder to one file of safetensors.

    The weights may be in shards, and in PyTorch's pickle format, which is read without running any code in it. Tensors
    that share memory are stored once.

    Raises:
        ValueError: a file is missing or damaged, lacks a tensor that the index names, contains objects that are not
            tensors, or has no floating-point numbers.
    """
    from safetensors.torch import save_file

    files = weight_files(folder)
    tensors: dict[str, Any] = {}
    for file in files:
        tensors |= _pickled(file) if are_pickled([file]) else _safe(file)
    check_index(folder, files, tensors)
    if are_pickled(files):
        # Tensors of integers, such as positions, are left out, because transformers computes them.
        tensors = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
        if not tensors:
            raise Damaged(
                f"{files[0]} has no floating-point numbers, so it has no weights: use the file that was saved with "
                "config.json, or a checkpoint with safetensors"
            )
    # If the encoder shares a weight with a head, the weight keeps its name in the encoder.
    distinct: dict[tuple[int, Any], str] = {}
    for name in sorted(tensors, key=lambda name: name.startswith(("lm_head.", "cls."))):
        distinct.setdefault((tensors[name].data_ptr(), tensors[name].shape), name)
    save_file({name: tensors[name].contiguous() for name in distinct.values()}, target, {"format": "pt"})


def check_index(folder: Path, files: Sequence[Path], names: Collection[str]) -> None:
    """Raise Damaged if the index names a tensor that the shards lack.

    Args:
        names: the names of the tensors in the shards.
    """
    index = folder / f"{PICKLED if are_pickled(files) else WEIGHTS}{INDEX}"
    if files[0].name not in LAYOUTS and (lacking := [name for name in _weight_map(index) if name not in names]):
        raise Damaged(
            f"{folder / _weight_map(index)[lacking[0]]} has no tensor {lacking[0]}, which {index.name} lists: copy or "
            "download the files again"
        )


def _safe(file: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise Damaged(f"{file} is damaged ({error}): copy or download it again") from error


def _pickled(file: Path) -> dict[str, Any]:
    import torch

    try:
        # Versions of torch before 1.6 wrote files in another format, which cannot be memory-mapped.
        weights = torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
        if not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
            raise TypeError("an entry is not a tensor")
    except Exception as error:  # Unpickling raises errors of many types.
        raise Damaged(
            f"{file} is damaged, or contains objects that are not tensors ({first_sentence(error)}): copy or download "
            "it again, or use a checkpoint with safetensors"
        ) from error
    return dict(weights)


def embedding_count(folder: Path) -> int | None:
    """The number of rows of the token embeddings in `model.safetensors`; None if no weight has a name of embeddings."""
    from safetensors import safe_open

    for file in weight_files(folder):
        with safe_open(file, framework="numpy") as weights:
            for name in weights.keys():  # noqa: SIM118
                # An encoder that was saved without a head has no prefix.
                if f"model.{name}".endswith(EMBEDDINGS):
                    rows: int = weights.get_slice(name).get_shape()[0]
                    return rows
    return None


def counts_padding(config: Mapping[str, Any], padding: int) -> bool:
    """Whether a model skips padding tokens when it counts positions, as RoBERTa does.

    Among transformers' encoders, only these models have position embeddings with a `padding_idx`.

    Args:
        config: the contents of config.json.
        padding: the id of the padding token with which the model is built for this check.
    """
    import torch
    from transformers import CONFIG_MAPPING, AutoModel

    described = CONFIG_MAPPING[config["model_type"]].from_dict({**config, "pad_token_id": padding})
    try:
        with torch.device("meta"):
            model = AutoModel.from_config(described)
    except Exception:  # Some models cannot be built without values. For these, assume that they skip padding.
        return True
    return any(
        getattr(module, "padding_idx", None) is not None
        for name, module in model.named_modules()
        if "position" in f"{name.rpartition('.')[2]} {type(module).__name__}".lower()
    )


def change_padding(folder: Path, padding: int) -> None:
    """Change the id of the padding token in an encoder's config.json."""
    write_config(folder, config_of(folder) | {"pad_token_id": padding})


def layer_count(config: Mapping[str, Any]) -> int | None:
    """The number of layers in an encoder's config.json; None if it has no such entry or describes an
    encoder-decoder."""
    if config.get("is_encoder_decoder"):
        return None
    return next((config[entry] for entry in LAYER_COUNTS if entry in config), None)


def first_layers(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """The entries of config.json that change when only the first layers of an encoder are kept.

    Raises:
        ValueError: the encoder has fewer layers or is an encoder-decoder, or `config` does not describe an encoder.
    """
    if not isinstance(config, Mapping):
        raise ValueError("the encoder's config.json is not a mapping of names to values: check the folder")
    most = layer_count(config)
    if most is None:
        raise ValueError(
            f"`layers` needs an encoder with {' or '.join(LAYER_COUNTS)} in its config.json, got one of type "
            f"{config.get('model_type')}: leave it out"
        )
    if layers > most:
        raise ValueError(
            f"`layers` keeps the first {layers} layers, but the encoder has {most}: lower it, or leave it out"
        )
    shorter: dict[str, Any] = {entry: layers for entry in LAYER_COUNTS if entry in config}
    # ModernBERT lists the kind of attention of each layer.
    shorter |= {"layer_types": config["layer_types"][:layers]} if config.get("layer_types") else {}
    return shorter


def keep_layers(folder: Path, layers: int) -> None:
    """Remove all layers after the first `layers` from an encoder's folder. Embeddings, pooler and heads stay.

    Raises:
        ValueError: `first_layers` raises it, or no weight has the name of a layer that would be removed.
    """
    from safetensors.torch import load_file, save_file

    config = config_of(folder)
    shorter = first_layers(config, layers)
    stored = load_file(folder / WEIGHTS)
    tensors = {name: tensor for name, tensor in stored.items() if (layer_of(name) or 0) < layers}
    if len(tensors) == len(stored) and layers != layer_count(config):
        raise ValueError(
            f"`layers` keeps the first {layers} of {layer_count(config)} layers, but the names of the weights of this "
            f"encoder of type {config.get('model_type')} do not show which weights are in later layers: leave `layers` "
            "out, or use another encoder"
        )
    # The tensors are memory-mapped from the file, so the new file is written under another name first.
    with whole(folder / WEIGHTS) as aside:
        save_file(tensors, aside, {"format": "pt"})
    write_config(folder, config | shorter)


def config_of(folder: Path) -> dict[str, Any]:
    """The contents of an encoder's config.json."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write an encoder's config.json."""
    text = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
