"""Which languages give and which receive: the effects of sources and targets on scores of zero-shot transfer."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pandas as pd

from xlgrid.exhibits.drawing.labels import labelled
from xlgrid.exhibits.drawing.sheet import number
from xlgrid.languages.sources import NONE, Source
from xlgrid.results.crossed import fit
from xlgrid.results.population import LEAST_LANGUAGES

# Of the normal distribution, for an interval of 95 %.
QUANTILE = 1.96


def donors(cells: pd.DataFrame, labels: Mapping[str, str] = MappingProxyType({})) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each task, encoder and metric, a title and a table of languages with the effect of each as a source (gives)
    and as a target (receives), by method.

    An effect is the best linear unbiased prediction in the model of `xlgrid.results.crossed`, fitted to the means over
    seeds of the cells whose target is not in the source, and in the unit of the score. Predictions are shrunk towards
    0. A method is left out if it has fewer than `LEAST_LANGUAGES` sources or targets with a score in every seed, and
    a column if the variance of its effects is estimated as 0: then the scores show no difference between languages.

    Args:
        labels: name in the study -> what the title and the table have for it.
    """
    pairs = cells[["source", "target"]].drop_duplicates()
    pairs = pairs[[_is_transfer(*map(str, pair)) for pair in pairs.itertuples(index=False)]]
    cells = cells.merge(pairs, on=["source", "target"], sort=False)
    for of, part in cells.groupby(["task", "encoder", "metric"], sort=False):
        columns = {}
        for method, each in part.groupby("method", sort=False):
            means = each.groupby(["source", "target"], sort=False)["score"].agg(
                lambda scores: scores.mean(skipna=False)
            )
            axes = [list(means.dropna().index.get_level_values(axis)) for axis in ("source", "target")]
            if min(len(set(names)) for names in axes) < LEAST_LANGUAGES:
                continue
            fitted = fit(means.dropna().tolist(), axes)
            for axis, verb in enumerate(("gives", "receives")):
                # Of a variance of 0, all predictions are 0 ± 0, which looks like certainty.
                if fitted.variances.get(axis):
                    columns[f"{labelled(method, labels)} {verb}"] = {
                        labelled(name, labels): _text(*each) for name, each in fitted.random[axis].items()
                    }
        if columns:
            yield (
                ", ".join(labelled(name, labels) for name in of),
                pd.DataFrame(columns).fillna("").rename_axis("Language").reset_index(),
            )


def _is_transfer(source: str, target: str) -> bool:
    return source != NONE and not {*Source(source).languages} & {*Source(target).languages}


def _text(effect: float, error: float) -> str:
    return f"{'+' * (round(effect, 1) > 0)}{number(effect, 1)} ± {number(QUANTILE * error, 1)}"
