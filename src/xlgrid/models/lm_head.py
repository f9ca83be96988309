"""The language-modelling head of an encoder: find out whether its folder has one, and make one for encoders without it.

Sentence encoders such as multilingual E5 are published without the head with which they were pre-trained.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.data import checkpoints
from xlgrid.heads.families import FAMILIES

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def lacking(folder: str | Path) -> str | None:
    """The names of the weights of a language-modelling head that an encoder's folder lacks, as `cls.predictions.*`.

    Returns:
        None if the folder has a head, is missing or damaged, or if the names of its weights do not show whether it has
        a head: the family is not in `FAMILIES`, or the head consists of output embeddings that may be tied to the
        input.
    """
    from safetensors import SafetensorError, safe_open

    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        family = FAMILIES.get(config.get("model_type"))
        files, names = checkpoints.weight_files(Path(folder)), []
        for file in files:
            with safe_open(file, framework="numpy") as stored:
                names += stored.keys()
    except (OSError, ValueError, AttributeError, SafetensorError):
        return None
    if not files:
        return None
    # Output embeddings that are tied to those of the input and have no bias are not stored.
    if family is None or family.lm_head == (family.decoder,) or config.get("decoder_bias") is False:
        return None
    # One module is not enough: a classifier of ModernBERT also has the module `head`, the first one of its
    # language-modelling head, and BERT's `cls` may have only the head for next-sentence prediction.
    beginning = f"{family.decoder.rpartition('.')[0] or family.decoder}."
    has_head = any(name.startswith((beginning, *family.renamed)) for name in names)
    return None if has_head else f"{beginning}*"


def refusal(encoder: str, folder: str | Path, weights: str) -> str:
    """The error message if a task on text uses an encoder without a language-modelling head.

    Args:
        encoder: the encoder's name in the study.
        folder: where its files are.
        weights: the names of the missing weights.
    """
    return (
        f"{folder} has no language-modelling head: model.safetensors lacks {weights}, and each run would draw a head of its own at "
        f"random. Train one head that all runs share, `encoders: {{{encoder}-mlm: {{of: {encoder}, lm_head: {{languages: [en, fr]}}}}}}` "
        f"with languages that the encoder knows, and name {encoder}-mlm in place of {encoder}"
    )


def listed(names: list[str], most: int = 20) -> str:
    """Names as a phrase: the first `most`, and the number of the others, as in `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def is_of_head(model: "PreTrainedModel", name: str) -> bool:
    """Whether a parameter of a language model belongs to its head, not to the encoder. Tied output embeddings belong to
    the encoder. `name` is a key of `xlgrid.models.deltas.named_parameters`."""
    return not name.startswith(f"{model.base_model_prefix}.")


def begin_at_identity(model: "PreTrainedModel") -> None:
    """Initialize the linear layers of a new language-modelling head as the identity, in place.

    The head then compares the encoder's states with the embeddings of tokens, which is closer to a trained head than
    random weights are. A layer that changes the size keeps its random weights. Untied output embeddings are initialized
    as a copy of the input embeddings.
    """
    import torch

    table, output = model.get_input_embeddings().weight, model.get_output_embeddings()
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or not is_of_head(model, f"{name}."):
            continue
        if module is output:
            if module.weight is not table and module.weight.shape == table.shape:
                with torch.no_grad():
                    module.weight.copy_(table)
        elif module.in_features == module.out_features:
            torch.nn.init.eye_(module.weight)
        if module.bias is not None:
            torch.nn.init.zeros_(module.bias)


def with_trained(encoder: Path, prefix: str, trained: Mapping[str, "torch.Tensor"]) -> dict[str, "torch.Tensor"]:
    """The weights in an encoder's folder by their names in a language model, updated with the trained weights.

    Args:
        prefix: the prefix of the encoder's weights in a language model, such as `bert`. An encoder that was saved
            without a head has names without it.
        trained: name -> the weights of the head, and the weights of the encoder that training changed.
    """
    from safetensors.torch import load_file

    stored = load_file(encoder / "model.safetensors")
    if not any(name.startswith(f"{prefix}.") for name in stored):
        stored = {f"{prefix}.{name}": tensor for name, tensor in stored.items()}
    return {**stored, **trained}
