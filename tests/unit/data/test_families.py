"""Tokenizers of every family in the layout of the Hub, and the encoders that they belong to: from their folders to a loss."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from published_fixture import PUBLISHED, publish, take_over
from tokenizers import Tokenizer
from tokenizers_fixture import KINDS

from xlgrid.data import batches
from xlgrid.data.tokenize import load_tokenizer, tokenize
from xlgrid.heads import HEADS
from xlgrid.models.load import has_segments, load_model

WORDS = [["anne", "is", "big"], ["dogs", "don't"], ["an", "é", "see", "жя"]]
LABELS = [[0, 1, 0], [1, 0], [0, 0, 1, 1]]
# Families that tell the second segment of an input by its type.
WITH_SEGMENTS = ("bert", "xlm-roberta", "roberta", "xmod")


# The classes that checkpoints of the Hub name for their tokenizers, where they name another than that of all fast ones.
CLASSES = {
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "xlm-roberta": "XLMRobertaTokenizerFast",
    "xmod": "XLMRobertaTokenizer",
    "roberta": "RobertaTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_tokenizer_computes_what_its_file_says(kind: str, tmp_path: Path) -> None:
    """Some classes of transformers build their rules anew. Words would then have other tokens than in the encoder's pre-training."""
    folder = publish(kind, tmp_path / "hub")
    if kind in CLASSES:
        path = folder / "tokenizer_config.json"
        about = {"tokenizer_class": CLASSES[kind], "do_lower_case": False, "add_prefix_space": True}
        path.write_text(json.dumps(json.loads(path.read_text()) | about))
    _, tokenizer = take_over(folder, tmp_path)
    rules = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for words in WORDS:
        text = " ".join(words)
        assert load_tokenizer(tokenizer)(text)["input_ids"] == rules.encode(text).ids, text


def test_a_tokenizer_of_no_class_has_rules_of_its_own(tmp_path: Path) -> None:
    """Here it ignores the case of letters, which that of XLM-R does not."""
    folder = publish("xlm-roberta", tmp_path / "hub")
    for name, change in (
        ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),
        ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    _, tokenizer = take_over(folder, tmp_path)
    ids = load_tokenizer(tokenizer)(["ANNE is", "anne is"])["input_ids"]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("kind", PUBLISHED)
def test_tagged_words_have_the_tokens_of_running_text_and_both_have_a_loss(kind: str, tmp_path: Path) -> None:
    encoder, tokenizer = take_over(publish(kind, tmp_path / "hub", dtype=torch.bfloat16), tmp_path)
    pq.write_table(pa.table({"tokens": WORDS, "ner_tags": LABELS}), tmp_path / "tags.parquet")
    text = pa.table({"id": [0, 1, 2], "text": [" ".join(words) for words in WORDS]})
    pq.write_table(text, tmp_path / "text.parquet")
    columns = {"inputs": ["tokens"], "target": "ner_tags", "labels": ["O", "X"]}
    tokenize([tmp_path / "tags.parquet"], tokenizer, "token", 32, tmp_path / "tags.arrow", columns=columns)
    tokenize([tmp_path / "text.parquet"], tokenizer, "mlm", 32, tmp_path / "text.arrow")
    tagged, masked = (batches.read(tmp_path / f"{name}.arrow", "en") for name in ("tags", "text"))
    assert tagged.values[:].tolist() == masked.values[:].tolist()
    # The text begins and ends with the tokens of the vocabulary.
    _, (padding, first, last, _, mask), _ = KINDS[PUBLISHED[kind][2]]
    ids = Tokenizer.from_file(str(tokenizer / "tokenizer.json")).get_vocab()
    starts, ends = tagged.values[tagged.offsets[:-1]], tagged.values[tagged.offsets[1:] - 1]
    assert {*starts.tolist()} == {ids[first]} and {*ends.tolist()} == {ids[last]}
    assert tagged.pad_id == ids[padding] and masked.vocabulary.mask_id == ids[mask]
    assert HEADS["token"].counts(tagged, []) == {"words": sum(map(len, WORDS))}
    for tokens in (tagged, masked):
        head = HEADS[tokens.head]
        model = load_model(encoder, head, len(tokens.label_names)).eval()
        assert has_segments(model) == (kind in WITH_SEGMENTS)
        torch.manual_seed(3)
        if kind != "xmod":  # An X-MOD has to be told the language of each input.
            assert bool(torch.isfinite(head.loss(model, head.collate(tokens, np.arange(3), has_segments(model)))))
