"""Tiny encoders in folders, with and without cross-attention, and tokens of translations in their vocabularies."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertLMHeadModel,
    RobertaConfig,
    RobertaForCausalLM,
    XLMRobertaConfig,
    XLMRobertaForCausalLM,
)

from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.models.load import load_model
from xlgrid.papers.luo2021.seq2seq import HEAD

SIZE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
SIZE |= {"max_position_embeddings": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
KINDS = {
    "bert": (BertConfig, BertLMHeadModel),
    "roberta": (RobertaConfig, RobertaForCausalLM),
    "xlmr": (XLMRobertaConfig, XLMRobertaForCausalLM),
}


def write_encoder(folder: Path, kind: str, cross: bool = True) -> Path:
    """An encoder with random weights, which stores a cross-attention or does not, and a tokenizer of its 40 tokens."""
    configuration, maker = KINDS[kind]
    torch.manual_seed(3)
    model = maker(configuration(**SIZE, is_decoder=True, add_cross_attention=cross))
    with torch.no_grad():
        # Fresh biases are zero, and a model of small weights hardly tells tokens apart.
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.config.is_decoder = model.config.add_cross_attention = False
    model.save_pretrained(folder)
    words = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])}
    words |= {f"w{number}": number for number in range(5, 40)}
    tokenizer = Tokenizer(models.WordLevel(words, "<unk>"))
    tokenizer.add_special_tokens([token for token in words if token.startswith("<")])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def model_of(folder: Path, dropout: float | None = 0.0) -> Any:
    """The encoder-decoder of an encoder, ready for evaluation."""
    torch.manual_seed(4)
    return load_model(folder, HEAD, 0, dropout).eval()


def translations(sources: list[list[int]], targets: list[list[int]]) -> Tokens:
    """Tokens of sources and targets, whose token ids come without the special tokens around them."""
    inputs, ids = ([[0, *row, 2] for row in rows] for rows in (sources, targets))
    sizes = np.array([len(row) for row in inputs])
    return Tokens(
        head="seq2seq",
        label_names=(),
        pad_id=1,
        values=np.concatenate(inputs).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        contexts=sizes.astype(np.int32),
        languages=("de", "en"),
        language_of=np.tile(np.array([0, 1], np.int16), (len(inputs), 1)),
        vocabulary=Vocabulary(40, 4, (0, 1, 2, 3, 4)),
        columns={
            "target_ids": pa.array(ids, pa.list_(pa.int32())),
            "target_size": np.array([len(row) for row in ids]),
            "reference": pa.array([" ".join(f"w{number}" for number in row) for row in targets]),
        },
    )


def some_translations(count: int = 6) -> Tokens:
    """Random sources and targets of different lengths."""
    rng = np.random.default_rng(5)
    rows = [[rng.integers(5, 40, size).tolist() for size in rng.integers(1, 9, count)] for _ in range(2)]
    return translations(*rows)
