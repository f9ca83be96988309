"""Tiny models of every family with every head, their outputs, and MLM runs, for tests of methods."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    EuroBertConfig,
    ModernBertConfig,
    XLMRobertaConfig,
)

from xlgrid.heads.parsing import ParseHead

SIZE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
POSITIONS, BUCKETS = 32, 8
# DeBERTa-v3 has positions in its attention only. A layer of ModernBERT sees two tokens to each side, and the heads of EuroBERT share keys.
FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "bert": (BertConfig, SIZE),
    "xlmr": (XLMRobertaConfig, SIZE),
    "distilbert": (DistilBertConfig, {"vocab_size": 40, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}),
    "deberta": (
        DebertaV2Config,
        SIZE
        | {
            "type_vocab_size": 0,
            "position_biased_input": False,
            "relative_attention": True,
            "position_buckets": BUCKETS,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
        },
    ),
    "modernbert": (
        ModernBertConfig,
        SIZE | {"local_attention": 4, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3},
    ),
    "eurobert": (EuroBertConfig, SIZE | {"num_key_value_heads": 1, "bos_token_id": 2, "eos_token_id": 3}),
}
HEADS = {
    "sequence": "SequenceClassification",
    "token": "TokenClassification",
    "span": "QuestionAnswering",
    "choice": "MultipleChoice",
}


def _models(heads: dict[str, str]) -> dict[str, tuple[Any, Any]]:
    """Family-head -> the class of the configuration and that of the model, of the heads that transformers has for the family."""
    stems = {family: config.__name__.removesuffix("Config") for family, (config, _) in FAMILIES.items()}
    return {
        f"{family}-{head}": (FAMILIES[family][0], getattr(transformers, f"{stem}For{suffix}"))
        for family, stem in stems.items()
        for head, suffix in heads.items()
        if hasattr(transformers, f"{stem}For{suffix}")
    }


# A parser is a class of xlgrid, in the sizes that it has by default.
PARSERS = {
    f"{family}-parse": (config, ParseHead().model_class(config.__name__.removesuffix("Config")))
    for family, (config, _) in FAMILIES.items()
}
MODELS = _models(HEADS) | PARSERS
TEXT_MODELS = _models({"mlm": "MaskedLM"})
# Sequences and tokens are told one of three.
LABELS = {"span": 2, "choice": 1}
IDS = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]])


def write_run(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Write an MLM run that began with none."""
    save_file(weights, folder / "delta.safetensors", {"digest": "d"})
    (folder / "run.json").write_text(
        json.dumps({"recipe": {"source": "en"}, "digest": "d", "labels": [], "start": None})
    )


def config_of(kind: str) -> Any:
    """The configuration of a model."""
    family, _, head = kind.partition("-")
    config, sizes = FAMILIES[family]
    return config(**sizes, max_position_embeddings=POSITIONS, pad_token_id=1, num_labels=LABELS.get(head, 3))


def model_of(kind: str, seed: int = 3) -> Any:
    """A copy of the model of a kind, which is drawn once: drawing takes longer than copying."""
    return copy.deepcopy(_drawn(kind, seed))


@cache
def _drawn(kind: str, seed: int) -> Any:
    _, maker = {**MODELS, **TEXT_MODELS}[kind]
    torch.manual_seed(seed)
    model = maker(config_of(kind)).eval()
    with torch.no_grad():
        # Fresh biases are zero, which would hide a method that drops them.
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def answered(model: Any, ids: torch.Tensor = IDS, **extra: Any) -> torch.Tensor:
    """All that a model's head says; of a choice there is one to choose from."""
    ids = ids[:, None] if "MultipleChoice" in type(model).__name__ else ids
    output = model(input_ids=ids, attention_mask=(ids != 1).long(), **extra)
    if hasattr(model, "parser"):
        # The scores of the first token as the head of each other one, and of the relations to it.
        vectors, mask = output.logits, ids != 1
        arcs = model.parser.arcs(vectors, mask)[..., :1]
        return torch.cat([arcs, model.parser.relations(vectors, torch.zeros_like(ids[:, 1:]))], -1)
    return torch.stack([output.start_logits, output.end_logits], -1) if "start_logits" in output else output.logits


@torch.no_grad()
def logits(model: Any, ids: torch.Tensor = IDS, **extra: Any) -> torch.Tensor:
    return answered(model, ids, **extra)
