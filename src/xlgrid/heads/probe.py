"""Test on a small model whether a type of transformers is an encoder that xlgrid can use, and whether it has a head.

The types of `xlgrid.heads.families.FAMILIES` are known, and tests train them. For any other type, a model with two
layers, few tokens and random weights computes a short input. An *encoder* is a model of text, without a decoder, that
transformers can train on masked tokens. Its states depend only on the input, and not on the padding after it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import first_sentence
from xlgrid.base.names import unknown
from xlgrid.heads.families import FAMILIES, known_type
from xlgrid.heads.head import Head

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

INSTEAD = "take an encoder of another type, such as FacebookAI/xlm-roberta-base or jhu-clsp/mmBERT-base"
# The number of layers of a small model, and the ids of its tokens besides the special tokens.
LAYERS, TOKENS = 2, 32
# The numbers of tokens of the input of `answers`, and of its first segment.
LENGTH, CONTEXT = 10, 5
# The largest difference of states or logits, relative to the largest value, that another order of sums can explain.
_ROUNDING = 1e-4


@contextmanager
def quiet() -> Iterator[None]:
    """A context in which transformers logs only errors: no warnings and no progress bars."""
    from transformers import logging

    verbosity, has_progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_progress:
            logging.enable_progress_bar()


def type_problem(config: Mapping[str, Any]) -> str | None:
    """The reason why the type in a config.json cannot be an encoder; None if it can.

    The reason is a sentence that begins with a verb and says what to do instead.

    Args:
        config: the contents of a config.json with `model_type`.
    """
    if not isinstance(kind := config["model_type"], str):
        return (
            f"has the `model_type` {kind!r}, which is not a name: use the config.json that was saved with the weights"
        )
    return None if known_type(kind) else _type_problem(json.dumps(config, sort_keys=True))


def type_advice(config: Mapping[str, Any]) -> str:
    """The advice for a config.json without a type."""
    from transformers.models.auto import modeling_auto as auto

    of_architecture = {
        name: kind
        for mapping in (
            auto.MODEL_MAPPING_NAMES,
            auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES,
            auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        )
        for kind, name in mapping.items()
        if isinstance(name, str)
    }
    named = [of_architecture[name] for name in config.get("architectures") or () if name in of_architecture]
    if named:
        return f'write `"model_type": "{named[0]}"` into it, of which its `architectures` are'
    names = {"num_hidden_layers": "layers", "hidden_size": "hidden units", "vocab_size": "tokens"}
    sizes = ", ".join(f"{config[name]:,} {what}" for name, what in names.items() if isinstance(config.get(name), int))
    return (
        "take the config.json that was saved with the weights, or else that of the encoder from which their training "
        f"began{f', which has {sizes}' if sizes else ''}"
    )


def head_problem(config: Mapping[str, Any], head: Head) -> str | None:
    """The reason why encoders of a type without a `type_problem` cannot have a head; None if they can.

    The reason is a sentence that says what to do instead.
    """
    if known := known_type(config["model_type"]):
        return known.problem(head)
    return _head_problem(json.dumps(config, sort_keys=True), head)


@cache
@quiet()
def _type_problem(written: str) -> str | None:
    import torch
    from transformers import CONFIG_MAPPING, AutoModel, AutoModelForMaskedLM

    config = json.loads(written)
    kind = config["model_type"]
    if kind not in CONFIG_MAPPING:
        if config.get("auto_map"):
            return (
                f"has the model_type {kind!r}, which transformers does not have: the repository has Python code of its "
                "own for this type (`auto_map`), and xlgrid runs no code of repositories; take a copy of the encoder "
                "in a type that transformers has, as alibaba-nlp-community/gte-multilingual-base is for "
                "Alibaba-NLP/gte-multilingual-base, or another encoder, such as FacebookAI/xlm-roberta-base or "
                "jhu-clsp/mmBERT-base"
            )
        return (
            f"has the {unknown('model_type', kind, FAMILIES)}: take the config.json that was saved with the weights, "
            "or a version of transformers that knows the type"
        )
    maker = CONFIG_MAPPING[kind]
    try:
        whole = maker.from_dict(config)
    except Exception as error:  # Transformers raises errors of many types.
        return f"describes no encoder ({first_sentence(error)}): take the config.json that was saved with the weights"
    what = f"has the model_type {kind}, which is"
    if getattr(whole, "is_encoder_decoder", False):
        return f"{what} an encoder-decoder: {INSTEAD}"
    if maker not in AutoModelForMaskedLM._model_mapping:
        return f"{what} no encoder that predicts masked tokens, as transformers has no such model of it: {INSTEAD}"
    language_model: Any = AutoModelForMaskedLM._model_mapping[maker]
    if (reads := language_model.main_input_name) != "input_ids":
        return f"{what} a model that reads {reads}, and no tokens: {INSTEAD}"
    if maker.sub_configs:
        return f"{what} a model of more than text (it has {', '.join(sorted(maker.sub_configs))}): {INSTEAD}"
    try:
        model = small_model(config, AutoModel)
        depends = depends_on_padding(model, None)
        # Dropout draws random numbers, but the random numbers of a training must depend only on its seed.
        with torch.random.fork_rng(devices=[]):
            answers(model.train(), None)
    except Exception as error:  # Models of transformers raise errors of many types.
        return f"{what} a model that does not compute tokens alone ({first_sentence(error)}): {INSTEAD}"
    return (
        f"{what} an encoder whose states change with the padding after an input, so that a score would depend on which "
        f"examples are computed together: {INSTEAD}"
        if depends
        else None
    )


@cache
@quiet()
def _head_problem(written: str, head: Head) -> str | None:
    config = json.loads(written)
    kind = config["model_type"]
    try:
        maker = head.model_class("AutoModel")
    except ValueError as error:
        return str(error)
    if type(small_config(config)) not in maker._model_mapping:
        suffix = head.model_suffix
        return f"transformers has no class {suffix} for encoders of type {kind}, so that they have no head {head.name}: {INSTEAD}"
    try:
        depends = depends_on_padding(small_model(config, maker), head)
    except Exception as error:  # Models of transformers raise errors of many types.
        return f"an encoder of type {kind} does not compute the head {head.name} ({first_sentence(error)}): {INSTEAD}"
    return (
        f"the head {head.name} of an encoder of type {kind} gives other scores with the padding after an input: "
        f"{INSTEAD}"
        if depends
        else None
    )


def small_config(config: Mapping[str, Any]) -> Any:
    """A configuration of a type with as few layers and tokens as it allows; the sizes of its layers stay.

    Args:
        config: the contents of a config.json.
    """
    from transformers import CONFIG_MAPPING

    maker = CONFIG_MAPPING[config["model_type"]]
    small = maker.from_dict(dict(config))
    layers = getattr(small, "num_hidden_layers", None)
    # Types with different kinds of layers list the kind of each layer.
    fewer_layers: dict[str, Any] = {
        name: value[:LAYERS]
        for name, value in small.to_dict().items()
        if isinstance(value, list) and len(value) == layers
    } | {"num_hidden_layers": LAYERS}
    special = sorted(
        (name for name, value in small.to_dict().items() if name.endswith("_token_id") and isinstance(value, int)),
        key=lambda name: name != "pad_token_id",
    )
    fewer_tokens = {name: number for number, name in enumerate(special, start=1)}
    fewer_tokens["vocab_size"] = len(special) + 1 + TOKENS
    # The entries of a configuration may depend on one another in ways that only the type defines.
    for changes in (fewer_layers, fewer_tokens):
        small = _changed(small, changes) or small
    # Transformers reads the class of the model here if a type has several classes.
    small.architectures = small.architectures or []
    return small


def _changed(config: Any, changes: Mapping[str, Any]) -> Any:
    """A configuration with other entries; None if a type does not allow them."""
    names: Mapping[str, str] = config.attribute_map
    try:
        return type(config).from_dict(
            {**config.to_dict(), **{names.get(name, name): value for name, value in changes.items()}}
        )
    except Exception:  # Transformers raises errors of many types.
        return None


def small_model(config: Mapping[str, Any], maker: Any) -> "PreTrainedModel":
    """A model with random weights and a `small_config`, on the CPU. The state of torch's global generator is unchanged.

    Args:
        maker: an Auto class of transformers.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model: PreTrainedModel = maker.from_config(small_config(config)).eval()
    return model


def answers(model: "PreTrainedModel", head: Head | None, padding: int = 0, **extra: Any) -> "torch.Tensor":
    """The output of a small model for an input with two segments and padding at the end, [1, tokens or 1, numbers].

    Args:
        head: the head of the model; None for an encoder without a head.
        padding: the number of padding tokens.
        extra: further arguments of the model's forward.
    """
    import torch

    config = model.config
    pad = getattr(config, "pad_token_id", None)
    end = next(
        (getattr(config, name, None) for name in ("sep_token_id", "eos_token_id") if getattr(config, name, None)), 4
    )
    first = config.vocab_size - TOKENS
    tokens = [first, first + 1, first + 2, first + 3, end, end, first + 4, first + 5, first + 6, end]
    ids = torch.tensor([[*tokens, *[pad or 0] * padding]])
    mask = torch.tensor([[1] * len(tokens) + [0] * padding])
    if head is not None:
        ids, mask = head.shaped(ids, 1), head.shaped(mask, 1)
    output = model(input_ids=ids, attention_mask=mask, **extra)
    if "start_logits" in output:
        states = torch.stack([output.start_logits, output.end_logits], -1)
    else:
        states = output.logits if "logits" in output else output.last_hidden_state
    per_token = states.dim() == 3
    return states[:, : len(tokens)] if per_token else states[:, None]


def depends_on_padding(model: "PreTrainedModel", head: Head | None) -> bool:
    """Whether the output of a small model changes with padding after the input, or between two computations.

    Raises:
        ValueError: the output has values that are not finite numbers.
    """
    import torch

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        alone = answers(model, head)
        if not bool(torch.isfinite(alone).all()):
            raise ValueError("its output has values that are not finite numbers")
        differences = [(answers(model, head, padding) - alone).abs().max() for padding in (0, 7)]
        # The logit of a choice may be near 0.
        return bool(max(differences) > _ROUNDING * alone.abs().max() + _ROUNDING / 100)
