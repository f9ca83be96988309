"""How a vocabulary cuts the languages of a study: tokens per example and pieces per word, in the first rows of local files.

A language that a vocabulary has not seen is cut to many short pieces, so that its examples are long and its words have no
meaning to the encoder. Rust et al. (2021, section 4.1) call the pieces per word the fertility of a tokenizer.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.data.fetch import fetch_data
from xlgrid.data.sources import SPLITS, local_files
from xlgrid.data.text import fetched_text
from xlgrid.data.tokenize import load_tokenizer
from xlgrid.heads.encoding import Encoding
from xlgrid.languages.sources import Target
from xlgrid.products.encode import Vocabulary
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.plan.plan import Plan
    from xlgrid.study.tasks import TaskEntry

# Most rows of a file that are tokenized.
ROWS = 300
# Scripts whose words no space separates (ISO 15924).
UNSPACED = {"Bopo", "Hani", "Hans", "Hant", "Jpan", "Khmr", "Lana", "Laoo", "Mymr", "Thai", "Tibt"}


class Lengths(NamedTuple):
    """Means over the rows of a file that were tokenized.

    Attributes:
        tokens: of an example, of all its choices together, special tokens included; inputs that are too long are cut, or
            split into windows by the heads that do so.
        fertility: pieces per word; None where words are not separated.
        unknown: the share of pieces that the vocabulary lacks.
    """

    tokens: float
    fertility: float | None
    unknown: float


def local_rows(entry: "TaskEntry", code: str, split: str) -> "pa.Table | None":
    """The rows of a split in a language or pair, as `xlgrid fetch-data` writes them; None if they are not in local files.

    Raises:
        ValueError: the files are damaged, or do not fit the task.
    """
    import pyarrow.parquet as pq

    if entry.data is None:
        return None
    origin = entry.data.of(split, code)
    files = local_files(origin, code, split, entry.task.head.has_pairs_only)
    if not files or not origin.has(code) or not all(Path(file).is_file() for file in files):
        return None
    source = origin.concerning(code).model_dump(exclude_none=True, exclude={"by"})
    is_unlabelled = entry.data.labelled_in(split, code) is not None
    with tempfile.TemporaryDirectory(prefix="xlgrid-") as folder:
        path = Path(folder) / "rows.parquet"
        fetch_data(entry.kind, source, code, split, path, "", entry.columns, is_unlabelled)
        return pq.read_table(path)


def lengths(table: "pa.Table", task: Task, max_length: int, tokenizer: Any, has_spaces: bool = True) -> Lengths:
    """Tokenize the first rows of a table.

    Args:
        table: the columns that the task reads, text or lists of words.
        max_length: the most tokens of an input.
        tokenizer: a fast tokenizer of transformers.
        has_spaces: whether spaces separate the words of text. Words in lists count in any case.
    """
    encoding = Encoding(tokenizer, max_length)
    pieces: dict[str, list[int]] = {}
    words = word_pieces = unknown = 0
    rows = table.slice(0, ROWS)
    # A decoder reads what it has to generate, too.
    inputs = [column for column in task.inputs if column not in task.choices]
    shared = [*inputs, *([task.target] if task.head.has_decoder else [])]
    for column in (*shared, *task.choices):
        values = rows[column].to_pylist()
        are_words = any(isinstance(value, list) for value in values)
        if are_words:
            encoded = [
                [token for token, word in zip(ids, word_of, strict=True) if word is not None]
                for ids, word_of in encoding.words(values)
            ]
        else:
            texts = [*map(str, values)]
            encoded = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        pieces[column] = [*map(len, encoded)]
        unknown += sum(ids.count(tokenizer.unk_token_id) for ids in encoded)
        if has_spaces or are_words:
            words += sum(len(value if are_words else str(value).split()) for value in values)
            word_pieces += sum(pieces[column])
    special = tokenizer.num_special_tokens_to_add(pair=len(shared) > 1 or bool(task.choices))
    together = [sum(counts) for counts in zip(*(pieces[column] for column in shared), strict=True)]
    with_choices = [[sum(counts) for counts in zip(together, pieces[choice], strict=True)] for choice in task.choices]
    counts = [count for of_choice in with_choices or [together] for count in of_choice]
    if any(field.name == "example" for field in task.head.fields()):
        # Windows of a long example, each of which has special tokens; what two windows share is left out.
        room = max(1, max_length - special)
        tokens = sum(count + special * max(1, math.ceil(count / room)) for count in counts)
    else:
        tokens = sum(min(count + special, max_length) for count in counts)
    return Lengths(
        tokens / max(1, rows.num_rows),
        word_pieces / words if words else None,
        unknown / max(1, sum(map(sum, pieces.values()))),
    )


class Measured:
    """The lengths of a study's examples whose files and vocabulary are on this machine."""

    def __init__(self, plan: "Plan") -> None:
        self.plan, self.study = plan, plan.study

    @cached_property
    def places(self) -> list[tuple[str, Target]]:
        """Each task and each language or pair in which the study needs its data."""
        study = self.study
        of_runs = [(study.entry(run.task, "train")[0], part) for run in self.plan.runs for part in run.source.parts]
        of_cells = [(cell.task, cell.target.data) for cell in self.plan.cells]
        return list(dict.fromkeys([*of_runs, *of_cells]))

    def is_local(self, name: str, part: Target) -> bool:
        """Whether some split of a task's data in a language or pair is in files on this machine."""
        entry, text = self.study.tasks[name], self.study.text
        if entry.from_text:
            needed = [[file for code in part.languages for file in text.local_files(code)[:1]]]
        elif entry.data:
            pairs_only = entry.task.head.has_pairs_only
            needed = [local_files(entry.data.of(split, part), part, split, pairs_only) for split in SPLITS]
        else:
            needed = []
        return any(files and all(Path(file).is_file() for file in files) for files in needed)

    @cached_property
    def vocabularies(self) -> dict[str, list[str]]:
        """Task -> the vocabularies in whose tokens its runs and cells read it."""
        users: dict[str, dict[str, None]] = {}
        of_plan: list[Run | Cell] = [*self.plan.runs, *self.plan.cells]
        for user in of_plan:
            name = user.vocabulary(self.plan)
            users.setdefault(user.task, {})[name] = None
            users.setdefault(self.study.entry(user.task, "train")[0], {})[name] = None
        return {task: list(names) for task, names in users.items()}

    @cached_property
    def all(self) -> dict[tuple[str, Target, str], Lengths]:
        """Task, language or pair, and vocabulary -> lengths."""
        measured = {}
        for name, part in self.places:
            tokenizers = {each: self._tokenizer(each) for each in self.vocabularies.get(name, ())}
            there = {each: tokenizer for each, tokenizer in tokenizers.items() if tokenizer}
            if there and (table := self._sample(name, part)) is not None:
                entry = self.study.tasks[name]
                scripts = {self.study.language(code).script for code in part.languages}
                for vocabulary, tokenizer in there.items():
                    settings = self._most_tokens(entry), tokenizer, not scripts & UNSPACED
                    measured[name, part, vocabulary] = lengths(table, entry.task, *settings)
        return measured

    def tokens(self, name: str, parts: Sequence[Target] = (), vocabulary: str | None = None) -> int | None:
        """Tokens per example of a task, the mean over languages or pairs; None if nothing is measured.

        Args:
            parts: the languages or pairs, of which some may not be measured; absent: all.
            vocabulary: absent: all.
        """
        measured = [
            each.tokens
            for (task, part, used), each in self.all.items()
            if task == name and (not parts or part in parts) and vocabulary in (None, used)
        ]
        return max(1, math.ceil(sum(measured) / len(measured))) if measured else None

    def _most_tokens(self, entry: "TaskEntry") -> int:
        # Texts that are split or packed lose nothing.
        is_whole = entry.from_text and entry.options.get("documents", "cut") != "cut"
        return 2**31 if is_whole else entry.max_length

    def _sample(self, name: str, part: Target) -> "pa.Table | None":
        entry = self.study.tasks[name]
        if entry.from_text:
            return self._text(name, part)
        tables = (local_rows(entry, part, split) for split in reversed(SPLITS))
        return next((table for table in tables if table is not None), None)

    def _text(self, name: str, part: Target) -> "pa.Table | None":
        """The first texts of a language, or those of both languages of a pair side by side."""
        import pyarrow as pa

        settings = self.study.text.model_copy(update={"once": None})
        columns = []
        for code in part.languages:
            files = settings.local_files(code)
            if not files or not Path(files[0]).is_file():
                return None
            texts, _ = fetched_text(code, settings, None)
            columns.append([text for _, text in islice(texts, ROWS)])
            texts.close()
        size = min(map(len, columns))
        [column] = self.study.tasks[name].task.inputs
        by_row = zip(*(texts[:size] for texts in columns), strict=True)
        return pa.table({column: [" ".join(row) for row in by_row if all(text.strip() for text in row)]})

    @cached_property
    def _tokenizers(self) -> dict[str, Any]:
        return {}

    def _tokenizer(self, vocabulary: str) -> Any:
        """The tokenizer of a vocabulary of the study; None if it is not on this machine."""
        if vocabulary not in self._tokenizers:
            folder = next(self._folders(vocabulary), None)
            self._tokenizers[vocabulary] = load_tokenizer(folder) if folder else None
        return self._tokenizers[vocabulary]

    def _folders(self, vocabulary: str) -> Iterator[Path]:
        product = self.plan.owned(Vocabulary(self.study.name, vocabulary))
        entry = self.study.all_vocabularies[vocabulary]
        for folder in (Path(product.folder), *map(Path, filter(None, [entry.path]))):
            if (folder / "tokenizer.json").is_file():
                yield folder
