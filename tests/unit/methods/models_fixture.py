"""Tiny models of every head, their outputs, and runs on text, for tests of methods."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForMultipleChoice,
    XLMRobertaForQuestionAnswering,
    XLMRobertaForSequenceClassification,
    XLMRobertaForTokenClassification,
)

SIZE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
MODELS = {
    "bert-sequence": (BertConfig, BertForSequenceClassification),
    "bert-token": (BertConfig, BertForTokenClassification),
    "bert-span": (BertConfig, BertForQuestionAnswering),
    "bert-choice": (BertConfig, BertForMultipleChoice),
    "xlmr-sequence": (XLMRobertaConfig, XLMRobertaForSequenceClassification),
    "xlmr-token": (XLMRobertaConfig, XLMRobertaForTokenClassification),
    "xlmr-span": (XLMRobertaConfig, XLMRobertaForQuestionAnswering),
    "xlmr-choice": (XLMRobertaConfig, XLMRobertaForMultipleChoice),
}
# Sequences and tokens are told one of three.
LABELS = {"span": 2, "choice": 1}
TEXT_MODELS = {"bert-mlm": (BertConfig, BertForMaskedLM), "xlmr-mlm": (XLMRobertaConfig, XLMRobertaForMaskedLM)}
IDS = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]])


def write_run(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Write a run on text that began with none."""
    save_file(weights, folder / "delta.safetensors", {"digest": "d"})
    (folder / "run.json").write_text(json.dumps({"recipe": {}, "digest": "d", "labels": [], "start": None}))


def model_of(kind: str, seed: int = 3) -> Any:
    config, maker = {**MODELS, **TEXT_MODELS}[kind]
    torch.manual_seed(seed)
    labels = LABELS.get(kind.split("-")[1], 3)
    model = maker(config(**SIZE, max_position_embeddings=32, pad_token_id=1, num_labels=labels)).eval()
    with torch.no_grad():
        # Fresh biases are zero, which would hide a method that drops them.
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def answered(model: Any, ids: torch.Tensor = IDS, **extra: Any) -> torch.Tensor:
    """All that a model's head says; of a choice there is one to choose from."""
    ids = ids[:, None] if "MultipleChoice" in type(model).__name__ else ids
    found = model(input_ids=ids, attention_mask=(ids != 1).long(), **extra)
    return torch.stack([found.start_logits, found.end_logits], -1) if "start_logits" in found else found.logits


@torch.no_grad()
def logits(model: Any, ids: torch.Tensor = IDS, **extra: Any) -> torch.Tensor:
    return answered(model, ids, **extra)
