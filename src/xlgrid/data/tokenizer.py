"""Training of tokenizers: WordPiece as in BERT, or Unigram as in XLM-R. The same texts always give the same bytes."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from xlgrid.base.unions import by_key
from xlgrid.data.encoders import whole_folder, write_json
from xlgrid.data.formats import COLUMN, rows
from xlgrid.data.published import HUB, InFolder, Obtained, OnHub

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Kind = Literal["bert", "xlmr"]


class TokenizerEntry(Obtained):
    """A tokenizer in a study. Each subclass is one way to obtain it."""

    rule: ClassVar[str] = "fetch_tokenizer"

    @property
    def texts(self) -> tuple[str, ...]:
        """The languages of the texts on which the tokenizer is trained here."""
        return ()

    @property
    def most_entries(self) -> int | None:
        """The maximum number of entries; None if it is only known from the tokenizer's files."""
        return None

    @property
    def most_tokens(self) -> int | None:
        """The maximum number of tokens in an input; None if it is only known from the tokenizer's files."""
        return None


class HubTokenizer(OnHub, TokenizerEntry):
    """A tokenizer from the Hugging Face Hub."""

    @property
    def most_entries(self) -> int | None:
        size: int | None = HUB.get(self.hub, {}).get("vocab_size")
        return size


class FolderTokenizer(InFolder, TokenizerEntry):
    """A tokenizer from a folder with tokenizer.json."""


class TrainedTokenizer(TokenizerEntry):
    """A tokenizer that is trained here, on the texts of the study."""

    rule: ClassVar[str] = "tokenizer"
    kind: Kind = Field(
        default="bert", description="WordPiece with BERT's special tokens, or Unigram with those of XLM-R"
    )
    languages: tuple[str, ...] = Field(
        min_length=1, description="languages of the texts on which the tokenizer is trained"
    )
    size: PositiveInt = Field(default=2000, description="maximum number of entries")
    rows: PositiveInt | None = Field(
        default=None, description="maximum number of rows that are read from each language's text; absent: all"
    )
    max_length: PositiveInt = Field(default=512, description="maximum number of tokens in an input")

    @property
    def origin(self) -> dict[str, Any]:
        return {"spec": self.model_dump_json(exclude_defaults=True)}

    @property
    def texts(self) -> tuple[str, ...]:
        return self.languages

    @property
    def most_entries(self) -> int | None:
        return self.size

    @property
    def most_tokens(self) -> int | None:
        return self.max_length


# Key -> the class of the tokenizers whose entries have this key.
MEMBERS: dict[str, type[TokenizerEntry]] = {
    "hub": HubTokenizer,
    "path": FolderTokenizer,
    "languages": TrainedTokenizer,
}
AnyTokenizer = Annotated[HubTokenizer | FolderTokenizer | TrainedTokenizer, by_key("a tokenizer", MEMBERS)]


def make_tokenizer(spec: TrainedTokenizer, texts: Sequence[str | Path], folder: str | Path) -> None:
    """Train a tokenizer on texts of `xlgrid.data.text`, and write tokenizer.json and tokenizer_config.json.

    The texts are streamed: only the counts of their words are in memory. The order of texts and rows has no effect.

    Args:
        texts: for each language, a parquet file with a column `text`.
        folder: the folder to write. It appears only when all its files are complete.

    Raises:
        FileNotFoundError: a text does not exist.
        ValueError: a text is damaged.
    """
    tokenizer = train_tokenizer(spec.kind, spec.size, (line for path in texts for line in _lines(path, spec.rows)))
    with whole_folder(folder) as aside:
        tokenizer.save(str(aside / "tokenizer.json"))
        write_json(aside / "tokenizer_config.json", tokenizer_config(spec.kind, spec.max_length))
        write_json(aside / "origin.json", {"source": "trained", "spec": spec.model_dump(mode="json")})


def _lines(path: str | Path, most: int | None) -> Iterator[str]:
    return (line for (text,) in islice(rows(path, [COLUMN]), most) for line in text.splitlines())


def specials(kind: Kind) -> dict[str, str]:
    """Role -> special token, in the order of their ids."""
    if kind == "bert":
        names = ("pad", "[PAD]"), ("unk", "[UNK]"), ("cls", "[CLS]"), ("sep", "[SEP]"), ("mask", "[MASK]")
    else:
        names = ("cls", "<s>"), ("pad", "<pad>"), ("sep", "</s>"), ("unk", "<unk>"), ("mask", "<mask>")
    return dict(names)


def train_tokenizer(kind: Kind, vocab: int, texts: Iterable[str]) -> "Tokenizer":
    """Train a tokenizer of at most `vocab` entries, which keeps case and accents.

    Both kinds use the pieces of `learn_pieces`. In Unigram, the score of a piece is the log of its relative frequency
    in `texts`.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    special = specials(kind)
    bert = kind == "bert"
    normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False) if bert else normalizers.NFKC()
    splitter = pre_tokenizers.BertPreTokenizer() if bert else pre_tokenizers.Metaspace()
    # No piece mixes letters and punctuation, as in SentencePiece, which made the tokenizer of XLM-R.
    words = pre_tokenizers.Sequence([splitter, pre_tokenizers.Punctuation()])
    counts = Counter(word for text in texts for word, _ in words.pre_tokenize_str(normalizer.normalize_str(text)))
    pieces = learn_pieces(counts, vocab - len(special), "##" if bert else "")
    if bert:
        ids = {piece: i for i, piece in enumerate([*special.values(), *pieces])}
        tokenizer = Tokenizer(models.WordPiece(ids, unk_token=special["unk"]))
        tokenizer.decoder = decoders.WordPiece()
        single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    else:
        first = [(token, 0.0) for token in special.values() if token != special["mask"]]
        total = sum(pieces.values())
        # A piece that no longer occurs after later merges counts as half an occurrence.
        scored = [(piece, math.log(max(n, 0.5) / total)) for piece, n in pieces.items()]
        tokenizer = Tokenizer(models.Unigram(first + scored, unk_id=3, byte_fallback=False))
        tokenizer.decoder = decoders.Metaspace()
        single, pair = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.add_special_tokens([AddedToken(t, lstrip=t == "<mask>", special=True) for t in special.values()])
    ends = [(token, tokenizer.token_to_id(token)) for token in (special["cls"], special["sep"])]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ends)
    return tokenizer


def learn_pieces(counts: Mapping[str, int], size: int, continuing: str) -> dict[str, int]:
    """The pieces of byte-pair encoding (Sennrich et al. 2016), at most `size`, and their counts in the segmented words.

    The trainers of the `tokenizers` library break ties differently in every process. Here, the most frequent pair is
    merged and, among equally frequent pairs, the alphabetically first. Pieces inside a word begin with `continuing`.
    """
    words = sorted(counts)
    split = [[word[0], *(continuing + letter for letter in word[1:])] for word in words]
    letters: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for i, parts in enumerate(split):
        for part in parts:
            letters[part] += counts[words[i]]
            # Every letter can begin or continue a word, so that a new word of known letters is never unknown.
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
            continue  # The count of the pair has changed since.
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
    merged_parts: list[str] = []
    for part in parts:
        # A part that has just been merged is longer than the first of the pair, so it is not merged again.
        if merged_parts and (merged_parts[-1], part) == pair:
            merged_parts[-1] = merged
        else:
            merged_parts.append(part)
    return merged_parts


def tokenizer_config(kind: Kind, max_length: int) -> dict[str, Any]:
    """The contents of tokenizer_config.json, which transformers 4 and 5 can read.

    Version 4 does not know the class name that version 5 writes.
    """
    special = specials(kind)
    names = ["input_ids", *(["token_type_ids"] if kind == "bert" else []), "attention_mask"]
    config = {f"{name}_token": token for name, token in special.items()}
    if kind == "xlmr":
        config |= {"bos_token": special["cls"], "eos_token": special["sep"]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": names,
        "clean_up_tokenization_spaces": False,
        **config,
    }
