"""The pre-training objective of VECO (Luo et al. 2021, section 2.2).

Each row of a batch is a pair (x, y): both sides of bitext, or two adjacent segments of a text in one language (section
4). With the masked inputs x̂ and ŷ, the training loss is the sum of three losses, each the mean over its masked tokens:

    MLM       -log P(x | x̂) - log P(y | ŷ)           by H, equations 10 and 11
    CA-MLM    -log P(x | ŷ, x̂) - log P(y | x̂, ŷ)     by S, equations 12 and 13
    TLM       -log P(x, y | [x̂; ŷ])                  by H, for bitext only; the same tokens are masked

MLM and TLM are the same as in `xlgrid.heads.language_modelling.pairs`.
"""

from typing import TYPE_CHECKING, Literal

from xlgrid.heads.language_modelling.mlm import Masked
from xlgrid.heads.language_modelling.pairs import PairHead, negative_log_likelihood
from xlgrid.heads.transfer import note, noted

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    Batch = dict[str, torch.Tensor]


class CrossPairHead(PairHead):
    """Masked language modelling of pairs by both streams of an encoder with cross-attention."""

    def __init__(
        self,
        masked: Masked | None = None,
        tlm: bool = True,
        detach: bool = True,
        adjacent: Literal["halves", "next"] = "halves",
    ) -> None:
        """Create the head.

        Args:
            masked, tlm, adjacent: see `PairHead`.
            detach: whether no gradient goes from CA-MLM to H of the partner (section 2.2).
        """
        super().__init__(masked, tlm, adjacent)
        self.detach = detach
        self.loss_names = ("MLM", "CA-MLM", *self.loss_names[1:])

    def terms_of_losses(self, batch: "Batch") -> dict[str, int]:
        terms = super().terms_of_losses(batch) | {"CA-MLM": self.terms(batch)}
        return {name: terms[name] for name in self.loss_names}

    def losses_of_both(
        self, model: "PreTrainedModel", inputs: "Batch", states: "torch.Tensor", labels: "torch.Tensor"
    ) -> dict[str, "torch.Tensor"]:
        from xlgrid.papers.luo2021.veco import modules

        # The partner of each x is its y, and the partner of each y is its x.
        partners, partner_mask = (tensor.roll(len(labels) // 2, 0) for tensor in (states, inputs["attention_mask"]))
        if (is_full := noted(inputs["attention_mask"])) is not None:
            note(partner_mask, is_full)
        both = modules.second_stream(model, inputs, partners, partner_mask, self.detach)
        return {"CA-MLM": negative_log_likelihood(model, both, labels)}
