"""The examples of each optimiser step: epochs, sampling and batches. Seeds decide all random choices."""

import math
import sys
from collections.abc import Iterator, Mapping
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.data.batches import cut
from xlgrid.heads.tokens import Tokens
from xlgrid.training.recipe import Training
from xlgrid.training.setting import Plan

# Examples are sorted by length in random pools of this many batches, and cut into batches. There is less than 3% of
# padding, and each batch still comes from a random subset.
POOL = 32


def epoch(
    lengths: Ints, chosen: Ints, settings: Training, seed: int, number: int, parts: Ints | None = None
) -> list[Ints]:
    """The batches of epoch `number`, in random order: every example of `chosen` once, with similar lengths in a batch.

    Args:
        lengths: [examples], tokens.
        chosen: row numbers.
        parts: [examples], the part of a mix that each example is from. Without `settings.mixed_batches`, a batch has
            examples of one part only.
    """
    rng = np.random.default_rng([seed, number])
    order = rng.permutation(chosen)
    size = _pool_size(settings, float(lengths[chosen].mean()))
    batches: list[Ints] = []
    for group in _groups(order, settings, parts):
        for start in range(0, len(group), size):
            batches += _near_in_length(lengths, group[start : start + size], settings)
    return [batches[at] for at in rng.permutation(len(batches))]


def _pool_size(settings: Training, mean_length: float) -> int:
    """The number of examples in a pool."""
    return max(1, int(POOL * (settings.batch_size or settings.batch_tokens / max(1.0, mean_length))))


def _groups(rows: Ints, settings: Training, parts: Ints | None) -> list[Ints]:
    """The rows in groups; only rows of one group may share a batch."""
    if parts is None or settings.mixed_batches:
        return [rows]
    return [rows[parts[rows] == part] for part in np.unique(parts)]


def _near_in_length(lengths: Ints, pool: Ints, settings: Training) -> list[Ints]:
    """The rows of a pool, sorted by length and cut into batches."""
    budget = sys.maxsize if settings.batch_size else settings.batch_tokens
    return cut(lengths, pool[np.argsort(lengths[pool], kind="stable")], budget, settings.batch_size or sys.maxsize)


def plan(tokens: Tokens, settings: Training, seed: int) -> Plan:
    """The plan of a training: all examples, for `steps` or for `epochs`, and what settings of packages make of it.

    Raises:
        ValueError: there are no examples, settings contradict each other (`Training.conflict`), or as
            `xlgrid.training.setting.Setting.plan`.
    """
    if not len(tokens):
        raise ValueError("there are no training examples: look at the data and the tokens file")
    if settings.conflict:
        raise ValueError(settings.conflict[1])
    if settings.alpha is not None and settings.steps:
        return Plan([], [settings.steps])
    pool = np.arange(len(tokens))
    for setting in settings.added.values():
        pool = np.intersect1d(pool, setting.pool(tokens, settings, seed))
    if not len(pool):
        return Plan([pool], [0])
    planned = Plan([pool], [settings.steps or steps_of(tokens, pool, settings.epochs, settings, seed)])
    for setting in settings.added.values():
        planned = setting.plan(planned, tokens, settings, seed)
    return planned


def steps_of(tokens: Tokens, pool: Ints, epochs: float, settings: Training, seed: int) -> int:
    """The steps of some passes over the examples `pool`."""
    return max(1, round(epochs * len(epoch(tokens.lengths, pool, settings, seed, 0, tokens.parts))))


def stream(tokens: Tokens, settings: Training, seed: int, planned: Plan, first: int = 0) -> Iterator[Ints]:
    """The batch of each step from `first` on. It depends only on the arguments, so training resumes at any step."""
    if settings.alpha is None:
        return islice(_epochs(tokens, settings, seed, planned), first, None)
    return islice(_sampled(tokens, settings, seed, first), planned.steps - first)


def _epochs(tokens: Tokens, settings: Training, seed: int, planned: Plan) -> Iterator[Ints]:
    step = number = 0
    for pool, end in zip(*planned, strict=True):
        while step < end:
            for batch in epoch(tokens.lengths, pool, settings, seed, number, tokens.parts)[: end - step]:
                yield batch
                step += 1
            number += 1


def _sampled(tokens: Tokens, settings: Training, seed: int, first: int) -> Iterator[Ints]:
    """Endless batches from step `first` on: each part of a mix has its share of every pool.

    Each part has a new random order in each of its epochs.
    """
    parts = np.zeros(len(tokens), np.int16) if tokens.parts is None else tokens.parts
    # The rows of one part need not be contiguous: heads with one example per meaning interleave the parts.
    rows_of = [np.flatnonzero(parts == part).astype(np.int32) for part in np.unique(parts)]
    sizes = np.array([len(rows) for rows in rows_of])
    of_part = shares(sizes, _pairs(tokens, np.array([rows[0] for rows in rows_of])), settings)
    means = np.array([tokens.lengths[rows].mean() for rows in rows_of])
    size = _pool_size(settings, float(of_part @ means))
    orders: dict[int, tuple[int, Ints]] = {}

    def rows(part: int, start: int, stop: int) -> Ints:
        """The rows of a part at positions `start` to `stop` of its endless sequence of epochs."""
        places = np.arange(start, stop)
        row_numbers = np.empty(len(places), np.int64)
        for number in np.unique(places // sizes[part]).tolist():
            if orders.get(part, (-1, None))[0] != number:
                orders[part] = (
                    number,
                    np.random.default_rng([seed, part, number]).permutation(np.arange(sizes[part], dtype=np.int32)),
                )
            now = places // sizes[part] == number
            row_numbers[now] = rows_of[part][orders[part][1][places[now] % sizes[part]]]
        return row_numbers

    drawn = np.zeros(len(sizes), np.int64)
    step = 0
    for pool in count():
        before, drawn = drawn, drawn + _counts(of_part, drawn, size)
        # The number of batches in a pool does not depend on lengths here, so that whole pools are skipped at no cost.
        if settings.batch_size and settings.mixed_batches and step + POOL <= first:
            step += POOL
            continue
        rng = np.random.default_rng([seed, pool])
        spans = zip(range(len(sizes)), before.tolist(), drawn.tolist(), strict=True)
        chosen = rng.permutation(np.concatenate([rows(*span) for span in spans]))
        batches = [
            batch
            for group in _groups(chosen, settings, parts)
            for batch in _near_in_length(tokens.lengths, group, settings)
        ]
        for at in rng.permutation(len(batches)):
            if step >= first:
                yield batches[at]
            step += 1


def shares(sizes: Ints, pairs: NDArray[np.bool_], settings: Training) -> NDArray[np.float64]:
    """[parts], the share of training examples from each part of a mix; the shares sum to 1.

    Shares are in proportion to size^alpha among languages, and among pairs (Conneau and Lample 2019, section 3.1). If a
    mix has both, the shares of pairs sum to `settings.tlm`.

    Args:
        sizes: [parts], rows.
        pairs: [parts], whether a part has two languages.
    """
    assert settings.alpha is not None
    weights = np.asarray(sizes, np.float64) ** settings.alpha
    if pairs.all() or not pairs.any():
        return weights / weights.sum()
    languages, aligned = weights * ~pairs, weights * pairs
    return (1 - settings.tlm) * languages / languages.sum() + settings.tlm * aligned / aligned.sum()


def _pairs(tokens: Tokens, first_rows: Ints) -> NDArray[np.bool_]:
    """[parts], whether each part is a pair; `first_rows` has one row of each part."""
    language_of = tokens.language_of[first_rows * tokens.inputs_per_row]
    return language_of[:, 0] != language_of[:, 1]


def _counts(of_part: NDArray[np.float64], drawn: Ints, size: int) -> Ints:
    """[parts], the number of examples of each part in the next pool.

    After every pool, each part has its share of all examples so far, up to one or two examples.

    Args:
        of_part: [parts], the shares.
        drawn: [parts], the examples in earlier pools.
        size: the number of examples in the pool.
    """
    due = of_part * (drawn.sum() + size) - drawn
    counts = np.floor(due).clip(0).astype(np.int64)
    missing = size - int(counts.sum())
    order = np.argsort(counts - due, kind="stable")
    counts[order[:missing] if missing > 0 else order[counts[order] > 0][missing:]] += np.sign(missing)
    return counts


def learning_rate(settings: Training, step: int, steps: int) -> float:
    """The learning rate of `step` (from 0): linear up over the warm-up, then linear down to 0 after the last step."""
    warm = round(settings.warmup * steps)
    return settings.lr * ((step + 1) / (warm + 1) if step < warm else (steps - step) / (steps - warm))


def training_length(settings: Training, train: int, tokens: int, options: Mapping[str, object]) -> tuple[int, int]:
    """An estimate of the steps of a training, and of the examples that it sees; each pass over the data counts.

    Args:
        train: the number of training examples.
        tokens: the number of tokens of an example.
        options: the options of a generated task.
    """
    if not settings.used(1):
        return 0, 0
    batch = settings.batch_size or max(1, settings.batch_tokens // tokens)
    if settings.steps:
        return settings.steps, settings.steps * batch
    passes = [(settings.epochs, train)]
    for setting in settings.added.values():
        passes += setting.passes(train, options)
    steps = sum(max(1, round(epochs * math.ceil(pool / batch))) for epochs, pool in passes)
    return steps, round(sum(epochs * pool for epochs, pool in passes))
