"""The biaffine parser (Dozat and Manning 2017, section 3) above an encoder of transformers."""

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from xlgrid.heads.head import at_least_fp32

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class Biaffine(nn.Module):
    """The scores of heads and relations, from the vectors of words.

    A layer with a LeakyReLU reduces the vector of a word to four smaller ones, h: of the word as a dependent and as a
    head, for arcs and for relations (eq. 4 and 5). With the size 0, these are the vector itself, as in Glavaš and Vulić
    (2021).

    Args:
        size: of the vectors of words.
        labels: the number of relations.
        arc, relation: the sizes of the smaller vectors; 0 for the vector itself.
        dropout: the rate for the smaller vectors.
    """

    def __init__(self, size: int, labels: int, arc: int, relation: int, dropout: float) -> None:
        super().__init__()
        self.sizes = [arc or size] * 2 + [relation or size] * 2

        def reduced(to: int) -> nn.Module:
            layers = (nn.Linear(size, to), nn.LeakyReLU(0.1), nn.Dropout(dropout)) if to else ()
            return nn.Sequential(*layers)

        self.reduce = nn.ModuleList(map(reduced, (arc, arc, relation, relation)))
        wide, narrow = self.sizes[0], self.sizes[2]
        self.arc = nn.Linear(wide, wide, bias=False)
        self.arc_head = nn.Linear(wide, 1, bias=False)
        self.relation = nn.Linear(narrow, narrow * labels, bias=False)
        self.relation_both = nn.Linear(2 * narrow, labels)

    def forward(self, states: Tensor) -> Tensor:
        """The four vectors of each word, one after another: [..., size] -> [..., sum of the sizes]."""
        return torch.cat([layer(states) for layer in self.reduce], -1)

    def arcs(self, vectors: Tensor, present: Tensor) -> Tensor:
        """The scores of heads: h_head' U h_dependent + h_head' u (eq. 6).

        Args:
            vectors: [rows, words + 1, sum of the sizes], from `forward`, the root first.
            present: [rows, words + 1], False for padding.

        Returns:
            [rows, words, words + 1], in single precision; -inf for padding, and for a word as its own head.
        """
        dependents, heads, *_ = at_least_fp32(vectors).split(self.sizes, -1)
        with torch.autocast(vectors.device.type, enabled=False):
            scores = self.arc(dependents[:, 1:]) @ heads.transpose(1, 2) + self.arc_head(heads).transpose(1, 2)
        itself = torch.eye(scores.shape[2], dtype=torch.bool, device=scores.device)[1:]
        return scores.masked_fill(~present[:, None] | itself, -torch.inf)

    def relations(self, vectors: Tensor, heads: Tensor) -> Tensor:
        """The scores of relations to the given heads: h_head' U h_dependent + (h_head, h_dependent)' W + b (eq. 3).

        Args:
            vectors: as of `arcs`.
            heads: [rows, words], the number of each word's head.

        Returns:
            [rows, words, labels], in single precision.
        """
        *_, dependents, governors = at_least_fp32(vectors).split(self.sizes, -1)
        dependents, at = dependents[:, 1:], heads.unsqueeze(-1).expand(-1, -1, governors.shape[-1])
        governors = governors.gather(1, at)
        with torch.autocast(vectors.device.type, enabled=False):
            bilinear = self.relation(dependents).unflatten(-1, (-1, governors.shape[-1])) @ governors.unsqueeze(-1)
            return bilinear.squeeze(-1) + self.relation_both(torch.cat([governors, dependents], -1))


@cache
def parser_class(tagger: Any, arc: int, relation: int) -> Any:
    """The subclass of a class of transformers for the classification of tokens, such as `BertForTokenClassification`,
    whose models have a parser in place of everything that is above the encoder.

    The models return the vectors of `Biaffine.forward` as `logits`.
    """
    from transformers.modeling_outputs import TokenClassifierOutput

    class WithParser(tagger):
        def __init__(self, config: "PreTrainedConfig") -> None:
            super().__init__(config)
            above = [name for name, _ in self.named_children() if name != self.base_model_prefix]
            rates = [module.p for name in above if isinstance(module := getattr(self, name), nn.Dropout)]
            for name in above:
                delattr(self, name)
            self.dropout = nn.Dropout(max(rates, default=0.0))
            self.parser = Biaffine(config.hidden_size, config.num_labels, arc, relation, self.dropout.p)
            self.post_init()

        def forward(self, words: Tensor | None = None, **inputs: Any) -> TokenClassifierOutput:
            # `words`, [rows, words + 1, tokens], has the weight of each token in the vector of each word. Without it,
            # each token is a word.
            states = self.base_model(**inputs).last_hidden_state
            if words is not None:
                states = words.to(states.dtype) @ states
            return TokenClassifierOutput(logits=self.parser(self.dropout(states)))

    WithParser.__name__ = WithParser.__qualname__ = tagger.__name__.replace("TokenClassification", "Parsing")
    return WithParser


class AutoParser:
    """What an Auto class of transformers is for other heads: the class of a model follows from its configuration."""

    def __init__(self, arc: int, relation: int) -> None:
        from transformers import AutoModelForTokenClassification

        self.sizes, self._model_mapping = (arc, relation), AutoModelForTokenClassification._model_mapping

    def from_config(self, config: "PreTrainedConfig") -> Any:
        """A new model."""
        return parser_class(self._model_mapping[type(config)], *self.sizes)(config)

    def from_pretrained(self, folder: Any, **settings: Any) -> Any:
        """A model with the weights in a folder."""
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        return parser_class(self._model_mapping[type(config)], *self.sizes).from_pretrained(folder, **settings)
