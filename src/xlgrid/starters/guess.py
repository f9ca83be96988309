"""Guesses the head, columns and labels of a task from some rows of its data."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.names import unknown
from xlgrid.heads.head import written

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Mapping[str, "Column"]

# Names of columns of one text, and of two, the most telling first.
_TEXTS = ["text", "sentence", "utt", "tweet", "content", "comment", "review", "document", "question", "headline"]
_PAIRS = [
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("passage", "question"),
    ("query", "passage"),
]
# Names of columns of labels, of the right choice, of choices, of what stands before a choice, and of columns that no encoder reads.
_LABEL = re.compile(
    "label|class|categor|sentiment|intent|topic|target|gold|emotion|polarity|stance|score", re.IGNORECASE
)
_ANSWER = re.compile("label|answer|correct|gold|target|right", re.IGNORECASE)
_CHOICE = re.compile(
    r"(|.*(choice|answer|option|ending|quiz|alternative|solution|completion|candidate|sol)[_-]?)(\d|[A-Ea-e])"
)
_BEFORE = re.compile(
    "passage|context|article|premise|story|paragraph|sentence|question|query|text|goal|ctx|obs", re.IGNORECASE
)
_UNREAD = re.compile(
    "(^|_)(id|idx|index|guid|uid|url|link|lang|language|locale|date|time|source|split|partition|ds|dialect)($|_)",
    re.IGNORECASE,
)
# The heads that read one or two columns of text, whatever the columns are called.
_OF_TEXTS = ("multilabel", "regression", "sequence")
# At most this many values are labels. From as many columns with 0 and 1 on, each of them is a label.
_MOST, _FEWEST_COLUMNS = 200, 3


class Guess(NamedTuple):
    """A task as its data show it.

    Attributes:
        why: a sentence on the columns that show the head.
        labels: the names of the labels, if each has a column; `target` is then the name of the column that is made of them.
    """

    head: str
    inputs: list[str]
    target: str
    why: str
    choices: Sequence[str] = ()
    labels: Sequence[str] = ()


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        rows: its values that are not null.
        classes: the names of its labels, if the data state them.
    """

    name: str
    rows: list[Any]
    classes: list[str]

    @property
    def kind(self) -> str:
        """What a value is: text, a number, a list or a mapping."""
        kinds = {"text": str, "number": int | float, "list": list, "mapping": dict}
        return next((kind for kind, types in kinds.items() if self.rows and isinstance(self.rows[0], types)), "empty")

    @property
    def values(self) -> list[Any]:
        """The values, those in lists one by one."""
        return [value for row in self.rows for value in row] if self.kind == "list" else self.rows

    @property
    def is_text(self) -> bool:
        """Whether the values are running text, and not ids or labels."""
        is_long = self.kind == "text" and sum(map(len, self.rows)) > 12 * len(self.rows)
        return is_long and len({*self.rows}) * 3 > len(self.rows) and not _UNREAD.search(self.name)

    @property
    def is_measure(self) -> bool:
        """Whether the values are numbers, not all of which are whole."""
        try:
            return self.kind in ("text", "number") and any(float(value) % 1 for value in self.rows)
        except ValueError:
            return False

    @property
    def is_label(self) -> bool:
        """Whether the values are few and recur."""
        if self.classes or self.is_measure or self.kind in ("mapping", "empty") or _UNREAD.search(self.name):
            return bool(self.classes)
        return 1 < len({*map(written, self.values)}) <= min(_MOST, len(self.values) / 2)


def columns_of(table: "pa.Table") -> dict[str, Column]:
    """The columns of a table, with the names of labels that `datasets` has written into its schema."""
    classes: dict[str, list[str]] = {}
    if b"huggingface" in (table.schema.metadata or {}):
        from datasets import Features

        for name, feature in Features.from_arrow_schema(table.schema).items():
            classes[name] = [*(getattr(getattr(feature, "feature", feature), "names", None) or ())]
    columns = {name: [row for row in table[name].to_pylist() if row is not None] for name in table.column_names}
    return {name: Column(name, rows, classes.get(name, [])) for name, rows in columns.items()}


def guess(
    table: "pa.Table", source: str, head: str | None, inputs: Sequence[str], target: str | None
) -> tuple[Guess, list[str]]:
    """The task of a table, and what else was possible.

    Args:
        source: what messages call the data.
        head, inputs, target: what the user has decided.

    Raises:
        ValueError: a name is unknown, or the columns fit no head or several targets; the message says which option decides.
    """
    columns = columns_of(table)
    kinds = {
        "span": _spans,
        "token": _tokens,
        "choice": _choices,
        "multilabel": _sets,
        "regression": _measures,
        "sequence": _sequences,
        "parse": _trees,
    }
    if head and head not in kinds:
        raise ValueError(f"--head: {unknown('head', head, kinds)}; docs/how-to/task.md describes tasks of other heads")
    every = [one for kind, find in kinds.items() if head in (None, kind) for one in find(columns)]
    known = {*columns, *(one.target for one in every)}
    for option, name in (*(("--inputs", name) for name in inputs), *([("--target", target)] if target else [])):
        if name not in known:
            raise ValueError(f"{option}: {source}: {unknown('column', name, columns)}")
    of_target = [one for one in every if target in (None, one.target)]
    fitting = [one for one in of_target if one.head in _OF_TEXTS or {*inputs} <= {*one.inputs}]
    if not fitting:
        listed = ", ".join(f"{name} ({'labels' if one.classes else one.kind})" for name, one in columns.items())
        raise ValueError(
            f"{source}: the columns {listed} do not fit {head or 'any of the heads ' + ', '.join(kinds)}: name those to "
            "read with --inputs and the answer with --target, or describe the task as docs/how-to/task.md explains"
        )
    alike = [one for one in fitting if one.head == fitting[0].head]
    # Among several columns of labels for texts, one has such a name; several annotations of words are alike.
    hinted = [one for one in alike if _LABEL.search(one.target) and one.head != "token"] or alike
    if len(names := dict.fromkeys(one.target for one in hinted)) > 1:
        raise ValueError(
            f"{source}: {' and '.join(names)} can each be the answer: choose one, such as --target {hinted[0].target}"
        )
    best = hinted[0]._replace(inputs=[*inputs] or hinted[0].inputs)
    texts = [name for name, column in columns.items() if column.is_text and name not in (*best.inputs, best.target)]
    if best.head in _OF_TEXTS and not 1 <= len(best.inputs) <= 2:
        raise ValueError(
            f"{source}: {' and '.join(texts) or 'no column'} can be the text that an encoder reads (the columns are {', '.join(columns)}): "
            f"name one or two, such as --inputs {','.join(texts[:2] or [*columns][:1])}"
        )
    also = [f"--target {one.target}" for one in alike if one.target != best.target]
    also += [f"--head {other}" for other in dict.fromkeys(one.head for one in every) if other != best.head]
    return best, also + [f"--inputs {name}" for name in texts if best.head in _OF_TEXTS]


def labels_of(
    columns: Sequence[Column], found: Guess, given: Sequence[str], source: str
) -> tuple[list[str], dict[str, str], str]:
    """The labels of a task; labels of the data that are translated into them; and a sentence on where they are from.

    Args:
        columns: the target in the rows of each split and language that were read.
        given: the labels that the user has given; those of words in the order of their numbers in the data.
    """
    values = dict.fromkeys(written(value) for column in columns for value in column.values)
    are_numbers = all(re.fullmatch(r"-?\d+", value) for value in values)
    if found.head == "choice":
        return [*given] or _numbering([*values], len(found.choices)), {}, "One label for each choice, in their order"
    if names := [*given] or columns[0].classes:
        numbered = {str(number): name for number, name in enumerate(names)}
        is_translated = are_numbers and found.head == "sequence" and [*numbered] != names
        stated = "The data have the numbers of these labels" if are_numbers else "The labels of the data"
        return names, numbered if is_translated else {}, stated
    if found.head == "token" and are_numbers:
        raise ValueError(
            f"{source}: {found.target} has the numbers {', '.join([*values][:5])}, ..., whose names the data do not state: give them in "
            "order, such as --labels O,B-PER,I-PER"
        )
    if len(values) > _MOST:
        raise ValueError(
            f"{source}: {found.target} has {len(values):,} values, too many for labels: name another --target"
        )
    if are_numbers:
        return sorted(values, key=int), {}, "The values of the data, whose meaning is not stated there"
    # O first, then the labels of each type, B- before I-.
    return (
        sorted(values, key=lambda name: (name.upper() != "O", name.partition("-")[2] or name, name)),
        {},
        "The values of the data",
    )


def _spans(columns: Columns) -> Iterator[Guess]:
    for name, column in columns.items() if {"question", "context"} <= {*columns} else ():
        if column.kind == "mapping" and {"text", "answer_start"} <= {*column.rows[0]}:
            yield Guess("span", ["question", "context"], name, f"The column {name} has answers as in SQuAD")


def _tokens(columns: Columns) -> Iterator[Guess]:
    lists = [column for column in columns.values() if column.kind == "list" and column.values]
    texts = [column for column in lists if isinstance(column.values[0], str) and not column.classes]
    if not texts:
        return
    words = max(texts, key=lambda each: (each.name in ("tokens", "words", "form", "forms"), len({*each.values})))
    lengths = [*map(len, words.rows)]
    alike = [one for one in lists if one is not words and one.is_label and [*map(len, one.rows)] == lengths]
    for tags in [one for one in alike if one.classes] or alike:
        why = f"The lists in {tags.name} have a label for each word in {words.name}"
        yield Guess("token", [words.name], tags.name, why)


def _choices(columns: Columns) -> Iterator[Guess]:
    sets: dict[str, list[str]] = {}
    for name, column in columns.items():
        if column.kind == "text" and (match := _CHOICE.fullmatch(name)):
            sets.setdefault(match[1], []).append(name)
    texts = [name for name, column in columns.items() if column.kind == "text" and not _UNREAD.search(name)]
    for choices in sets.values():
        for name, answer in columns.items():
            inputs = [text for text in texts if text not in (*choices, name) and _BEFORE.search(text)]
            is_answer = name not in choices and _ANSWER.search(name) and answer.kind in ("text", "number")
            if len(choices) > 1 and inputs and is_answer and _numbering(answer.rows, len(choices)):
                why = f"The column {name} has the number of one of {', '.join(choices)}"
                yield Guess("choice", inputs, name, why, sorted(choices))


def _numbering(values: Sequence[Any], count: int) -> list[str]:
    """The way in which data number choices: from 0, from 1, or by letters; empty if there is no such way."""
    letters = [chr(ord("A") + number) for number in range(count)]
    orders = [*map(str, range(count))], [*map(str, range(1, count + 1))], letters, [*map(str.lower, letters)]
    return next((order for order in orders if {*map(written, values)} <= {*order}), [])


def _trees(columns: Columns) -> Iterator[Guess]:
    if {"head", "deprel"} <= {*columns} and (tokens := next(_tokens(columns), None)):
        yield Guess("parse", tokens.inputs, "deprel", "The columns head and deprel have a tree for each sentence")


def _sets(columns: Columns) -> Iterator[Guess]:
    inputs = _read(columns)
    for name, column in columns.items() if inputs else ():
        if column.kind == "list" and column.is_label and _LABEL.search(name):
            yield Guess("multilabel", inputs, name, f"The lists in {name} have labels, which are few, and recur")
    marks = [name for name, column in columns.items() if {*map(written, column.rows)} == {"0", "1"}]
    if len(marks) >= _FEWEST_COLUMNS:
        why = f"The columns {', '.join(marks)} have 0 or 1 for each text"
        yield Guess("multilabel", inputs, "labels", why, labels=marks)


def _measures(columns: Columns) -> Iterator[Guess]:
    for name, column in columns.items():
        if column.is_measure and _LABEL.search(name):
            yield Guess("regression", _read(columns, name), name, f"The values of {name} are numbers with fractions")


def _sequences(columns: Columns) -> Iterator[Guess]:
    labels = [column for column in columns.values() if column.kind in ("text", "number") and column.is_label]
    for label in [column for column in labels if column.classes] or labels:
        why = f"The values of {label.name} are few, and recur"
        yield Guess("sequence", _read(columns, label.name), label.name, why)


def _read(columns: Columns, target: str = "") -> list[str]:
    """The columns of the one or two texts that belong to a target; [] if several columns can be the text."""
    texts = [name for name, column in columns.items() if column.is_text and name != target]
    if pair := next((pair for pair in _PAIRS if {*pair} <= {*columns}), None):
        return [*pair]
    return [name for name in _TEXTS if name in texts][:1] or (texts if len(texts) == 1 else [])
