"""Tiny encoders with modules for languages, and batches of several languages for them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import XmodConfig, XmodForMaskedLM

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.base.arrays import Segments
from xlgrid.heads import HEADS
from xlgrid.models import load

LANGUAGES = ("en", "fr", "sw")
SIZE = {"hidden": 16, "layers": 2, "heads": 2, "intermediate": 24, "max_length": 64}
TOKENIZER = 50
# The modules of a published checkpoint, and the names that a study gives to some of them.
RELEASED = ("en_XX", "fr_XX", "sw_KE")
MAPPING = {"en": "en_XX", "sw": "sw_KE"}


def scratch(architecture: str = "xmod", languages: tuple[str, ...] = LANGUAGES, **more: Any) -> Architecture:
    fields = {"kind": "xlmr", "architecture": architecture, "languages": languages, **SIZE, **more}
    return architecture_of(fields)


def moved(model: Any) -> Any:
    """The model with random numbers in all weights: biases of zero would hide a module that drops them."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def model_of(architecture: str = "xmod", **more: Any) -> Any:
    torch.manual_seed(1)
    return moved(scratch(architecture, **more).new_model(TOKENIZER))


def transformers_model(languages: tuple[str, ...] = LANGUAGES, entries: int = TOKENIZER, **more: Any) -> Any:
    """A model of transformers, as the published checkpoints are.

    Args:
        entries: of the tokenizer.
    """
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    torch.manual_seed(2)
    config = XmodConfig(
        **sizes, vocab_size=entries, max_position_embeddings=66, type_vocab_size=1, languages=[*languages], **more
    )
    return moved(XmodForMaskedLM(config))


def segments(rows: list[int], languages: tuple[str, ...] = LANGUAGES, length: int = 9) -> Segments:
    """Inputs of one segment, in the languages of these numbers."""
    codes = np.array(rows, np.int16)
    return Segments(np.full(len(rows), length), languages, np.stack([codes, codes], 1), length)


def batch(rows: int, length: int = 9) -> dict[str, torch.Tensor]:
    """Random tokens; the second and the last input end with padding."""
    ids = torch.randint(5, TOKENIZER, (rows, length), generator=torch.Generator().manual_seed(3))
    ids[1 % rows, length - 3 :] = ids[-1, length - 2 :] = 1
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


def save(model: Any, folder: Path, pickled: bool = False) -> Path:
    """A checkpoint without a tokenizer, as safetensors or as pytorch_model.bin."""
    model.save_pretrained(folder)
    if pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def logits(folder: Path, language: str) -> torch.Tensor:
    """The logits of an encoder in a folder for three inputs in a language."""
    model = load.load_model(folder, HEADS["mlm"], 0).eval()
    with torch.no_grad():
        answered: torch.Tensor = model(**batch(3), **model.language_arguments(segments([0] * 3, (language,)))).logits
    return answered
