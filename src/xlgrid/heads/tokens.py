"""The tokens of a data set in memory, from which heads make batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints, Segments
from xlgrid.heads.values import Values

# The column with the token ids of the same example in another language, in tokens for methods that read both.
PARALLEL_IDS = "parallel_ids"


class Vocabulary(NamedTuple):
    """The part of a tokenizer that masking reads."""

    size: int
    mask_id: int
    special_ids: tuple[int, ...]


@dataclass(frozen=True)
class Tokens:
    """A tokens file, or a mix of several.

    A *row* is the unit of sampling and of batches: an example, a window of a long example, or, for heads with several
    inputs in an example, all of these inputs together. An *input* is a sequence of token ids.

    Attributes:
        head: the name with which `xlgrid.heads.ALL_HEADS` finds the head.
        label_names: the labels of the task, in the order of their numbers.
        pad_id: the token id that fills the ends of a batch.
        values, offsets: the token ids of input i are `values[offsets[i] : offsets[i + 1]]`; offsets has inputs + 1
            entries. The values are memory-mapped from the tokens file.
        contexts: [inputs], the number of tokens in the first segment, special tokens included.
        languages: the codes of all languages in the data.
        language_of: [inputs, 2], the positions in `languages` of the first and the second segment's language.
        columns: the columns that the head's `encode` returned for rows, by name, as an array of numbers or as an Arrow
            array. `target_size` has the number of tokens of each row's target, where the model reads targets, too.
            `example` has the number of the example of each row, where an example can have several rows; `depth` has the
            depth of proof, where the data have it.
        token_columns: the columns with a value per token, in the order of `values`.
        inputs_per_row: the number of inputs in a row.
        vocabulary: the vocabulary of the tokenizer.
        parts: [rows], the number of the part of the mix to which the row belongs; None for a single file.
        options: the settings of evaluation (`Head.options`).
    """

    head: str
    label_names: tuple[str, ...]
    pad_id: int
    values: NDArray[np.int32] | Values
    offsets: Ints
    contexts: Ints
    languages: tuple[str, ...]
    language_of: NDArray[np.int16]
    vocabulary: Vocabulary
    columns: Mapping[str, Any] = field(default_factory=dict)
    token_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    inputs_per_row: int = 1
    parts: Ints | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of rows."""
        return (len(self.offsets) - 1) // self.inputs_per_row

    @property
    def examples(self) -> int:
        """The number of examples, which is at most the number of rows."""
        has_windows = "example" in self.columns and len(self)
        return int(self.example_of.max()) + 1 if has_windows else len(self)

    @property
    def example_of(self) -> Ints:
        """[rows], the number of each row's example."""
        example_of: Ints = self.columns.get("example", np.arange(len(self)))
        return example_of

    @cached_property
    def sizes(self) -> Ints:
        """[inputs], the number of tokens."""
        return np.diff(self.offsets).astype(np.int32)

    @cached_property
    def longest(self) -> Ints:
        """[rows], the number of tokens of the row's longest input."""
        return self.sizes if self.inputs_per_row == 1 else self.sizes.reshape(-1, self.inputs_per_row).max(1)

    @cached_property
    def lengths(self) -> Ints:
        """[rows], the number of tokens of the row, with the padding that makes its inputs equally long and with its
        target."""
        inputs = self.longest if self.inputs_per_row == 1 else self.longest * self.inputs_per_row
        return inputs + self.columns["target_size"] if "target_size" in self.columns else inputs

    def ids(self, number: int) -> Ints:
        """The token ids of an input."""
        ids: Ints = self.values[self.offsets[number] : self.offsets[number + 1]]
        return ids

    def with_inputs(self, inputs: Sequence[Ints], contexts: Ints, language_of: NDArray[np.int16]) -> "Tokens":
        """A data set with other inputs, where each input is a row without columns."""
        return replace(
            self,
            values=np.concatenate(inputs),
            offsets=offsets_of([np.array([len(ids) for ids in inputs])]),
            contexts=contexts,
            language_of=language_of,
            columns={},
            parts=None,
        )

    def inputs(self, rows: Ints) -> Ints:
        """The positions of the inputs of some rows."""
        if self.inputs_per_row == 1:
            return rows
        return (rows[:, None] * self.inputs_per_row + np.arange(self.inputs_per_row)).ravel()

    def positions(self, inputs: Ints) -> Ints:
        """The positions in `values` of all tokens of some inputs, one input after another."""
        sizes = self.sizes[inputs]
        before = np.cumsum(sizes) - sizes
        return np.arange(sizes.sum()) + np.repeat(self.offsets[inputs] - before, sizes)

    def segments(self, rows: Ints) -> Segments:
        """The segments of a batch of rows."""
        inputs = self.inputs(rows)
        return Segments(
            self.contexts[inputs].astype(np.int64),
            self.languages,
            self.language_of[inputs],
            int(self.longest[rows].max(initial=0)),
        )

    def take(self, rows: Ints) -> "Tokens":
        """Some rows in the given order. They keep the numbers of their examples."""
        inputs = self.inputs(rows)
        positions = self.positions(inputs)
        return replace(
            self,
            values=self.values[positions],
            offsets=offsets_of([self.sizes[inputs]]),
            contexts=self.contexts[inputs],
            language_of=self.language_of[inputs],
            columns={name: _taken(column, rows) for name, column in self.columns.items()},
            token_columns={name: column[positions] for name, column in self.token_columns.items()},
            parts=None if self.parts is None else self.parts[rows],
        )


def joined(parts: Sequence[Tokens]) -> Tokens:
    """The rows of all parts, one part after another; columns that some part lacks are dropped."""
    pieces = [
        piece for part in parts for piece in (part.values.pieces if isinstance(part.values, Values) else [part.values])
    ]
    in_file = any(isinstance(part.values, Values) for part in parts)
    languages = tuple(dict.fromkeys(code for part in parts for code in part.languages))
    language_of = [
        np.array([languages.index(code) for code in part.languages], np.int16)[part.language_of] for part in parts
    ]
    return replace(
        parts[0],
        values=Values(pieces) if in_file else np.concatenate(pieces),
        offsets=offsets_of([part.sizes for part in parts]),
        contexts=np.concatenate([part.contexts for part in parts]),
        languages=languages,
        language_of=np.concatenate(language_of),
        columns=_concatenated([part.columns for part in parts]),
        token_columns=_concatenated([part.token_columns for part in parts]),
        parts=np.repeat(np.arange(len(parts), dtype=np.int16), [len(part) for part in parts]),
    )


def offsets_of(lengths: Sequence[Ints]) -> Ints:
    """The offset at which each of several consecutive stretches begins, and the end of the last one."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))


def _taken(column: Any, rows: Ints) -> Any:
    if isinstance(column, np.ndarray):
        return column[rows]
    import pyarrow as pa

    return column.take(pa.array(rows))


def _concatenated(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = [name for name in parts[0] if all(name in part for part in parts)]
    columns: dict[str, Any] = {}
    for name in names:
        pieces = [part[name] for part in parts]
        if isinstance(pieces[0], np.ndarray):
            columns[name] = np.concatenate(pieces)
        else:
            import pyarrow as pa

            columns[name] = pa.concat_arrays(pieces)
    return columns
