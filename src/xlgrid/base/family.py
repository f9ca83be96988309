"""What a family of encoders has: where the parts of its models are in the classes of transformers.

The module imports none of the library, so that papers can describe families before `xlgrid.heads.families` collects them.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Family(NamedTuple):
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
        extended: the function that makes the class of the models from that of transformers, as `module:function`; empty if
            transformers' own class is used.
        checkpoints: the module with `rename_modules` and `check_modules`, which know `modules` in checkpoints; empty without `modules`.
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
    renamed: Mapping[str, str] = {}
    modules: str = ""
    extended: str = ""
    checkpoints: str = ""

    @property
    def with_modules(self) -> Any:
        """The module that `checkpoints` names; None without modules for languages."""
        return import_module(self.checkpoints) if self.checkpoints else None

    def extend(self, known: Any) -> Any:
        """The class of the family's models.

        Args:
            known: the class of transformers.
        """
        module, _, function = self.extended.partition(":")
        return getattr(import_module(module), function)(known) if module else known


BERT = Family("Bert")
XLMR = Family("XLMRoberta", lm_head=("lm_head",), decoder="lm_head.decoder")
