"""Do the verdicts on claims keep their level? `python benchmarks/verdicts.py` simulates studies whose truth is known.

A study has a baseline and six methods, trained from three sources with S seeds and evaluated on four parallel targets, whose
example i is the same sentence in four languages. Each claim says that one of the methods beats the baseline. An example is answered
right with the probability 1 / (1 + exp(-x)), where x is the sum of

- the difficulty of the example, normal with standard deviation 1.5 and the same in all targets, methods and runs, and a smaller
  part (0.5) of its own in each target;
- the noise of the run (method, source, seed), normal with the standard deviation --noise;
- the effect of the method, 0 for the baseline.

The table has, for each noise and number of seeds, in percent:

- without effects, so that a claim that holds is an error: how often the 95 % interval misses 0; how often p is below 0.05, which
  should be in 2.5 % at most, because the interval misses 0 on the claimed side half of the time; how often a claim holds after
  Holm's correction over the six; how often any of the six holds;
- if all methods have the --effect: how often a claim holds, and how often the interval misses the true gain.

The rule `new` is that of xlgrid, which gives no verdict below three seeds; `old` is a t interval with Satterthwaite's degrees of
freedom.

A second table is about claims that a reader carries over to other languages. Verdicts take the languages of a study as given, so that
their level holds for these. Here a method gains nothing on average over all languages, and its gain in each source and in each
target is random, with the standard deviation `spread` in units of that of a run. A claim on a grid of --grid sources and as many
targets holds too often then, if it is read as one about languages in general.
"""

import argparse
from math import sqrt

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t

from xlgrid.results.verdicts import LEVEL, half_width, holm, tail_beyond

CLAIMS, SOURCES, TARGETS = 6, 3, 4
# Standard deviations in logits.
DIFFICULTY, OWN_DIFFICULTY = 1.5, 0.5


def study(rng: np.random.Generator, seeds: int, examples: int, noise: float, effect: float) -> np.ndarray:
    """One simulated study: effect of each claim, its variance over seeds (s² / S) and over examples (v), in points.

    Returns:
        Shape [claims, 3].
    """
    of_targets = rng.normal(0, OWN_DIFFICULTY, (TARGETS, examples))
    difficulty = rng.normal(0, DIFFICULTY, examples) + of_targets
    runs = rng.normal(0, noise, (1 + CLAIMS, SOURCES, seeds))
    runs[1:] += effect
    rates = 1 / (1 + np.exp(-(difficulty + runs[..., None, None])))
    # Methods × seeds × examples, the mean over sources and targets.
    right = 100 * (rng.random(rates.shape) < rates).mean(axis=(1, 3))
    gains = right[1:] - right[:1]
    of_seeds, of_examples = gains.mean(axis=2), gains.mean(axis=1)
    return np.stack(
        [of_seeds.mean(axis=1), of_seeds.var(axis=1, ddof=1) / seeds, of_examples.var(axis=1) / examples], axis=1
    )


def banerjee(effect: float, seed_variance: float, example_variance: float, seeds: int) -> tuple[float, float]:
    """Half of the 95 % interval, and the p of an effect above 0, as xlgrid has them."""
    noise = seed_variance, example_variance, seeds
    return half_width(LEVEL / 2, *noise), min(1.0, 2 * tail_beyond(effect, *noise))


def satterthwaite(effect: float, seed_variance: float, example_variance: float, seeds: int) -> tuple[float, float]:
    """The same with a t interval of Satterthwaite's degrees of freedom."""
    se = sqrt(seed_variance + example_variance)
    df = min(1000.0, se**4 * (seeds - 1) / seed_variance**2) if seed_variance else 1000.0
    return t.isf(LEVEL / 2, df) * se, min(1.0, 2 * t.sf(effect / se, df))


RULES = {"new": banerjee, "old": satterthwaite}


def true_gain(noise: float, effect: float) -> float:
    """The gain in points of a method with this effect, over draws of runs and examples."""
    x = np.random.default_rng(0).normal(0, sqrt(DIFFICULTY**2 + OWN_DIFFICULTY**2 + noise**2), 400_000)
    return float(100 * (1 / (1 + np.exp(-x - effect)) - 1 / (1 + np.exp(-x))).mean())


def rates(studies: np.ndarray, seeds: int, rule: str, gain: float) -> tuple[float, float, float, float]:
    """How often an interval misses the truth, p is below the level, a claim holds, and any claim of a study holds.

    Args:
        studies: shape [studies, claims, 3], as `study` returns them.
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


def holds_by_languages(rng: np.random.Generator, seeds: int, languages: int, spread: float, times: int) -> float:
    """How often, in percent, one claim on a grid holds, if the mean gain over all languages is 0.

    Args:
        languages: of the grid, as sources and as targets.
        spread: the standard deviation of the gain over sources, and over targets, in units of that of a run.
        times: the number of simulated grids.
    """
    # The mean of a grid's gains over its sources and over its targets, which is the same in all seeds.
    of_languages = rng.normal(0, spread / sqrt(languages), (times, 2)).sum(axis=1)
    # A seed has a run of either method from each source.
    runs = rng.normal(0, 1, (times, 2, languages, seeds)).mean(axis=2)
    effects = of_languages[:, None] + runs[:, 0] - runs[:, 1]
    variances = effects.var(axis=1, ddof=1) / seeds
    pairs = zip(effects.mean(axis=1).tolist(), variances.tolist(), strict=True)
    return 100 * float(np.mean([effect > half_width(LEVEL / 2, variance, 0.0, seeds) for effect, variance in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=500, help="simulated for each line")
    parser.add_argument("--examples", type=int, default=250, help="in each test set")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.15, 0.3, 0.6], help="of runs, in logits")
    parser.add_argument("--effect", type=float, default=0.5, help="of all methods, in logits, for the power")
    parser.add_argument("--grid", type=int, default=16, help="the languages of a grid, of the second table")
    parser.add_argument("--spread", type=float, nargs="+", default=[0, 0.5, 1], help="of gains over languages, in runs")
    arguments = parser.parse_args()
    head = ["noise", "seeds", "rule", "misses 0", "p < 0.05", "holds", "any holds", "power", "misses gain"]
    table = Table(
        *head, title=f"{arguments.studies} studies of {CLAIMS} claims, percent; power at {arguments.effect} logits"
    )
    for noise in arguments.noise:
        gain = true_gain(noise, arguments.effect)
        for seeds in arguments.seeds:
            rng = np.random.default_rng([seeds, round(1000 * noise)])
            null, real = (
                np.stack([study(rng, seeds, arguments.examples, noise, effect) for _ in range(arguments.studies)])
                for effect in (0.0, arguments.effect)
            )
            for rule in RULES:
                level = [f"{rate:.1f}" for rate in rates(null, seeds, rule, 0.0)]
                missed, _, power, _ = rates(real, seeds, rule, gain)
                table.add_row(f"{noise:g}", str(seeds), rule, *level, f"{power:.1f}", f"{missed:.1f}")
    Console().print(table)
    size = f"{arguments.grid} × {arguments.grid}"
    carried = Table(
        "spread", *(f"{seeds} seeds" for seeds in arguments.seeds), title=f"a claim on {size} holds, percent"
    )
    for spread in arguments.spread:
        rng = np.random.default_rng(round(1000 * spread))
        shares = [holds_by_languages(rng, seeds, arguments.grid, spread, 10_000) for seeds in arguments.seeds]
        carried.add_row(f"{spread:g}", *(f"{share:.1f}" for share in shares))
    Console().print(carried)


if __name__ == "__main__":
    main()
