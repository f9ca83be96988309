"""A head for tests whose metric has no unit and is better when it is lower, and which is put into the registry for a test."""

from typing import Any

import pytest
import torch

from xlgrid.heads import HEADS
from xlgrid.heads.metrics import Ratio
from xlgrid.heads.sequence import SequenceHead

SURPRISAL = Ratio(
    "surprisal",
    "tests: the mean negative log-probability of the right label, in nats",
    lambda outcome: (outcome[0], outcome[1]),
    unit="",
    higher_is_better=False,
    scale=1,
)


class SurprisalHead(SequenceHead):
    """One label for one or two texts; an outcome is `[negative log-probability of the right label, 1]`."""

    name = "surprisal"
    all_metrics = (SURPRISAL,)

    def predict(self, model: Any, batch: dict[str, torch.Tensor], tokens: Any, rows: Any) -> list[Any]:
        logits, labels = self.scores(model, batch)
        surprisals = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
        return [[value, 1] for value in surprisals.tolist()]


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the head for the length of a test."""
    monkeypatch.setitem(HEADS, SurprisalHead.name, SurprisalHead())
