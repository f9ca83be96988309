"""Read JSON: files with an object on each line (jsonl), and files with a list of objects or the data of SQuAD
(json)."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.data.formats.files import damaged, text_lines

if TYPE_CHECKING:
    import pyarrow as pa


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number, counted from 1, and the object of every line of a jsonl file that is not empty.

    Raises:
        Damaged: a line is not UTF-8, not JSON, or not an object; the message has the number of the line.
    """
    for number, line in text_lines(path):
        text = line.strip()
        if not text:
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise Damaged(
                f"{path}, line {number}: not JSON ({error.msg}, column {error.colno}); mend this line"
            ) from None
        if half := _half_pair(text, row):
            raise Damaged(f"{path}, line {number}: {half}; mend this line")
        if not isinstance(row, dict):
            raise Damaged(
                f"{path}, line {number}: expected an object with a value for each column, got {text[:80]}; "
                "mend this line"
            )
        yield number, row


def _half_pair(text: str, value: Any) -> str:
    """A phrase about an unpaired surrogate in a value of JSON; "" if the value has no such surrogate.

    UTF-8 cannot encode an unpaired surrogate. A program that cuts a text in the middle of an emoji produces one.
    """
    # Only an escape sequence can be a surrogate, and few texts contain one, so this test is fast.
    if "\\ud" not in text.lower():
        return ""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):x} is half of a character, without the other half"
    return ""


def read_jsonl(path: Path) -> "pa.Table":
    """All rows of a jsonl file.

    A column of mappings keeps only the keys that occur in all rows. Columns of mappings without a common key, and
    columns of numbers with more than 64 bits, are left out, because a table has no type for them.

    Raises:
        Damaged: `json_lines` raises it, or a column has values of two types.
    """
    return _table(path, [row for _, row in json_lines(path)])


def read_json(path: Path) -> "pa.Table":
    """All rows of a json file: a list with an object for each row, or questions in the format of SQuAD (`squad_rows`).

    Raises:
        Damaged: the file is not JSON in UTF-8, or has another structure.
    """
    text = "\n".join(line for _, line in text_lines(path))
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        several = error.msg == "Extra data"
        advice = "; the name of a file with an object on each line must end in .jsonl" if several else ""
        raise damaged(path, f"is not JSON: {error}{advice}") from error
    if half := _half_pair(text, value):
        raise Damaged(f"{path}: {half}; mend the file")
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = [*squad_rows(path, value["data"])]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise damaged(
            path,
            "is neither a list with an object for each row nor in the format of SQuAD, an object whose `data` is a "
            "list",
        )
    return _table(path, value)


def squad_rows(path: Path, articles: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The questions of a file in the format of SQuAD (Rajpurkar et al. 2016), in the columns of SQuAD on the Hub.

    The columns are `id`, `title`, `context`, `question`, and `answers` with the lists `text` and `answer_start`. The
    lists of a question without an answer (`is_impossible` of SQuAD 2.0, Rajpurkar et al. 2018) are empty.

    Raises:
        Damaged: a part is missing or of another type; the message names the article, the paragraph and the question.
    """
    for number, article in enumerate(articles):
        place = f"{path}, article {number}"
        for paragraph_number, paragraph in enumerate(_part(article, "paragraphs", list, place)):
            place = f"{path}, article {number}, paragraph {paragraph_number}"
            context = _part(paragraph, "context", str, place)
            for question_number, question in enumerate(_part(paragraph, "qas", list, place)):
                of_question = f"{place}, question {question_number}"
                answers = _part(question, "answers", list, of_question)
                if question.get("is_impossible") is True:
                    answers = []
                yield {
                    "id": str(question.get("id", "")),
                    "title": str(article.get("title", "")),
                    "context": context,
                    "question": _part(question, "question", str, of_question),
                    "answers": {
                        "text": [_part(answer, "text", str, of_question) for answer in answers],
                        "answer_start": [_part(answer, "answer_start", int, of_question) for answer in answers],
                    },
                }


def _part(value: Any, name: str, kind: type, place: str) -> Any:
    part = value.get(name) if isinstance(value, dict) else None
    if not isinstance(part, kind) or isinstance(part, bool):
        names = {list: "a list", str: "a text", int: "a whole number"}
        got = "it is missing" if part is None else f"got {str(part)[:80]!r}"
        raise Damaged(f"{place}: expected {names[kind]} as {name!r}, as in SQuAD, but {got}; mend the file")
    return part


def _table(path: Path, objects: Sequence[dict[str, Any]]) -> "pa.Table":
    import pyarrow as pa

    columns = {}
    for name in dict.fromkeys(name for row in objects for name in row):
        values = [row.get(name) for row in objects]
        mappings = [value for value in values if isinstance(value, dict)]
        if not mappings:
            try:
                # Tables have no type for a number with more than 64 bits either.
                with contextlib.suppress(OverflowError):
                    columns[name] = pa.array(values)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise Damaged(
                    f"{path}, column {name!r}: {_mixed(values) or error}; give it one type in all rows"
                ) from error
        elif shared := [key for key in mappings[0] if all(key in mapping for mapping in mappings)]:
            of_shared = [{key: value[key] for key in shared} if isinstance(value, dict) else value for value in values]
            with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                columns[name] = pa.array(of_shared)
    return pa.table(columns)


def _mixed(values: Sequence[Any]) -> str:
    """A phrase about the first row whose value has another type than the values before it; "" without such a row."""
    first = ""
    for row, value in enumerate(values, start=1):
        kind = _kind(value)
        first = first or kind
        if kind and kind != first:
            return f"row {row} has {kind}, {str(value)[:80]!r}, and the rows before have {first}"
    return ""


def _kind(value: Any) -> str:
    """The name of the type of a value of JSON; "" for null and for empty lists."""
    if isinstance(value, list):
        inner = next((kind for item in value if (kind := _kind(item))), "")
        return f"a list of {inner}" if inner else ""
    kinds = {bool: "true or false", str: "text", int: "numbers", float: "numbers"}
    return kinds.get(type(value), "" if value is None else "objects")
