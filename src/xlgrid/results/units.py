"""The unit of the scores of cells, and whether higher scores are better."""

from collections.abc import Iterable

from xlgrid.heads import metric
from xlgrid.heads.metrics import Metric

# The end of the metric of a difference of scores, also in published numbers.
DIFFERENCE = "-difference"


def metrics_of(names: Iterable[str]) -> list[Metric]:
    """The metrics with these names, without repetition. The name "" of a claim without results is ignored."""
    return [metric(name) for name in dict.fromkeys(names) if name]


def unit(names: Iterable[str]) -> str:
    """The unit that all these metrics share; "" if they have no unit or several units, percent without any metric."""
    units = {each.unit for each in metrics_of(names)} or {"%"}
    return units.pop() if len(units) == 1 else ""


def unit_of_difference(names: Iterable[str]) -> str:
    """The unit of differences of scores: points for metrics in percent."""
    names = list(names)
    return "points" if unit(names) == "%" else unit(names)


def quantity(names: Iterable[str]) -> str:
    """The label of an axis of scores: the metric, or `score` for several, with the unit."""
    metrics = metrics_of(names)
    return with_unit(metrics[0].name if len(metrics) == 1 else "score", unit(each.name for each in metrics))


def with_unit(what: str, unit: str) -> str:
    """A quantity with its unit in brackets, if it has one."""
    return f"{what} ({unit})" if unit else what


def higher_is_better(names: Iterable[str]) -> bool:
    """Whether higher scores of these metrics are better.

    Raises:
        ValueError: the metrics differ in this respect.
    """
    metrics = metrics_of(names)
    if len({each.higher_is_better for each in metrics}) > 1:
        raise ValueError(
            f"higher is better for some of {' and '.join(each.name for each in metrics)}, and lower for others, so "
            "they cannot be compared: select one `metric`"
        )
    return all(each.higher_is_better for each in metrics)


def sentence(names: Iterable[str]) -> str:
    """The metrics in words, with the unit and, if lower is better, the direction of each: `accuracy, in percent`."""
    sentences = []
    metrics = metrics_of(names)
    for at, each in enumerate(metrics):
        # Neighbouring metrics with the same unit and direction share one mention of it.
        last = at + 1 == len(metrics) or _measure(metrics[at + 1]) != _measure(each)
        sentences.append(", ".join([each.title, *(_measure(each) if last else ())]))
    return ", ".join(sentences)


def _measure(each: Metric) -> list[str]:
    in_unit = {"": [], "%": ["in percent"]}.get(each.unit, [f"in {each.unit}"])
    return in_unit + ([] if each.higher_is_better else ["lower is better"])
