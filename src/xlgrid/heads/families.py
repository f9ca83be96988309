"""Families of encoders: where the parts of their models are in the classes of transformers.

Heads and methods find the parts of a model here. A new family is one entry of `FAMILIES`; CONTRIBUTING.md says what else it needs.
Papers add families by entry points of the group `xlgrid.families`, and types of models that are no encoders, such as an encoder-decoder,
by those of the group `xlgrid.types`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.plugins import Extensible

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

    from xlgrid.heads.head import Head


class KnownType(ABC):
    """A model type of transformers that xlgrid knows, so that no model has to be made to see which heads it has.

    Attributes:
        dropout: the entries of config.json with the rates of dropout, those of models for tasks included.
    """

    dropout: tuple[str, ...]

    @abstractmethod
    def problem(self, head: "Head") -> str | None:
        """Why encoders of the type cannot have a head, as a sentence that says what to do instead; None if they can."""

    @abstractmethod
    def model_class(self, head: "Head") -> Any:
        """The class of the models with a head.

        Raises:
            ValueError: there is none.
        """


@dataclass(frozen=True)
class Family(KnownType):
    """A family of encoders. A path is a name of `torch.nn.Module.get_submodule`. The defaults are those of BERT.

    Layers are of two kinds. Those of BERT have a LayerNorm after the feed-forward block (`norm`). In those of ModernBERT, each block
    has a LayerNorm before it, and the layer returns the sum of the feed-forward block and its input (`norm` is empty).

    Attributes:
        stem: the beginning of the names of the family's classes, as in `BertModel` and `BertForMaskedLM`.
        layers: the path of the list of layers, from the encoder.
        attention: the path of the module that calls the attention function of transformers, from a layer; empty if the
            family has an attention of its own, which no other function can take the place of.
        query, key: the paths of the projections to queries and to keys, from the attention. If both are one, its output has
            queries, keys and values side by side.
        feed_forward: the path of the module whose input is that of the feed-forward block, from a layer.
        norm: the path of the LayerNorm after the feed-forward block, from a layer.
        next_norm: the path of the LayerNorm that reads the output of the layer before, from a layer; where layers have no `norm`.
        last_norm: the path of the LayerNorm that reads the output of the last layer, from the encoder; likewise.
        word_embeddings: the path of the embeddings of tokens, from the encoder.
        embedded: the path of the module whose output the first layer reads, from the encoder.
        head: the names of modules that models for tasks have, besides those of `Head.modules`, between the encoder and their
            classifier.
        lm_head: the names of the modules of the language-modelling head, in the order in which they compute.
        decoder: the path of the output embeddings, from a language model.
        dropout: the entries of config.json with the rates of dropout, those of models for tasks included.
        biases: the entries of config.json of which one must be true for the encoder to have biases; without entries, it has them.
        lacks: the heads that the family has no class for, as the ends of the names of classes.
        renamed: old parts of names of weights, as checkpoints have them, -> their names in the family's classes.
        modules: the name of the dictionary with a module for each language, which a layer has; empty if layers have none.
    """

    stem: str
    layers: str = "encoder.layer"
    attention: str = "attention.self"
    query: str = "query"
    key: str = "key"
    feed_forward: str = "intermediate"
    norm: str = "output.LayerNorm"
    next_norm: str = ""
    last_norm: str = ""
    word_embeddings: str = "embeddings.word_embeddings"
    embedded: str = "embeddings.dropout"
    head: tuple[str, ...] = ()
    lm_head: tuple[str, ...] = ("cls",)
    decoder: str = "cls.predictions.decoder"
    dropout: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    biases: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    modules: str = ""

    def problem(self, head: "Head") -> str | None:
        if head.model_suffix in self.lacks:
            return (
                f"transformers has no class {self.stem}For{head.model_suffix}, so that these encoders have no head {head.name}: take an "
                "encoder of another family for such tasks, such as jhu-clsp/mmBERT-base"
            )
        return head.without_class(self.stem)

    def model_class(self, head: "Head") -> Any:
        if problem := self.problem(head):
            raise ValueError(problem)
        return head.model_class(self.stem)

    def name_modules(self, folder: Path, names: Mapping[str, str]) -> None:
        """Give modules for languages in an encoder's folder other names, in place, and check that each is there in its size.

        Args:
            names: the code of a language in a study -> the name of its module; others keep their names.

        Raises:
            ValueError: the encoder has no such module, a module already has one of the codes, or a module is missing or of another size.
        """
        if names:
            raise ValueError("`modules` names modules for languages, and encoders of this type have none: leave it out")


BERT = Family("Bert")
XLMR = Family("XLMRoberta", lm_head=("lm_head",), decoder="lm_head.decoder")

# The module that encoders may have in place of one for each language, and that of a language which a method adds.
SHARED, ADDED = "shared", "added"

# By the model type in config.json.
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
        feed_forward="ffn",
        norm="output_layer_norm",
        lm_head=("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
        decoder="vocab_projector",
        dropout=("dropout", "attention_dropout", "seq_classif_dropout", "qa_dropout"),
    ),
    "deberta-v2": Family(
        "DebertaV2",
        attention="",
        dropout=("hidden_dropout_prob", "attention_probs_dropout_prob", "pooler_dropout"),
        # DeBERTa-v3's head computes what that of BERT does, under these names (He et al. 2021).
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
        feed_forward="mlp_norm",
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
        feed_forward="post_attention_layernorm",
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

# The ends of the names of the tensor with one row per token. The encoder of a EuroBERT is called `model`, which tells its embeddings from
# those of mBART.
EMBEDDINGS = tuple(
    sorted({f"{'' if '.' in f.word_embeddings else 'model.'}{f.word_embeddings}.weight" for f in FAMILIES.values()})
)
_HEADS = {name for family in FAMILIES.values() for name in family.head}
_LM_HEADS = {name for family in FAMILIES.values() for name in family.lm_head}
_DECODERS = {f"{family.decoder}.weight" for family in FAMILIES.values()}
_EMBEDDINGS = {family.word_embeddings.partition(".")[0] for family in FAMILIES.values()}
# The dictionaries of modules for languages.
MODULES = {family.modules for family in FAMILIES.values()} - {""}
_LAYERS = {family.layers.rpartition(".")[2] for family in FAMILIES.values()}


def known_type(model_type: str | None) -> KnownType | None:
    """What xlgrid knows of a model type: a family, or a type that is no encoder; None if it does not know the type."""
    return FAMILIES.get(model_type or "") or TYPES.get(model_type or "")


def family_of(model: "PreTrainedModel") -> Family:
    """The family of a model. Models of other types often have the layout of BERT or XLM-R, and are taken for these: callers look
    whether a part is there."""
    # Models that tests make up have no configuration.
    kind = getattr(getattr(model, "config", None), "model_type", "")
    return FAMILIES.get(kind, XLMR if hasattr(model, "lm_head") else BERT)


def part(module: Any, path: str) -> Any:
    """The module at a path; None if there is none."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def layers_of(model: "PreTrainedModel") -> "list[nn.Module]":
    """The layers of an encoder; none if it is of no family and has another layout than BERT."""
    return [*(part(model.base_model, family_of(model).layers) or ())]


def layer_of(name: str) -> int | None:
    """The number of the layer to which a parameter belongs, from 0; None if it belongs to no layer."""
    parts = name.split(".")
    numbers = [number for before, number in pairwise(parts) if before in _LAYERS]
    return int(numbers[0]) if numbers and numbers[0].isdecimal() else None


def is_embedding(name: str) -> bool:
    """Whether a parameter belongs to what comes before the first layer: the embeddings and their LayerNorm."""
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
    """The module, that of a language, SHARED or ADDED, to which a parameter belongs; None if it belongs to no such module."""
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
