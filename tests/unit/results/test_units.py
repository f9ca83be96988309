"""Units and directions of scores, of one metric and of several together."""

from dataclasses import replace

import pytest

from xlgrid.heads import HEADS
from xlgrid.heads.metrics import ACCURACY
from xlgrid.results import units


@pytest.fixture(autouse=True)
def bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric in bits, of which less is better, beside those of the library."""
    loss = replace(ACCURACY, name="loss", unit="bits", higher_is_better=False)
    monkeypatch.setattr(HEADS["sequence"], "all_metrics", (ACCURACY, loss))


@pytest.mark.parametrize(
    ("names", "unit", "difference", "quantity", "sentence"),
    [
        ([], "%", "points", "score (%)", ""),
        (["accuracy"], "%", "points", "accuracy (%)", "accuracy, in percent"),
        (["accuracy", "f1", "accuracy", ""], "%", "points", "score (%)", "accuracy, F1, in percent"),
        (["squad-f1", "squad-em"], "%", "points", "score (%)", "SQuAD-F1, SQuAD-EM, in percent"),
        (["loss"], "bits", "bits", "loss (bits)", "loss, in bits, lower is better"),
        (["accuracy", "loss"], "", "", "score", "accuracy, in percent, loss, in bits, lower is better"),
    ],
)
def test_metrics_of_one_unit_share_it(
    names: list[str], unit: str, difference: str, quantity: str, sentence: str
) -> None:
    assert units.unit(names) == unit
    assert units.unit_of_difference(names) == difference
    assert units.quantity(names) == quantity
    assert units.sentence(names) == sentence


def test_metrics_of_opposite_directions_cannot_be_compared() -> None:
    assert units.higher_is_better(["accuracy", "f1"]) and not units.higher_is_better(["loss"])
    with pytest.raises(ValueError, match="higher is better for some of accuracy and loss"):
        units.higher_is_better(["accuracy", "loss"])
