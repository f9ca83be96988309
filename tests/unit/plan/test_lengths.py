"""Tokens per example and pieces per word of local files are those of the tokens files that the study would make."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers_fixture import KINDS, tokenizer_of

from xlgrid.data.tokenize import load_tokenizer, tokenize
from xlgrid.data.vocabulary import VocabularyEntry, make_vocabulary
from xlgrid.languages.sources import Target
from xlgrid.plan.estimate import Assumed, Estimate
from xlgrid.plan.lengths import Lengths, Measured, lengths, local_rows
from xlgrid.plan.load import load_plan, load_study
from xlgrid.tasks import task

TEXTS = ["anne is big", "bob is not big at all", "anne sees bob and bob sees a kind dog", "big dogs see anne"]
STUDY = """\
title: Tiny
languages: [en, fr, zh]
text: {data: {local: "text/{language}.txt"}}
vocabularies: {v: {path: vocabulary}}
encoders: {tiny: {vocabulary: v, scratch: {kind: bert, languages: [en]}}}
tasks:
  nli: {kind: xnli, data: {local: "nli/{language}.{split}.jsonl"}, examples: {train: 30, dev: 20, test: 10}}
  ner: {kind: wikiann, data: {local: "ner/{language}.{split}.jsonl"}, examples: {train: 30, dev: 20, test: 10}}
  mlm: {kind: mlm, max_length: 16}
methods: {full-ft: {}}
training: [{set: {steps: 10}}]
grids:
  main: {task: [nli, ner], encoder: [tiny], method: [full-ft], source: [en], target: [mono], seed: [1]}
"""
NLI = [{"premise": first, "hypothesis": second, "label": "neutral"} for first, second in pairwise(TEXTS)]
NER = [{"tokens": text.split(), "ner_tags": [0] * len(text.split())} for text in TEXTS]
COPA = [{"premise": text, "question": "cause", "choice1": TEXTS[0], "choice2": TEXTS[2], "label": 0} for text in TEXTS]


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def vocabulary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    pq.write_table(pa.table({"id": range(4), "text": TEXTS}), folder / "text.parquet")
    entry = VocabularyEntry(kind=request.param, languages=("en",), size=60)
    make_vocabulary(entry, [folder / "text.parquet"], folder / "v")
    return folder / "v"


@pytest.fixture
def project(vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("studies", "nli", "ner", "text"):
        Path(folder).mkdir()
    Path("vocabulary").symlink_to(vocabulary)
    Path("studies/tiny.yaml").write_text(STUDY)


def write(path: str, rows: list[Any]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("kind", "rows", "max_length"),
    [("xnli", NLI, 64), ("xnli", NLI, 40), ("wikiann", NER, 64), ("wikiann", NER, 10), ("copa", COPA, 64)],
)
def test_tokens_per_example_are_those_of_a_tokens_file(
    vocabulary: Path, tmp_path: Path, kind: str, rows: list[Any], max_length: int
) -> None:
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "d.parquet")
    tokenize([tmp_path / "d.parquet"], vocabulary, kind, max_length, tmp_path / "t.arrow")
    ids = pa.ipc.open_file(tmp_path / "t.arrow").read_all()["input_ids"].to_pylist()
    numbers = [sum(map(len, row)) if kind == "copa" else len(row) for row in ids]
    measured = lengths(table, task(kind), max_length, load_tokenizer(vocabulary))
    # Where windows end depends on the words.
    assert measured.tokens == pytest.approx(sum(numbers) / len(rows), rel=0.1 if max_length == 10 else 1e-9)


def test_pieces_per_word_count_the_beginnings_of_words(vocabulary: Path) -> None:
    tokenizer = load_tokenizer(vocabulary)
    texts = ["anne is biggest", "dogbob"]
    pieces = [piece for text in texts for piece in tokenizer.tokenize(text)]
    in_sentencepiece = pieces[0].startswith("▁")
    begins = [piece for piece in pieces if (piece.startswith("▁") if in_sentencepiece else not piece.startswith("##"))]
    assert len(begins) == 4 < len(pieces), "words that no text has are cut"
    measured = lengths(pa.table({"text": texts}), task("mlm"), 64, tokenizer)
    assert measured == Lengths((len(pieces) + 4) / 2, len(pieces) / 4, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_words_are_those_of_a_tokens_file(kind: str, tmp_path: Path) -> None:
    """A space in running text belongs to the word after it in some vocabularies. A word with a space inside is one word,
    and an empty one is read as the unknown token."""
    tokenizer_of(kind).save_pretrained(tmp_path / "v")
    rows = [{"tokens": ["anne", "is", "", "big", "10 000"], "ner_tags": [0] * 5}, {"tokens": ["big"], "ner_tags": [0]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    tokenize([tmp_path / "d.parquet"], tmp_path / "v", "wikiann", 64, tmp_path / "t.arrow")
    sizes = [len(ids) for ids in pa.ipc.open_file(tmp_path / "t.arrow").read_all()["input_ids"].to_pylist()]
    measured = lengths(pa.Table.from_pylist(rows), task("wikiann"), 64, load_tokenizer(tmp_path / "v"))
    assert measured.tokens == sum(sizes) / 2
    assert measured.fertility == (sum(sizes) - 4) / 6, "each input has two special tokens"


def test_a_letter_that_no_text_has_is_an_unknown_piece(vocabulary: Path) -> None:
    tokenizer = load_tokenizer(vocabulary)
    measured = lengths(pa.table({"text": ["ж", "anne"]}), task("mlm"), 64, tokenizer)
    assert measured.unknown == pytest.approx(1 / len(tokenizer.tokenize("ж") + tokenizer.tokenize("anne")))


def test_words_without_spaces_have_no_pieces_per_word_unless_the_data_have_words(vocabulary: Path) -> None:
    tokenizer = load_tokenizer(vocabulary)
    assert lengths(pa.table({"text": TEXTS}), task("mlm"), 64, tokenizer, has_spaces=False).fertility is None
    words = pa.Table.from_pylist(NER)
    assert lengths(words, task("wikiann"), 64, tokenizer, has_spaces=False).fertility == pytest.approx(
        lengths(words, task("wikiann"), 64, tokenizer).fertility or 0
    )


def test_a_study_measures_what_is_there(project: None) -> None:
    write("nli/en.train.jsonl", NLI[:1])
    write("nli/fr.test.jsonl", NLI[1:])
    write("ner/zh.test.jsonl", NER)
    plan = load_plan("tiny")
    measured = Measured(plan)
    assert {place[:2] for place in measured.all} == {("nli", "en"), ("nli", "fr"), ("ner", "zh")}
    assert {(name, part) for name, part in measured.places if measured.is_local(name, part)} == {
        place[:2] for place in measured.all
    }
    english, french = (measured.all["nli", Target(code), "v"].tokens for code in ("en", "fr"))
    estimate = Estimate(plan, Assumed())
    assert english != french and estimate.tokens("nli", [Target("en")], "v") == round(english)
    assert abs(estimate.tokens("nli", [Target("fr")], "v") - french) < 1
    assert abs(estimate.tokens("nli") - (english + french) / 2) < 1
    assert estimate.tokens("ner", [Target("en")], "v") == 30, "what is not there is as for any such task"
    assert Estimate(plan, Assumed(tokens={"nli": 77})).tokens("nli", [Target("en")], "v") == 77
    # The size of the encoder, which is not there.
    Path("results/tiny/encoders/tiny").mkdir(parents=True)
    Path("results/tiny/encoders/tiny/config.json").write_text('{"model_type": "bert"}')
    run = plan.runs[0]
    of_english, of_french = (estimate.evaluation(run, 100, [Target(code)]) for code in ("en", "fr"))
    assert (of_english.hours < of_french.hours) == (english < french)


def test_without_the_vocabulary_or_files_nothing_is_measured(project: None) -> None:
    assert Measured(load_plan("tiny")).all == {}
    write("nli/en.train.jsonl", NLI)
    Path("vocabulary").unlink()
    measured = Measured(load_plan("tiny"))
    assert measured.all == {} and measured.is_local("nli", Target("en"))


def test_rows_are_those_that_the_source_keeps(project: None) -> None:
    rows = [row | {"config": "a" if number % 3 else "b"} for number, row in enumerate(NLI * 4)]
    write("nli/en.test.jsonl", rows)
    text = STUDY.replace(
        '{split}.jsonl"}, examples: {train: 30',
        '{split}.jsonl", where: {config: a}, limit: 7}, examples: {train: 30',
        1,
    )
    Path("studies/tiny.yaml").write_text(text)
    entry = load_study("tiny").tasks["nli"]
    table = local_rows(entry, "en", "test")
    assert table is not None and table.num_rows == 7
    assert table["premise"].to_pylist() == [row["premise"] for row in rows if row["config"] == "a"][:7]
    assert local_rows(entry, "fr", "test") is None
