"""Checkpoints and data shaped like the Hugging Face Hub's, but tiny: names of files, columns and tensors are the same."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForPreTraining,
    BertModel,
    PretrainedConfig,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from xlgrid.data.tokenizer import learn_pieces
from xlgrid.synthetic.miniatures import lot, ruletaker, xnli

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
PIECES = 600
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2}
LOT = {
    "train": "hypernyms_training_mix_short_train.jsonl",
    "dev": "hypernyms_implicit_only_short_neg_hypernym_rule_dev.jsonl",
    "test": "hypernyms_implicit_only_short_neg_hypernym_rule_test.jsonl",
}
# Examples of train, dev and test.
COUNTS = {"xnli": (60, 15, 21), "ruletaker": (48, 12, 20), "lot": (40, 10, 14)}


def write_mbert(folder: Path, texts: Iterable[str]) -> None:
    """Like google-bert/bert-base-multilingual-cased: tensors with BERT's old names, special tokens that no file names."""
    normalizer, splitter = normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", *(f"[unused{i}]" for i in range(1, 100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*specials, *learn_pieces(_words(normalizer, splitter, texts), PIECES, "##")]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoders.WordPiece()
    config = BertConfig(**SIZES, vocab_size=len(pieces), pad_token_id=0, type_vocab_size=2)
    model = BertForPreTraining(config)
    del model.cls.predictions.decoder  # the embeddings over again
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = {}
    for name, tensor in _weights(model).items():
        for new, former in old.items():
            name = name.replace(new, former)
        weights[name] = tensor
    pair = "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"
    _finish(tokenizer, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], *pair)
    _write(folder, config, "BertForMaskedLM", weights, tokenizer, {"do_lower_case": False, "model_max_length": 512})
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def write_xlmr(folder: Path, texts: Iterable[str]) -> None:
    """Like FacebookAI/xlm-roberta-base; its map of characters to normalise is there, but empty."""
    tokenizer, entries = _unigram(texts)
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    sizes = {"vocab_size": entries, "max_position_embeddings": 514, "type_vocab_size": 1}
    config = XLMRobertaConfig(**SIZES, **sizes, **ids, layer_norm_eps=1e-5)
    weights = _weights(XLMRobertaForMaskedLM(config))
    for shared in ("lm_head.decoder.weight", "lm_head.decoder.bias"):
        weights.pop(shared, None)
    _write(folder, config, "XLMRobertaForMaskedLM", weights, tokenizer, {"model_max_length": 512})


def write_e5(folder: Path, texts: Iterable[str]) -> None:
    """Like intfloat/multilingual-e5-small: a BERT with the tokenizer of XLM-R, whose padding is 1, and 0 for padding in config.json."""
    tokenizer, entries = _unigram(texts)
    kind = {"tokenizer_class": "XLMRobertaTokenizer"}
    config = BertConfig(**SIZES, **kind, vocab_size=entries, pad_token_id=0, type_vocab_size=2)
    weights = _weights(BertModel(config)) | {"embeddings.position_ids": torch.arange(512)[None]}
    _write(folder, config, "BertModel", weights, tokenizer, {"model_max_length": 512, "pad_token": "<pad>", **kind})


def _unigram(texts: Iterable[str]) -> tuple[Tokenizer, int]:
    """A tokenizer like that of XLM-R, and the number of its tokens."""
    normalizer = normalizers.Precompiled((1024).to_bytes(4, "little") + bytes(1024))
    splitter = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    learnt = learn_pieces(_words(normalizer, splitter, texts), PIECES, "")
    total = sum(learnt.values())
    scored = [(piece, math.log(max(n, 0.5) / total)) for piece, n in learnt.items()]
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*((token, 0.0) for token in specials[:-1]), *scored, ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    _finish(tokenizer, specials, "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoders.Metaspace()
    return tokenizer, len(pieces)


def _words(normalizer: Any, splitter: Any, texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))


def _weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Random everywhere: fresh layer norms are ones and zeros, which a loader that misses theirs puts there too.

    So large that the first token sees what is in a text; of a fresh encoder it is nearly the same for all texts.
    """
    drawn = torch.Generator().manual_seed(1)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items() if tensor.is_floating_point()}
    return {name: torch.randn(shape, generator=drawn) / 2 for name, shape in shapes.items()}


def _finish(tokenizer: Tokenizer, specials: list[str], single: str, pair: str) -> None:
    tokenizer.add_special_tokens([AddedToken(token, lstrip=token == "<mask>", special=True) for token in specials])
    ends = [(token, tokenizer.token_to_id(token)) for token in specials if token in single.replace(":0", "").split()]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ends)


def _write(
    folder: Path,
    config: PretrainedConfig,
    architecture: str,
    weights: dict[str, torch.Tensor],
    tokenizer: Tokenizer,
    tokenizer_config: dict[str, Any],
) -> None:
    folder.mkdir(parents=True)
    config.architectures = [architecture]
    config.to_json_file(folder / "config.json", use_diff=False)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    # The same weights again, for others.
    (folder / "pytorch_model.bin").write_bytes(b"weights")
    (folder / "README.md").write_text("# Model card\n")


def write_xnli(folder: Path, code: str) -> None:
    """Like facebook/xnli: a folder for each language, a parquet file for each split, numbers for labels."""
    chosen = xnli.Options(n=sum(COUNTS["xnli"]))
    rows = [xnli.row(example, code, chosen) for example in xnli.examples(chosen, COUNTS["xnli"])]
    records = [{**row, "label": LABELS[row["label"]]} for row in rows]
    for split, part in _split(records, COUNTS["xnli"], "validation"):
        table = pa.Table.from_pylist(part).select(["premise", "hypothesis", "label"])
        pq.write_table(table, _made(folder / code) / f"{split}-00000-of-00001.parquet")


def write_ruletaker(folder: Path, code: str) -> None:
    """Like hitachi-nlp/ruletaker, but in several languages: all depths in one file, told apart by `config`."""
    parts = []
    for depth in (0, 1):
        chosen = ruletaker.Options(n=sum(COUNTS["ruletaker"]), max_depth=depth)
        examples = ruletaker.examples(chosen, COUNTS["ruletaker"])
        rows = [ruletaker.row(example, code, chosen) for example in examples]
        parts.append(dict(_split(rows, COUNTS["ruletaker"], "dev")))
    # One that no encoder takes whole.
    parts[0]["test"][0]["context"] = " ".join([parts[0]["test"][0]["context"]] * 40)
    for split in parts[0]:
        # Here and there, so that a file's first rows are not all of one config.
        mixed = [row for both in zip(*(part[split] for part in parts), strict=True) for row in both]
        table = pa.Table.from_pylist(mixed).select(["context", "question", "label", "config"])
        pq.write_table(table, _made(folder / code) / f"{split}.parquet")


def write_lot(folder: Path, code: str) -> None:
    """Like the files of LeapOfThought, unpacked: a line of JSON each, numbers for labels, metadata of no fixed shape."""
    chosen = lot.Options(n=sum(COUNTS["lot"]))
    rows = [lot.row(example, code, chosen) for example in lot.examples(chosen, COUNTS["lot"])]
    lines = [
        {
            "phrase": row["phrase"],
            "context": row["context"],
            "answer": ["false", "true"].index(row["answer"]),
            "metadata": {"rules": [{"rule": row["context"], "weight": 1}] if i % 2 else [], f"only{i % 3}": i},
        }
        for i, row in enumerate(rows)
    ]
    for split, part in _split(lines, COUNTS["lot"], "dev"):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in part)
        (_made(folder / code) / LOT[split]).write_text(text, encoding="utf-8")


def _split(rows: list[Any], counts: tuple[int, int, int], dev: str) -> list[tuple[str, list[Any]]]:
    train, held_out, _ = counts
    bounds = (("train", 0, train), (dev, train, train + held_out), ("test", train + held_out, len(rows)))
    return [(split, rows[start:end]) for split, start, end in bounds]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
