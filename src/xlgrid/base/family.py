"""Families of encoders: the names of the parts of their models in transformers, and the heads that they support.

This module imports nothing from the library, so that papers can describe families before `xlgrid.heads.families`
collects them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class KnownType(ABC):
    """A model type of transformers that xlgrid knows, so that no model has to be made to see which heads it has. A head
    is an `xlgrid.heads.Head`.

    Attributes:
        dropout: the entries of config.json with the rates of dropout, those of models for tasks included.
    """

    dropout: tuple[str, ...]

    @abstractmethod
    def problem(self, head: Any) -> str | None:
        """Why encoders of the type cannot have a head, as a sentence that says what to do instead; None if they can."""

    @abstractmethod
    def model_class(self, head: Any) -> Any:
        """The class of the models with a head.

        Raises:
            ValueError: there is none.
        """


@dataclass(frozen=True)
class Family(KnownType):
    """A family of encoders. A path is a name of `torch.nn.Module.get_submodule`. The defaults are those of BERT.

    Layers are of two kinds. Those of BERT have a LayerNorm after the feed-forward block (`norm`). In those of
    ModernBERT, each block has a LayerNorm before it, and the layer returns the sum of the feed-forward block and its
    input (`norm` is empty).

    Attributes:
        stem: the beginning of the names of the family's classes, as in `BertModel` and `BertForMaskedLM`.
        layers: the path of the list of layers, from the encoder.
        attention: the path of the module that calls the attention function of transformers, from a layer; empty if the
            family has an attention of its own, which no other function can take the place of.
        query, key, value: the paths of the projections to queries, keys and values, from the attention, or from a layer
            if `attention` is empty. If they are one, its output has queries, keys and values side by side.
        feed_forward: the path of the module whose input is that of the feed-forward block, from a layer.
        last_dense: the path of the last linear layer of the feed-forward block, from a layer.
        norm: the path of the LayerNorm after the feed-forward block, from a layer.
        next_norm: the path of the LayerNorm that reads the output of the layer before, from a layer; where layers have
            no `norm`.
        last_norm: the path of the LayerNorm that reads the output of the last layer, from the encoder; likewise.
        word_embeddings: the path of the embeddings of tokens, from the encoder.
        embedded: the path of the module whose output the first layer reads, from the encoder.
        head: the names of modules that models for tasks have, besides those of `Head.modules`, between the encoder and
            their classifier.
        lm_head: the names of the modules of the language-modelling head, in the order in which they compute.
        decoder: the path of the output embeddings, from a language model.
        dropout: the entries of config.json with the rates of dropout, those of models for tasks included.
        biases: the entries of config.json of which one must be true for the encoder to have biases; without entries, it
            has them.
        lacks: the heads that the family has no class for, as the ends of the names of classes.
        renamed: old parts of names of weights, as checkpoints have them, -> their names in the family's classes.
        modules: the name of the dictionary with a module for each language, which a layer has; empty if layers have
            none.
    """

    stem: str
    layers: str = "encoder.layer"
    attention: str = "attention.self"
    query: str = "query"
    key: str = "key"
    value: str = "value"
    feed_forward: str = "intermediate"
    last_dense: str = "output.dense"
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

    def problem(self, head: Any) -> str | None:
        if head.model_suffix in self.lacks:
            return (
                f"transformers has no class {self.stem}For{head.model_suffix}, so that these encoders have no head {head.name}: take an "
                "encoder of another family for such tasks, such as jhu-clsp/mmBERT-base"
            )
        return head.without_class(self.stem)

    def model_class(self, head: Any) -> Any:
        if problem := self.problem(head):
            raise ValueError(problem)
        return head.model_class(self.stem)

    def name_modules(self, folder: Path, names: Mapping[str, str]) -> None:
        """Give modules for languages in an encoder's folder other names, in place, and check that each is there in its
        size.

        Args:
            names: the code of a language in a study -> the name of its module; others keep their names.

        Raises:
            ValueError: the encoder has no such module, a module already has one of the codes, or a module is missing or
                of another size.
        """
        if names:
            raise ValueError("`modules` names modules for languages, and encoders of this type have none: leave it out")


BERT = Family("Bert")
XLMR = Family("XLMRoberta", lm_head=("lm_head",), decoder="lm_head.decoder")
