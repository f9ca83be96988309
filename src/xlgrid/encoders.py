"""Encoders: miniature ones trained from scratch in about a minute, or folders from the Hub or from disk.

All are ordinary transformers folders: config.json, model.safetensors, tokenizer.json, tokenizer_config.json.
"""

import heapq
import json
import math
import os
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from xlgrid import lock as locks
from xlgrid.data import read_table
from xlgrid.recipe import Strict

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

_MASKED = 0.15  # share of tokens to predict: 80 % of them masked, 10 % random, 10 % kept (Devlin et al. 2019)


class MiniEncoder(Strict):
    """A miniature multilingual encoder: BERT's or XLM-R's architecture and kind of tokenizer, all from scratch."""

    kind: Literal["bert", "xlmr"] = "bert"
    languages: tuple[str, ...] = Field(min_length=1, description="languages of the text")
    bitext: tuple[tuple[str, str], ...] = Field((), description="pairs of languages to align by TLM")
    vocab: PositiveInt = Field(2000, description="most entries of the vocabulary")
    hidden: PositiveInt = 128
    layers: PositiveInt = 4
    heads: PositiveInt = 4
    intermediate: PositiveInt = 256
    steps: PositiveInt = 1500
    lr: PositiveFloat = 1e-3
    batch: PositiveInt = Field(32, description="texts per step")
    seed: int = 0
    max_length: PositiveInt = Field(256, description="tokens; longer texts are cut")
    tlm: float = Field(0.5, ge=0, le=1, description="share of steps on pairs (Conneau and Lample 2019), if any")


def make_mini(
    spec: MiniEncoder,
    texts: Mapping[str, str | Path],
    folder: str | Path,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Train a tokenizer and an encoder on texts, as `xlgrid.text` writes them; write them to `folder`.

    The same specification, texts and number of threads give the same encoder.

    Args:
        spec: sizes and training.
        texts: a parquet file with the columns `id` and `text` for each of the languages.
        folder: appears when everything is done.
        progress: takes lines about the training; they go to stderr unless given.

    Raises:
        FileNotFoundError: a text does not exist.
        ValueError: a language has no text, or the sizes do not go together.
    """
    import torch

    began = time.monotonic()
    say = progress or (lambda line: print(line, file=sys.stderr, flush=True))
    known = {language for pair in spec.bitext for language in pair} | set(spec.languages)
    missing = [language for language in sorted(known) if language not in texts]
    if missing:
        raise ValueError(f"no text in {', '.join(missing)} (there are: {', '.join(texts) or 'none'}): make it first")
    if spec.hidden % spec.heads:
        raise ValueError(f"hidden ({spec.hidden}) must be a multiple of heads ({spec.heads})")
    corpus = {language: _read_text(texts[language]) for language in sorted(known)}
    tokenizer = _train_tokenizer(
        spec, [line for by_id in corpus.values() for text in by_id.values() for line in text.splitlines()]
    )
    say(f"tokenizer: {tokenizer.get_vocab_size()} entries")
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = _new_model(spec, tokenizer)
    _pretrain(model, tokenizer, spec, corpus, say)
    with _whole_folder(folder) as aside:
        model.save_pretrained(aside)
        tokenizer.save(str(aside / "tokenizer.json"))
        _write_json(aside / "tokenizer_config.json", _tokenizer_config(spec))
        provenance = {"source": "mini", "spec": spec.model_dump(mode="json"), "seconds": time.monotonic() - began}
        _write_json(aside / "encoder.json", provenance)


def fetch_encoder(hub: str, revision: str, folder: str | Path, lock: str | Path) -> None:
    """Fetch an encoder's config, tokenizer and safetensors from the Hub at the locked commit; add encoder.json.

    Raises:
        ValueError: the Hub cannot be reached, does not know it, or has no weights as safetensors.
    """
    from huggingface_hub import snapshot_download

    commit = locks.commit(lock, "model", hub, revision)
    patterns = ["config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*", "vocab*", "merges.txt"]
    patterns += ["sentencepiece*", "special_tokens_map.json", "added_tokens.json", "*.model"]
    try:
        found = Path(snapshot_download(hub, revision=commit, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # of whatever the Hub or the network raise, say what was being fetched
        raise ValueError(f"cannot fetch the encoder {hub} at {commit[:7]}: {type(error).__name__}: {error}") from error
    _copy(found, folder, {"source": "hub", "hub": hub, "revision": revision, "commit": commit})


def copy_encoder(path: str | Path, folder: str | Path) -> None:
    """Copy an encoder from a local folder; add encoder.json.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it is no encoder, or a damaged one.
    """
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}: check the path of the encoder")
    _copy(path, folder, {"source": "local", "path": str(path)})


def check_encoder(folder: str | Path) -> None:
    """Check that a folder has an encoder whose files are whole.

    Raises:
        FileNotFoundError: the folder or one of its files is missing.
        ValueError: config.json or a file of weights is damaged.
    """
    from safetensors import SafetensorError, safe_open

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no encoder {folder}: make or fetch it first")
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").exists() or not weights:
        what = "weights (*.safetensors)" if not weights else "config.json"
        raise FileNotFoundError(f"{folder} has no {what}: it is no encoder of transformers, make or fetch it again")
    try:
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder}/config.json is damaged ({error}): delete the folder and make it again") from error
    for file in weights:
        try:
            with safe_open(file, framework="numpy") as opened:
                opened.keys()
        except (SafetensorError, OSError) as error:
            raise ValueError(
                f"{file} is damaged, perhaps cut short at {file.stat().st_size:,} bytes ({error}): "
                f"delete {folder} and make or fetch it again"
            ) from error
    index = folder / "model.safetensors.index.json"
    parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()) if index.exists() else set()
    lacking = sorted(part for part in parts if not (folder / part).exists())
    if lacking:
        raise FileNotFoundError(f"{folder} lacks {', '.join(lacking)}: make or fetch it again")


def _copy(source: Path, folder: str | Path, provenance: dict[str, Any]) -> None:
    check_encoder(source)
    with _whole_folder(folder) as aside:
        for file in sorted(source.iterdir()):
            if file.is_file() and file.name != "encoder.json" and not file.name.startswith("."):
                shutil.copy(file, aside / file.name)
        _write_json(aside / "encoder.json", provenance)


@contextmanager
def _whole_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; when the block ends well, move its files there, config.json last."""
    folder = Path(folder)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(aside.iterdir(), key=lambda file: file.name == "config.json"):
            with file.open("rb") as written:
                os.fsync(written.fileno())
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_text(path: str | Path) -> dict[int, str]:
    table = read_table(path)
    for column in ("id", "text"):
        if column not in table.column_names:
            raise ValueError(f"{path} has no column {column!r}: expected a text with the columns id and text")
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def _specials(spec: MiniEncoder) -> dict[str, str]:
    if spec.kind == "bert":
        names = ("pad", "[PAD]"), ("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]"), ("mask", "[MASK]")
    else:
        names = ("cls", "<s>"), ("pad", "<pad>"), ("sep", "</s>"), ("unk", "<unk>"), ("mask", "<mask>")
    return dict(names)


def _train_tokenizer(spec: MiniEncoder, texts: list[str]) -> "Tokenizer":
    """A WordPiece tokenizer like BERT's or a Unigram one like XLM-R's, cased and with accents.

    Both have the pieces that `_learn_pieces` finds; a piece's log-probability in Unigram is that of its use in `texts`.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    special = _specials(spec)
    bert = spec.kind == "bert"
    normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False) if bert else normalizers.NFKC()
    splitter = pre_tokenizers.BertPreTokenizer() if bert else pre_tokenizers.Metaspace()
    # No piece mixes letters and punctuation: as SentencePiece, which XLM-R was trained with, has it.
    words = pre_tokenizers.Sequence([splitter, pre_tokenizers.Punctuation()])
    counts = Counter(word for text in texts for word, _ in words.pre_tokenize_str(normalizer.normalize_str(text)))
    pieces = _learn_pieces(counts, spec.vocab - len(special), "##" if bert else "")
    if bert:
        vocab = {piece: i for i, piece in enumerate([*special.values(), *pieces])}
        tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=special["unk"]))
        tokenizer.decoder = decoders.WordPiece()
        single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    else:
        first = [(token, 0.0) for token in special.values() if token != special["mask"]]
        total = sum(pieces.values())
        # A piece that later merges used up is half a use short of one.
        scored = [(piece, math.log(max(n, 0.5) / total)) for piece, n in pieces.items()]
        tokenizer = Tokenizer(models.Unigram(first + scored, unk_id=3, byte_fallback=False))
        tokenizer.decoder = decoders.Metaspace()
        single, pair = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.add_special_tokens([AddedToken(t, lstrip=t == "<mask>", special=True) for t in special.values()])
    ends = [(token, tokenizer.token_to_id(token)) for token in (special["cls"], special["sep"])]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ends)
    return tokenizer


def _learn_pieces(counts: Mapping[str, int], size: int, continuing: str) -> dict[str, int]:
    """Up to `size` pieces by byte-pair encoding (Sennrich et al. 2016), with how often each is used in the end.

    The trainers of the `tokenizers` library break ties differently in every process; this one does not. Pieces inside a
    word begin with `continuing`. A piece is a merge of the most frequent pair, the alphabetically first of equals.
    """
    words = sorted(counts)
    split = [[word[0], *(continuing + letter for letter in word[1:])] for word in words]
    letters: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for i, parts in enumerate(split):
        for part in parts:
            letters[part] += counts[words[i]]
            # Every letter can begin a word and go on in one, so that new words of known letters are never unknown.
            letters[part.removeprefix(continuing)] += 0
            letters[continuing + part.removeprefix(continuing)] += 0
        for pair in pairwise(parts):
            pairs[pair] += counts[words[i]]
            places[pair].add(i)
    pieces = dict.fromkeys(sorted(letters, key=lambda part: (-letters[part], part))[:size], 0)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    while heap and len(pieces) < size:
        n, best = heapq.heappop(heap)
        if -n != pairs[best]:
            continue  # an older count of the pair
        if -n < 2:
            break
        merged = best[0] + best[1].removeprefix(continuing)
        pieces[merged] = 0
        changed = set()
        for i in sorted(places[best]):
            for pair in pairwise(split[i]):
                pairs[pair] -= counts[words[i]]
                changed.add(pair)
            split[i] = _merge(split[i], best, merged)
            for pair in pairwise(split[i]):
                pairs[pair] += counts[words[i]]
                places[pair].add(i)
                changed.add(pair)
        for pair in changed - {best}:
            if pairs[pair]:
                heapq.heappush(heap, (-pairs[pair], pair))
    for i, parts in enumerate(split):
        for part in parts:
            if part in pieces:
                pieces[part] += counts[words[i]]
    return pieces


def _merge(parts: list[str], pair: tuple[str, str], merged: str) -> list[str]:
    found: list[str] = []
    for part in parts:
        # What has just been merged is longer than the first of the pair.
        if found and (found[-1], part) == pair:
            found[-1] = merged
        else:
            found.append(part)
    return found


def _tokenizer_config(spec: MiniEncoder) -> dict[str, Any]:
    """Read by transformers 4 and 5 alike, which the class name that transformers 5 itself writes is not."""
    special = _specials(spec)
    names = ["input_ids", *(["token_type_ids"] if spec.kind == "bert" else []), "attention_mask"]
    config = {f"{name}_token": token for name, token in special.items()}
    if spec.kind == "xlmr":
        config |= {"bos_token": special["cls"], "eos_token": special["sep"]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": spec.max_length,
        "model_input_names": names,
        "clean_up_tokenization_spaces": False,
        **config,
    }


def _new_model(spec: MiniEncoder, tokenizer: "Tokenizer") -> "PreTrainedModel":
    from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

    sizes: dict[str, Any] = {
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": spec.hidden,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "intermediate_size": spec.intermediate,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    if spec.kind == "bert":
        return BertForMaskedLM(BertConfig(**sizes, max_position_embeddings=spec.max_length, pad_token_id=0))
    # XLM-R counts positions from the padding id + 1.
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    length = spec.max_length + 2
    return XLMRobertaForMaskedLM(
        XLMRobertaConfig(**sizes, max_position_embeddings=length, type_vocab_size=1, layer_norm_eps=1e-5, **ids)
    )


def _pretrain(
    model: "PreTrainedModel",
    tokenizer: "Tokenizer",
    spec: MiniEncoder,
    corpus: dict[str, dict[int, str]],
    say: Callable[[str], None],
) -> None:
    """MLM on single texts, TLM on pairs of them with the same id."""
    import numpy as np
    import torch

    rng = np.random.default_rng([spec.seed, 1])
    tokenizer.enable_truncation(spec.max_length)
    # What follows a line break is the second segment, as a question is after its context.
    singles: list[Any] = [
        tuple(text.split("\n", 1)) if "\n" in text else text
        for language in spec.languages
        for text in corpus[language].values()
    ]
    aligned = [
        tuple(corpus[code][i].replace("\n", " ") for code in (a, b))
        for a, b in spec.bitext
        for i in sorted(corpus[a].keys() & corpus[b].keys())
    ]
    if spec.bitext and not aligned:
        raise ValueError(f"the texts of {spec.bitext} share no id: make them with one seed")
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec.lr, weight_decay=0.01)
    warmup = max(1, spec.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, max(0.0, (spec.steps - step) / (spec.steps - warmup + 1)))
    )
    model.train()
    start, losses = time.monotonic(), []
    for step in range(spec.steps):
        source: list[Any] = aligned if aligned and rng.random() < spec.tlm else singles
        drawn = [source[i] for i in rng.integers(len(source), size=spec.batch)]
        inputs, labels = _masked(tokenizer, drawn, rng, spec)
        loss = model(**inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if (step + 1) % max(1, spec.steps // 10) == 0:
            recent = sum(losses) / len(losses)
            say(f"step {step + 1}/{spec.steps}: MLM loss {recent:.3f}, {time.monotonic() - start:.0f} s")
            losses.clear()
    model.eval()
    tokenizer.no_truncation()


def _masked(tokenizer: "Tokenizer", drawn: list[Any], rng: "np.random.Generator", spec: MiniEncoder) -> tuple[Any, Any]:
    """A padded batch of the model's inputs, and its labels, -100 where nothing is to be predicted."""
    import numpy as np
    import torch

    encoded = tokenizer.encode_batch(drawn)
    shape = len(encoded), max(len(one.ids) for one in encoded)
    ids = np.full(shape, tokenizer.token_to_id(_specials(spec)["pad"]), dtype=np.int64)
    kinds, mask, free = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for i, one in enumerate(encoded):
        length = len(one.ids)
        ids[i, :length], kinds[i, :length], mask[i, :length] = one.ids, one.type_ids, 1
        free[i, :length] = 1 - np.array(one.special_tokens_mask)
    chosen = (rng.random(shape) < _MASKED) & (free == 1)
    chosen[0, 1] |= not chosen.any()  # a loss over nothing is not a number
    labels = np.where(chosen, ids, -100)
    dice = rng.random(shape)
    mask_id: Any = tokenizer.token_to_id(_specials(spec)["mask"])
    random_ids = rng.integers(tokenizer.get_vocab_size(), size=shape)
    ids = np.where(chosen & (dice < 0.8), mask_id, ids)
    ids = np.where(chosen & (dice >= 0.9), random_ids, ids)
    inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    if spec.kind == "bert":
        inputs["token_type_ids"] = torch.from_numpy(kinds)
    return inputs, torch.from_numpy(labels)
