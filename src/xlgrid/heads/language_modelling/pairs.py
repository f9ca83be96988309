"""Rows of text and bitext as pairs of inputs, and the objective of XLM on them (Conneau and Lample 2019).

Each row of a batch is a pair (x, y): both sides of bitext, or two adjacent segments of a text in one language (Luo et
al. 2021, section 4). With the masked inputs x̂ and ŷ, the training loss is the sum of two losses, each the mean over
its masked tokens:

    MLM       -log P(x | x̂) - log P(y | ŷ)
    TLM       -log P(x, y | [x̂; ŷ])             for bitext only; the same tokens are masked
"""

from typing import TYPE_CHECKING, Literal

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.head import without_labels
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, language_head, with_labels
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    Batch = dict[str, torch.Tensor]

# The prefix of the entries of a batch with the inputs and labels of TLM. The rest of the name is that of an argument of
# the model's forward.
JOINED = "joined_"


class PairHead(MlmHead):
    """Masked language modelling of pairs, for training only. It reads the tokens of the head `mlm`.

    A batch of n rows has 2n inputs: the x of all rows, and then the y of all rows.
    """

    allows_smoothing = False

    def __init__(
        self, masked: Masked | None = None, tlm: bool = True, adjacent: Literal["halves", "next"] = "halves"
    ) -> None:
        """Create the head.

        Args:
            masked: the shares of masked tokens.
            tlm: whether TLM is among the losses.
            adjacent: the pair that a row with one segment becomes: its two halves, or the row and the next row of its
                language. A row with two segments is always the pair of its segments.
        """
        super().__init__(masked)
        self.tlm, self.adjacent = tlm, adjacent
        self.loss_names = ("MLM", "TLM") if tlm else ("MLM",)

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> "Batch":
        """The tensors `input_ids`, `attention_mask` and `labels` of x and y, [2 x rows, longest].

        With TLM, the batch also has the tensors of the joined inputs, [rows of bitext, longest]. Their names have the
        prefix `JOINED`.
        """
        pairs = pairs_of(tokens, rows, self.adjacent)
        batch = super().collate(pairs, np.arange(len(pairs)), token_types)
        return batch | (self._joined(tokens, rows, pairs, batch, token_types) if self.tlm else {})

    @staticmethod
    def _joined(tokens: Tokens, rows: Ints, pairs: Tokens, batch: "Batch", token_types: bool) -> "Batch":
        """The inputs of TLM: the masked x and y of each row of bitext in one input, in the format of the tokens
        file."""
        import torch

        of_bitext = np.flatnonzero(tokens.segments(rows).switched)
        bitext, longest, labels = rows[of_bitext], batch["labels"].shape[1], batch["labels"]
        sizes, contexts = tokens.sizes[bitext][:, None], tokens.contexts[bitext][:, None]
        at = np.arange(sizes.max(initial=1))[None, :]
        in_y = at - sizes + pairs.sizes[len(rows) + of_bitext][:, None]
        # XLM-R has a second separator between x and y, where the y of the pair has its first token. The last token of
        # x, which is a separator, is therefore repeated.
        of_x, of_y = (np.minimum(at, contexts - 1), of_bitext), (in_y, of_bitext + len(rows))
        places_x, places_y = (place + longest * inputs[:, None] for place, inputs in (of_x, of_y))
        is_second = (at >= contexts) & (in_y > 0)
        real = torch.from_numpy(at < sizes)
        places = torch.from_numpy(np.where(is_second, places_y, places_x) * (at < sizes))
        joined = {
            "input_ids": batch["input_ids"].flatten()[places].masked_fill(~real, tokens.pad_id),
            "attention_mask": real.long(),
            "labels": labels.flatten()[places].masked_fill(~real, IGNORED),
        }
        if token_types:
            joined["token_type_ids"] = torch.from_numpy((at >= contexts) & (at < sizes)).long()
        return {f"{JOINED}{name}": tensor for name, tensor in joined.items()}

    def terms_of_losses(self, batch: "Batch") -> dict[str, int]:
        terms = {"MLM": self.terms(batch)}
        return terms | ({"TLM": int((batch[f"{JOINED}labels"] != IGNORED).sum())} if self.tlm else {})

    def losses(self, model: "PreTrainedModel", batch: "Batch") -> dict[str, "torch.Tensor"]:
        both = {name: tensor for name, tensor in batch.items() if not name.startswith(JOINED)}
        inputs, labels = without_labels(both)
        states = model.base_model(**inputs).last_hidden_state
        losses = {"MLM": negative_log_likelihood(model, states, labels)}
        losses |= self.losses_of_both(model, inputs, states, labels)
        joined = {name.removeprefix(JOINED): tensor for name, tensor in batch.items() if name.startswith(JOINED)}
        if self.tlm and len(joined["labels"]):
            inputs, labels = without_labels(joined)
            states = model.base_model(**inputs).last_hidden_state
            losses["TLM"] = negative_log_likelihood(model, states, labels)
        elif self.tlm:
            losses["TLM"] = states.new_zeros(())
        return losses

    def losses_of_both(
        self, model: "PreTrainedModel", inputs: "Batch", states: "torch.Tensor", labels: "torch.Tensor"
    ) -> dict[str, "torch.Tensor"]:
        """Further losses on the inputs x and y of all rows.

        Args:
            inputs: `input_ids` and `attention_mask` of x and y, [2 x rows, longest].
            states: the output of the last layer for these inputs, [2 x rows, longest, size].
            labels: the masked tokens, [2 x rows, longest].
        """
        return {}


def negative_log_likelihood(model: "PreTrainedModel", states: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":
    """The sum of -log P over the masked tokens, where P is the probability from the model's output layer."""
    from torch.nn.functional import cross_entropy

    output = language_head(model)
    if output is None:
        raise ValueError(
            f"training on pairs needs an encoder of the family of BERT or XLM-R, got {model.config.model_type}"
        )
    states, labels = with_labels(states, labels)
    return cross_entropy(output(states).float(), labels, reduction="sum")


def pairs_of(tokens: Tokens, rows: Ints, adjacent: Literal["halves", "next"] = "halves") -> Tokens:
    """The inputs x of some rows, followed by their inputs y, each with its own special tokens and the languages of its
    row.

    A row with two segments is the pair of its segments. A row with one segment is the pair of its halves, or of the row
    and the next row of its language; for the last row, y is the row before it. If a row has no neighbour or only one
    token, its y has no words.
    """
    first, second = [], []
    for row in rows.tolist():
        ids, context = tokens.ids(row), int(tokens.contexts[row])
        if context < len(ids):
            # XLM-R has two separators between the segments, and BERT one.
            start = context + int(ids[context] == ids[context - 1])
            first.append(ids[:context])
            second.append(np.concatenate([ids[:1], ids[start:]]))
        elif adjacent == "next":
            neighbour = _neighbour(tokens, row)
            pair = [ids, ids[[0, -1]] if neighbour is None else tokens.ids(neighbour)]
            # The text of x comes before the text of y.
            x, y = pair[::-1] if neighbour is not None and neighbour < row else pair
            first.append(x)
            second.append(y)
        else:
            middle = (len(ids) + 1) // 2
            first.append(np.append(ids[:middle], ids[-1:]))
            second.append(np.append(ids[:1], ids[middle:]))
    inputs = [*first, *second]
    sizes = np.array([len(ids) for ids in inputs])
    return tokens.with_inputs(inputs, sizes, np.tile(tokens.language_of[rows], (2, 1)))


def _neighbour(tokens: Tokens, row: int) -> int | None:
    """The next row of the same part of a mix, or else the row before it; None if both have two segments."""
    for other in (row + 1, row - 1):
        is_there = 0 <= other < len(tokens) and (tokens.parts is None or tokens.parts[other] == tokens.parts[row])
        if is_there and tokens.contexts[other] == tokens.sizes[other]:
            return other
    return None
