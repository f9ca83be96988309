"""The head `perplexity`: fixed masks, and the likelihood of the masked tokens as transformers computes it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.data import batches
from xlgrid.heads import HEADS, metric
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method
from xlgrid.models import prediction

pytestmark = pytest.mark.usefixtures("one_thread")

SIZE = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
MODELS = {
    "bert": lambda: BertForMaskedLM(BertConfig(**SIZE, initializer_range=0.5)),
    "xlmr": lambda: XLMRobertaForMaskedLM(XLMRobertaConfig(**SIZE, initializer_range=0.5, pad_token_id=0)),
}


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    rng = np.random.default_rng(1)
    ids = [[2, *rng.integers(5, 50, rng.integers(1, 40)).tolist(), 2] for _ in range(60)]
    return batches.read(write(tmp_path / "t.arrow", ids, "perplexity"))


def masked_rows(tokens: Tokens, rows: list[int]) -> dict[int, tuple[list[int], list[int]]]:
    """Row -> its inputs and its labels, without padding, in one batch of these rows."""
    batch = HEADS["perplexity"].evaluation_batch(tokens, np.array(rows), False)
    lengths = tokens.lengths[rows].tolist()
    parts = zip(rows, lengths, batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True)
    return {row: (ids[:length], labels[:length]) for row, length, ids, labels in parts}


def test_a_row_has_the_same_masks_in_every_batch_and_at_any_time(tokens: Tokens) -> None:
    torch.manual_seed(1)
    together = masked_rows(tokens, [*range(60)])
    torch.manual_seed(2)
    for row in range(60):
        assert masked_rows(tokens, [row]) == {row: together[row]}
    assert masked_rows(tokens, [9, 3])[3] == together[3]


def test_rows_differ_in_their_masks_which_are_those_of_training_in_share(tmp_path: Path) -> None:
    """0.15 of the tokens are to be predicted: 0.8 of them are masked, and 0.1 are random."""
    row = [2, *range(5, 45), 2]
    tokens = batches.read(write(tmp_path / "t.arrow", [row] * 400, "perplexity"))
    batch = HEADS["perplexity"].evaluation_batch(tokens, np.arange(400), False)
    due, plain = batch["labels"] != -100, torch.tensor(row).expand(400, -1)
    assert len({tuple(each) for each in due.tolist()}) > 390
    assert not due[:, [0, -1]].any(), "special tokens are to be predicted"
    assert torch.equal(batch["labels"][due], plain[due]) and torch.equal(batch["input_ids"][~due], plain[~due])
    shares = due[:, 1:-1], (batch["input_ids"] == 4)[due], (batch["input_ids"] == plain)[due]
    for share, expected in zip(shares, (0.15, 0.8, 0.1 + 0.1 / 50), strict=True):
        assert abs(share.float().mean() - expected) < 0.02


def by_transformers(model: Any, tokens: Tokens) -> list[list[float]]:
    """The outcomes as transformers' own loss gives them, one row at a time and without padding."""
    outcomes = []
    for row, (ids, labels) in masked_rows(tokens, [*range(len(tokens))]).items():
        number = sum(label != -100 for label in labels)
        assert [label for label in labels if label != -100] == [
            token for token, label in zip(tokens.values[tokens.offsets[row] :], labels, strict=False) if label != -100
        ]
        with torch.no_grad():
            loss = model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss
        outcomes.append([number * float(loss) if number else 0.0, number])
    return outcomes


@pytest.mark.parametrize("kind", MODELS)
def test_two_encoders_have_the_perplexity_of_transformers_on_the_same_masks(kind: str, tokens: Tokens) -> None:
    scores = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = MODELS[kind]().eval()
        expected = by_transformers(model, tokens)
        outcomes = prediction.outcomes_on(model, Method(), tokens, 200, token_types=False)
        np.testing.assert_allclose(np.array(outcomes, float), expected, rtol=1e-4, atol=1e-4)
        [metric] = HEADS["perplexity"].metrics(())
        total, number = np.sum(expected, 0)
        assert metric.score(outcomes) == pytest.approx(math.exp(total / number), rel=1e-4)
        scores.append((metric.score(outcomes), number))
    (first, masked), (second, also_masked) = scores
    assert masked == also_masked and first != second


def test_a_row_in_which_nothing_is_masked_counts_for_nothing(tokens: Tokens) -> None:
    torch.manual_seed(1)
    outcomes = prediction.outcomes_on(MODELS["bert"]().eval(), Method(), tokens, 200)
    assert [0.0, 0] in outcomes, "there should be a short row without a mask"
    [metric] = HEADS["perplexity"].metrics(())
    assert metric.score(outcomes) == metric.score([outcome for outcome in outcomes if outcome[1]])


def test_a_model_that_takes_all_tokens_for_equally_likely_has_the_perplexity_of_chance(tokens: Tokens) -> None:
    even = [[math.log(50) * 3, 3], [math.log(50) * 2, 2]]
    assert HEADS["perplexity"].chance(tokens) == {"perplexity": pytest.approx(metric("perplexity").score(even))}


def test_a_perplexity_is_e_to_the_mean_over_masked_tokens_and_not_over_examples() -> None:
    assert metric("perplexity").score([[math.log(8), 3], [0.0, 0], [math.log(2), 1]]) == pytest.approx(2)


@pytest.mark.parametrize("loss", [1e6, math.nan])
def test_a_perplexity_of_a_model_that_has_diverged_is_an_error(loss: float) -> None:
    with pytest.raises(ValueError, match=r"perplexity, e to the power of .* the model has diverged"):
        metric("perplexity").score([[loss, 1]])
