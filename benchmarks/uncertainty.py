"""Do intervals and verdicts keep their level? `python benchmarks/uncertainty.py` simulates studies whose truth is known.

`these`: verdicts over the languages of a study. A study has a baseline and six methods, trained from three sources with S seeds and
evaluated on four parallel targets, whose example i is the same sentence in four languages. Each claim says that one of the methods
beats the baseline. An example is answered right with the probability 1 / (1 + exp(-x)), where x is the sum of

- the difficulty of the example, normal with standard deviation 1.5 and the same in all targets, methods and runs, and a smaller
  part (0.5) of its own in each target;
- the noise of the run (method, source, seed), normal with the standard deviation --noise;
- the effect of the method, 0 for the baseline. It differs between examples by --interaction.

The table has, for each noise and number of seeds, in percent:

- without effects, so that a claim that holds is an error: how often the 95 % interval misses 0; how often p is below 0.05, which
  should be in 2.5 % at most, because the interval misses 0 on the claimed side half of the time; how often a claim holds after
  Holm's correction over the six; how often any of the six holds;
- if all methods have the --effect: how often a claim holds, and how often the interval misses the true gain.

The rule `new` is that of xlgrid, which gives no verdict below three seeds; `twice` counts the noise of single examples in single runs
twice, once between seeds and once between examples; `Welch` is a t interval with Satterthwaite's degrees of freedom.

`like`: verdicts over languages like these. Two methods are trained from each source with S seeds, and evaluated on each target. The
gain of one of them is the sum of a part of the source and a part of the target, each normal with mean 0 and the standard deviation
`languages`, and of the noise of the two runs (--run-noise each) and of the seed (--seed-noise). Each cell has the score of 500
examples, and an error of draws of examples that all cells share (0.3 points, known). All are in logits. The table has, in percent, how
often each of the two intervals has the mean gain of all languages, which is 0, and how often a claim of a gain holds. With 3 × 4
languages, there is no second interval.

`scores`: do the intervals of scores cover the true scores? The interval of a score is score ± 1.96 · √v, where v is the variance of
the score over draws of test examples (`Metric.moves`): the delta method for ratios and functions of a confusion matrix, and a
bootstrap of 1,000 draws for correlations. The table has, for each metric and number of examples, how many percent of the intervals
cover the score of the whole population. The populations:

- rows with four labels, of which the rarest has 8 percent, and about seven in ten are right;
- sentences of 12 words with entities of two types, whose words are predicted right with the probability 0.85;
- rows with three labels, of 40, 25 and 10 percent of rows, each predicted right with the probability 0.85;
- normal pairs of numbers with the correlation 0.6.

Intervals that assume a normal distribution are too narrow where few examples decide a score, such as the recall of a rare label.
"""

import os

# The matrices are small, and threads make them slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
from collections.abc import Callable
from math import sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t

from xlgrid.heads import HEADS
from xlgrid.heads.metrics import Metric, OfAll
from xlgrid.results.claims import Term
from xlgrid.results.population import over_languages
from xlgrid.results.verdicts import LEVEL, Noise, half_width, holm, tail_beyond

CLAIMS, SOURCES, TARGETS = 6, 3, 4
# Standard deviations in logits.
DIFFICULTY, OWN_DIFFICULTY = 1.5, 0.5


def study(
    rng: np.random.Generator, seeds: int, examples: int, noise: float, effect: float, interaction: float
) -> np.ndarray:
    """One simulated study: the effect of each claim in points, and its variance over seeds (s² / S), over examples that is
    common to all seeds (v), and over examples of the mean over seeds.

    Returns:
        Shape [claims, 4].
    """
    of_targets = rng.normal(0, OWN_DIFFICULTY, (TARGETS, examples))
    difficulty = rng.normal(0, DIFFICULTY, examples) + of_targets
    runs = rng.normal(0, noise, (1 + CLAIMS, SOURCES, seeds))
    runs[1:] += effect
    of_methods = rng.normal(0, interaction, (1 + CLAIMS, 1, 1, 1, examples))
    rates = 1 / (1 + np.exp(-(difficulty + of_methods + runs[..., None, None])))
    # Methods × seeds × examples, the mean over sources and targets.
    right = 100 * (rng.random(rates.shape) < rates).mean(axis=(1, 3))
    gains = right[1:] - right[:1]
    of_seeds = gains.mean(axis=2)
    moves = gains - of_seeds[..., None]
    of_all = (moves.sum(1) ** 2).sum(1)
    common = (of_all - (moves**2).sum((1, 2))) / (seeds * (seeds - 1)) / examples**2
    columns = [of_seeds.mean(1), of_seeds.var(1, ddof=1) / seeds, common.clip(0), of_all / (seeds * examples) ** 2]
    return np.stack(columns, axis=1)


def new(effect: float, of_seeds: float, common: float, of_examples: float, seeds: int) -> tuple[float, float]:
    """Half of the 95 % interval, and the p of an effect above 0, as xlgrid has them."""
    noise = of_seeds, common, seeds
    return half_width(LEVEL / 2, *noise), min(1.0, 2 * tail_beyond(effect, *noise))


def twice(effect: float, of_seeds: float, common: float, of_examples: float, seeds: int) -> tuple[float, float]:
    """The same with all noise of examples beside that of seeds."""
    return new(effect, of_seeds, of_examples, of_examples, seeds)


def welch(effect: float, of_seeds: float, common: float, of_examples: float, seeds: int) -> tuple[float, float]:
    """The same with a t interval of Satterthwaite's degrees of freedom."""
    se = sqrt(of_seeds + common)
    df = min(1000.0, se**4 * (seeds - 1) / of_seeds**2) if of_seeds else 1000.0
    return t.isf(LEVEL / 2, df) * se, min(1.0, 2 * t.sf(effect / se, df))


RULES = {"new": new, "twice": twice, "Welch": welch}


def true_gain(noise: float, effect: float, interaction: float) -> float:
    """The gain in points of a method with this effect, over draws of runs and examples."""
    variance = DIFFICULTY**2 + OWN_DIFFICULTY**2 + noise**2 + interaction**2
    x = np.random.default_rng(0).normal(0, sqrt(variance), 400_000)
    return float(100 * (1 / (1 + np.exp(-x - effect)) - 1 / (1 + np.exp(-x))).mean())


def rates(studies: np.ndarray, seeds: int, rule: str, gain: float) -> tuple[float, float, float, float]:
    """How often an interval misses the truth, p is below the level, a claim holds, and any claim of a study holds.

    Args:
        studies: shape [studies, claims, 4], as `study` returns them.
        gain: the true effect in points.
    """
    missed, below, holding, any_holds = [], [], [], []
    for claims in studies:
        judged = [RULES[rule](*map(float, numbers), seeds) for numbers in claims]
        missed += [abs(numbers[0] - gain) > half for numbers, (half, _) in zip(claims, judged, strict=True)]
        below += [p < LEVEL for _, p in judged]
        holds = [p < LEVEL for p in holm([p for _, p in judged])]
        holding += holds
        any_holds.append(any(holds))
    return tuple(100 * float(np.mean(column)) for column in (missed, below, holding, any_holds))  # type: ignore[return-value]


def these(options: argparse.Namespace) -> None:
    head = ["noise", "seeds", "rule", "misses 0", "p < 0.05", "holds", "any holds", "power", "misses gain"]
    table = Table(
        *head, title=f"{options.studies} studies of {CLAIMS} claims, percent; power at {options.effect} logits"
    )
    for noise in options.noise:
        gain = true_gain(noise, options.effect, options.interaction)
        for seeds in options.seeds:
            rng = np.random.default_rng([seeds, round(1000 * noise)])
            null, real = (
                np.stack(
                    [
                        study(rng, seeds, options.examples, noise, effect, options.interaction)
                        for _ in range(options.studies)
                    ]
                )
                for effect in (0.0, options.effect)
            )
            for rule in RULES:
                level = [f"{rate:.1f}" for rate in rates(null, seeds, rule, 0.0)]
                missed, _, power, _ = rates(real, seeds, rule, gain)
                table.add_row(f"{noise:g}", str(seeds), rule, *level, f"{power:.1f}", f"{missed:.1f}")
    Console().print(table)


def gains(rng: np.random.Generator, shape: tuple[int, int, int], languages: float, options: Any) -> np.ndarray:
    """The gain in points of each cell of a grid, [sources, targets, seeds]. Its mean over all languages is 0."""
    sources, targets, seeds = shape
    of_languages = rng.normal(0, languages, (sources, 1, 1)) + rng.normal(0, languages, (1, targets, 1))
    of_runs = rng.normal(0, sqrt(2) * options.run_noise, (sources, 1, seeds)) + rng.normal(0, options.seed_noise, seeds)
    gain = of_languages + of_runs
    # The rates of the two methods are on the two sides of the rate of the pair.
    middle = 0.5 + rng.normal(0, 0.5, (sources, 1, 1)) + rng.normal(0, 0.5, (1, targets, 1))
    right = rng.binomial(500, 1 / (1 + np.exp(-(middle + np.stack([gain, -gain]) / 2))))
    return 100 * (right[0] - right[1]) / 500


def like(options: argparse.Namespace) -> None:
    head = ["grid", "seeds", "languages", "these: covers 0", "holds", "like these: covers 0", "holds"]
    table = Table(
        *head, title=f"{options.times:,} grids, percent; run {options.run_noise:g}, seed {options.seed_noise:g}"
    )
    for sources, targets in options.grids:
        for seeds in options.seeds:
            for languages in options.languages:
                rng = np.random.default_rng([sources, seeds, round(1000 * languages)])
                table.add_row(
                    f"{sources} × {targets}",
                    str(seeds),
                    f"{languages:g}",
                    *of_grids(rng, sources, targets, seeds, languages, options),
                )
    Console().print(table)


def of_grids(
    rng: np.random.Generator, sources: int, targets: int, seeds: int, languages: float, options: Any
) -> list[str]:
    """A row of the second table."""
    pairs = [(f"s{i}", f"t{j}") for i in range(sources) for j in range(targets)]
    keys = [(pair, seed) for pair in pairs for seed in range(seeds)]
    # Only the seeds of cells count here.
    terms: Any = [
        Term(SimpleNamespace(seed=seed), sign / len(pairs), side, pair)  # type: ignore[arg-type]
        for pair, seed in keys
        for side, sign in enumerate((1, -1))
    ]
    outcomes, common = [], 0.3**2
    for _ in range(options.times):
        cells = gains(rng, (sources, targets, seeds), languages, options)
        cells += rng.normal(0, sqrt(common))
        contributed = dict(zip(keys, (cells / len(pairs)).ravel().tolist(), strict=True))
        of_seeds = cells.mean((0, 1))
        noise = Noise(of_seeds.var(ddof=1) / seeds, common, seeds)
        population = over_languages(terms, contributed)
        wide = noise._replace(of_shared=common, population=population).half_width(LEVEL / 2)
        outcomes.append([of_seeds.mean(), noise.half_width(LEVEL / 2), wide])
    effects, *halves = np.transpose(outcomes)
    shown = []
    for half in halves:
        rates = [100 * (abs(effects) < half).mean(), 100 * (effects > half).mean()]
        shown += [f"{rate:.1f}" for rate in rates] if np.isfinite(half).all() else [population.reason, ""]
    return shown


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


def scores(options: argparse.Namespace) -> None:
    table = Table("kind", "metric", "true score", *(f"{n:,} examples" for n in options.test_sets))
    for head, (draw, labels, names) in POPULATIONS.items():
        whole = draw(np.random.default_rng(0), WHOLE)
        for name in names:
            measured = HEADS[head].metric(labels, name)
            truth = measured.score(whole)
            # A bootstrap of 1,000 draws takes longer.
            times = options.sets // 10 if isinstance(measured, OfAll) else options.sets
            shares = [covered(measured, draw, truth, n, times, 1) for n in options.test_sets]
            table.add_row(head, name, f"{truth:.2f}", *(f"{100 * share:.1f}" for share in shares))
    Console().print(table)


TABLES = {"these": these, "like": like, "scores": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("tables", nargs="*", default=list(TABLES), help=f"which of {', '.join(TABLES)}; all without this argument")
    add("--seeds", type=int, nargs="+", default=[3, 5])
    add("--studies", type=int, default=500, help="these: studies simulated for each line")
    add("--examples", type=int, default=250, help="these: in each test set")
    add("--noise", type=float, nargs="+", default=[0.0, 0.15, 0.3, 0.6], help="these: of runs, in logits")
    add("--interaction", type=float, default=0.5, help="these: of methods and examples, in logits")
    add("--effect", type=float, default=0.5, help="these: of all methods, in logits, for the power")
    grid = lambda text: tuple(map(int, text.split("x")))  # noqa: E731
    add("--grids", type=grid, nargs="+", default=[(3, 4), (5, 5), (6, 6), (16, 16)], help="like: sources x targets")
    add("--languages", type=float, nargs="+", default=[0, 0.1, 0.2, 0.5], help="like: spread of gains, in logits")
    add("--times", type=int, default=10_000, help="like: grids simulated for each line")
    add("--run-noise", type=float, default=0.2, help="like: of a run, in logits")
    add("--seed-noise", type=float, default=0.0, help="like: of a seed, shared by all sources, in logits")
    add("--sets", type=int, default=2000, help="scores: test sets of each size")
    add("--test-sets", type=int, nargs="+", default=[100, 500, 2000], help="scores: examples in each test set")
    options = parser.parse_args()
    for name in options.tables:
        TABLES[name](options)


if __name__ == "__main__":
    main()
