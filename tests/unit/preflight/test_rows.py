"""The rows and labels of files, and rows that two splits or two languages share."""

import pyarrow as pa
import pytest

from xlgrid.preflight.lines import State
from xlgrid.preflight.rows import Rows, row_lines, rows_of
from xlgrid.tasks import task

NER = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER"]})
QA = task("span", {"inputs": ["question", "context"], "target": "answers"})


def rows(split: str, inputs: list[int], language: str = "en", file: str = "") -> Rows:
    return Rows(language, split, [file or f"{language}-{split}"], f"{len(inputs)} rows", inputs)


def remarks(*read: Rows) -> list[str]:
    return [line.text for line in row_lines("data x", read) if line.state is State.OPEN]


def test_labels_of_words_are_counted_for_each_word() -> None:
    table = pa.table({"words": [["Ada", "is", "in"], ["No"]], "tags": [[1, 0, 0], [0]]})
    assert rows_of("en", "test", ["x"], table, NER).described == "2 rows, 2 labels; the most frequent is O (75%)"


def test_rows_without_labels_are_counted_alone() -> None:
    answers = [{"text": ["a"], "answer_start": [0]}]
    table = pa.table({"question": ["q"], "context": ["a b"], "answers": answers})
    assert rows_of("en", "test", ["x"], table, QA).described == "1 row"
    assert rows_of("en", "test", ["x"], pa.table({"words": [["Ada"]]}), NER).described == "1 row"


def test_rows_are_the_same_if_the_encoder_reads_the_same() -> None:
    first, second = ({"words": [["Ada"], ["No"]], "tags": tags} for tags in ([[0], [0]], [[1], [0]]))
    inputs = [rows_of("en", "test", ["x"], pa.table(table), NER).inputs for table in (first, second)]
    assert inputs[0] == inputs[1] and len({*inputs[0]}) == 2


@pytest.mark.parametrize(
    ("first", "second", "remark"),
    [
        ([1, 2, 3], [1, 2, 3], "train and test in en have the same 3 rows: see whether"),
        ([1, 2, 3], [3, 2, 4], "train and test in en: 2 of 3 test rows are train rows, too"),
        ([*range(100)], [*range(95, 195)], None),
        ([1, 2, 3], [4, 5], None),
    ],
)
def test_splits_with_many_rows_in_common_are_remarked(first: list[int], second: list[int], remark: str | None) -> None:
    said = remarks(rows("train", first), rows("test", second))
    assert len(said) == (remark is not None) and all(text.startswith(str(remark)) for text in said)


def test_one_file_for_two_splits_is_named() -> None:
    [remark] = remarks(rows("dev", [1, 2], file="x.csv"), rows("test", [1, 2], file="x.csv"))
    assert remark == "dev and test in en are both read from x.csv: put {split} into `local`"


def test_rows_that_two_splits_of_one_file_share_are_counted() -> None:
    """Such as those of a database, or of a file in which `where` tells the splits apart."""
    [remark] = remarks(rows("dev", [1, 2], file="x.db"), rows("test", [2, 3], file="x.db"))
    assert remark == "dev and test in en: 1 of 2 test rows are dev rows, too"


def test_one_file_for_two_languages_is_named_and_translations_are_not() -> None:
    [remark] = remarks(*(rows("test", [1, 2], language, "x.csv") for language in ("en", "de")))
    assert remark.startswith("en and de have the same 2 test rows, from x.csv: put {language} into `local`")
    assert not remarks(rows("test", [1, 2], "en"), rows("test", [3, 4], "de"))
