"""Tokenizers that are trained here: their pieces are those of plain byte-pair encoding, and every known letter has one."""

import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from xlgrid.data.tokenizer import (
    AnyTokenizer,
    Kind,
    TrainedTokenizer,
    learn_pieces,
    make_tokenizer,
    specials,
    tokenizer_config,
    train_tokenizer,
)

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=8)
TEXTS = ["Anne is big.", "Bob is not big.", "Anne sees Bob, who is kind.", "big Anne, kind Bob"] * 5
kinds = pytest.mark.parametrize("kind", ["bert", "xlmr"])


def plain_pieces(counts: dict[str, int], size: int) -> set[str]:
    """Byte-pair encoding by recounting everything at each merge; the alphabetically first of equally frequent pairs."""
    split = {word: [word[0], *("##" + letter for letter in word[1:])] for word in counts}
    letters: Counter[str] = Counter()
    for word, parts in split.items():
        for part in parts:
            letters[part] += counts[word]
            letters.update({part.removeprefix("##"): 0, "##" + part.removeprefix("##"): 0})
    pieces = set(sorted(letters, key=lambda part: (-letters[part], part))[:size])
    while len(pieces) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in split.items():
            for pair in pairwise(parts):
                pairs[pair] += counts[word]
        if not pairs or max(pairs.values()) < 2:
            break
        first, second = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merged = first + second.removeprefix("##")
        pieces.add(merged)
        for word, parts in split.items():
            joined: list[str] = []
            i = 0
            while i < len(parts):
                together = parts[i : i + 2] == [first, second]
                joined.append(merged if together else parts[i])
                i += 1 + together
            split[word] = joined
    return pieces


@given(counts=WORDS, size=st.integers(1, 30))
def test_pieces_are_those_of_plain_byte_pair_encoding(counts: dict[str, int], size: int) -> None:
    assert set(learn_pieces(counts, size, "##")) == plain_pieces(counts, size)


@kinds
def test_special_tokens_come_with_their_ids_and_the_rest_is_never_unknown(kind: Kind) -> None:
    tokenizer = train_tokenizer(kind, 80, TEXTS)
    special = specials(kind)
    firsts = [token for token in special.values() if kind == "bert" or token != special["mask"]]
    assert [tokenizer.token_to_id(token) for token in firsts] == list(range(len(firsts)))
    # A word that was not seen, of letters that were.
    unknown = tokenizer.token_to_id(special["unk"])
    assert unknown not in tokenizer.encode("ennA").ids
    assert unknown in tokenizer.encode("Ω").ids


@kinds
def test_a_text_comes_back_from_its_ids(kind: Kind) -> None:
    tokenizer = train_tokenizer(kind, 80, TEXTS)
    assert tokenizer.decode(tokenizer.encode("Anne sees big Bob").ids) == "Anne sees big Bob"


@kinds
def test_a_pair_has_the_separators_of_the_original(kind: Kind) -> None:
    tokenizer = train_tokenizer(kind, 80, TEXTS)
    encoding = tokenizer.encode("Anne", "Bob")
    between = 1 if kind == "bert" else 2
    special = specials(kind)
    assert encoding.tokens.count(special["sep"]) == between + 1
    assert encoding.tokens[0] == special["cls"] and encoding.tokens[-1] == special["sep"]
    assert max(encoding.type_ids) == (1 if kind == "bert" else 0)


@kinds
def test_a_tokenizer_is_no_larger_than_asked_for(kind: Kind) -> None:
    assert train_tokenizer(kind, 40, TEXTS).get_vocab_size() <= 40


@kinds
def test_the_configuration_names_every_special_token(kind: Kind) -> None:
    config = tokenizer_config(kind, 64)
    assert config["model_max_length"] == 64
    assert set(specials(kind).values()) <= set(map(str, config.values()))
    assert ("token_type_ids" in config["model_input_names"]) == (kind == "bert")


def test_pieces_do_not_depend_on_the_order_of_words():
    words = Counter({"abab": 3, "abc": 2, "bcbc": 2, "cab": 1})
    pieces = learn_pieces(words, 12, "##")
    assert pieces == learn_pieces(dict(reversed(words.items())), 12, "##")
    assert {"ab", "a", "##b"} <= set(pieces)


def text(path: Path, lines: list[str]) -> Path:
    pq.write_table(pa.table({"id": range(len(lines)), "text": lines}), path, row_group_size=1000)
    return path


@kinds
def test_the_files_are_those_of_the_texts_together_in_any_order(kind: Kind, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    paths = [text(tmp_path / f"{i}.parquet", [*TEXTS[i:], "two\nlines"]) for i in range(2)]
    spec = TrainedTokenizer(kind=kind, languages=("en", "fr"), size=80, max_length=64)
    for folder, order in (("a", paths), ("b", paths[::-1])):
        make_tokenizer(spec, order, tmp_path / folder)
    files = [(tmp_path / folder / "tokenizer.json").read_text() for folder in ("a", "b")]
    expected = train_tokenizer(kind, 80, [*TEXTS, *TEXTS[1:], *["two", "lines"] * 2])
    assert files[0] == files[1] and AutoTokenizer.from_pretrained(tmp_path / "a").model_max_length == 64
    assert AutoTokenizer.from_pretrained(tmp_path / "a").get_vocab() == expected.get_vocab()


def test_no_more_rows_are_read_than_asked_for(tmp_path: Path) -> None:
    path = text(tmp_path / "t.parquet", ["abc abc"] * 3 + ["xyz"])
    make_tokenizer(TrainedTokenizer(languages=("en",), rows=3), [path], tmp_path / "v")
    assert '"x"' not in (tmp_path / "v" / "tokenizer.json").read_text()


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    peaks = []
    for number in (2_000, 10_000):
        path = text(tmp_path / f"{number}.parquet", ["abc def ghi " * 8] * number)
        tracemalloc.start()
        make_tokenizer(TrainedTokenizer(languages=("en",), size=30), [path], tmp_path / "v")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0], peaks


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "exactly one of hub, path and languages, got none"),
        ({"hub": "a/b", "languages": ["en"]}, "exactly one of hub, path and languages, got hub and languages"),
        ({"path": "x", "size": 9}, "key 'size' is for a tokenizer with `languages`, and this one has `path`"),
    ],
)
def test_a_tokenizer_has_one_origin(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(AnyTokenizer).validate_python(keys)
