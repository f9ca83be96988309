"""Predictions in the order of the examples, whatever the batches, and less at once where memory runs out."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import rows, write
from transformers import BertConfig, BertForSequenceClassification

from xlgrid.base.provenance import command, commit
from xlgrid.data import batches
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import make
from xlgrid.models import prediction

FULL = make("full-ft", {})


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return batches.read(write(tmp_path / "t.arrow", rows(30)))


@pytest.fixture
def model() -> BertForSequenceClassification:
    torch.manual_seed(1)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = BertForSequenceClassification(BertConfig(vocab_size=40, num_labels=3, **size))
    torch.nn.init.normal_(model.classifier.weight)
    return model


@pytest.mark.parametrize("training", [True, False])
def test_outcomes_do_not_depend_on_the_batches_and_the_mode_is_restored(
    tokens: Tokens, model: BertForSequenceClassification, training: bool
) -> None:
    model.train(training)
    outcomes = prediction.outcomes_on(model, FULL, tokens, 12)
    assert prediction.outcomes_on(model, FULL, tokens, 10**6) == outcomes
    assert model.training is training
    assert len(outcomes) == 30 and len(set(map(str, outcomes))) > 1


def test_memory_that_runs_out_halves_the_batch_and_changes_no_outcome(
    tokens: Tokens, model: BertForSequenceClassification, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    whole = prediction.outcomes_on(model, FULL, tokens, 10**6)
    forward = model.forward

    def limited(**inputs: Any) -> Any:
        if inputs["input_ids"].numel() > 60:
            raise torch.OutOfMemoryError("no room")
        return forward(**inputs)

    monkeypatch.setattr(model, "forward", limited)
    assert prediction.outcomes_on(model, FULL, tokens, 10**6) == whole
    assert "out of memory in evaluation: goes on with" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match=r"out of memory in evaluation .* set `micro_batch_tokens` to less; .* no room"
    ):
        prediction.outcomes_on(model, FULL, tokens, 10**6, halves=False)


def test_half_is_of_what_was_tried() -> None:
    lengths = np.array([5, 7, 7])
    assert prediction.halved(1000, lengths, [np.array([0, 1, 2])], "no room") == 3 * 7 // 2
    assert prediction.halved(12, lengths, [np.array([0, 1, 2])], "no room") == 6
    with pytest.raises(ValueError, match=r"one example at a time, the longest of 7 tokens: .* torch says: no room"):
        prediction.halved(7, lengths, [np.array([0]), np.array([1])], "no room")


def test_the_circumstances_name_versions_and_device() -> None:
    circumstances = prediction.circumstances(torch.device("cpu"))
    assert (
        circumstances["versions"]["torch"] == torch.__version__.partition("+")[0]
        or circumstances["versions"]["torch"] == torch.__version__
    )
    assert (circumstances["versions"]["xlgrid"], circumstances["commit"]) == (version("xlgrid"), commit())
    assert circumstances["command"] == command()
    assert circumstances["device"].startswith("cpu (") and circumstances["threads"] == torch.get_num_threads()
