"""Do the intervals of scores cover the true scores? `python benchmarks/intervals.py` draws test sets whose truth is known.

The interval of a score is score ± 1.96 · √v, where v is the variance of the score over draws of test examples, as claims have it
(`Metric.moves`): the delta method for ratios and functions of a confusion matrix, and a bootstrap of 1,000 draws for correlations. The
table has, for each metric and number of examples, how many percent of the intervals cover the score of the whole population. The
populations:

- rows with four labels, of which the rarest has 8 percent, and about seven in ten are right;
- sentences of 12 words with entities of two types, whose words are predicted right with the probability 0.85;
- rows with three labels, of 40, 25 and 10 percent of rows, each predicted right with the probability 0.85;
- normal pairs of numbers with the correlation 0.6.

Intervals that assume a normal distribution are too narrow where few examples decide a score, such as the recall of a rare label.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from xlgrid.heads import HEADS
from xlgrid.heads.metrics import Metric, OfAll

JOINT = np.array([[30, 4, 3, 1], [5, 20, 4, 1], [2, 5, 15, 2], [2, 1, 1, 4]]) / 100
IOB = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SHARES = np.array([0.4, 0.25, 0.1])
# The population is as many draws.
WHOLE = 100_000


def rows(rng: np.random.Generator, n: int) -> list:
    return np.stack(np.divmod(rng.choice(16, n, p=JOINT.ravel()), 4), 1).tolist()


def sentences(rng: np.random.Generator, n: int) -> list:
    gold = rng.choice(5, (n, 12), p=[0.7, 0.1, 0.08, 0.07, 0.05])
    predicted = np.where(rng.random(gold.shape) < 0.85, gold, rng.integers(0, 5, gold.shape))
    return np.stack([gold, predicted], 1).tolist()


def sets(rng: np.random.Generator, n: int) -> list:
    gold = rng.random((n, 3)) < SHARES
    predicted = gold ^ (rng.random((n, 3)) < 0.15)
    return [[np.flatnonzero(side).tolist() for side in row] + [[]] for row in zip(gold, predicted, strict=True)]


def pairs(rng: np.random.Generator, n: int) -> list:
    return rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], n).tolist()


POPULATIONS: dict[str, tuple[Callable, tuple[str, ...], tuple[str, ...]]] = {
    "sequence": (rows, ("a", "b", "c", "d"), ("accuracy", "macro-f1", "weighted-f1", "mcc", "f1:d", "recall:d")),
    "token": (sentences, IOB, ("f1", "macro-f1", "untyped-f1", "f1:LOC")),
    "multilabel": (sets, ("x", "y", "z"), ("macro-f1", "micro-f1", "f1:z")),
    "regression": (pairs, (), ("spearman", "pearson", "mse")),
}


def covered(measured: Metric, draw: Callable, truth: float, n: int, times: int, seed: int) -> float:
    """The share of test sets of n examples whose interval has the true score."""
    rng, hits = np.random.default_rng([seed, n]), 0
    for _ in range(times):
        outcomes = draw(rng, n)
        moves = measured.moves(outcomes)
        hits += abs(measured.score(outcomes) - truth) <= 1.96 * math.sqrt((moves**2).mean() / len(moves))
    return hits / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000, help="test sets of each size")
    parser.add_argument("--examples", type=int, nargs="+", default=[100, 500, 2000])
    options = parser.parse_args()
    table = Table("kind", "metric", "true score", *(f"{n:,} examples" for n in options.examples))
    for head, (draw, labels, names) in POPULATIONS.items():
        whole = draw(np.random.default_rng(0), WHOLE)
        for name in names:
            measured = HEADS[head].metric(labels, name)
            truth = measured.score(whole)
            # A bootstrap of 1,000 draws takes longer.
            times = options.times // 10 if isinstance(measured, OfAll) else options.times
            shares = [covered(measured, draw, truth, n, times, 1) for n in options.examples]
            table.add_row(head, name, f"{truth:.2f}", *(f"{100 * share:.1f}" for share in shares))
    Console().print(table)


if __name__ == "__main__":
    main()
