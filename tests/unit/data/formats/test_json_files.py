"""JSON: a value on each line, a list of rows, and questions in the nesting of SQuAD."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xlgrid.base.errors import Damaged
from xlgrid.data.formats import read_table, rows

# XQuAD's files have this structure, and its version.
SQUAD: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": "Rome",
            "paragraphs": [
                {
                    "context": "Ada lives in Rome.",
                    "qas": [
                        {"id": "q1", "question": "Who?", "answers": [{"answer_start": 0, "text": "Ada"}]},
                        {
                            "id": "q2",
                            "question": "Where?",
                            "answers": [{"answer_start": 13, "text": "Rome"}, {"answer_start": 10, "text": "in Rome"}],
                        },
                    ],
                },
                {
                    "context": "Bo.",
                    "qas": [{"id": "q3", "question": "?", "answers": [{"text": "Bo", "answer_start": 0}]}],
                },
            ],
        }
    ],
}
QUESTIONS = [
    ("q1", "Ada lives in Rome.", "Who?", ["Ada"], [0]),
    ("q2", "Ada lives in Rome.", "Where?", ["Rome", "in Rome"], [13, 10]),
    ("q3", "Bo.", "?", ["Bo"], [0]),
]
TABLE = [
    {
        "id": number,
        "title": "Rome",
        "context": context,
        "question": question,
        "answers": {"text": answers, "answer_start": starts},
    }
    for number, context, question, answers, starts in QUESTIONS
]
COMPRESSIONS = [("", bytes), (".gz", gzip.compress)]


@pytest.mark.parametrize(("end", "compress"), COMPRESSIONS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_questions_of_squad_have_the_columns_of_the_hub(
    tmp_path: Path, end: str, compress: Callable[[bytes], bytes], mark: str
) -> None:
    path = tmp_path / f"xquad.es.json{end}"
    path.write_bytes(compress((mark + json.dumps(SQUAD)).encode()))
    assert read_table(path).to_pylist() == TABLE


@pytest.mark.parametrize(("is_impossible", "has_answer"), [(True, False), (False, True), (None, True), ("false", True)])
def test_a_question_is_impossible_if_the_file_says_true(
    tmp_path: Path, is_impossible: object, has_answer: bool
) -> None:
    question = {
        "id": "b",
        "question": "?",
        "answers": [{"text": "Bo", "answer_start": 0}],
        "is_impossible": is_impossible,
    }
    file = {"data": [{"title": "", "paragraphs": [{"context": "Bo.", "qas": [question]}]}]}
    (tmp_path / "x.json").write_text(json.dumps(file))
    [answers] = read_table(tmp_path / "x.json")["answers"].to_pylist()
    assert answers == {"text": ["Bo"] * has_answer, "answer_start": [0] * has_answer}


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        ("answers", [{"text": "o", "answer_start": True}], "question 0: expected a whole number as 'answer_start'"),
        ("answers", None, "question 0: expected a list as 'answers', as in SQuAD, but it is missing; mend the file"),
        ("question", 7, "question 0: expected a text as 'question', as in SQuAD, but got '7'"),
        ("answers", [{"text": "Bo"}], "question 0: expected a whole number as 'answer_start', .* but it is missing"),
    ],
)
def test_a_part_that_squad_has_is_missed_by_its_place(tmp_path: Path, part: str, value: object, problem: str) -> None:
    changed = json.loads(json.dumps(SQUAD))
    changed["data"][0]["paragraphs"][1]["qas"][0][part] = value
    (tmp_path / "x.json").write_text(json.dumps(changed))
    with pytest.raises(ValueError, match=rf"x\.json, article 0, paragraph 1, {problem}"):
        read_table(tmp_path / "x.json")


def test_a_list_of_objects_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"text": "a", "label": 0},\n {"text": "b", "label": 1}]')
    assert read_table(tmp_path / "x.json").to_pydict() == {"text": ["a", "b"], "label": [0, 1]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"a": 1}\n{"a": 2}\n',
            "is not JSON: Extra data.*; the name of a file with an object on each line must",
        ),
        ('{"a": ', "is not JSON: Expecting value"),
        ('{"a": 1}', "is neither a list with an object for each row nor in the format of SQuAD"),
        ("[1, 2]", "is neither a list with an object for each row"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=rf"x\.json {problem}"):
        read_table(tmp_path / "x.json")


@pytest.mark.parametrize(("end", "compress"), COMPRESSIONS)
def test_lines_of_json_may_be_compressed(tmp_path: Path, end: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"x.jsonl{end}"
    path.write_bytes(compress(b'{"text": "a", "label": 0}\n\n{"text": "b", "label": 1}\n'))
    assert read_table(path).to_pydict() == {"text": ["a", "b"], "label": [0, 1]}
    assert list(rows(path, ["label", "text"])) == [(0, "a"), (1, "b")]


def test_mappings_have_the_keys_that_all_rows_have(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [{"a": {"x": 1, "y": "b"}}, {"a": {"y": "c", "x": 2}}, {"a": {"x": 3, "y": "d", "z": [None]}}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read_table(path)["a"].to_pylist() == [{"x": 1, "y": "b"}, {"x": 2, "y": "c"}, {"x": 3, "y": "d"}]


def test_a_number_that_is_too_large_for_a_table_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": 10**24, "text": "a"}))
    assert read_table(path).to_pydict() == {"text": ["a"]}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.jsonl", '{"text": "fine"}\n{"text": "cut \\ud83d"}\n', "line 2: "),
        ("a.jsonl", '{"words": ["a", "\\uDE00 cut"]}\n', "line 1: "),
        ("a.json", '[{"text": "cut \\ud83d"}]', "a.json: "),
    ],
)
def test_half_of_a_character_is_named(tmp_path: Path, name: str, text: str, place: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Damaged, match=rf"{place}\\ud[0-9a-f]+ is half of a character"):
        read_table(tmp_path / name)


def test_a_pair_of_surrogates_is_a_character_and_an_escaped_escape_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud83d\\ude00 \\\\ud800"}\n')
    assert read_table(tmp_path / "a.jsonl").to_pylist() == [{"text": "😀 \\ud800"}]
