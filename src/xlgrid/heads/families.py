"""Families of encoders: the names of the parts of their models in the classes of transformers.

Heads and methods find the parts of a model with this module. A new family is one entry of `FAMILIES`; CONTRIBUTING.md
lists the other steps. Papers add families with entry points of the group `xlgrid.families`, and types of models that
are not encoders, such as encoder-decoders, with entry points of the group `xlgrid.types`.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from xlgrid.base.family import BERT, XLMR, Family, KnownType
from xlgrid.base.plugins import Extensible

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

# The name of a module that all languages share, and the name of a module that a method adds for a language.
SHARED, ADDED = "shared", "added"

# The model type in config.json -> the family.
FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "xlm-roberta": XLMR,
    "roberta": replace(XLMR, stem="Roberta"),
    "distilbert": Family(
        "DistilBert",
        layers="transformer.layer",
        attention="attention",
        query="q_lin",
        key="k_lin",
        value="v_lin",
        feed_forward="ffn",
        last_dense="ffn.lin2",
        norm="output_layer_norm",
        lm_head=("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
        decoder="vocab_projector",
        dropout=("dropout", "attention_dropout", "seq_classif_dropout", "qa_dropout"),
    ),
    "deberta-v2": Family(
        "DebertaV2",
        attention="",
        query="attention.self.query_proj",
        key="attention.self.key_proj",
        value="attention.self.value_proj",
        dropout=("hidden_dropout_prob", "attention_probs_dropout_prob", "pooler_dropout"),
        # DeBERTa-v3's head computes the same as BERT's head, under these names (He et al. 2021).
        renamed={
            "lm_predictions.lm_head.dense.": "cls.predictions.transform.dense.",
            "lm_predictions.lm_head.LayerNorm.": "cls.predictions.transform.LayerNorm.",
            "lm_predictions.lm_head.bias": "cls.predictions.bias",
        },
    ),
    "modernbert": Family(
        "ModernBert",
        layers="layers",
        attention="attn",
        query="Wqkv",
        key="Wqkv",
        value="Wqkv",
        feed_forward="mlp_norm",
        last_dense="mlp.Wo",
        norm="",
        next_norm="attn_norm",
        last_norm="final_norm",
        word_embeddings="embeddings.tok_embeddings",
        embedded="embeddings.drop",
        head=("head",),
        lm_head=("head", "decoder"),
        decoder="decoder",
        dropout=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"),
        biases=("attention_bias", "mlp_bias", "norm_bias"),
    ),
    "eurobert": Family(
        "EuroBert",
        layers="layers",
        attention="self_attn",
        query="q_proj",
        key="k_proj",
        value="v_proj",
        feed_forward="post_attention_layernorm",
        last_dense="mlp.down_proj",
        norm="",
        next_norm="input_layernorm",
        last_norm="norm",
        word_embeddings="embed_tokens",
        embedded="embed_tokens",
        head=("dense",),
        lm_head=("lm_head",),
        decoder="lm_head",
        dropout=("attention_dropout",),
        biases=("attention_bias", "mlp_bias"),
        lacks=("QuestionAnswering", "MultipleChoice"),
    ),
}

FAMILIES |= Extensible[Family](
    "family", "xlgrid.families", {}, lambda name, value: isinstance(value, Family), "a Family"
).own
TYPES = Extensible[KnownType](
    "model type", "xlgrid.types", {}, lambda name, value: isinstance(value, KnownType), "a KnownType"
)

# The ends of the name of the tensor with one row per token. The encoder of a EuroBERT is called `model`, which
# distinguishes its embeddings from those of other models.
EMBEDDINGS = tuple(
    sorted({f"{'' if '.' in f.word_embeddings else 'model.'}{f.word_embeddings}.weight" for f in FAMILIES.values()})
)
_HEADS = {name for family in FAMILIES.values() for name in family.head}
_LM_HEADS = {name for family in FAMILIES.values() for name in family.lm_head}
_DECODERS = {f"{family.decoder}.weight" for family in FAMILIES.values()}
_EMBEDDINGS = {family.word_embeddings.partition(".")[0] for family in FAMILIES.values()}
# The names of dictionaries that hold the modules of languages.
MODULES = {family.modules for family in FAMILIES.values()} - {""}
_LAYERS = {family.layers.rpartition(".")[2] for family in FAMILIES.values()}


def known_type(model_type: str | None) -> KnownType | None:
    """The description of a model type: a family, or a type that is not an encoder; None for an unknown type."""
    return FAMILIES.get(model_type or "") or TYPES.get(model_type or "")


def family_of(model: "PreTrainedModel") -> Family:
    """The family of a model.

    Models of unknown types often have the layout of BERT or XLM-R, and the family is chosen accordingly. Callers check
    whether a part exists.
    """
    # Models that tests define have no configuration.
    kind = getattr(getattr(model, "config", None), "model_type", "")
    return FAMILIES.get(kind, XLMR if hasattr(model, "lm_head") else BERT)


def part(module: Any, path: str) -> Any:
    """The module at a path; None if the path leads to no module."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def layers_of(model: "PreTrainedModel") -> "list[nn.Module]":
    """The layers of an encoder; empty if its type is unknown and its layout differs from BERT's."""
    return [*(part(model.base_model, family_of(model).layers) or ())]


def layer_of(name: str) -> int | None:
    """The number of the layer to which a parameter belongs, from 0; None if it belongs to no layer."""
    parts = name.split(".")
    numbers = [number for before, number in pairwise(parts) if before in _LAYERS]
    return int(numbers[0]) if numbers and numbers[0].isdecimal() else None


def is_embedding(name: str) -> bool:
    """Whether a parameter belongs to a part before the first layer: the embeddings or their LayerNorm."""
    return not _EMBEDDINGS.isdisjoint(name.split("."))


def is_task_head(name: str) -> bool:
    """Whether a parameter belongs to a module of `Family.head`."""
    return name.partition(".")[0] in _HEADS


def is_language_head(name: str) -> bool:
    """Whether a parameter belongs to a language-modelling head, without the output embeddings."""
    first, *inner = name.split(".")
    return first in _LM_HEADS and "decoder" not in inner and name not in _DECODERS


def has_modules(model_type: str | None) -> bool:
    """Whether encoders of a type have a module for each language."""
    return model_type in FAMILIES and FAMILIES[model_type].modules != ""


def module_of(name: str) -> str | None:
    """The module to which a parameter belongs: a language, SHARED or ADDED; None if it belongs to no such module."""
    return next((after for before, after in pairwise(name.split(".")) if before in MODULES), None)


def is_pretrained_module(name: str) -> bool:
    """Whether a parameter belongs to the module of a language that was pre-trained with the encoder."""
    return module_of(name) not in (None, SHARED, ADDED)


def has_biases(config: Mapping[str, Any]) -> bool:
    """Whether an encoder has biases.

    Args:
        config: the contents of its config.json.
    """
    keys = FAMILIES.get(config.get("model_type", ""), BERT).biases
    return not keys or any(config.get(key) for key in keys)
