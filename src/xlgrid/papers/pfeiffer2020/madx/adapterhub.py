"""Read and write adapters in the format of AdapterHub: a folder with adapter_config.json and a file of weights.

The file of weights is pytorch_adapter.bin or adapter.safetensors. The `adapters` library saves this format, and so does
its predecessor adapter-transformers, with other names and fewer entries in the config (https://docs.adapterhub.ml).
Neither library has to be installed.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole, write_text
from xlgrid.heads.families import BERT, FAMILIES
from xlgrid.papers.pfeiffer2020.madx.method import MadX, adapter_kind

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"
# If a folder has both files, the first one is read.
WEIGHTS = ("adapter.safetensors", "pytorch_adapter.bin")
FILES: tuple[str, ...] = (CONFIG, *WEIGHTS)

# adapter-transformers had a separate module for each type of adapter.
_LEGACY = {
    **{f"{place}_text_{kind}_adapters": "adapters" for place in ("attention", "layer") for kind in ("task", "lang")},
    "invertible_lang_adapters": "invertible_adapters",
}
# The names of activations in adapter-transformers, whose configs have no `version` -> their names in the library.
_LEGACY_GELU = {"gelu": "gelu_new", "gelu_orig": "gelu"}
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.output\.adapters\.(.+)\.adapter_(down\.0|up)\.(weight|bias)")
_INVERTIBLE = re.compile(r"invertible_adapters\.(.+)\.([FG])\.([02])\.(weight|bias)")
_INNER = {"down.0": "down", "up": "up", "0": "down", "2": "up"}

# The entries that a config must have, unless the library's default is the same. They describe a bottleneck after each
# feed-forward block, between two passes of the layer's LayerNorm, with its residual connection before the first pass
# (`xlgrid.papers.pfeiffer2020.madx.modules`).
_PLACED: dict[str, Any] = {
    "mh_adapter": False,
    "output_adapter": True,
    "original_ln_before": True,
    "original_ln_after": True,
    "residual_before_ln": True,
    "adapter_residual_before_ln": False,
    "ln_before": False,
    "ln_after": False,
    "is_parallel": False,
    "scaling": 1.0,
    "use_gating": False,
    "cross_adapter": False,
    "phm_layer": False,
    "dropout": 0.0,
}
# The library has other defaults for these entries, so a config must have them.
_NO_DEFAULT = {"mh_adapter", "output_adapter", "original_ln_before"}


def files(folder: str | Path) -> list[str]:
    """The files of the adapter in a folder: its config, and the file of weights that is read."""
    weights = next((name for name in WEIGHTS if (Path(folder) / name).is_file()), WEIGHTS[0])
    return [str(Path(folder) / name) for name in (CONFIG, weights)]


def read(folder: str | Path, model: "PreTrainedModel", method: MadX) -> dict[str, "torch.Tensor"]:
    """The tensors of an adapter, under the names of the parameters of a model.

    Args:
        folder: a folder that the library has written; other files in it are ignored.
        model: a model with `method` installed.
        method: the method. With `tune: language`, a language adapter is read, with its invertible adapter if the method
            has one; with `tune: task`, a task adapter is read. The adapter's config must agree with the method's
            options.

    Returns:
        A tensor for each parameter of these adapters in the model. If the method leaves out the last layer, the tensors
        of this layer are dropped.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, the adapter has another architecture or encoder, or the options differ.
    """
    folder = Path(folder)
    config = _config(folder)
    _check(folder, config, model, method)
    kind = "language" if method.tune == "language" else "task"
    wanted = {name: p for name, p in model.named_parameters() if adapter_kind(name) == kind}
    tensors = {}
    unknown = []
    for key, tensor in _weights(folder).items():
        name = _name(key, kind, model.base_model_prefix)
        if name is None or name in tensors:
            unknown.append(key)
        else:
            tensors[name] = tensor
    layers = model.config.num_hidden_layers
    spare = {name for name in tensors.keys() - wanted.keys() if not method.leaves_out(name, layers)}
    missing = sorted(wanted.keys() - tensors.keys())
    if unknown or spare or missing:
        problems = [f"it has {name!r}, which they lack" for name in [*sorted(unknown), *sorted(spare)][:1]]
        problems += [f"it lacks {name!r}" for name in missing[:1]]
        raise ValueError(f"{folder} does not fit the encoder and the method: {' and '.join(problems)}")
    for name, parameter in wanted.items():
        if parameter.shape != tensors[name].shape:
            raise ValueError(
                f"{folder} does not fit the encoder: {name!r} is {list(tensors[name].shape)} there and "
                f"{list(parameter.shape)} here; it was made for {config.get('model_name', 'another model')}"
            )
    return {name: tensors[name].to(parameter.dtype).contiguous() for name, parameter in wanted.items()}


def write(
    folder: str | Path,
    tensors: Mapping[str, "torch.Tensor"],
    config: Mapping[str, Any],
    method: MadX,
    name: str,
) -> None:
    """Write an adapter to a folder from which the library can load it.

    Args:
        folder: the folder to write.
        tensors: the tensors of a run's `delta.safetensors`. Heads are left out, because the format has other files for
            them.
        config: the contents of the encoder's config.json.
        method: the method of the run. Its option `tune` determines whether the language or the task adapters are
            written.
        name: the name of the adapter, such as the language. The library loads the adapter under this name.

    Raises:
        ValueError: the tensors have no adapter of this kind, or the library does not support the method's options.
        OSError: the folder cannot be written.
    """
    import torch

    _check_family(config["model_type"])
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"the name of an adapter must have only letters, digits, _ and -, got {name!r}")
    kind = "language" if method.tune == "language" else "task"
    if kind == "task" and method.wiring == "paper" and method.language:
        raise ValueError(
            "the format supports only `wiring: library`, with which these task adapters would compute something else: "
            "train adapters with `wiring: library` to share them"
        )
    parameters = {_key(parameter, name): parameter for parameter in tensors if adapter_kind(parameter) == kind}
    if not parameters:
        raise ValueError(
            f"none of the {len(tensors)} tensors belongs to a {kind} adapter: name a run that trained {kind} adapters"
        )
    if kind == "language" and not method.language:
        raise ValueError(
            "the format has no invertible adapter without language adapters: train one with `language: true`"
        )
    layers = int(config["num_hidden_layers"])
    inner = {
        **_PLACED,
        "reduction_factor": method.language_reduction if kind == "language" else method.task_reduction,
        "non_linearity": method.activation,
        "inv_adapter": "nice" if kind == "language" and method.invertible else None,
        "inv_adapter_reduction_factor": method.invertible_reduction
        if kind == "language" and method.invertible
        else None,
        "leave_out": [layers - 1] if method.leave_out_last else [],
        "init_weights": "bert",
    }
    described = {
        "config": inner,
        "hidden_size": config["hidden_size"],
        "model_class": {"bert": "BertAdapterModel", "xlm-roberta": "XLMRobertaAdapterModel"}.get(config["model_type"]),
        "model_name": config.get("_name_or_path"),
        "model_type": config["model_type"],
        "name": name,
        # Without a version, the library would read gelu as gelu_new.
        "version": "adapters.1.3.0",
    }
    folder = Path(folder)
    state = {key: tensors[parameter].detach().cpu().contiguous() for key, parameter in sorted(parameters.items())}
    with whole(folder / "pytorch_adapter.bin") as aside, aside.open("wb") as file:
        torch.save(state, file)
    write_text(folder / CONFIG, json.dumps(described, indent=2, sort_keys=True) + "\n")


def _config(folder: Path) -> dict[str, Any]:
    """The contents of adapter_config.json, with the entries of adapter-transformers translated to those of the
    library."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        inner = dict(config["config"])
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: name the folder of one adapter, or fetch it again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged or does not describe an adapter ({error!r}): fetch it again") from error
    nested = inner.pop("invertible_adapter", None) or {}
    if nested:
        inner["inv_adapter"] = nested.get("block_type")
        inner["inv_adapter_reduction_factor"] = nested.get("reduction_factor")
    # As in the library, this is also the activation of the invertible adapter. The activation in the nested entry is
    # ignored: some configs still have relu there, although the adapter was trained with gelu.
    activation = str(inner.get("non_linearity")).lower()
    inner["non_linearity"] = _LEGACY_GELU.get(activation, activation) if "version" not in config else activation
    return {**config, "config": inner}


def _check(folder: Path, described: Mapping[str, Any], model: "PreTrainedModel", method: MadX) -> None:
    """Check that an adapter's config agrees with the encoder and with the method's options.

    Raises:
        ValueError: they differ.
    """
    from xlgrid.papers.pfeiffer2020.madx.modules import ACTIVATIONS

    _check_family(model.config.model_type)
    inner = described["config"]
    if inner.get("architecture"):
        raise ValueError(
            f"{folder} is not a bottleneck adapter, but has the architecture {inner['architecture']!r}: choose another "
            "adapter"
        )
    encoder = model.config
    for name, here in (("model_type", encoder.model_type), ("hidden_size", encoder.hidden_size)):
        if (there := described.get(name, here)) != here:
            raise ValueError(f"{folder} is for an encoder of {name} {there!r}, this one has {here!r}: choose another")
    if method.tune == "language" and not method.language:
        raise ValueError(
            f"{folder} is read as a language adapter, which the method does not have: set `language: true`"
        )
    for name, value in _PLACED.items():
        there = inner.get(name, None if name in _NO_DEFAULT else value)
        if there != value:
            raise ValueError(
                f"{folder} has {name} {there!r}, but only {value!r} is supported, as in the config seq_bn (formerly "
                "pfeiffer): choose another adapter"
            )
    if (activation := inner["non_linearity"]) not in ACTIVATIONS:
        raise ValueError(
            f"{folder} has the activation {activation!r}, but only {', '.join(ACTIVATIONS)} are supported: choose "
            "another adapter"
        )
    language = method.tune == "language"
    options = {
        "language_reduction" if language else "task_reduction": _reduction(inner.get("reduction_factor")),
        "activation": activation,
    }
    # Old configs of task adapters name an invertible adapter that does not exist.
    if language:
        block = inner.get("inv_adapter")
        if block not in (None, "nice"):
            raise ValueError(
                f"{folder} has an invertible adapter {block!r}, but only 'nice' is supported: choose another adapter"
            )
        options["invertible"] = block is not None
        if block:
            options["invertible_reduction"] = _reduction(inner.get("inv_adapter_reduction_factor"))
    for name, there in options.items():
        if isinstance(there, Mapping):
            raise ValueError(f"{folder} has a {name} that differs from layer to layer, {there}: choose another adapter")
        if (here := getattr(method, name)) != there:
            written = str(there).lower() if isinstance(there, bool) else there
            raise ValueError(f"{folder} has {name} {there!r}, the method {here!r}: set its option `{name}: {written}`")
    last = encoder.num_hidden_layers - 1
    left = inner.get("leave_out") or []
    if left not in ([], [last]):
        raise ValueError(
            f"{folder} leaves out the layers {left}, but only the last layer, {last}, can be left out: choose another "
            "adapter"
        )
    if left and not method.leave_out_last:
        raise ValueError(f"{folder} leaves out the last layer: set the method's option `leave_out_last: true`")


def _check_family(model_type: str) -> None:
    """Raise a ValueError if adapters in encoders of a type have other places than in BERT."""
    if (FAMILIES.get(model_type, BERT).norm, FAMILIES.get(model_type, BERT).embedded) != (BERT.norm, BERT.embedded):
        raise ValueError(
            f"the format needs an encoder whose layers have the same names as BERT's, got one of type {model_type}: "
            "keep its adapters in the folders of their runs, which `start` names"
        )


def _reduction(value: Any) -> Any:
    """A reduction factor, as an integer if it is whole; some configs have 16.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _weights(folder: Path) -> dict[str, "torch.Tensor"]:
    """The tensors of an adapter by the library's keys."""
    path = Path(files(folder)[1])
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has none of {', '.join(WEIGHTS)}: fetch the adapter again")
    return {_renamed(key): tensor for key, tensor in _tensors(path).items()}


def _tensors(path: Path) -> dict[str, "torch.Tensor"]:
    """The tensors of a file of safetensors or of torch.

    Raises:
        ValueError: the file is damaged, or a file of torch contains objects that are not tensors.
    """
    import pickle

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (SafetensorError, OSError, RuntimeError, EOFError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path} is damaged, or contains objects that are not tensors ({error}): fetch it again"
        ) from error


def _renamed(key: str) -> str:
    for old, new in _LEGACY.items():
        key = key.replace(f".{old}.", f".{new}.")
    return key


def _name(key: str, kind: str, prefix: str) -> str | None:
    """The name in a model of the parameter with the library's key; None if the model has no such parameter."""
    key = key.removeprefix(f"{prefix}.")
    if match := _LAYER.fullmatch(key):
        layer, _, linear, parameter = match.groups()
        return f"{prefix}.encoder.layer.{layer}.output.LayerNorm.{kind}.{_INNER[linear]}.{parameter}"
    if (match := _INVERTIBLE.fullmatch(key)) and kind == "language":
        _, half, linear, parameter = match.groups()
        return f"{prefix}.embeddings.dropout.invertible.{half}.{_INNER[linear]}.{parameter}"
    return None


def _key(name: str, adapter: str) -> str:
    """The library's key of a parameter of an adapter."""
    *before, linear, parameter = name.split(".")
    if before[-2] == "invertible":
        return f"{before[0]}.invertible_adapters.{adapter}.{before[-1]}.{'0' if linear == 'down' else '2'}.{parameter}"
    linear = "adapter_down.0" if linear == "down" else "adapter_up"
    return f"{'.'.join(before[:-2])}.adapters.{adapter}.{linear}.{parameter}"
