"""Adapters in the format of AdapterHub: a folder with adapter_config.json and pytorch_adapter.bin or adapter.safetensors.

It is what the `adapters` library and, with other names and less in the config, its predecessor adapter-transformers save
(https://docs.adapterhub.ml). Neither is needed here.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.files import whole, write_text
from xlgrid.methods.madx.method import MadX, adapter_kind

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"
# The one that is taken where a folder has several comes first.
WEIGHTS = ("adapter.safetensors", "pytorch_adapter.bin")

# adapter-transformers had a place for each type of adapter.
_LEGACY = {
    **{f"{place}_text_{kind}_adapters": "adapters" for place in ("attention", "layer") for kind in ("task", "lang")},
    "invertible_lang_adapters": "invertible_adapters",
}
# What it called gelu, and how it called what is called gelu now; its configs have no `version`.
_LEGACY_GELU = {"gelu": "gelu_new", "gelu_orig": "gelu"}
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.output\.adapters\.(.+)\.adapter_(down\.0|up)\.(weight|bias)")
_INVERTIBLE = re.compile(r"invertible_adapters\.(.+)\.([FG])\.([02])\.(weight|bias)")
_INNER = {"down.0": "down", "up": "up", "0": "down", "2": "up"}

# What a config must say, or leave out where the library's default is the same: a bottleneck after each feed-forward block,
# behind the layer's own LayerNorm and before it again, with its residual connection before LayerNorm (`xlgrid.methods.madx.modules`).
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
# Those that differ from what the library takes a config without them to mean.
_NO_DEFAULT = {"mh_adapter", "output_adapter", "original_ln_before"}


def read(folder: str | Path, model: "PreTrainedModel", method: MadX) -> dict[str, "torch.Tensor"]:
    """The tensors of an adapter, under the names that they have in a model.

    Args:
        folder: as the library saves it; its files are asked for by name, since some repositories hold others beside.
        model: with `method` installed.
        method: with `tune: language`, a language adapter is read, with its invertible one if the method has any; with
            `tune: task`, a task adapter. What the adapter says of itself must be what the method's options say.

    Returns:
        One tensor for each parameter of these adapters; those that only the folder has, of a last layer that is left
        out, are not in it.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, the adapter is of another architecture or encoder, or the options differ.
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
        what = [f"it has {one!r}, which has no place here" for one in [*sorted(unknown), *sorted(spare)][:1]]
        what += [f"it lacks {name!r}" for name in missing[:1]]
        raise ValueError(f"{folder} does not fit the encoder and the method: {' and '.join(what)}")
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
    safetensors: bool = False,
) -> None:
    """Write an adapter as the library saves one, which can load it.

    Args:
        folder: to write to.
        tensors: of a run's `delta.safetensors`; heads, which the format has elsewhere, are left out.
        config: of the encoder, as in its config.json.
        method: that of the run: what it trains is written.
        name: of the adapter, such as the language; the library takes it for the name to load it as.
        safetensors: write adapter.safetensors, which the library reads if it is asked to (`use_safetensors=True`),
            instead of pytorch_adapter.bin, which it always reads.

    Raises:
        ValueError: there are no adapters of this kind among the tensors, or the method's options have no counterpart in
            the library.
        OSError: the disk is full, read-only or not ours.
    """
    import torch
    from safetensors.torch import save

    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"an adapter's name has letters, digits, _ and - only, got {name!r}")
    kind = "language" if method.tune == "language" else "task"
    if kind == "task" and method.wiring == "paper" and method.language:
        raise ValueError(
            "the format's task adapters follow language adapters as those of `wiring: library` do, under which these would "
            "compute something else: train them so to share them"
        )
    keys = {_key(one, name): one for one in tensors if adapter_kind(one) == kind}
    if not keys:
        raise ValueError(f"none of the {len(tensors)} tensors is of a {kind} adapter: name a run that trained some")
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
    told = {
        "config": inner,
        "hidden_size": config["hidden_size"],
        "model_class": {"bert": "BertAdapterModel", "xlm-roberta": "XLMRobertaAdapterModel"}.get(config["model_type"]),
        "model_name": config.get("_name_or_path"),
        "model_type": config["model_type"],
        "name": name,
        # Of a version whose config this is: without one, gelu would mean something else.
        "version": "adapters.1.3.0",
    }
    folder = Path(folder)
    state = {key: tensors[one].detach().cpu().contiguous() for key, one in sorted(keys.items())}
    with whole(folder / ("adapter.safetensors" if safetensors else "pytorch_adapter.bin")) as aside:
        if safetensors:
            aside.write_bytes(save(state))
        else:
            with aside.open("wb") as file:
                torch.save(state, file)
    write_text(folder / CONFIG, json.dumps(told, indent=2, sort_keys=True) + "\n")


def _config(folder: Path) -> dict[str, Any]:
    """What adapter_config.json says, in the terms of today's."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        inner = dict(config["config"])
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: name the folder of one adapter, or fetch it again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged or is of no adapter of AdapterHub ({error!r}): fetch it again") from error
    nested = inner.pop("invertible_adapter", None) or {}
    if nested:
        inner["inv_adapter"] = nested.get("block_type")
        inner["inv_adapter_reduction_factor"] = nested.get("reduction_factor")
    # Of the invertible adapter, too, as in the library, which does not read the nested one: those of configs that replace
    # the relu of AdapterHub's own by gelu still say relu.
    activation = str(inner.get("non_linearity")).lower()
    inner["non_linearity"] = _LEGACY_GELU.get(activation, activation) if "version" not in config else activation
    return {**config, "config": inner}


def _check(folder: Path, told: Mapping[str, Any], model: "PreTrainedModel", method: MadX) -> None:
    """Raise a ValueError if an adapter's config is not what the method's options say."""
    from xlgrid.methods.madx.modules import ACTIVATIONS

    inner = told["config"]
    if inner.get("architecture"):
        raise ValueError(f"{folder} is no bottleneck adapter but of architecture {inner['architecture']!r}")
    own = model.config
    for name, here in (("model_type", own.model_type), ("hidden_size", own.hidden_size)):
        if (there := told.get(name, here)) != here:
            raise ValueError(f"{folder} is for an encoder of {name} {there!r}, this one has {here!r}: choose another")
    if method.tune == "language" and not method.language:
        raise ValueError(f"{folder} is read as a language adapter, which the method has not: set `language: true`")
    for name, value in _PLACED.items():
        there = inner.get(name, None if name in _NO_DEFAULT else value)
        if there != value:
            raise ValueError(
                f"{folder} has {name} {there!r}, and only {value!r} can be installed here, as in the config seq_bn "
                "(formerly pfeiffer): choose another adapter"
            )
    if (activation := inner["non_linearity"]) not in ACTIVATIONS:
        raise ValueError(
            f"{folder} has the activation {activation!r}; there are {', '.join(ACTIVATIONS)} only: choose another adapter"
        )
    language = method.tune == "language"
    options = {
        "language_reduction" if language else "task_reduction": _reduction(inner.get("reduction_factor")),
        "activation": activation,
    }
    # Of task adapters, old configs name an invertible one that they have not.
    if language:
        block = inner.get("inv_adapter")
        if block not in (None, "nice"):
            raise ValueError(
                f"{folder} has an invertible adapter {block!r}; there is 'nice' only: choose another adapter"
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
    last = own.num_hidden_layers - 1
    left = inner.get("leave_out") or []
    if left not in ([], [last]):
        raise ValueError(
            f"{folder} leaves out the layers {left}; only the last, {last}, can be: choose another adapter"
        )
    if left and not method.leave_out_last:
        raise ValueError(f"{folder} leaves out the last layer: set the method's option `leave_out_last: true`")


def _reduction(value: Any) -> Any:
    """16.0 is 16."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _weights(folder: Path) -> dict[str, "torch.Tensor"]:
    """The tensors of an adapter, by the keys of the library of today."""
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder} has none of {', '.join(WEIGHTS)}: fetch the adapter again")
    return {_renamed(key): tensor for key, tensor in _tensors(path).items()}


def _tensors(path: Path) -> dict[str, "torch.Tensor"]:
    """The tensors of a file of safetensors or of torch, which may hold nothing else."""
    import pickle

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (SafetensorError, OSError, RuntimeError, EOFError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} is damaged, or holds more than tensors ({error}): fetch it again") from error


def _renamed(key: str) -> str:
    for old, new in _LEGACY.items():
        key = key.replace(f".{old}.", f".{new}.")
    return key


def _name(key: str, kind: str, prefix: str) -> str | None:
    """The name of the parameter that the library calls `key`; None if there is none."""
    key = key.removeprefix(f"{prefix}.")
    if found := _LAYER.fullmatch(key):
        layer, _, inner, what = found.groups()
        return f"{prefix}.encoder.layer.{layer}.output.LayerNorm.{kind}.{_INNER[inner]}.{what}"
    if (found := _INVERTIBLE.fullmatch(key)) and kind == "language":
        _, half, inner, what = found.groups()
        return f"{prefix}.embeddings.dropout.invertible.{half}.{_INNER[inner]}.{what}"
    return None


def _key(name: str, adapter: str) -> str:
    """What the library calls the parameter `name` of an adapter."""
    *before, inner, what = name.split(".")
    if before[-2] == "invertible":
        return f"{before[0]}.invertible_adapters.{adapter}.{before[-1]}.{'0' if inner == 'down' else '2'}.{what}"
    inner = "adapter_down.0" if inner == "down" else "adapter_up"
    return f"{'.'.join(before[:-2])}.adapters.{adapter}.{inner}.{what}"
