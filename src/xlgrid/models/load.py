"""Encoders with the head of a task.

Starting a process is most of a small cell's time, so nothing here imports the Auto classes of transformers for the encoders
of `FAMILIES`.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.heads import Head

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# Model types and the stem of their classes' names; others go through the slower Auto classes.
FAMILIES = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "roberta": "Roberta", "distilbert": "DistilBert"}


def model_class(model_type: str | None, head: Head) -> Any:
    """The class of transformers for an encoder of a model type with a head."""
    import transformers

    return getattr(transformers, f"{FAMILIES.get(model_type or '', 'AutoModel')}For{head.model_suffix}")


def shapes(config: "PreTrainedConfig", head: Head) -> "PreTrainedModel":
    """A model with a head whose parameters have names and shapes but no numbers (they are on torch's meta device)."""
    import torch

    maker = model_class(config.model_type, head)
    with torch.device("meta"):
        return maker(config) if config.model_type in FAMILIES else maker.from_config(config)


def load_model(encoder: str | Path, head: Head, labels: int, dropout: float | None = None) -> "PreTrainedModel":
    """The encoder in the folder `encoder`, in fp32, with a head.

    Torch's generator draws the weights of a new head. The language-modelling head is the encoder's own.

    Args:
        labels: the number of the task's labels.
        dropout: replaces the rates in the encoder's configuration.

    Raises:
        ValueError: the folder lacks a file, or a file is damaged.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    folder = Path(encoder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise Damaged(f"{folder / name} does not exist: make or fetch the encoder again", folder)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        model_type = written.get("model_type")
        maker = model_class(model_type, head)
        rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
        changes: dict[str, Any] = {"dtype": torch.float32, **head.settings(labels)}
        if dropout is not None:
            changes |= {
                rate: dropout for rate in rates if rate in written or (model_type != "distilbert" and "_prob" in rate)
            }
            changes["classifier_dropout"] = dropout
        return maker.from_pretrained(folder, local_files_only=True, **changes)
    except (OSError, ValueError, RuntimeError) as error:
        raise Damaged(
            f"{folder} is damaged or is no encoder ({error}): delete it and make or fetch it again", folder
        ) from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        weights = folder / "model.safetensors"
        raise Damaged(
            f"{weights} is damaged ({error}): delete it and make or fetch the encoder again", weights
        ) from error


def head_of_lm(model: "PreTrainedModel", encoder: str | Path) -> None:
    """Give XLM-R's classifier the dense layer of the encoder's language-modelling head.

    Raises:
        ValueError: the encoder has none, or the model's classifier no such layer.
    """
    import torch
    from safetensors import safe_open

    dense = getattr(getattr(model, "classifier", None), "dense", None)
    weights = Path(encoder) / "model.safetensors"
    with safe_open(weights, framework="pt") as stored:
        names = [f"lm_head.dense.{name}" for name in ("weight", "bias")]
        if dense is None or not set(names) <= set(stored.keys()):
            raise ValueError(
                f"`head: lm-head` is for XLM-R with its language-modelling head, which {weights} or the task's classifier "
                "has not: set `head: fresh` for this encoder"
            )
        with torch.no_grad():
            for name, parameter in zip(names, (dense.weight, dense.bias), strict=True):
                parameter.copy_(stored.get_tensor(name))


def stores_head(model: "PreTrainedModel", encoder: str | Path) -> bool:
    """Whether the folder of an encoder has weights of the model's head."""
    from safetensors import safe_open

    modules = {name.partition(".")[0] for name, _ in model.named_parameters()} - {model.base_model_prefix}
    with safe_open(Path(encoder) / "model.safetensors", framework="pt") as stored:
        return not modules.isdisjoint(name.partition(".")[0] for name in stored.keys())  # noqa: SIM118


def has_segments(model: "PreTrainedModel") -> bool:
    """Whether the encoder has an embedding for tokens of the second segment."""
    return getattr(model.config, "type_vocab_size", 1) > 1
