"""The head `parse`: the head of each word in the dependency tree of its sentence, and the relation between them.

The model is the biaffine parser of Dozat and Manning (2017) above an encoder, as in Glavaš and Vulić (2021): the vector
of a word comes from its tokens, and that of the root from the first special token of the sentence. The predicted tree
is the maximum spanning tree with one word below the root, as Universal Dependencies (UD) requires.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, NonNegativeInt

from xlgrid.base.arrays import Ints
from xlgrid.base.settings import Strict
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.forms import with_values
from xlgrid.heads.head import Evaluated, Example, Head, TaskColumns, without_labels
from xlgrid.heads.metrics import Metric, Outcome, Ratio, Share
from xlgrid.heads.parsing import trees
from xlgrid.heads.token import TokenHead, windows
from xlgrid.heads.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from transformers import PreTrainedModel

# The column of the data with the numbers of the words' heads, from 1; 0 for the root. The Hub and CoNLL-U have this name.
HEAD = "head"
# The column of a tokens file with the number of each token's word: 0 for the root, `NO_WORD` for other tokens.
WORD, NO_WORD = "word", -1
# The loading scripts of the Hub wrote this for the head of a multiword token or an empty node.
_NO_HEAD = "None"


class Parsing(Strict):
    """The options of a task of parsing."""

    arc_size: NonNegativeInt = Field(
        500,
        description="size of the vectors from which the scores of heads are computed (Dozat and Manning 2017: 500); 0: "
        "the vectors of the words themselves, as in Glavaš and Vulić 2021",
    )
    relation_size: NonNegativeInt = Field(
        100, description="size of the vectors from which the scores of relations are computed, likewise (100)"
    )


class Tree(NamedTuple):
    """A predicted tree: the head and the number of the relation of each word that the encoder has read."""

    heads: list[int]
    relations: list[int]


def _attached(outcome: list[list[int]]) -> Share:
    gold, _, heads, _ = outcome
    return sum(map(eq, gold, heads)), len(gold)


def _labelled(outcome: list[list[int]]) -> Share:
    heads, relations, *predicted = outcome
    return sum(map(eq, zip(heads, relations, strict=True), zip(*predicted, strict=True))), len(heads)


_TEXT = (
    "xlgrid.heads.parsing: {} / words, as conll18_ud_eval.py has it for gold words, with punctuation, without subtypes of "
    "relations"
)


class ParseHead(TokenHead):
    """A dependency tree over a list of words.

    The target is a list with the relation of each word to its head, and the column `head` has the numbers of the heads,
    as numbers or as text. If the labels of the task lack a relation with a subtype (`nmod:poss`), it becomes the
    relation without it (`nmod`).

    A sentence is one input. Of a sentence that is too long for the encoder, the first words that fit are read. In
    training, a word whose head does not fit has no loss. In evaluation, all words that do not fit count as wrong, so
    that scores are over all words of the file, and a cell records their number as `unread`.

    An outcome is `[gold heads, gold relations, predicted heads, predicted relations]`, four lists with a number for each
    word. The predicted lists have the words that are read. Relations are without their subtypes, so that the scores are
    those of the evaluation script of CoNLL 2018 (Zeman et al. 2018, section 4.1).
    """

    name = "parse"
    modules = ("parser",)
    all_metrics: ClassVar[tuple[Metric, ...]] = (
        Ratio("las", _TEXT.format("right heads with right relations"), _labelled),
        Ratio("uas", _TEXT.format("right heads"), _attached),
    )
    token_columns = (WORD,)
    conllu = ("FORM", "HEAD", "DEPREL")
    options = Parsing
    # The score of a word as its own head is -inf, so the loss cannot spread probability over all heads.
    allows_smoothing = False
    _sizes = tuple(Parsing.model_fields[name].default for name in ("arc_size", "relation_size"))

    def of(self, options: Mapping[str, Any]) -> Self:
        given = Parsing(**{name: value for name, value in options.items() if name in Parsing.model_fields})
        return _sized(type(self), given.arc_size, given.relation_size)

    # Relations follow no tagging scheme, which the head `token` would look for.
    problems, label_names, remarks, metrics = Head.problems, Head.label_names, Head.remarks, Head.metrics

    def columns(self, task: TaskColumns) -> list[str]:
        return [*task.inputs, HEAD, *filter(None, [task.target])]

    def prepared(
        self, table: "pa.Table", task: TaskColumns, unanswerable: str | None, misplaced: Any
    ) -> "tuple[pa.Table, dict[str, int]]":
        """The rows with heads as numbers, without multiword tokens and empty nodes, which have no head."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table, counts = super().prepared(table, task, unanswerable, misplaced)
        rows = table[HEAD].to_pylist()
        if not all(isinstance(row, list) for row in rows):
            return table, counts
        kept = [[at for at, head in enumerate(row) if head not in (None, _NO_HEAD)] for row in rows]
        if left_out := sum(map(len, rows)) - sum(map(len, kept)):
            counts["multiword tokens and empty nodes left out"] = left_out
            for column in self.columns(task):
                pairs = zip(table[column].to_pylist(), kept, strict=True)
                values = [row and [row[at] for at in places if at < len(row)] for row, places in pairs]
                table = with_values(table, column, values)
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # `check` reports what is no number.
            heads = pc.cast(table[HEAD], pa.list_(pa.int64()))
            table = table.set_column(table.column_names.index(HEAD), HEAD, heads)
        return table, counts

    def labelled(
        self, target: "pa.ChunkedArray", task: TaskColumns, names: Mapping[str, str]
    ) -> "pa.ChunkedArray | pa.Array":
        import pyarrow as pa

        rows = target.to_pylist() if pa.types.is_list(target.type) else []
        others = {label for row in rows for label in row or () if isinstance(label, str)} - {*task.labels}
        return super().labelled(target, task, {**{label: _universal(label) for label in others}, **names})

    def check(self, table: "pa.Table", task: TaskColumns, where: str, first_row: int = 1) -> None:
        super().check(table, task, where, first_row)
        rows = zip(table[task.inputs[0]].to_pylist(), table[HEAD].to_pylist(), strict=True)
        for row, (words, heads) in enumerate(rows, start=first_row):
            place = f"{where}, row {row}, column {HEAD!r}"
            wrong = [head for head in heads if not isinstance(head, int)] if isinstance(heads, list) else [heads]
            if wrong:
                raise ValueError(f"{place}: the head of a word must be a number, 0 for the root, got {wrong[0]!r}")
            if len(words) != len(heads):
                raise ValueError(f"{place}: {len(heads)} heads for {len(words)} words; give each word one head")
            if problem := trees.problem_of(heads):
                raise ValueError(f"{place}: {problem}; correct the tree, or leave out the sentence")

    def fields(self) -> list["pa.Field"]:
        import pyarrow as pa

        return [pa.field(name, pa.list_(pa.int32())) for name in (WORD, "heads", "relations")]

    def encode(self, table: "pa.Table", task: TaskColumns, encoding: Encoding) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {"input_ids": [], "context_length": [], WORD: []}
        for ids, word_of in encoding.words(table[task.inputs[0]].to_pylist()):
            # The first window has all words that fit.
            first, *others = windows(word_of, encoding.max_length)
            encoding.truncated += bool(others)
            numbers = [NO_WORD if word is None else word + 1 for word in (word_of[at] for at in first)]
            if NO_WORD not in numbers:
                raise ValueError(
                    "the tokenizer has no special token at the beginning or the end of an input, which would stand for "
                    "the root of a tree: use another encoder for this task"
                )
            numbers[numbers.index(NO_WORD)] = 0
            rows["input_ids"].append([ids[at] for at in first])
            rows["context_length"].append(len(first))
            rows[WORD].append(numbers)
        return {**rows, "heads": table[HEAD].to_pylist(), "relations": table[task.target].to_pylist()}

    def collate(self, tokens: Tokens, rows: Ints, token_types: bool) -> Any:
        """The batch, with `words`, [rows, words + 1, tokens]: the weight of each token in the vector of each word."""
        import torch

        numbers = _padded([_words(tokens, row) for row in rows], NO_WORD)
        weights = (numbers[:, None] == np.arange(numbers.max() + 1)[:, None]).astype(np.float32)
        weights /= np.maximum(weights.sum(2, keepdims=True), 1)
        batch = super().collate(tokens, rows, token_types)
        return batch | {"words": torch.from_numpy(weights)}

    def batch_labels(self, tokens: Tokens, rows: Ints, arrays: Mapping[str, np.ndarray], positions: Ints) -> np.ndarray:
        """[rows, words, 2], the head and the relation of each word that the encoder reads."""
        read = [int(_words(tokens, row).max()) for row in rows]
        heads, relations = (
            _padded([values[:count] for values, count in zip(_lists(tokens, name, rows), read, strict=True)], IGNORED)
            for name in ("heads", "relations")
        )
        labels = np.stack([heads, relations], -1)
        labels[heads > np.array(read)[:, None]] = IGNORED
        return labels

    def model_class(self, family: str) -> Any:
        from xlgrid.heads.parsing import biaffine

        if family == "AutoModel":
            return biaffine.AutoParser(*self._sizes)
        return biaffine.parser_class(super().model_class(family), *self._sizes)

    def terms(self, batch: Any) -> int:
        return int((batch["labels"][..., 0] != IGNORED).sum())

    def loss(self, model: "PreTrainedModel", batch: Any) -> "torch.Tensor":
        """The sum over words of two cross entropies: of the head, and of the relation to the head in the data."""
        from torch.nn.functional import cross_entropy

        vectors, arcs, labels = _scored(model, batch)
        heads, relations = labels.unbind(-1)
        logits = model.parser.relations(vectors, heads.clamp(min=0))
        of_heads, of_relations = (
            cross_entropy(predicted.flatten(0, 1), gold.flatten(), ignore_index=IGNORED, reduction="sum")
            for predicted, gold in ((arcs, heads), (logits, relations))
        )
        return of_heads + of_relations

    def predict(self, model: "PreTrainedModel", batch: Any, tokens: Tokens, rows: Ints) -> list[Any]:
        import torch

        vectors, arcs, labels = _scored(model, batch)
        read = [int(_words(tokens, row).max()) for row in rows]
        chosen = [
            trees.best_tree(scores[:count, : count + 1])
            for scores, count in zip(arcs.double().cpu().numpy(), read, strict=True)
        ]
        heads = torch.from_numpy(_padded(chosen, 0)).to(labels.device)
        relations = model.parser.relations(vectors, heads).argmax(-1).tolist()
        return [Tree(heads, names[: len(heads)]) for heads, names in zip(chosen, relations, strict=True)]

    def outcomes(self, tokens: Tokens, answers: Sequence[Any]) -> list[Outcome]:
        names = [*map(_universal, tokens.label_names)]
        plain = [names.index(name) for name in names]
        gold = (_lists(tokens, name, np.arange(len(tokens))) for name in ("heads", "relations"))
        return [
            [heads, [plain[at] for at in relations], tree.heads, [plain[at] for at in tree.relations]]
            for heads, relations, tree in zip(*gold, answers, strict=True)
        ]

    def examples(self, seen: Evaluated) -> list[Example]:
        """The head and the relation of each word, such as `2:nsubj 0:root`. A word that is not read has no prediction."""
        names = seen.labels
        texts = [
            [
                " ".join(f"{head}:{names[relation]}" for head, relation in zip(*side, strict=True))
                for side in (outcome[:2], outcome[2:])
            ]
            for outcome in seen.outcomes
        ]
        return seen.rows((gold, predicted, gold == predicted) for gold, predicted in texts)

    def confusion(self, labels: Sequence[str], outcomes: Sequence[Any]) -> None:
        """None, because words that are not read have no predicted relation."""

    def chance(self, tokens: Tokens) -> dict[str, float]:
        """The scores of a chain in which each word is the head of the next or of the previous one, whichever is better,
        with the most frequent relation."""
        rows = _lists(tokens, "relations", np.arange(len(tokens)))
        [(common, _)] = Counter(label for row in rows for label in row).most_common(1)
        found = []
        for chain in (lambda size: [*range(size)], lambda size: [*range(2, size + 1), 0]):
            predicted = [Tree(chain(len(row)), [common] * len(row)) for row in rows]
            found.append(self.listed(tokens, self.outcomes(tokens, predicted)))
        return {name: max(scores[name] for scores in found) for name in found[0]}

    def counts(self, tokens: Tokens, outcomes: Sequence[Outcome]) -> dict[str, int]:
        words = sum(len(row) for row in _lists(tokens, "heads", np.arange(len(tokens))))
        read = sum(int(_words(tokens, row).max()) for row in range(len(tokens)))
        return {"words": words, "unread": words - read}


@cache
def _sized(kind: Any, *sizes: int) -> Any:
    head = kind()
    head._sizes = sizes
    return head


def _universal(relation: str) -> str:
    """A relation without its subtype: `nmod` for `nmod:poss`."""
    return relation.partition(":")[0]


def _scored(model: "PreTrainedModel", batch: Mapping[str, Any]) -> "tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
    """The vectors of words, the scores of arcs, and the labels of a batch."""
    inputs, labels = without_labels(dict(batch))
    vectors = model(**inputs).logits
    return vectors, model.parser.arcs(vectors, batch["words"].any(-1)), labels


def _words(tokens: Tokens, row: int) -> np.ndarray:
    """The number of the word of each token of a row."""
    return tokens.token_columns[WORD][tokens.offsets[row] : tokens.offsets[row + 1]]


def _lists(tokens: Tokens, name: str, rows: Ints) -> list[list[int]]:
    """The lists in a column of some rows."""
    import pyarrow as pa

    lists: list[list[int]] = tokens.columns[name].take(pa.array(rows)).to_pylist()
    return lists


def _padded(rows: Sequence[Any], value: int) -> np.ndarray:
    """[rows, longest], with a value after the end of each row."""
    padded = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
