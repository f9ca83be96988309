"""Sizes of data come from the options, from files that are there, from the study, or from what is generated."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from plan_fixture import COSTED

from xlgrid.plan.estimate import WHOLE, Assumed, Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.sizes import DataSizes, Splits
from xlgrid.products.train import Run

STUDY = """\
title: Tiny
languages: [en, fr, de]
text: {sentences: 1000, files: {fr: "fr.txt"}}
encoders: {tiny: {scratch: {kind: bert, languages: [en]}}}
tasks:
  made: {kind: ruletaker, options: {n: 1000, questions_per_theory: 2}}
  nli:
    kind: xnli
    data: {local: "{language}.{split}.jsonl"}
    examples: {train: 30, dev: 20, test: 10}
    examples_of: {de: {train: 3, dev: 2, test: 1}}
  mlm: {kind: mlm}
methods: {full-ft: {}}
grids:
  main: {task: [nli, made], encoder: [tiny], method: [full-ft], source: [en], target: [mono], seed: [1]}
"""
NLI = json.dumps({"premise": "a", "hypothesis": "b", "label": "neutral"}) + "\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)


def sizes(**counts: tuple[int, ...]) -> DataSizes:
    return DataSizes(load_plan("tiny").study, {name.replace("__", ":"): numbers for name, numbers in counts.items()})


def test_generated_data_have_the_sizes_of_their_options() -> None:
    assert sizes().of("made", "en") == Splits(700, 100, 200)
    assert sizes().of("mlm", "en") == Splits(960, 20, 20)


def test_the_study_says_sizes_and_those_of_a_language() -> None:
    assert sizes().of("nli", "en") == Splits(30, 20, 10)
    assert sizes().of("nli", "de") == Splits(3, 2, 1)


def test_files_that_are_there_are_counted() -> None:
    Path("de.test.jsonl").write_text(NLI * 7)
    Path("fr.txt").write_text("a line\n" * 100)
    assert sizes().of("nli", "de") == Splits(3, 2, 7)
    assert sizes().of("mlm", "fr") == Splits(96, 2, 2)
    assert sizes().of("mlm", "en-fr") == Splits(96, 2, 2), "of a pair, the smaller text"


def test_sentences_and_questions_are_counted_as_a_task_reads_them() -> None:
    tasks = (
        '  ner: {kind: wikiann, labels: [O, B-DATE], data: {local: "{name}.{split}.txt", names: {en: eng}}}\n'
        '  qa: {kind: xquad, data: {local: "{language}.{split}.json", limit: 1}}\n'
    )
    Path("studies/tiny.yaml").write_text(STUDY.replace("  mlm:", f"{tasks}  mlm:"))
    Path("eng.test.txt").write_text("a O\nb B-DATE\n\nc O\n")
    qas = [{"id": "1", "question": "?", "answers": []}] * 3
    Path("en.test.json").write_text(json.dumps({"data": [{"paragraphs": [{"context": "c", "qas": qas}]}]}))
    assert (sizes().of("ner", "en").test, sizes().of("qa", "en").test) == (2, 1)


def test_the_documents_of_a_text_are_counted_unless_the_study_says_how_many() -> None:
    Path("fr.txt").write_text("a line\nand another\n\n" * 100)
    study = STUDY.replace("files: {fr:", "documents: true, files: {fr:")
    Path("studies/tiny.yaml").write_text(study)
    assert sizes().of("mlm", "fr") == Splits(96, 2, 2)
    stated = "mlm: {kind: mlm, examples: {train: 5000, dev: 100, test: 100}}"
    Path("studies/tiny.yaml").write_text(study.replace("mlm: {kind: mlm}", stated))
    assert sizes().of("mlm", "fr") == Splits(5000, 100, 100)
    assert sizes().of("mlm", "en") == Splits(960, 20, 20), "generated text is as large as its settings say"


def test_empty_lines_of_a_text_that_is_cut_are_no_rows() -> None:
    Path("fr.txt").write_text("a line\n\n" * 100)
    Path("studies/tiny.yaml").write_text(STUDY.replace("sentences: 1000,", "sentences: 1000, most_characters: 360,"))
    assert sizes().of("mlm", "fr") == Splits(57, 2, 1)


def test_a_file_that_is_not_there_leaves_a_text_unknown() -> None:
    assert sizes().of("mlm", "fr") == Splits(None, None, None)


def test_options_count_first() -> None:
    data_sizes = sizes(nli=(5, 4, 3), nli__fr=(9, 8, 7), mlm=(2, 1, 1))
    assert [data_sizes.of("nli", code) for code in ("en", "fr")] == [Splits(5, 4, 3), Splits(9, 8, 7)]
    assert data_sizes.of("mlm", "fr") == Splits(2, 1, 1)


def test_a_language_may_have_a_size_of_its_own() -> None:
    Path("studies/tiny.yaml").write_text(COSTED)
    study = load_plan("tiny")
    estimate = Estimate(study, Assumed({"rt": (700, 100, 200), "rt:fr": (70, 10, 20)}))
    all_alike = Estimate(study, Assumed({"rt": (700, 100, 200)}))
    french, english = (Run("tiny", "rt", "tiny", "full-ft", code, 1) for code in ("fr", "en"))
    assert 10 * estimate.run(french).evaluated == all_alike.run(french).evaluated
    assert estimate.run(english) == all_alike.run(english)
    cells = [dict(each.exhibits())[WHOLE].evaluated for each in (estimate, all_alike)]
    assert cells[0] < cells[1]


def test_rows_that_the_source_leaves_out_do_not_count() -> None:
    text = STUDY.replace('"{language}.{split}.jsonl"', '"{language}.{split}.jsonl", where: {kind: x}')
    Path("studies/tiny.yaml").write_text(text)
    rows = [json.loads(NLI) | {"kind": kind} for kind in "xyxxy"]
    Path("de.test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sizes().of("nli", "de") == Splits(3, 2, 3)
    limited = text.replace("where: {kind: x}", "where: {kind: x}, limit: 2")
    Path("studies/tiny.yaml").write_text(limited)
    assert sizes().of("nli", "de") == Splits(3, 2, 2)


def test_a_text_has_the_rows_that_its_characters_allow(tmp_path: Path) -> None:
    from xlgrid.data.text import make_text

    Path("fr.txt").write_text("".join(f"line {number} has {'more ' * (number % 5)}\n" for number in range(300)))
    Path("studies/tiny.yaml").write_text(STUDY.replace("sentences: 1000,", "sentences: 1000, most_characters: 2000,"))
    study = load_plan("tiny").study
    make_text("fr", tmp_path / "fr.parquet", study.text)
    number = pq.read_metadata(tmp_path / "fr.parquet").num_rows
    assert 50 < number < 300
    assert sum(filter(None, DataSizes(study).of("mlm", "fr"))) == number
