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


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("no room"),
        RuntimeError("CUDA error: out of memory (no room)\nCompile with `TORCH_USE_CUDA_DSA`"),
        MemoryError("no room"),
    ],
    ids=["torch", "CUDA", "CPU"],
)
def test_memory_that_runs_out_halves_the_batch_and_changes_no_outcome(
    tokens: Tokens,
    model: BertForSequenceClassification,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    error: Exception,
) -> None:
    whole = prediction.outcomes_on(model, FULL, tokens, 10**6)
    forward = model.forward

    def limited(**inputs: Any) -> Any:
        if inputs["input_ids"].numel() > 60:
            raise error
        return forward(**inputs)

    monkeypatch.setattr(model, "forward", limited)
    assert prediction.outcomes_on(model, FULL, tokens, 10**6) == whole
    assert "out of memory in evaluation: goes on with" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"out of memory in evaluation .* set `micro_batch_tokens` to less; .*no room"):
        prediction.outcomes_on(model, FULL, tokens, 10**6, halves=False)


def test_an_error_that_says_nothing_of_memory_is_no_reason_to_compute_again(
    tokens: Tokens, model: BertForSequenceClassification, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def fail(**inputs: Any) -> Any:
        calls.append(1)
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(model, "forward", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        prediction.outcomes_on(model, FULL, tokens, 10**6)
    assert calls == [1]


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.OutOfMemoryError("no room"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("NCCL error: Cuda failure 2 'out of memory'"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"), False),
        (ValueError("memory"), False),
    ],
    ids=str,
)
def test_memory_runs_out_in_many_words(error: Exception, is_one: bool) -> None:
    assert prediction.is_out_of_memory(error) == is_one


def test_weights_without_room_on_the_device_are_an_error_that_says_what_to_do(
    model: BertForSequenceClassification, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to(device: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")

    monkeypatch.setattr(model, "to", to)
    with pytest.raises(ValueError, match=r"the weights do not fit .*`--submitit-workers`.* Tried to allocate 20 MiB"):
        prediction.place(model, torch.device("cpu"))


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
