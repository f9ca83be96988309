"""Data of tasks from the Hub and from local files."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fetch_fixture import DATE, MASAKHA, NER, XNLI, fetch_data, fetched, written

from xlgrid.data import fetch
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.sources import origin_of
from xlgrid.tasks import task

OPTIONS = {"n": 40, "rules": [0, 2], "facts": [2, 4]}


@pytest.fixture(scope="module")
def generated_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_meanings("ruletaker", OPTIONS, folder / "meanings.parquet")
    for language in ("en", "fr"):
        make_data("ruletaker", OPTIONS, language, folder / "meanings.parquet", folder / language)
    return folder


def test_local_rows_are_read_without_a_file_and_without_a_lock(generated_data, tmp_path):
    source = {"local": f"{generated_data}/{{language}}/{{split}}.parquet"}
    fetch_data("ruletaker", source, "en-fr", tmp_path, tmp_path / "lock.yaml")
    read = fetch.read_data(origin_of(source), task("ruletaker"), "en-fr", "dev", "")
    assert read == read_table(tmp_path / "dev.parquet")


def test_local_files_may_have_other_names_for_splits(generated_data, tmp_path):
    (tmp_path / "en").mkdir()
    for ours, theirs in (("train", "train"), ("dev", "validation"), ("test", "test")):
        (tmp_path / "en" / f"{theirs}.parquet").write_bytes((generated_data / "en" / f"{ours}.parquet").read_bytes())
    source = {"local": f"{tmp_path}/{{language}}/{{split}}.parquet"}
    with pytest.raises(FileNotFoundError, match=r"no file .*dev\.parquet"):
        fetch_data("ruletaker", source, "en", tmp_path / "out", tmp_path / "lock.yaml")
    fetch_data("ruletaker", source | {"splits": {"dev": "validation"}}, "en", tmp_path / "out", tmp_path / "lock.yaml")
    assert read_table(tmp_path / "out" / "dev.parquet") == read_table(generated_data / "en" / "dev.parquet")


# Both directions of a translation are columns of one file, as WMT's data sets on the Hub have them.
WMT = {"rename": {"translation.{first}": "source", "translation.{second}": "target"}}


@pytest.mark.parametrize(("pair", "source", "target"), [("de-en", "Hund", "dog"), ("en-de", "dog", "Hund")])
def test_a_translation_is_between_the_languages_of_the_pair(tmp_path, pair, source, target):
    rows = [{"translation": {"de": f"Hund {i}", "en": f"dog {i}"}} for i in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    origin = {"local": f"{tmp_path}/{{split}}.parquet", **WMT}
    columns = {"inputs": ["source", "target"]}
    fetch.fetch_data("mlm", origin, pair, "train", tmp_path / "out.parquet", tmp_path / "lock.yaml", columns)
    expected = [{"source": f"{source} {i}", "target": f"{target} {i}"} for i in range(3)]
    assert read_table(tmp_path / "out.parquet").to_pylist() == expected


SENTIMENT = {"inputs": ["text"], "target": "label"}


def labels_of(tmp_path, name, content, known, **data):
    """The labels of the rows of a file, in a task with these labels."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    source = {"local": str(tmp_path / name), **data}
    columns = SENTIMENT | {"labels": known}
    fetch.fetch_data("sequence", source, "en", "test", tmp_path / "o.parquet", "l", columns)
    return read_table(tmp_path / "o.parquet")["label"].to_pylist()


@pytest.mark.parametrize(
    ("name", "content", "labels", "expected"),
    [
        ("x.csv", "text,label\na,01\nb,02\n", ["01", "02"], ["01", "02"]),
        ("x.csv", "text,label\na,1\nb,0\n", [0, 1], ["1", "0"]),
        ("x.csv", "text,label\na,true\nb,false\n", [True, False], ["true", "false"]),
        ("x.tsv", "text\tlabel\na\tNA\nb\tnull\n", ["NA", "null"], ["NA", "null"]),
        ("x.csv", "text,label\na,1.0\nb,1\n", ["1", "1.0"], ["1.0", "1"]),
        ("x.csv", "text,label\n1,yes\n2,no\n", ["no", "yes"], ["yes", "no"]),
        ("x.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n', ["0", "1"], ["1", "0"]),
        (
            "x.jsonl",
            '{"text": "a", "label": true}\n{"text": "b", "label": false}\n',
            ["true", "false"],
            ["true", "false"],
        ),
        ("x.jsonl", '{"text": "a", "label": "01"}\n{"text": "b", "label": "1"}\n', ["1", "01"], ["01", "1"]),
    ],
)
def test_labels_compare_as_text(tmp_path, name, content, labels, expected):
    assert labels_of(tmp_path, name, content, labels) == expected


def test_a_missing_value_is_told_and_the_study_says_what_counts_as_missing(tmp_path):
    content = "text,label\na,1\nNA,0\n"
    assert labels_of(tmp_path, "x.csv", content, ["0", "1"]) == ["1", "0"]
    with pytest.raises(ValueError, match=r"x\.csv, row \d, column 'text': the value is missing"):
        labels_of(tmp_path, "x.csv", content, ["0", "1"], missing=["NA"])
    with pytest.raises(ValueError, match=r"x\.csv, row \d, column 'label': the value is missing"):
        labels_of(tmp_path, "x.csv", "text,label\na,1\nb,\n", ["0", "1"])


@pytest.mark.parametrize(
    ("name", "content", "kept"),
    [
        ("x.csv", "text,label,part\na,1,01\nb,0,1\n", {"01": "1", 1: "0"}),
        (
            "x.jsonl",
            '{"text": "a", "label": 1, "part": "01"}\n{"text": "b", "label": 0, "part": "1"}\n',
            {"01": "1", 1: "0"},
        ),
        (
            "x.jsonl",
            '{"text": "a", "label": 1, "part": 1.0}\n{"text": "b", "label": 0, "part": 2.5}\n',
            {1: "1", "2.5": "0"},
        ),
    ],
)
def test_where_compares_text_with_text_and_numbers_with_numbers(tmp_path, name, content, kept):
    for value, label in kept.items():
        assert labels_of(tmp_path, name, content, ["0", "1"], where={"part": value}) == [label]
    with pytest.raises(ValueError, match=r"no row whose part is 9 \(there are: "):
        labels_of(tmp_path, name, content, ["0", "1"], where={"part": 9})


@pytest.mark.parametrize("names", [{0: "no", 1: "yes"}, {"0": "no", "1": "yes"}])
@pytest.mark.parametrize("answers", [[1, 0], ["1", "0"], [1, "no"]])
def test_a_translation_of_labels_has_numbers_or_text_on_either_side(tmp_path, names, answers):
    content = "".join(json.dumps({"text": "a", "label": str(answer)}) + "\n" for answer in answers)
    assert labels_of(tmp_path, "x.jsonl", content, ["no", "yes"], labels=names) == ["yes", "no"]


def test_true_and_false_can_be_translated(tmp_path):
    content = '{"text": "a", "label": true}\n{"text": "b", "label": false}\n'
    assert labels_of(tmp_path, "x.jsonl", content, ["no", "yes"], labels={True: "yes", False: "no"}) == ["yes", "no"]


def test_depths_of_csv_are_numbers(tmp_path):
    labels_of(tmp_path, "x.csv", "text,label,depth\na,1,03\nb,0,2\n", ["0", "1"])
    assert read_table(tmp_path / "o.parquet")["depth"].to_pylist() == [3, 2]


@pytest.mark.parametrize("depth", ["deep", "", "2.5", "1e2", "12345678901"])
def test_a_column_depth_that_has_other_values_than_whole_numbers_is_left_out(tmp_path, depth, capsys):
    """The schedule says that the data have no depth, if a curriculum asks for it."""
    labels_of(tmp_path, "x.csv", f"text,label,depth\na,1,3\nb,0,{depth}\n", ["0", "1"])
    assert read_table(tmp_path / "o.parquet").column_names == ["text", "label"]
    assert "x.csv: the column `depth` is left out" in capsys.readouterr().err


def test_a_column_depth_that_the_task_reads_is_no_number(tmp_path):
    (tmp_path / "x.csv").write_text("depth,label\n01,a\n02,b\n")
    columns = {"inputs": ["depth"], "target": "label", "labels": ["a", "b"]}
    source = {"local": f"{tmp_path}/x.csv"}
    fetch.fetch_data("sequence", source, "en", "test", tmp_path / "o.parquet", tmp_path / "lock", columns)
    assert read_table(tmp_path / "o.parquet")["depth"].to_pylist() == ["01", "02"]


def test_a_source_brings_its_texts_into_a_normalization_form(tmp_path):
    (tmp_path / "x.csv").write_text("text,label\ncafe\u0301,a\ncafé,a\n", encoding="utf-8")
    source, out = {"local": str(tmp_path / "x.csv")}, tmp_path / "o.parquet"
    columns = SENTIMENT | {"labels": ["a", "b"]}
    fetch.fetch_data("sequence", source, "en", "test", out, "l", columns)
    assert read_table(out)["text"].to_pylist() == ["cafe\u0301", "café"]
    fetch.fetch_data("sequence", source | {"normalize": "NFC"}, "en", "test", out, "l", columns)
    assert read_table(out)["text"].to_pylist() == ["café", "café"]


ALL = [{"id": f"{name}-{at}", "text": f"{name} {at}", "label": "a"} for name in ("english", "swahili") for at in (1, 2)]
OF_LANGUAGE = {"kind": "sequence", "columns": {"inputs": ["text"], "target": "label", "labels": ["a", "b"]}}
BEGINS = {"id": {"en": "english-", "sw": "swahili-"}}


def test_begins_selects_the_rows_of_a_language_from_a_file_of_all(tmp_path):
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ALL))
    source = {"local": f"{tmp_path}/all.jsonl", "begins": BEGINS}

    def fetched(changes, language):
        fetch.fetch_data(
            source=source | changes,
            language=language,
            split="test",
            out=tmp_path / "o.parquet",
            lock="l",
            **OF_LANGUAGE,
        )
        return read_table(tmp_path / "o.parquet")["text"].to_pylist()

    assert fetched({}, "sw") == ["swahili 1", "swahili 2"]
    assert fetched({"limit": 1}, "en") == ["english 1"]
    with pytest.raises(ValueError, match=r"no test data in fi: .* lists en, sw only"):
        fetched({}, "fi")
    with pytest.raises(ValueError, match=r"no text for unknown language 'fi'"):
        fetched({"languages": ["en", "fi"]}, "fi")
    with pytest.raises(ValueError, match=r"no row whose id begins with 'finnish-' \(the first are: 'english-1', "):
        fetched({"begins": {"id": {"fi": "finnish-"}}}, "fi")
    with pytest.raises(ValueError, match=r"no column 'ids' to select by \(it has: id, text, label\)"):
        fetched({"begins": {"ids": BEGINS["id"]}}, "en")


def test_the_settings_of_a_language_are_without_the_beginnings_of_others():
    origin = origin_of({"hub": "a/b", "begins": BEGINS})
    assert origin.concerning("sw").begins == {"id": {"sw": "swahili-"}}
    assert "begins" not in origin_of({"hub": "a/b"}).model_dump_json(exclude_none=True)


def xnli(folder, language, labels):
    """Files with the columns of facebook/xnli."""
    rows = [
        {"premise": f"{language} premise {i}", "hypothesis": f"{language} hypothesis {i}", "label": label}
        for i, label in enumerate(labels)
    ]
    folder.joinpath(language).mkdir(exist_ok=True)
    for split in SPLITS:
        pq.write_table(pa.Table.from_pylist(rows), folder / language / f"{split}.parquet")
    return {"local": f"{folder}/{{language}}/{{split}}.parquet", "labels": XNLI}


def test_a_label_that_nothing_translates_names_its_row(tmp_path):
    source = xnli(tmp_path, "en", [2, 0, -1])
    with pytest.raises(ValueError, match=r"train\.parquet, row 3, column 'label': unknown label '-1'"):
        fetch_data("xnli", source, "en", tmp_path / "out", tmp_path / "lock.yaml")
    with pytest.raises(ValueError, match="did you mean 'contradiction'"):
        fetch_data("xnli", source | {"labels": {"2": "contradicts"}}, "en", tmp_path / "out", tmp_path / "lock.yaml")


@pytest.mark.parametrize(
    ("tags", "labels", "expected"),
    [
        ([1, 2, 0], {}, [1, 2, 0]),
        (["B-PER", "I-PER", "O"], {}, [1, 2, 0]),
        (["B-PER", "I-PER", "B-DATE"], {"B-DATE": "O"}, [1, 2, 0]),
        ([1, 2, 7], {7: "O"}, [1, 2, 0]),
        (["B-OTH", "I-OTH", "B-PER"], {"OTH": "O"}, [0, 0, 1]),
        (["B-PERSON", "I-PERSON", "O"], {"PERSON": "PER"}, [1, 2, 0]),
        (["B-OTH", "I-OTH", "O"], {"OTH": "O", "B-OTH": "B-PER", "I-OTH": "I-PER"}, [1, 2, 0]),
    ],
)
def test_tags_are_numbers_or_names_translated_or_not(tmp_path, tags, labels, expected):
    source = written(tmp_path, {"words": ["a", "b", "c"], "tags": tags}) | {"labels": labels}
    assert fetched("token", source, tmp_path, NER) == [{"words": ["a", "b", "c"], "tags": expected}] * 2


def test_a_tag_that_nothing_translates_names_its_row(tmp_path):
    source = written(tmp_path, {"words": ["a"], "tags": ["B-DATE"]})
    with pytest.raises(
        ValueError,
        match=r"test\.parquet, row 1, column 'tags', word 'a': unknown label 'B-DATE'.*\(there are: O, B-PER, I-PER\)",
    ):
        fetched("token", source, tmp_path, NER)
    with pytest.raises(ValueError, match=r"word 'a': 3 is not a number from 0 to 2, the labels; `labels` of the task"):
        fetched("token", written(tmp_path, {"words": ["a"], "tags": [3]}), tmp_path, NER)
    with pytest.raises(ValueError, match="did you mean 'B-PER'"):
        fetched("token", source | {"labels": {"B-DATE": "B-PRE"}}, tmp_path, NER)


def test_a_task_without_labels_has_none_to_translate(tmp_path):
    with pytest.raises(ValueError, match="`labels` translates labels, and xquad has none"):
        fetched("xquad", {"local": str(tmp_path), "labels": {"0": "NOUN"}}, tmp_path)


@pytest.mark.parametrize("label", [1, "1", True])
def test_labels_of_a_described_task_are_read_as_text(tmp_path, label):
    columns = {"inputs": ["a", "b"], "target": "same", "labels": [0, 1, True]}
    row = {"a": "x", "b": "y", "same": label, "more": 3}
    rows = fetched("sequence", written(tmp_path, row), tmp_path, columns)
    assert rows == [{"a": "x", "b": "y", "same": "true" if label is True else "1"}] * 2


def test_parts_of_columns_become_columns(tmp_path):
    row = {"article": "p", "options": ["x", "y"], "choices": {"text": ["v", "w"]}, "answer": {"letter": "B"}}
    columns = {"inputs": ["article"], "choices": ["A", "B"], "target": "right", "labels": ["A", "B"]}
    parts = {"options.0": "A", "choices.text.1": "B", "answer.letter": "right"}
    rows = fetched("choice", written(tmp_path, row) | {"rename": parts}, tmp_path, columns)
    assert rows == [{"article": "p", "A": "x", "B": "w", "right": "B"}] * 2


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"option.0": "A"}, r"no column 'option.0' to rename \(it has: article, options\)"),
        ({"options.2": "A"}, "column 'options' has no part 'options.2' in every row"),
        ({"options.text": "A"}, "column 'options' has no part 'options.text' in every row"),
    ],
)
def test_a_part_that_is_missing_is_named(tmp_path, parts, problem):
    source = written(tmp_path, {"article": "p", "options": ["x", "y"]}) | {"rename": parts}
    columns = {"inputs": ["article"], "choices": ["A", "B"], "target": "right", "labels": ["A", "B"]}
    with pytest.raises(ValueError, match=problem):
        fetched("choice", source, tmp_path, columns)


def test_columns_can_be_renamed(tmp_path):
    source = written(tmp_path, {"words": ["a"], "pos_tags": [3]})
    with pytest.raises(ValueError, match=r"test\.parquet has no column 'tokens'"):
        fetched("udpos", source, tmp_path)
    renamed = source | {"rename": {"words": "tokens"}}
    assert fetched("udpos", renamed, tmp_path) == [{"tokens": ["a"], "pos_tags": [3]}] * 2


def test_a_name_is_for_one_column(tmp_path):
    source = written(tmp_path, {"tokens": ["a"], "words": ["b"], "pos_tags": [0]})
    with pytest.raises(
        ValueError, match=r"test\.parquet has a column 'tokens', and `rename` gives this name to another"
    ):
        fetched("udpos", source | {"rename": {"words": "tokens"}}, tmp_path)
    with pytest.raises(ValueError, match="`rename` gives the name 'tokens' to two columns"):
        fetched("udpos", source | {"rename": {"words": "tokens", "more": "tokens"}}, tmp_path)


def test_a_pair_is_joined_from_its_languages(tmp_path):
    for language in ("en", "fr"):
        source = xnli(tmp_path, language, [2, 0, 1])
    for pair in ("en-fr", "fr-en"):
        fetch_data("xnli", source | {"limit": 2}, pair, tmp_path / "out", tmp_path / "lock.yaml")
        first, second = pair.split("-")
        assert read_table(tmp_path / "out" / "test.parquet").to_pylist() == [
            {"premise": f"{first} premise 0", "hypothesis": f"{second} hypothesis 0", "label": "contradiction"},
            {"premise": f"{first} premise 1", "hypothesis": f"{second} hypothesis 1", "label": "entailment"},
        ]


def test_a_joined_pair_is_what_would_have_been_generated(generated_data, tmp_path):
    source = {"local": f"{generated_data}/{{language}}/{{split}}.parquet"}
    fetch_data("ruletaker", source, "en-fr", tmp_path / "joined", tmp_path / "lock.yaml")
    make_data("ruletaker", OPTIONS, "en-fr", generated_data / "meanings.parquet", tmp_path / "said")
    joined, expected = (read_table(tmp_path / name / "train.parquet") for name in ("joined", "said"))
    assert joined.to_pylist() == expected.to_pylist()


def test_a_file_of_the_pair_wins_and_must_be_whole(tmp_path):
    for language in ("en", "fr", "en-fr"):
        source = xnli(tmp_path, language, [1, 1])
    fetch_data("xnli", source, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")
    assert read_table(tmp_path / "out" / "dev.parquet")["hypothesis"].to_pylist()[0] == "en-fr hypothesis 0"
    (tmp_path / "en-fr" / "dev.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"en-fr/dev\.parquet"):
        fetch_data("xnli", source, "en-fr", tmp_path / "again", tmp_path / "lock.yaml")


def test_a_pair_of_data_that_are_not_parallel_is_refused(tmp_path):
    source = xnli(tmp_path, "en", [2, 0, 1])
    xnli(tmp_path, "fr", [2, 1, 0])
    with pytest.raises(ValueError, match=r"in row 2 the label is 'entailment' in .*en/train.* 'neutral' in .*fr/train"):
        fetch_data("xnli", source, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")
    xnli(tmp_path, "fr", [2, 0])
    with pytest.raises(ValueError, match=r"en/train\.parquet has 3 rows and .*fr/train\.parquet has 2"):
        fetch_data("xnli", source, "en-fr", tmp_path / "out", tmp_path / "lock.yaml")
    with pytest.raises(FileNotFoundError, match="de/train"):
        fetch_data("xnli", source, "en-de", tmp_path / "out", tmp_path / "lock.yaml")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "language", "message"),
    [
        ("udpos", "en-fr", "udpos reads one text and has no pairs such as en-fr"),
        ("copa", "en-fr", "copa has no pairs such as en-fr"),
        ("xnli", "en-fr-de", "neither a language.* nor a pair"),
    ],
)
def test_a_pair_is_for_tasks_of_two_texts(tmp_path, kind, language, message):
    with pytest.raises(ValueError, match=message):
        fetched(kind, {"local": f"{tmp_path}/x.csv"}, tmp_path, None, language)


def squad(folder, names):
    """Files with the columns of google/xquad."""
    for name in names:
        row = {"id": "q1", "context": f"{name} in Rome", "question": f"{name}?"}
        row["answers"] = {"text": ["Rome"], "answer_start": [len(name) + 4]}
        pq.write_table(pa.Table.from_pylist([row]), folder / f"{name}.parquet")


def test_training_data_can_come_from_elsewhere(tmp_path):
    squad(tmp_path, ["xquad-es", "squad-train", "squad-dev"])
    here = {"local": f"{tmp_path}/squad-{{split}}.parquet", "languages": ["en", "es"]}
    source = {"local": f"{tmp_path}/xquad-{{language}}.parquet", "train": here, "dev": here}
    fetch_data("xquad", source, "es", tmp_path / "out", tmp_path / "lock.yaml")
    rows = {split: read_table(tmp_path / "out" / f"{split}.parquet").to_pylist() for split in SPLITS}
    assert [rows[split][0]["question"] for split in SPLITS] == ["squad-train?", "squad-dev?", "xquad-es?"]
    assert rows["test"][0]["answers"] == {"text": ["Rome"], "answer_start": [12]}


def test_a_language_that_a_split_lacks_is_told(tmp_path):
    squad(tmp_path, ["xquad-es"])
    source = {"local": f"{tmp_path}/xquad-{{language}}.parquet", "train": {"hub": "a/squad", "languages": ["en"]}}
    with pytest.raises(
        ValueError, match=r"xquad has no train data in es: `languages` of a/squad lists en only\. .*`data\.train`"
    ):
        fetch.fetch_data("xquad", source, "es", "train", tmp_path / "out.parquet", tmp_path / "lock.yaml")
    fetch.fetch_data("xquad", source, "es", "dev", tmp_path / "out.parquet", tmp_path / "lock.yaml")


def test_without_a_name_the_configurations_are_the_languages(tmp_path):
    source = {"hub": "facebook/belebele", "names": {"sw": "swh_Latn", "en": "eng_Latn"}}
    with pytest.raises(ValueError, match=r"`names` of facebook/belebele lists sw, en only"):
        fetch.fetch_data("xquad", source, "fr", "test", tmp_path / "out.parquet", tmp_path / "lock.yaml")
    assert origin_of(source).has("sw-en") and origin_of(source | {"name": "x"}).has("fr")


def test_only_the_split_that_is_asked_for_is_fetched(tmp_path):
    squad(tmp_path, ["test"])
    source = {"local": f"{tmp_path}/{{split}}.parquet"}
    fetch.fetch_data("xquad", source, "en", "test", tmp_path / "out.parquet", tmp_path / "lock.yaml")
    with pytest.raises(ValueError, match="did you mean 'test'"):
        fetch.fetch_data("xquad", source, "en", "tset", tmp_path / "out.parquet", tmp_path / "lock.yaml")


def test_a_pair_of_questions_has_the_context_of_the_first_language(tmp_path):
    squad(tmp_path, ["en", "es"])
    source = {"local": f"{tmp_path}/{{language}}.parquet"}
    fetch.fetch_data("xquad", source, "es-en", "test", tmp_path / "out.parquet", tmp_path / "lock.yaml")
    [row] = read_table(tmp_path / "out.parquet").to_pylist()
    assert (row["context"], row["question"], row["answers"]["answer_start"]) == ("es in Rome", "en?", [6])


def test_a_pair_of_questions_without_ids_is_told(tmp_path):
    squad(tmp_path, ["en", "es"])
    for code in ("en", "es"):
        path = tmp_path / f"{code}.parquet"
        pq.write_table(read_table(path).drop_columns("id"), path)
    source = {"local": f"{tmp_path}/{{language}}.parquet"}
    with pytest.raises(ValueError, match=r"en\.parquet has no column 'id'"):
        fetch.fetch_data("xquad", source, "en-es", "test", tmp_path / "out.parquet", tmp_path / "lock.yaml")


def test_a_question_has_as_many_places_as_answers(tmp_path):
    row = {"id": "q1", "context": "a b", "question": "?", "answers": {"text": ["a"], "answer_start": [0, 1]}}
    with pytest.raises(ValueError, match="row 1, column 'answers': got 1 texts and 2 starts of answers"):
        fetched("xquad", written(tmp_path, row), tmp_path)


# MasakhaNER's files, whose labels have a type that WikiANN lacks, and folders by other codes than a study's.


def masakha(folder, text=MASAKHA):
    """The source of files as MasakhaNER's repository has them."""
    (folder / "swa").mkdir()
    (folder / "swa" / "test.txt").write_text(text)
    return {"local": f"{folder}/{{name}}/{{split}}.txt", "names": {"sw": "swa"}}


def test_files_of_words_are_data_of_a_kind_with_labels_of_its_own(tmp_path):
    assert fetched("wikiann", masakha(tmp_path), tmp_path, DATE, "sw") == [
        {"tokens": ["Nairobi", "mwaka", "2021", "."], "ner_tags": [5, 7, 8, 0]},
        {"tokens": ["Ada", "Lovelace"], "ner_tags": [1, 2]},
    ]


def test_a_label_that_the_task_lacks_names_file_row_and_word_or_is_translated(tmp_path):
    source = masakha(tmp_path)
    problem = (
        r"swa/test\.txt, row 1, column 'ner_tags', word 'mwaka': unknown label 'B-DATE'.* B-LOC, I-LOC\); `labels` of"
    )
    with pytest.raises(ValueError, match=problem):
        fetched("wikiann", source, tmp_path, None, "sw")
    rows = fetched("wikiann", source | {"labels": {"DATE": "O"}}, tmp_path, None, "sw")
    assert [row["ner_tags"] for row in rows] == [[5, 0, 0, 0], [1, 2]]


def test_scores_on_a_file_are_those_of_an_independent_reader_and_seqeval(tmp_path):
    """Predictions that are wrong in many ways, on data with dates, punctuation marks and entities that touch."""
    from seqeval.metrics import f1_score

    rng = random.Random(3)
    sentences = [[(f"w{i}", rng.choice(DATE["labels"])) for i in range(rng.randint(1, 12))] for _ in range(60)]
    text = "\n\n".join("\n".join(f"{word} {tag}" for word, tag in sentence) for sentence in sentences)
    rows = fetched("wikiann", masakha(tmp_path, text), tmp_path, DATE, "sw")
    labels = task("wikiann", DATE).labels
    gold = [[line.split(" ")[1] for line in part.splitlines()] for part in text.split("\n\n")]
    assert [[labels[number] for number in row["ner_tags"]] for row in rows] == gold
    predicted = [[rng.choice([tag, rng.choice(labels)]) for tag in sentence] for sentence in gold]
    head = task("wikiann", DATE).head
    outcomes = [
        [row["ner_tags"], [labels.index(tag) for tag in guess]] for guess, row in zip(predicted, rows, strict=True)
    ]
    f1 = head.metric(labels)
    assert f1.score(outcomes) == pytest.approx(100 * f1_score(gold, predicted))
    assert 0 < f1.score(outcomes) < 100


def test_conllu_is_data_of_parts_of_speech(tmp_path):
    rest = "\t_" * 6
    (tmp_path / "yo.conllu").write_text(f"# text = Ada sùn\n1\tAda\t_\tPROPN{rest}\n2\tsùn\t_\tVERB{rest}\n")
    assert fetched("udpos", {"local": f"{tmp_path}/{{language}}.conllu"}, tmp_path, None, "yo") == [
        {"tokens": ["Ada", "sùn"], "pos_tags": [11, 15]}
    ]


def test_tsv_without_a_header_is_data_of_two_sentences(tmp_path):
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(b'a "quoted\tb\tignored\tneutral\n' * 2))
    source = {"local": f"{tmp_path}/{{split}}.tsv.gz", "columns": ["premise", "hypothesis", "_", "label"]}
    assert fetched("xnli", source, tmp_path) == [{"premise": 'a "quoted', "hypothesis": "b", "label": "neutral"}] * 2
    with pytest.raises(
        ValueError, match=r"test\.tsv\.gz has no column 'premise'.*`columns` names the columns of a file without"
    ):
        fetched("xnli", {"local": source["local"]}, tmp_path)


def squad_file(folder):
    """Three questions in the format of SQuAD 2.0, of which the second has no answer."""
    answers = [[{"text": "Rome", "answer_start": 3}], [], [{"text": "In", "answer_start": 0}]]
    qas = [
        {"id": f"q{i}", "question": "?", "answers": answer, "is_impossible": not answer}
        for i, answer in enumerate(answers)
    ]
    value = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "In Rome", "qas": qas}]}]}
    (folder / "test.json").write_text(json.dumps(value))
    return {"local": f"{folder}/{{split}}.json"}


def test_questions_without_an_answer_are_an_error_or_left_out(tmp_path, capsys):
    source = squad_file(tmp_path)
    with pytest.raises(ValueError, match=r"test\.json, row 2, .*: the question has no answer .*`unanswerable: drop`"):
        fetched("xquad", source, tmp_path)
    rows = fetched("xquad", source | {"unanswerable": "drop"}, tmp_path)
    assert [(row["id"], row["answers"]["text"]) for row in rows] == [("q0", ["Rome"]), ("q2", ["In"])]
    assert "test.json, 3 rows: 1 questions without an answer left out" in capsys.readouterr().err
    # The limit counts the rows that are kept.
    rows = fetched("xquad", source | {"unanswerable": "drop", "limit": 2}, tmp_path)
    assert [row["id"] for row in rows] == ["q0", "q2"]
    with pytest.raises(ValueError, match="`unanswerable` is about questions, and xnli has none: leave it out"):
        fetched("xnli", source | {"unanswerable": "drop"}, tmp_path)
