"""Texts, words and answers in a normalization form of Unicode."""

import unicodedata
from functools import partial

import pyarrow as pa
import pytest

from xlgrid.heads.forms import in_form
from xlgrid.tasks import task

NFC, NFD, NFKC = (partial(unicodedata.normalize, form) for form in ("NFC", "NFD", "NFKC"))
TEXTS = ["Café à la crème", "Việt Nam", "한국어", "ﬁn de siècle", "बच्चे क़लम", "A\u030angstro\u0308m"]
QA = task("span", {"inputs": ["question", "context"], "target": "answers"})
NER = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER"]})


@pytest.mark.parametrize("form", [NFC, NFD, NFKC])
def test_texts_and_words_get_the_form_and_all_else_stays(form: partial[str]) -> None:
    table = pa.table({"text": [*TEXTS, None], "words": [[text] for text in TEXTS] + [[]], "number": [*range(7)]})
    changed = in_form(table, ["text", "words", "absent"], form)
    assert changed["text"].to_pylist() == [*map(form, TEXTS), None]
    assert changed["words"].to_pylist() == [*([form(text)] for text in TEXTS), []]
    assert changed["number"] == table["number"] and changed.schema == table.schema


def test_labels_of_words_stay_numbers() -> None:
    table = pa.table({"words": [[NFD("Ève")]], "tags": [[1]]})
    assert NER.head.in_form(table, NER, NFC).to_pylist() == [{"words": ["Ève"], "tags": [1]}]


@pytest.mark.parametrize("form", [NFC, NFD, NFKC])
@pytest.mark.parametrize("before", [NFC, NFD])
def test_answers_start_where_they_stand_in_the_form(before: partial[str], form: partial[str]) -> None:
    context = before(" ".join(TEXTS))
    answers = [before(text) for text in TEXTS]
    starts = [context.index(answer) for answer in answers]
    rows = {"question": [before("où ?")], "context": [context], "answers": [{"text": answers, "answer_start": starts}]}
    changed = QA.head.in_form(pa.table(rows), QA, form)
    QA.check(changed, "x")
    [row] = changed.to_pylist()
    assert row["context"] == form(context) and row["question"] == form("où ?")
    assert row["answers"]["text"] == [form(text) for text in TEXTS]


def test_an_answer_between_a_letter_and_its_mark_is_an_error() -> None:
    context = "a e\u0301"
    table = pa.table({"question": ["q"], "context": [context], "answers": [{"text": ["\u0301"], "answer_start": [3]}]})
    QA.check(table, "x")
    with pytest.raises(ValueError, match="is not in the context at character 3"):
        QA.check(QA.head.in_form(table, QA, NFC), "x")
