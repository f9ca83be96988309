"""The head `perplexity`, which evaluates a language model on masked tokens of text (Pfeiffer et al. 2022, section
4)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.language_modelling.mlm import MlmHead
from xlgrid.heads.metrics import Outcome, Ratio
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


# The largest natural exponent in double precision is a little larger.
LARGEST = 700


@dataclass(frozen=True)
class Perplexity(Ratio):
    """The perplexity: e to the power of the mean negative log-likelihood in nats."""

    def score(self, outcomes: Iterable[Outcome]) -> float:
        nats = super().score(outcomes)
        if not nats < LARGEST:
            raise ValueError(f"{self.name}, e to the power of {nats:g}, is not a number: the model has diverged")
        return math.exp(nats)

    def moves(self, outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
        # The derivative of the exponential function is the function itself.
        return self.score(outcomes) * super().moves(outcomes)


PERPLEXITY = Perplexity(
    "perplexity",
    "xlgrid.heads.language_modelling.perplexity: e to the mean negative log-likelihood, in nats, of masked tokens",
    lambda outcome: (outcome[0], outcome[1]),
    unit="",
    higher_is_better=False,
    scale=1,
)


class PerplexityHead(MlmHead):
    """The head `mlm` with evaluation: a cell has the perplexity of the masked tokens of the test set.

    An outcome is `[negative log-likelihood in nats, masked]` for an input.
    """

    name = "perplexity"
    all_metrics = (PERPLEXITY,)
    has_cells = True

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The perplexity of a model for which all tokens of the vocabulary are equally likely."""
        return {PERPLEXITY.name: float(tokens.vocabulary.size)}

    def predict(
        self, model: "PreTrainedModel", batch: dict[str, "torch.Tensor"], tokens: Tokens, rows: Ints
    ) -> list[list[float]]:
        import torch

        logits, labels = self.scores(model, batch)
        due = batch["labels"] != IGNORED
        # The losses are in the order of `labels`: the masked tokens of one row after another.
        losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none").double()
        sums = torch.zeros(due.shape, dtype=losses.dtype, device=losses.device).masked_scatter(due, losses).sum(1)
        return [[nats, int(count)] for nats, count in torch.stack([sums, due.sum(1)], 1).tolist()]
