"""Encoders with the head of a task.

Starting a process is most of a small cell's time, so nothing here imports the Auto classes of transformers for the encoders
of `FAMILIES`.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

# Model types whose classes are named after one stem; others go through the slower Auto classes.
FAMILIES = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "roberta": "Roberta", "distilbert": "DistilBert"}
HEADS = {
    "sequence": "SequenceClassification",
    "token": "TokenClassification",
    "span": "QuestionAnswering",
    "choice": "MultipleChoice",
    "mlm": "MaskedLM",
}


def model_class(kind: str | None, head: str) -> Any:
    """The class of transformers for an encoder of a model type with a head out of `HEADS`."""
    import transformers

    return getattr(transformers, f"{FAMILIES.get(kind or '', 'AutoModel')}For{HEADS[head]}")


def shapes(config: "PreTrainedConfig", head: str) -> "PreTrainedModel":
    """A model with such a head whose parameters have names and shapes but no numbers (they are on torch's meta device)."""
    import torch

    made = model_class(config.model_type, head)
    with torch.device("meta"):
        return made(config) if config.model_type in FAMILIES else made.from_config(config)


def head_settings(head: str, labels: int) -> dict[str, int]:
    """What a configuration says of a head; that of `choice` gives one score to each input, however many there are."""
    if head == "span":
        # Of a start and of an end.
        return {"num_labels": 2}
    return {"num_labels": labels} if head in ("sequence", "token") else {}


class Headed(Protocol):
    """What tokens say of the head that their model has: a key of `HEADS`, and its labels."""

    @property
    def head(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...


def load_model(encoder: str | Path, tokens: Headed, dropout: float | None = None) -> "PreTrainedModel":
    """The encoder in `encoder`, in fp32, with a fresh head for the labels of `tokens`, from torch's generator as it is;
    for text, with its own language-modelling head.

    Raises:
        FileNotFoundError: the folder lacks a file.
        ValueError: a file is damaged.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    folder = Path(encoder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name} does not exist: make or fetch the encoder again")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = written.get("model_type")
        maker = model_class(kind, tokens.head)
        rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
        changes: dict[str, Any] = {"dtype": torch.float32, **head_settings(tokens.head, len(tokens.names))}
        if dropout is not None:
            changes |= {
                rate: dropout for rate in rates if rate in written or (kind != "distilbert" and "_prob" in rate)
            }
            changes["classifier_dropout"] = dropout
        return maker.from_pretrained(folder, local_files_only=True, **changes)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{folder} is damaged or is no encoder ({error}): delete it and make or fetch it again"
        ) from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        weights = folder / "model.safetensors"
        raise ValueError(f"{weights} is damaged ({error}): delete it and make or fetch the encoder again") from error


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


def has_segments(model: "PreTrainedModel") -> bool:
    """Whether the encoder tells a first segment from a second."""
    return getattr(model.config, "type_vocab_size", 1) > 1


def language_head(model: "PreTrainedModel") -> "torch.nn.Module | None":
    """What makes logits over the vocabulary of a language model's states; None if it is none."""
    return getattr(model, "cls", None) or getattr(model, "lm_head", None)
