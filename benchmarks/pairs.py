"""Does the interval of a slope over pairs have the true slope? `python benchmarks/pairs.py` simulates grids whose truth is known.

Languages are points in a plane, x is their distance, and each pair of a source and a target other than itself has the score

    y = slope * x + (effect of the source) + (effect of the target) + noise.

Unless a row says otherwise, the effects have the standard deviations 5 and 10, the noise 3, and the slope is -4. The table has, for
each kind of grid, how often the 95 % interval of `xlgrid.exhibits.pairs.regression` has the slope, in percent of the simulated grids,
and its mean width; and the same for t intervals of ordinary least squares with an intercept alone, which take all pairs as
independent. The rows:

- as stated;
- asymmetric: x is not the same in both directions, and the effects have the standard deviations 1 and 15;
- missing: a fifth of the cells lack results;
- mutual: four fifths of the variance of the noise are the same for a pair and its reverse;
- unequal: targets differ in the size of their noise, by a factor of 2 (standard deviation);
- latent: the noise also has a product of two hidden traits of the two languages;
- all: asymmetric, with three tenths of the cells missing, half mutual, unequal, and slopes that differ;
- slopes: each source and each target adds to the slope a number of its own, of standard deviation 0.5, 1 or 2.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t

from xlgrid.exhibits.pairs.regression import slope

SLOPE = -4.0
# Grids that share the values x, which differ in their scores.
TOGETHER = 50
KINDS: dict[str, dict[str, Any]] = {
    "as stated": {},
    "asymmetric": {"directed": 0.5, "of_sources": 1, "of_targets": 15},
    "missing": {"missing": 0.2},
    "mutual": {"mutual": 0.8},
    "unequal": {"unequal": 0.7},
    "latent": {"latent": 1},
    "all": {"directed": 0.5, "missing": 0.3, "mutual": 0.5, "unequal": 0.7, "slopes": 0.5},
    "slopes 0.5": {"slopes": 0.5},
    "slopes 1": {"slopes": 1},
    "slopes 2": {"slopes": 2},
}


def grids(
    rng: np.random.Generator,
    sources: int,
    targets: int | None,
    *,
    directed: float = 0,
    of_sources: float = 5,
    of_targets: float = 10,
    missing: float = 0,
    mutual: float = 0,
    unequal: float = 0,
    latent: float = 0,
    slopes: float = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The source, the target and x of each pair, and the scores of `TOGETHER` grids as columns."""
    size = sources if targets is None else sources + targets
    at = rng.normal(size=(size, 2))
    distance = np.linalg.norm(at[:, None] - at, axis=-1) + rng.normal(0, directed, (size, size))
    pairs = ~np.eye(size, dtype=bool)
    if targets is not None:
        pairs[sources:], pairs[:, :sources] = False, False
    i, j = np.nonzero(pairs & (rng.random((size, size)) >= missing))
    x = distance[i, j]

    def effect(sd: float) -> np.ndarray:
        return rng.normal(0, sd, (size, TOGETHER))

    own = SLOPE + effect(slopes)[i] + effect(slopes)[j]
    both = rng.normal(size=(size, size, TOGETHER))[np.minimum(i, j), np.maximum(i, j)]
    noise = np.sqrt(mutual) * both + np.sqrt(1 - mutual) * rng.normal(size=both.shape)
    noise *= np.exp(effect(unequal))[j]
    traits = rng.normal(size=(size, 2, TOGETHER))
    noise += latent * (traits[i] * traits[j]).sum(axis=1)
    return i, j, x, own * x[:, None] + effect(of_sources)[i] + effect(of_targets)[j] + 3 * noise


def plain(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the t interval of the slope with an intercept alone."""
    centred = x - x.mean()
    value = centred @ y / (centred @ centred)
    rest = y - y.mean(axis=0) - centred[:, None] * value
    half = t.isf(0.025, len(x) - 2) * np.sqrt((rest**2).sum(axis=0) / (len(x) - 2) / (centred @ centred))
    return value - half, value + half


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=10_000, help="simulated grids of each kind")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--targets", type=int, help="other languages than the sources; absent: the same languages")
    options = parser.parse_args()
    size = f"{options.sources} × {options.targets or options.sources}"
    table = Table(title=f"{options.grids:,} grids of {size} languages of each kind")
    for column in ("grids", "interval has the slope", "width", "least squares", "width"):
        table.add_column(column, justify="right")
    for kind, how in KINDS.items():
        rng = np.random.default_rng(1)
        hits: list[list[float]] = [[], [], [], []]
        for _ in range(-(-options.grids // TOGETHER)):
            i, j, x, y = grids(rng, options.sources, options.targets, **how)
            fit = slope([f"{one:04}" for one in i], [f"{one:04}" for one in j], x, y)
            if fit is None:
                continue
            for at, (low, high) in enumerate(((fit.low, fit.high), plain(x, y))):
                hits[2 * at].append(float(((low <= SLOPE) & (high >= SLOPE)).mean()))
                hits[2 * at + 1].append(float((high - low).mean()))
        new, width, old, other = (float(np.mean(each)) for each in hits)
        table.add_row(kind, f"{100 * new:.1f}", f"{width:.2f}", f"{100 * old:.1f}", f"{other:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
