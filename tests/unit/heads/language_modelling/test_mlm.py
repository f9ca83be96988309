"""The head `mlm`: what is masked, and how texts become inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import collate, write
from transformers import (
    AutoModelForMaskedLM,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    EuroBertConfig,
    ModernBertConfig,
)

from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.language_modelling.mlm import Masked, MlmHead, language_head


def test_text_is_masked_anew_at_each_draw_and_the_same_for_a_seed(tmp_path: Path) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", [[2, *range(5, 45), 2]] * 300, "mlm"))
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(collate(tokens, np.arange(300)))
    assert torch.equal(drawn[0]["input_ids"], drawn[1]["input_ids"])
    assert not torch.equal(drawn[0]["input_ids"], drawn[2]["input_ids"])
    ids, labels = drawn[0]["input_ids"], drawn[0]["labels"]
    plain, due = torch.tensor([2, *range(5, 45), 2]).expand(300, -1), labels != -100
    assert torch.equal(labels[due], plain[due]) and torch.equal(ids[~due], plain[~due])
    assert not due[:, [0, -1]].any(), "special tokens are to be predicted"
    shares = (due[:, 1:-1], (ids == 4)[due], (ids == plain)[due])
    for share, expected in zip(shares, (0.15, 0.8, 0.1 + 0.1 / 50), strict=True):
        assert abs(share.float().mean() - expected) < 0.03, expected


def test_bitext_can_have_a_share_of_masks_of_its_own_in_training_and_not_in_evaluation(tmp_path: Path) -> None:
    rows = [[2, *range(5, 45), 2]] * 200
    text, bitext = (batches.read(write(tmp_path / f"{code}.arrow", rows, "mlm"), code) for code in ("en", "en-fr"))
    mixed = batches.mix([text, bitext], 1)
    head, every = MlmHead(Masked(mono=0.1, bitext=0.4)), np.arange(400)
    torch.manual_seed(1)
    due = (head.collate(mixed, every, token_types=False)["labels"] != -100)[:, 1:-1].float()
    assert abs(due[:200].mean() - 0.1) < 0.01 and abs(due[200:].mean() - 0.4) < 0.02
    evaluated, usual = (each.evaluation_batch(mixed, every, token_types=False) for each in (head, HEADS["mlm"]))
    assert torch.equal(evaluated["labels"], usual["labels"])


@pytest.mark.parametrize("kind", [DistilBertConfig, ModernBertConfig, EuroBertConfig, DebertaV2Config, ElectraConfig])
def test_the_loss_is_that_of_transformers_in_every_family(kind: Any, tmp_path: Path) -> None:
    """Of Electra, which is of no family, all logits are computed."""
    tokens = batches.read(write(tmp_path / "t.arrow", [[2, *range(5, 25), 2]] * 10, "mlm"))
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "pad_token_id": 1}
    model = AutoModelForMaskedLM.from_config(kind(vocab_size=50, **sizes)).eval()
    assert (language_head(model) is None) is (kind is ElectraConfig)
    batch = collate(tokens, np.arange(10))
    head = HEADS["mlm"]
    torch.testing.assert_close(head.loss(model, batch) / head.terms(batch), model(**batch).loss)
    [outcome, *_] = head.predict(model, batch, tokens, np.arange(10))
    assert outcome[1] == (batch["labels"][0] != -100).sum()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_outcomes_count_masked_tokens_and_the_right_ones(tmp_path: Path, share: float) -> None:
    tokens = batches.read(write(tmp_path / "t.arrow", [[2, *range(5, 45), 2]] * 20, "mlm"))
    torch.manual_seed(1)
    batch = collate(tokens, np.arange(20))
    plain = torch.tensor([2, *range(5, 45), 2]).expand(20, -1)

    class Model(torch.nn.Module):
        """Predicts the token that was masked in a share of the inputs, and token 0 in the others."""

        def forward(self, input_ids: torch.Tensor, **_: torch.Tensor) -> object:
            right = torch.arange(20)[:, None] < 20 * share
            logits = torch.nn.functional.one_hot(torch.where(right, plain, 0), 50).float()
            return type("Output", (), {"logits": logits})

    outcomes = HEADS["mlm"].predict(Model(), batch, tokens, np.arange(20))  # type: ignore[arg-type]
    masked = (batch["labels"] != -100).sum(1).tolist()
    assert outcomes == [[count if row < 20 * share else 0, count] for row, count in enumerate(masked)]
