"""Answers that are not at their offsets, in tables of the shapes that the Hub has."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import notes, read_table
from xlgrid.heads.span.misplaced import MOST_BLANKS, lost_blanks, placed

# Sentences in several scripts, with some of their pieces as answers. The first two begin with blanks, as some contexts of XQuAD do.
CONTEXTS = {
    " 豹队的防守只丢了 308 分,排名第六。": ["308", "第六", "豹队"],
    "\u3000\u00a0إجمالي عدد سكان المدينة 520 ألف نسمة.": ["520 ألف", "المدينة"],
    "คณะกรรมการ 15 คน ประชุมที่กรุงเทพ": ["15 คน", "กรุงเทพ"],
    "The Panthers lost 17 of 18 games. ": ["17", "18 games"],
    "\n पैंथर्स ने 24 अवरोधन किए।": ["24", "पैंथर्स"],
}
# The answers in the contexts that begin with blanks, and the number of these contexts.
MOVED, STRIPPED = 7, 3


def questions(prefix: str = "q") -> list[dict[str, Any]]:
    """A question for each answer, with the contexts and offsets of the unstripped texts."""
    pairs = [(context, text) for context, texts in CONTEXTS.items() for text in texts]
    return [
        {
            "id": f"{prefix}{number}",
            "question": "?",
            "context": context,
            "answers": {"text": [text], "answer_start": [context.index(text)]},
        }
        for number, (context, text) in enumerate(pairs)
    ]


def strip(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as the scripts of `datasets` made them: stripped contexts, and the offsets of the unstripped ones."""
    return [{**row, "context": row["context"].strip()} for row in rows]


def fetched(
    folder: Path, rows: list[dict[str, Any]], split: str, kind: str = "xquad", language: str = "zh", **source: Any
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The rows of the file that is made of a table, and the counts of its record."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"raw-{split}.parquet")
    out = folder / "out.parquet"
    fetch_data(kind, {"local": f"{folder}/raw-{{split}}.parquet", **source}, language, split, out, folder / "lock")
    record = json.loads(notes(out).get("corrections", "{}"))
    assert len(record) <= 1
    return read_table(out).to_pylist(), next(iter(record.values()), {})


def answer(context: str, text: str, start: int) -> dict[str, Any]:
    return {"id": context, "question": "?", "context": context, "answers": {"text": [text], "answer_start": [start]}}


@pytest.mark.parametrize(
    ("kind", "language", "source"),
    [
        ("xquad", "zh", {}),
        ("mlqa", "zh", {}),
        ("tydiqa", "ar", {"begins": {"id": {"ar": "arabic-", "en": "english-"}}}),
    ],
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_stripped_contexts_have_the_answers_of_the_raw_ones(
    kind: str, language: str, source: dict[str, Any], split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = questions("arabic-")
    rows, counts = fetched(tmp_path, strip(raw) + strip(questions("english-")), split, kind, language, **source)
    expected = raw if source else raw + questions("english-")
    for row, original in zip(rows, expected, strict=True):
        [start], [text] = row["answers"]["answer_start"], row["answers"]["text"]
        blanks = len(original["context"]) - len(original["context"].lstrip())
        assert start == original["answers"]["answer_start"][0] - blanks
        assert row["context"][start:].startswith(text)
    times = 1 if source else 2
    assert sorted(counts.values()) == [STRIPPED, times * MOVED], "rows of one context are one context"
    log = capsys.readouterr().err
    assert all(f"{count:,} {what}" in log for what, count in counts.items())


def test_rows_that_are_right_are_neither_changed_nor_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`facebook/mlqa` keeps the blanks of its contexts."""
    assert fetched(tmp_path, questions(), "test", "mlqa") == (questions(), {})
    assert capsys.readouterr().err == ""


WORDS = st.lists(st.text(st.sampled_from("ab9年ก\u200b"), min_size=1, max_size=3), min_size=1, max_size=8)


@given(st.text(st.sampled_from(" \t\n\u00a0\u3000"), max_size=MOST_BLANKS), WORDS, st.data())
def test_a_stripped_context_gets_its_answers_or_stays_as_it_is(
    blanks: str, words: list[str], data: st.DataObject
) -> None:
    """With few characters, so that answers are in many places, some by chance at the offsets of the unstripped context."""
    raw = blanks + " ".join(words) + " "
    context = raw.strip()
    texts = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=4))
    answers = [{"text": [text], "answer_start": [raw.index(text)]} for text in texts]
    after = placed([context] * len(answers), answers)
    shifts = {old["answer_start"][0] - new["answer_start"][0] for new, old in zip(after.answers, answers, strict=True)}
    assert len(shifts) == 1 and shifts <= set(range(len(blanks) + 1)), "no more than was stripped"
    is_chance = any(
        context.startswith(text, each["answer_start"][0]) for text, each in zip(texts, answers, strict=True)
    )
    has_several = len({each["answer_start"][0] for each in answers}) > 1
    assert (shifts != {0}) == (bool(blanks) and has_several and not is_chance)
    if shifts != {0}:
        assert all(context.startswith(each["text"][0], each["answer_start"][0]) for each in after.answers)


# Two answers that share a shift of 1, in a context of their own.
SHIFTED = [answer("Ann met Tom in Oslo", "Ann", 1), answer("Ann met Tom in Oslo", "Tom", 9)]


def test_a_single_answer_is_moved_only_in_a_file_whose_contexts_show_a_shift(tmp_path: Path) -> None:
    single = answer("Eve left", "left", 5)
    rows, counts = fetched(tmp_path, [*SHIFTED, single], "test")
    assert [row["answers"]["answer_start"] for row in rows] == [[0], [8], [4]]
    assert sorted(counts.values()) == [2, 3]
    with pytest.raises(ValueError, match="row 1, column 'answers': the answer 'left' is not in the context"):
        fetched(tmp_path, [single, answer("Ada saw Bob", "Ada", 0)], "test")


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("contexts", [("C",), ("C", "D", "E")], ids=["one context", "three contexts"])
def test_one_offset_of_three_that_is_too_large_by_one_stays_an_error(
    contexts: tuple[str, ...], split: str, tmp_path: Path
) -> None:
    texts = {"Ada": 0, "Bob": 8, "Rome": 15}
    rows = [
        answer(f"Ada met Bob in Rome, says {contexts[at % len(contexts)]}", text, start + (text == "Bob"))
        for at, (text, start) in enumerate(texts.items())
    ]
    squad = {"data": [{"paragraphs": [squad_paragraph(row) for row in rows]}]}
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    with pytest.raises(
        ValueError, match="row 2, column 'answers': the answer 'Bob' is not in the context at character 9"
    ):
        fetch_data("xquad", {"local": f"{tmp_path}/squad.json"}, "en", split, tmp_path / "out", tmp_path / "lock")


def squad_paragraph(row: dict[str, Any]) -> dict[str, Any]:
    """A paragraph of a SQuAD json with one question, which has one answer."""
    [text], [start] = row["answers"]["text"], row["answers"]["answer_start"]
    question = {"id": f"{row['id']}-{text}", "question": "?", "answers": [{"text": text, "answer_start": start}]}
    return {"context": row["context"], "qas": [question]}


def test_a_context_has_one_shift_which_all_its_answers_allow() -> None:
    """A digit among equal ones allows several; the other answer decides."""
    digit, word = {"text": ["1"], "answer_start": [5]}, {"text": ["Rom"], "answer_start": [8]}
    context = "a 111 Rom"
    assert lost_blanks(context, [digit]) == 1
    assert lost_blanks(context, [digit, word]) == 2


@pytest.mark.parametrize(
    ("context", "places"),
    [
        ("Ada met Bob in Rome", [("Ada", 0), ("Bob", 9)]),
        ("Ada met Bob in Rome", [("Ada", 1), ("Bob", 10)]),
        ("Ada met Bob in Rome, a city", [("met", 3), ("Bob", 7)]),
        ("Ada met Bob in Rome", [("Ada", MOST_BLANKS + 1), ("Bob", 8 + MOST_BLANKS + 1)]),
        (" Ada met Bob in Rome", [("Ada", 2), ("Bob", 10)]),
        ("Ada met Bob in Rome", [("Eve", 1), ("Bob", 9)]),
        ("Bob", [("b", 0), ("o", 1)]),
        ("Ada met Bob in Rome", [("Bob", 9), ("Bob", 9)]),
        ("11 of Rome", [("1", 1), ("Rome", 7)]),
    ],
    ids=[
        "one is right",
        "two shifts",
        "to the right",
        "too far",
        "not stripped",
        "not there",
        "before the start",
        "one place",
        "one is right by chance",
    ],
)
def test_what_blanks_do_not_explain_is_an_error(context: str, places: list[tuple[str, int]], tmp_path: Path) -> None:
    rows = [answer(context, text, start) for text, start in places]
    for split in ("train", "dev", "test"):
        with pytest.raises(ValueError, match=r"row \d, column 'answers': the answer '\w+' is not in the context"):
            fetched(tmp_path, rows, split)


# Three questions, of which the second has an offset that no lost blank explains, since the first has the same context.
OFF = [answer("Ada met Bob in Rome", "Ada", 0), answer("Ada met Bob in Rome", "Bob", 9), answer("Eve", "Eve", 0)]


def test_a_training_set_may_leave_out_misplaced_answers(tmp_path: Path) -> None:
    rows, counts = fetched(tmp_path, OFF, "train", misplaced="drop")
    assert rows == [OFF[0], OFF[2]] and [*counts.values()] == [1]


def test_a_training_set_may_search_for_misplaced_answers(tmp_path: Path) -> None:
    lacks = answer("Ada", "Bob", 0)
    rows, counts = fetched(tmp_path, [*OFF, lacks], "train", misplaced="search")
    assert rows == [OFF[0], answer("Ada met Bob in Rome", "Bob", 8), OFF[2]], "one context lacks its answer"
    assert [*counts.values()] == [1, 1]


@pytest.mark.parametrize("misplaced", ["drop", "search"])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_dev_and_test_sets_are_not_repaired(misplaced: str, split: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the answer 'Bob' is not in the context at character 9; the context has"):
        fetched(tmp_path, OFF, split, misplaced=misplaced)


@pytest.mark.parametrize(
    ("start", "nearest"), [(0, 0), (1, 0), (2, 0), (3, 4), (6, 4), (7, 9), (30, 9), (-4, 0)], ids=str
)
def test_the_nearest_occurrence_is_taken(start: int, nearest: int) -> None:
    """A word at 0, 4 and 9. An equally near one later does not count."""
    # The second answer is at its offset, so that lost blanks do not explain the first.
    context = "two two  two!"
    answers = [{"text": ["two"], "answer_start": [start]}, {"text": ["!"], "answer_start": [12]}]
    assert placed([context] * 2, answers, "search").answers[0]["answer_start"] == [nearest]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {"text": ["a"]},
        {"text": [], "answer_start": []},
        {"text": ["a"], "answer_start": [0, 1]},
        {"text": [""], "answer_start": [9]},
        {"text": [None], "answer_start": [0]},
        {"text": ["a"], "answer_start": ["0"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("misplaced", ["error", "drop", "search"])
def test_what_is_no_answer_stays_for_the_check(broken: Any, misplaced: Any) -> None:
    assert placed(["b a"], [broken], misplaced).answers == [broken]
