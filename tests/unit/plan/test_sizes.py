"""Sizes of data: counted where the data are made, from the options of generated data, from the study, or from files of one's own."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid.plan.load import load_plan
from xlgrid.plan.sizes import DataSizes
from xlgrid.products.data import Data, Text
from xlgrid.products.encode import Tokens

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
    examples: {train: 30, dev: 20, languages: {de: {train: 3, dev: 2}}}
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


def examples(task: str, language: str, split: str) -> int:
    return DataSizes(load_plan("tiny")).examples(Tokens("tiny", task, "tiny", language, split))


def write(path: str, rows: int) -> None:
    Path(path).parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": range(rows)}), path)


def test_generated_data_have_the_sizes_of_their_options() -> None:
    assert [examples("made", "en", split) for split in ("train", "dev", "test")] == [700, 100, 200]
    assert [examples("mlm", "en", split) for split in ("train", "dev", "test")] == [960, 20, 20]


def test_the_study_says_sizes_and_those_of_a_language() -> None:
    assert (examples("nli", "en", "train"), examples("nli", "de", "train")) == (30, 3)


def test_examples_that_are_read_beside_a_translation_are_those_of_the_first_language() -> None:
    assert examples("nli", "de~en", "train") == 3


def test_data_that_are_made_count_more_than_what_the_study_says() -> None:
    write(Data("tiny", "nli", "de", "train").path, 7)
    assert examples("nli", "de", "train") == 7


def test_a_pair_has_the_rows_of_its_smaller_text() -> None:
    write(Text("tiny", "fr").path, 100)
    assert examples("mlm", "fr", "train") == examples("mlm", "en-fr", "train") == 96


def test_a_text_that_is_not_made_has_the_most_dev_rows() -> None:
    Path("studies/tiny.yaml").write_text(STUDY.replace("mlm: {kind: mlm}", "mlm: {kind: mlm, options: {dev_rows: 50}}"))
    assert examples("mlm", "fr", "dev") == 50


def test_files_of_one_s_own_are_counted_where_the_study_says_nothing() -> None:
    Path("de.test.jsonl").write_text(NLI * 7)
    assert examples("nli", "de", "test") == 7


@pytest.mark.parametrize(("task", "split"), [("nli", "test"), ("mlm", "train")])
def test_an_unknown_size_is_an_error_that_names_the_key(task: str, split: str) -> None:
    with pytest.raises(ValueError, match=rf"task {task} has in the {split} set of fr.*add `examples:.*tasks\.{task}"):
        examples(task, "fr", split)


@pytest.mark.parametrize(("documents", "length"), [("cut", 60), ("pack", 512), ("split", 512)])
def test_texts_that_fill_inputs_are_as_long_as_inputs(documents: str, length: int) -> None:
    text = STUDY.replace("mlm: {kind: mlm}", f"mlm: {{kind: mlm, options: {{documents: {documents}}}}}")
    Path("studies/tiny.yaml").write_text(text)
    assert DataSizes(load_plan("tiny")).length("mlm") == length


def test_an_example_has_an_input_for_each_choice() -> None:
    task = 'made: {kind: choice, inputs: [a], choices: [b, c, d], target: e, labels: [0, 1, 2], data: {local: "{language}"}}'
    generated = "made: {kind: ruletaker, options: {n: 1000, questions_per_theory: 2}}"
    Path("studies/tiny.yaml").write_text(STUDY.replace(generated, task))
    sizes = DataSizes(load_plan("tiny"))
    assert sizes.of_example("made") == 3 * sizes.length("made")
