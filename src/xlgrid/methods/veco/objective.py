"""The pre-training objective of VECO, and that of XLM on the same inputs (Luo et al. 2021, section 2.2 and table 5).

Each row of a batch is a pair (x, y): both sides of bitext, or two adjacent segments of a text in one language (section 4).
With the masked inputs x̂ and ŷ, training adds up three losses, each the mean over its masked tokens:

    MLM       -log P(x | x̂) - log P(y | ŷ)           by H, equations 10 and 11
    CA-MLM    -log P(x | ŷ, x̂) - log P(y | x̂, ŷ)     by S, equations 12 and 13
    TLM       -log P(x, y | [x̂; ŷ])                  by H, of bitext alone; the same tokens are masked

Without CA-MLM it is the objective of XLM (Conneau and Lample 2019).
"""

from typing import TYPE_CHECKING, Literal

import numpy as np

from xlgrid.base.arrays import Ints
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.head import without_labels
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, language_head
from xlgrid.heads.language_modelling.pairs import pairs_of
from xlgrid.heads.tokens import Tokens
from xlgrid.methods.veco import modules

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    Batch = dict[str, torch.Tensor]

# The entries of a batch with the inputs and labels of TLM, whose names in a model's forward follow the prefix.
JOINED = "joined_"


class PairHead(MlmHead):
    """Masked language modelling of pairs. Only training uses it, on the tokens of the head `mlm`.

    A batch of n rows has 2n inputs: the x of all rows, and then the y of all rows.
    """

    allows_smoothing = False

    def __init__(
        self,
        masked: Masked | None = None,
        cross: bool = True,
        tlm: bool = True,
        detach: bool = True,
        adjacent: Literal["halves", "next"] = "halves",
    ) -> None:
        """What the objective consists of.

        Args:
            masked: the shares of masked tokens.
            cross: whether CA-MLM is among the losses.
            tlm: whether TLM is.
            detach: no gradient goes from CA-MLM to H of the partner (section 2.2).
            adjacent: the pair of a row of one segment: its two halves, or the row and the next one of its language. The two
                segments of a row that has two are a pair in either case.
        """
        super().__init__(masked)
        self.cross, self.tlm, self.detach, self.adjacent = cross, tlm, detach, adjacent
        self.loss_names = ("MLM", *["CA-MLM"][: int(cross)], *["TLM"][: int(tlm)])

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool, device: "torch.device | str" = "cpu") -> "Batch":
        """`input_ids`, `attention_mask` and `labels` of x and y, [2 x rows, longest]; with TLM, those of its inputs with the
        prefix `JOINED`, [rows of bitext, longest]."""
        pairs = pairs_of(tokens, rows, self.adjacent)
        batch = super().collate(pairs, np.arange(len(pairs)), token_types, device)
        return batch | (self._joined(tokens, rows, pairs, batch, token_types) if self.tlm else {})

    @staticmethod
    def _joined(tokens: Tokens, rows: Ints, pairs: Tokens, batch: "Batch", token_types: bool) -> "Batch":
        """The inputs of TLM: the masked x and y of each row of bitext in one input, as the tokens file has them."""
        import torch

        of_bitext = np.flatnonzero(tokens.segments(rows).switched)
        bitext, longest, labels = rows[of_bitext], batch["labels"].shape[1], batch["labels"]
        sizes, contexts = tokens.sizes[bitext][:, None], tokens.contexts[bitext][:, None]
        at = np.arange(sizes.max(initial=1))[None, :]
        in_y = at - sizes + pairs.sizes[len(rows) + of_bitext][:, None]
        # Where XLM-R has a second separator between x and y, the y of the pair has its first token, and the last token of x, which
        # is a separator, comes twice.
        of_x, of_y = (np.minimum(at, contexts - 1), of_bitext), (in_y, of_bitext + len(rows))
        places_x, places_y = (place + longest * inputs[:, None] for place, inputs in (of_x, of_y))
        is_second = (at >= contexts) & (in_y > 0)
        real = torch.from_numpy(at < sizes).to(labels.device)
        places = torch.from_numpy(np.where(is_second, places_y, places_x) * (at < sizes)).to(labels.device)
        joined = {
            "input_ids": batch["input_ids"].flatten()[places].masked_fill(~real, tokens.pad_id),
            "attention_mask": real.long(),
            "labels": labels.flatten()[places].masked_fill(~real, IGNORED),
        }
        if token_types:
            joined["token_type_ids"] = torch.from_numpy((at >= contexts) & (at < sizes)).long().to(labels.device)
        return {f"{JOINED}{name}": tensor for name, tensor in joined.items()}

    def terms_of_losses(self, batch: "Batch") -> dict[str, int]:
        masked = self.terms(batch)
        terms = {"MLM": masked, "CA-MLM": masked}
        if self.tlm:
            terms["TLM"] = int((batch[f"{JOINED}labels"] != IGNORED).sum())
        return {name: terms[name] for name in self.loss_names}

    def losses(self, model: "PreTrainedModel", batch: "Batch") -> dict[str, "torch.Tensor"]:
        both = {name: tensor for name, tensor in batch.items() if not name.startswith(JOINED)}
        joined = {name.removeprefix(JOINED): tensor for name, tensor in batch.items() if name.startswith(JOINED)}
        inputs, labels = without_labels(both)
        states = modules.first_stream(model, inputs)
        losses = {"MLM": _negative_log_likelihood(model, states, labels)}
        if self.cross:
            # The partner of each x is a y, and that of each y is an x.
            partners, partner_mask = (tensor.roll(len(labels) // 2, 0) for tensor in (states, inputs["attention_mask"]))
            states = modules.second_stream(model, inputs, partners, partner_mask, self.detach)
            losses["CA-MLM"] = _negative_log_likelihood(model, states, labels)
        if self.tlm and len(joined["labels"]):
            inputs, labels = without_labels(joined)
            losses["TLM"] = _negative_log_likelihood(model, modules.first_stream(model, inputs), labels)
        elif self.tlm:
            losses["TLM"] = states.new_zeros(())
        return losses


def _negative_log_likelihood(
    model: "PreTrainedModel", states: "torch.Tensor", labels: "torch.Tensor"
) -> "torch.Tensor":
    """The sum of -log P of the masked tokens, from the last layer of either stream; P is that of the model's one output layer."""
    from torch.nn.functional import cross_entropy

    output, due = language_head(model), labels != IGNORED
    if output is None:
        raise ValueError(f"pairs are for the families of BERT, not for {model.config.model_type}")
    return cross_entropy(output(states[due]).float(), labels[due], reduction="sum")
