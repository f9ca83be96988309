"""Tiny checkpoints of every family in the layout of the Hub, each with a fast tokenizer of its kind, for tests."""

from pathlib import Path
from typing import Any

import torch
from models_fixture import FAMILIES, SIZE
from tokenizers_fixture import tokenizer_of
from transformers import AutoModel, AutoModelForMaskedLM, RobertaConfig, XmodConfig

from xlgrid.data.encoders import copy_encoder, copy_tokenizer
from xlgrid.heads import families

# Name -> the class and the sizes of the configuration, and the kind of the tokenizer.
_PUBLISHED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "bert": (*FAMILIES["bert"], "wordpiece"),
    "xlm-roberta": (*FAMILIES["xlmr"], "unigram"),
    "roberta": (RobertaConfig, SIZE, "bytes after spaces"),
    "xmod": (XmodConfig, SIZE | {"languages": ["en_XX", "fr_XX"], "adapter_reduction_factor": 2}, "unigram"),
    "distilbert": (*FAMILIES["distilbert"], "wordpiece"),
    "deberta-v2": (*FAMILIES["deberta"], "unigram of deberta"),
    "modernbert": (*FAMILIES["modernbert"], "bytes"),
    "mmbert": (*FAMILIES["modernbert"], "bytes of unknown letters"),
    "eurobert": (*FAMILIES["eurobert"], "bytes of eurobert"),
}
# Those of families that are installed.
PUBLISHED = {kind: each for kind, each in _PUBLISHED.items() if each[0].model_type in families.FAMILIES}


def publish(kind: str, folder: Path, has_lm_head: bool = True, dtype: torch.dtype = torch.float32) -> Path:
    """Write a checkpoint with random weights, with or without its language-modelling head."""
    maker, sizes, tokens = PUBLISHED[kind]
    tokenizer = tokenizer_of(tokens)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = maker(
        **(sizes | {"vocab_size": len(tokenizer)}),
        max_position_embeddings=66,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.2,
    )
    model = (AutoModelForMaskedLM if has_lm_head else AutoModel).from_config(config)
    model.to(dtype).save_pretrained(folder)
    return folder


def take_over(published: Path, folder: Path) -> tuple[Path, Path]:
    """The encoder and the tokenizer that a study makes of a checkpoint."""
    copy_tokenizer(published, folder / "tokenizer")
    is_modular = '"xmod"' in (published / "config.json").read_text()
    modules = {"en": "en_XX", "fr": "fr_XX"} if is_modular else None
    copy_encoder(published, folder / "tokenizer", folder / "encoder", modules)
    return folder / "encoder", folder / "tokenizer"
