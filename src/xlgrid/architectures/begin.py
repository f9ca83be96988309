"""Start a new model with the weights of another encoder (`begin` of an encoder from scratch)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.heads import HEADS
from xlgrid.models import lm_head, load

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Entry of config.json with a size -> the key of `scratch` in the study that sets this size.
SIZES = {
    "hidden_size": "hidden",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "intermediate",
    "max_position_embeddings": "max_length",
}


def misfit(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Why an encoder cannot begin with the weights of another; None if their types and sizes agree.

    Args:
        ours, theirs: entries of the config.json of both. A size that one of the two lacks is not compared.
    """
    if theirs["model_type"] != ours["model_type"]:
        return f"is of type {theirs['model_type']}, and this one of type {ours['model_type']}: name an encoder of the same `kind`"
    for entry, key in SIZES.items():
        if entry in ours and entry in theirs and theirs[entry] != ours[entry]:
            return f"has {entry} {theirs[entry]}, and this one {ours[entry]}: give both the same `{key}`"
    return None


def take_weights(
    model: "PreTrainedModel",
    encoder: Path,
    log: Callable[[str], None],
    is_new: Callable[[str], bool] = lambda name: False,
) -> "PreTrainedModel":
    """Load the weights of an encoder and of its language-modelling head into a new model. Returns the encoder's model.

    Args:
        encoder: the folder of the encoder.
        log: receives a line with the names of the weights that either of the two lacks.
        is_new: returns whether the new model has a parameter that the encoder is not expected to have.

    Raises:
        ValueError: the encoder is damaged, or has another type or other sizes.
    """
    import torch

    # All weights train, so a head that the encoder lacks can start with random weights.
    is_headless = lm_head.lacking(encoder) is not None
    other = load.load_model(encoder, HEADS["mlm"], 0, log=log, new_lm_head=is_headless)
    if problem := misfit(model.config.to_dict(), other.config.to_dict()):
        raise ValueError(f"`begin`: the encoder {encoder} {problem}")
    weights, parameters = (dict(each.named_parameters(remove_duplicate=False)) for each in (other, model))
    theirs, ours = ({name: [*p.shape] for name, p in each.items()} for each in (weights, parameters))
    for name in dict.fromkeys([*ours, *theirs]):
        if not is_new(name) and theirs.get(name) != ours.get(name):
            raise ValueError(
                f"`begin`: {name} is {theirs.get(name, 'absent')} in the encoder {encoder}, and {ours.get(name, 'absent')} here: give "
                "`scratch` the sizes of that encoder, and its tokenizer"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            if name in weights:
                parameter.copy_(weights[name])
    return other
