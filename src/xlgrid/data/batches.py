"""Examples from token files: mixes, curricula, and batches of a token budget, all decided by seeds alone."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Flags, Ints
from xlgrid.data.values import Values
from xlgrid.heads.spans import Spans
from xlgrid.languages.sources import Target

if TYPE_CHECKING:
    import torch

# The share of a text's tokens to predict (Devlin et al. 2019).
MASKED = 0.15


class Vocabulary(NamedTuple):
    """What masking needs to know of a tokenizer."""

    size: int
    mask_id: int
    special_ids: tuple[int, ...]


@dataclass(frozen=True)
class Tokens:
    """A tokens file, or a mix of several: ragged columns as flat values and offsets (n + 1).

    What is trained on and cut into batches is a *row*: an example; or one of its windows (`head` "span"); or all inputs
    of an example together, one for each of its `choices` (`head` "choice").

    Attributes:
        values, offsets: token ids of input i are `values[offsets[i] : offsets[i + 1]]`; of text they stay in the file.
        contexts: tokens of each input's first segment, its special tokens included.
        labels: one per row (`head` "sequence", "choice"), or one per token, -100 where none is due (`head` "token"), or
            first and last token of the answer, both 0 where there is none (`head` "span"); none yet for `head` "mlm",
            whose tokens are masked when they are collated.
        depths: depth of proof, or None.
        switched: whether the segments of an input are in two languages.
        parts: number of the part of a mix that each row is of; None where there is but one.
        choices: inputs per row.
        spans: for `head` "span", what an answer is read from.
    """

    values: NDArray[np.int32] | Values
    offsets: Ints
    contexts: Ints
    labels: Ints
    depths: Ints | None
    head: Literal["sequence", "token", "span", "choice", "mlm"]
    names: tuple[str, ...]
    pad_id: int
    switched: Flags
    vocabulary: "Vocabulary | None" = None
    parts: Ints | None = None
    choices: int = 1
    spans: Spans | None = None

    def __len__(self) -> int:
        return (len(self.offsets) - 1) // self.choices

    @property
    def examples(self) -> int:
        """How many there are, which windows are more than."""
        return int(self.numbers.max()) + 1 if len(self) else 0

    @property
    def numbers(self) -> Ints:
        """The number of the example that each row is of."""
        return np.arange(len(self)) if self.spans is None else self.spans.examples

    @cached_property
    def sizes(self) -> Ints:
        """Tokens per input."""
        return np.diff(self.offsets)

    @cached_property
    def longest(self) -> Ints:
        """Tokens of the longest input of each row."""
        return self.sizes if self.choices == 1 else self.sizes.reshape(-1, self.choices).max(1)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens per row, what makes its inputs equally long included."""
        return self.longest * self.choices

    def inputs(self, chosen: Ints) -> Ints:
        """The inputs of the rows `chosen`."""
        return chosen if self.choices == 1 else (chosen[:, None] * self.choices + np.arange(self.choices)).ravel()

    def take(self, chosen: Ints) -> "Tokens":
        """The rows `chosen`, in that order."""
        inputs = self.inputs(chosen)
        at = _flat(self.offsets, inputs)
        return Tokens(
            values=self.values[at],
            offsets=_offsets([self.sizes[inputs]]),
            contexts=self.contexts[inputs],
            labels=self.labels[at if self.head == "token" else chosen],
            depths=None if self.depths is None else self.depths[chosen],
            head=self.head,
            names=self.names,
            pad_id=self.pad_id,
            switched=self.switched[inputs],
            vocabulary=self.vocabulary,
            parts=None if self.parts is None else self.parts[chosen],
            choices=self.choices,
            spans=None if self.spans is None else self.spans.take(chosen, at),
        )


def _flat(offsets: Ints, chosen: Ints) -> Ints:
    sizes = offsets[chosen + 1] - offsets[chosen]
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(offsets[chosen] - before, sizes)


def read(path: str | Path, code: str = "") -> Tokens:
    """Open a tokens file (Arrow IPC, memory-mapped).

    Args:
        code: its language, or pair of languages.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated, or no tokens file.
    """
    import pyarrow as pa

    try:
        if not Path(path).stat().st_size:
            raise ValueError("it is empty")
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        about = json.loads(table.schema.metadata[b"xlgrid"])
        ids, contexts = table.column("input_ids").chunks, _one(table, "context_length")
        if choices := about.get("choices"):
            ids, contexts = [piece.flatten() for piece in ids], contexts.flatten()
        # DLPack, because pyarrow's `to_numpy` imports pandas, which costs an evaluation more than its model does.
        pieces = [np.from_dlpack(piece.flatten()).astype(np.int32, copy=False) for piece in ids]
        offsets = _offsets([np.diff(_numbers(piece.offsets)) for piece in ids])
        values: NDArray[np.int32] | Values = Values(pieces)
        vocabulary = spans = None
        if about["head"] == "mlm":
            labels = np.zeros(len(table), np.int64)
            vocabulary = Vocabulary(about["vocabulary"], about["mask_id"], tuple(about["special_ids"]))
        elif about["head"] == "span":
            labels = np.stack([_numbers(_one(table, name)) for name in ("start", "end")], axis=1)
            flat = (_one(table, name).flatten() for name in ("first", "last"))
            first, last = (np.from_dlpack(one).astype(np.int32, copy=False) for one in flat)
            texts, answers = _one(table, "text"), _one(table, "answers")
            spans = Spans(first, last, _numbers(_one(table, "example")), texts, answers)
        else:
            token_head = about["head"] == "token"
            labels = _numbers(_one(table, "labels").flatten() if token_head else _one(table, "label"))
        if about["head"] != "mlm":
            values = pieces[0] if len(pieces) == 1 else values[:]
        return Tokens(
            values=values,
            offsets=offsets,
            contexts=_numbers(contexts),
            labels=labels,
            depths=_numbers(_one(table, "depth")) if "depth" in table.column_names else None,
            head=about["head"],
            names=tuple(about["labels"]),
            pad_id=about["pad_id"],
            switched=np.full(len(offsets) - 1, bool(code) and Target(code).is_pair),
            vocabulary=vocabulary,
            choices=choices or 1,
            spans=spans,
        )
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: make it with `xlgrid tokenize`") from error
    except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or is no tokens file ({error}): delete it and tokenize again") from error


def _offsets(lengths: Sequence[Ints]) -> Ints:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))


def _numbers(array: Any) -> Ints:
    return np.from_dlpack(array).astype(np.int64)


def _one(table: Any, name: str) -> Any:
    column = table.column(name).combine_chunks()
    # A file without rows has no chunk to speak of.
    return column if not hasattr(column, "chunks") else column.chunk(0)


def mix(parts: Sequence[Tokens], seed: int) -> Tokens:
    """One data set from several languages': each example comes from exactly one part, drawn with `seed`.

    Row i of every part must be the same example in another language. Of n examples and k parts, each part gives n/k.
    Text is the exception: all parts give all of theirs.

    Raises:
        ValueError: the parts differ in their number of examples, or in their labels.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if first.head == "mlm":
        return _joined(parts)
    if len({part.examples for part in parts}) > 1:
        raise ValueError(
            f"the parts of a mix have {', '.join(str(part.examples) for part in parts)} examples: a mix "
            "needs the same examples in each language, row by row; use parallel data, or name the sources one by one"
        )
    if len({(part.names, part.head, part.pad_id) for part in parts}) > 1:
        raise ValueError(
            "the parts of a mix differ in labels or tokenizer: tokenize them again with one encoder and task"
        )
    order = np.random.default_rng([seed]).permutation(first.examples)
    belongs = np.empty(first.examples, np.int64)
    belongs[order] = np.arange(first.examples) % len(parts)
    chosen = [np.flatnonzero(belongs[part.numbers] == number) for number, part in enumerate(parts)]
    taken = [part.take(rows) for part, rows in zip(parts, chosen, strict=True)]
    # Back to the order of the examples, so that example i of the mix is that of its part.
    back = np.concatenate([part.numbers[rows] for part, rows in zip(parts, chosen, strict=True)])
    return _joined(taken).take(np.argsort(back, kind="stable"))


def _joined(parts: Sequence[Tokens]) -> Tokens:
    """The examples of all parts, one after another."""
    pieces = [
        piece for part in parts for piece in (part.values.pieces if isinstance(part.values, Values) else [part.values])
    ]
    return replace(
        parts[0],
        values=Values(pieces) if parts[0].head == "mlm" else np.concatenate(pieces),
        offsets=_offsets([part.sizes for part in parts]),
        contexts=np.concatenate([part.contexts for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        depths=None
        if any(p.depths is None for p in parts)
        else np.concatenate([p.depths for p in parts if p.depths is not None]),
        switched=np.concatenate([part.switched for part in parts]),
        parts=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        spans=None if parts[0].spans is None else Spans.joined([part.spans for part in parts if part.spans]),
    )


def cut(lengths: Ints, chosen: Ints, budget: int, most: int = sys.maxsize) -> list[Ints]:
    """Split `chosen`, sorted by length, into runs of at most `budget` tokens with padding and `most` examples; one always
    fits."""
    batches: list[Ints] = []
    start = 0
    # Numbers of Python's, which a loop over millions of examples reads sooner than an array's.
    sizes = lengths[chosen].tolist()
    for at in range(1, len(chosen) + 1):
        if at == len(chosen) or at - start == most or sizes[at] * (at - start + 1) > budget:
            batches.append(chosen[start:at])
            start = at
    return batches


def collate(
    tokens: Tokens, chosen: Ints, segments: bool, device: "torch.device | str" = "cpu"
) -> dict[str, "torch.Tensor"]:
    """Tensors of a batch (B × longest, or B × choices × longest): input_ids, attention_mask, labels (B, or B × longest, or
    B × 2 of spans), and with `segments` token_type_ids (0 for the first segment, 1 for the second). Text is masked here, by
    torch's generator."""
    import torch

    inputs = tokens.inputs(chosen)
    lengths = tokens.sizes[inputs]
    at = np.arange(lengths.max())[None, :]
    real = at < lengths[:, None]
    flat = _flat(tokens.offsets, inputs)
    ids = np.full(real.shape, tokens.pad_id, np.int64)
    ids[real] = tokens.values[flat]
    arrays = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
    if segments:
        arrays["token_type_ids"] = (real & (at >= tokens.contexts[inputs][:, None])).astype(np.int64)
    if tokens.head == "mlm":
        arrays["labels"] = np.where(np.isin(ids, tokens.vocabulary.special_ids if tokens.vocabulary else ()), -100, ids)
    elif tokens.head == "token":
        arrays["labels"] = np.full(real.shape, -100, np.int64)
        arrays["labels"][real] = tokens.labels[flat]
    else:
        if tokens.head == "choice":
            arrays = {name: array.reshape(len(chosen), tokens.choices, -1) for name, array in arrays.items()}
        arrays["labels"] = tokens.labels[chosen]
    batch = {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in arrays.items()}
    if tokens.vocabulary:
        mask(batch, tokens.vocabulary)
    return batch


def mask(batch: dict[str, "torch.Tensor"], vocabulary: Vocabulary, share: float = MASKED) -> None:
    """Mask a share of the tokens that have labels, 80 % of them by the mask, 10 % by a random one, 10 % not, and leave
    labels to them alone (Devlin et al. 2019)."""
    import torch

    ids, labels = batch["input_ids"], batch["labels"]
    chosen = (torch.rand(ids.shape, device=ids.device) < share) & (labels != -100)
    dice = torch.rand(ids.shape, device=ids.device)
    others = torch.randint(vocabulary.size, ids.shape, device=ids.device)
    batch["labels"] = labels.masked_fill(~chosen, -100)
    ids = torch.where(chosen & (dice < 0.8), vocabulary.mask_id, ids)
    batch["input_ids"] = torch.where(chosen & (dice >= 0.9), others, ids)
