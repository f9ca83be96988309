"""Checkpoints and vocabularies of ModernBERT, EuroBERT and DistilBERT in the layout of the Hub, from their folders to a loss."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DistilBertConfig,
    DistilBertForMaskedLM,
    EuroBertConfig,
    EuroBertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
)

from xlgrid.data import batches
from xlgrid.data.encoders import copy_encoder, copy_vocabulary
from xlgrid.data.tokenize import tokenize
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models.load import has_segments, load_model

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
# The class, its special tokens (first, last, padding, mask), and the names by which the tokenizer knows the first and the last one.
KINDS: dict[str, tuple[Any, Any, tuple[str, ...], tuple[str, str]]] = {
    "modernbert": (
        ModernBertConfig,
        ModernBertForMaskedLM,
        ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
        ("cls_token", "sep_token"),
    ),
    "mmbert": (
        ModernBertConfig,
        ModernBertForMaskedLM,
        ("<bos>", "<eos>", "<pad>", "<mask>"),
        ("bos_token", "eos_token"),
    ),
    # The padding of EuroBERT is the last token of an input, and no segment has a type.
    "eurobert": (
        EuroBertConfig,
        EuroBertForMaskedLM,
        ("<|begin_of_text|>", "<|end_of_text|>", "<|end_of_text|>", "<|mask|>"),
        ("bos_token", "eos_token"),
    ),
    "distilbert": (
        DistilBertConfig,
        DistilBertForMaskedLM,
        ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
        ("cls_token", "sep_token"),
    ),
}
WORDS = [["ab", "a", "ba"], ["b", "ab"], ["a", "a", "a", "ab"]]
LABELS = [[0, 1, 0], [1, 0], [0, 0, 1, 1]]


def write_checkpoint(kind: str, folder: Path) -> None:
    config, maker, specials, names = KINDS[kind]
    first, last, padding, mask = specials
    if kind == "distilbert":
        pieces = [*dict.fromkeys(specials), "[UNK]", "a", "b", "##a", "##b"]
        backend = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    else:
        pieces = [*dict.fromkeys(specials), *sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "Ġa"]
        merges = [("a", "b"), ("Ġ", "a")]
        backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ids = {token: pieces.index(token) for token in specials}
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}",
        special_tokens=[(first, ids[first]), (last, ids[last])],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=padding,
        mask_token=mask,
        model_max_length=64,
        **{names[0]: first, names[1]: last},
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    settings = config(vocab_size=len(pieces), max_position_embeddings=64, pad_token_id=ids[padding], **SIZES)
    maker(settings).to(torch.bfloat16).save_pretrained(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_the_hub_s_layout_is_tagged_and_masked_with(kind: str, tmp_path: Path) -> None:
    _, _, specials, _ = KINDS[kind]
    write_checkpoint(kind, tmp_path / "hub")
    copy_vocabulary(tmp_path / "hub", tmp_path / "vocabulary")
    copy_encoder(tmp_path / "hub", tmp_path / "vocabulary", tmp_path / "encoder")
    pq.write_table(pa.table({"tokens": WORDS, "ner_tags": LABELS}), tmp_path / "tags.parquet")
    text = pa.table({"id": [0, 1, 2], "text": [" ".join(words) for words in WORDS]})
    pq.write_table(text, tmp_path / "text.parquet")
    columns = {"inputs": ["tokens"], "target": "ner_tags", "labels": ["O", "X"]}
    tokenize(
        [tmp_path / "tags.parquet"], tmp_path / "vocabulary", "token", 32, tmp_path / "tags.arrow", columns=columns
    )
    tokenize([tmp_path / "text.parquet"], tmp_path / "vocabulary", "mlm", 32, tmp_path / "text.arrow")
    tagged, masked = (batches.read(tmp_path / f"{name}.arrow", "en") for name in ("tags", "text"))
    # Words have the tokens of running text, and the text begins and ends with the tokens of the vocabulary.
    assert tagged.values[:].tolist() == masked.values[:].tolist()
    vocabulary = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "vocabulary" / "tokenizer.json")).get_vocab()
    starts, ends = tagged.values[tagged.offsets[:-1]], tagged.values[tagged.offsets[1:] - 1]
    assert {*starts.tolist()} == {vocabulary[specials[0]]} and {*ends.tolist()} == {vocabulary[specials[1]]}
    assert tagged.pad_id == vocabulary[specials[2]] and masked.vocabulary.mask_id == vocabulary[specials[3]]
    assert HEADS["token"].counts(tagged, []) == {"words": sum(map(len, WORDS))}
    for tokens in (tagged, masked):
        model = load_model(tmp_path / "encoder", HEADS[tokens.head], len(tokens.label_names)).eval()
        assert not has_segments(model)
        make("madx", {"tune": "language"} if tokens is masked else {}).install(model)
        torch.manual_seed(3)
        batch = HEADS[tokens.head].collate(tokens, np.arange(3), has_segments(model))
        assert bool(torch.isfinite(HEADS[tokens.head].loss(model, batch)))
