"""Read the published numbers of a paper, and compare entries of an exhibit with them.

The numbers of a paper are in CSV files in `reference/{paper}/`, with one number per row, in the unit of its metric and
with the names of the paper. The columns are `exhibit`, `model`, `dataset`, `method`, `source`, `target`, `metric` and
`value`. A mix is written `mix(en,en-fr)`; an average over sources or targets is `avg`, and an average over a group of
targets is `avg:{group}`. The file `contradictions.csv` lists numbers that another number of the same paper contradicts.
It has the same columns, with a sentence in `note` instead of `value`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from xlgrid.base.names import unknown
from xlgrid.results.naming import SEVERAL, NamedAxis, Published, PublishedColumn

# Axis of the study -> column of the paper. The group comes last, because an entry with a group has no single target.
COLUMNS: dict[NamedAxis, PublishedColumn] = {
    "task": "dataset",
    "encoder": "model",
    "method": "method",
    "source": "source",
    "target": "target",
    "metric": "metric",
    "group": "target",
}
KEY: list[str] = list(dict.fromkeys(COLUMNS.values()))
# The columns of a comparison: for the entry of the study, and for the number of the paper.
STATISTICS = ("mean", "sd", "n_seeds", "n_seeds_expected")
COMPARED = ("published", "difference", "margin", "verdict", "contradiction")
# The decimals of numbers that are computed from published numbers. More decimals would show the rounding errors of
# binary fractions, as in 71.30000000000001, and could change a verdict exactly at the margin.
DECIMALS = 6


def read(path: str | Path) -> pd.DataFrame:
    """The numbers of one exhibit of a paper.

    Returns:
        A row per number, indexed by `dataset`, `model`, `method`, `source`, `target`, `metric`, with mixes as in xlgrid
        (`en+en-fr`). The columns are `value`, `rounding` (half a unit of the last printed digit) and `contradiction` (a
        sentence; "" if the paper does not contradict the number).

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: a column is missing, a value is not a number, or two rows have the same keys.
    """
    path = Path(path)
    numbers = _read(path, "value")
    value = pd.to_numeric(numbers["value"], errors="coerce")
    if value.isna().any():
        wrong = numbers["value"][value.isna()]
        raise ValueError(f"{path}:{wrong.index[0] + 2}: {wrong.iloc[0]!r} is not a number: leave out cells without one")
    if numbers.duplicated(KEY).any():
        twice = numbers[numbers.duplicated(KEY)]
        raise ValueError(f"{path}:{twice.index[0] + 2}: a second number for {' '.join(twice[KEY].iloc[0])}")
    decimals = numbers["value"].str.partition(".")[2].str.len()
    numbers = numbers.assign(value=value, rounding=0.5 * 10.0**-decimals).set_index(KEY)
    contradicted = contradictions(path.with_name("contradictions.csv"))
    notes = contradicted[contradicted["exhibit"] == path.stem].groupby(KEY)["note"].agg(" ".join)
    return numbers.assign(contradiction=notes.reindex(numbers.index).fillna(""))[["value", "rounding", "contradiction"]]


def contradictions(path: str | Path) -> pd.DataFrame:
    """The `contradictions.csv` of a paper; without rows if the paper has no such file."""
    return _read(Path(path), "note") if Path(path).exists() else pd.DataFrame(columns=["exhibit", *KEY, "note"])


def _read(path: Path, last: str) -> pd.DataFrame:
    table = read_csv(path, ["exhibit", *KEY, last])
    mix = table["source"].str.extract(r"^mix\((.*)\)$")[0]
    return table.assign(source=mix.str.replace(",", "+").fillna(table["source"]))


def read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The rows of a file of published numbers, with all values as text.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file lacks a column.
    """
    try:
        # Some codes of languages are `no` and `nan`, which must stay text.
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError as error:
        others = sorted(f"{other.parent.name}/{other.stem}" for other in path.parent.parent.glob("*/*.csv"))
        name = f"{path.parent.name}/{path.stem}"
        raise FileNotFoundError(f"no published numbers in {path}: {unknown('file', name, others)}") from error
    if missing := [name for name in columns if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(missing)}: it must have {', '.join(columns)}")
    return table


def with_published(
    entries: pd.DataFrame, keys: Sequence[str], cells: pd.DataFrame, published: Published
) -> pd.DataFrame:
    """The entries of an exhibit with the numbers of the paper.

    The published number of an entry has the entry's task, encoder, method, source, target or group, and metric, under
    the paper's names. If the cells of the entry differ in an axis, the name on this axis is `avg`. If an entry averages
    several metrics and the paper has only the numbers of the single metrics, their mean is used.

    Args:
        entries: the columns `keys`, `mean`, `sd`, `n_seeds`, `n_seeds_expected`.
        keys: the columns that name an entry.
        cells: the cells behind the entries, with the identity columns, `keys`, and `group` if columns are groups.
        published: the file of the paper's numbers, and the paper's names.

    Returns:
        One row per entry, in the same order, with the columns `keys`, `mean`, `sd`, `n_seeds`, `n_seeds_expected`,
        `published`, `difference` (ours minus the paper's), `margin`, `verdict`, `contradiction`. `margin` is the
        difference that chance explains: half of the 95 % interval of the difference of two means, over our n and the
        paper's seeds, if the paper's runs vary like ours (t with n - 1 degrees of freedom), plus the rounding of the
        printed number. `verdict` is "within" or "beyond" the margin, or "" below two seeds or without a published
        number.

    Raises:
        FileNotFoundError: the file of published numbers does not exist.
        ValueError: the file is damaged, or has no number for any entry.
    """
    from scipy.stats import t as student

    reference = read(published.path)
    named = _shared(entries, keys, cells)
    wanted = pd.DataFrame([_translated(entry, published) for entry in named], columns=KEY)
    numbers = reference.reindex(pd.MultiIndex.from_frame(wanted)).reset_index(drop=True)
    is_missing = numbers["value"].isna()
    for at, words in enumerate(_of_each_metric(entries, keys, cells, named, published)):
        if not words or not is_missing[at]:
            continue
        of_metrics = reference.reindex(pd.MultiIndex.from_frame(pd.DataFrame(words, columns=KEY)))
        if of_metrics["value"].notna().all():
            mean = of_metrics[["value", "rounding"]].mean().round(DECIMALS)
            numbers.loc[at] = [*mean, " ".join(filter(None, of_metrics["contradiction"]))]
    if numbers["value"].isna().all():
        raise ValueError(
            f"{published.path} has no number for any entry of the exhibit: {_why_none(wanted, reference)}. Write the "
            "paper's names for the names of the study under `names`"
        )
    entries = entries[[*keys, *STATISTICS]]
    n = entries["n_seeds"]
    t = student.ppf(0.975, n.clip(lower=2) - 1)
    value, rounding = (pd.Series(numbers[name].to_numpy(), entries.index) for name in ("value", "rounding"))
    difference = (entries["mean"] - value).round(DECIMALS)
    seeds = pd.Series([_seeds(entry, published) for entry in named], entries.index)
    # Below two seeds, there is no standard deviation and no margin.
    margin = (t * entries["sd"] * (1 / n.clip(lower=1) + 1 / seeds) ** 0.5 + rounding).round(DECIMALS)
    decided = (difference.abs() <= margin).map({True: "within", False: "beyond"})
    return entries.assign(
        published=value,
        difference=difference,
        margin=margin,
        verdict=decided.where(difference.notna() & margin.notna(), ""),
        contradiction=numbers["contradiction"].fillna("").to_numpy(),
    )


def without_cells(
    entries: pd.DataFrame,
    rows: Sequence[str],
    axes: Sequence[str],
    cells: pd.DataFrame,
    published: Published,
) -> pd.DataFrame:
    """The rows of a paper's table without cells of the study: published numbers in the columns of an exhibit, for
    models, methods or sources that its entries do not have.

    Args:
        entries, cells, published: see `with_published`.
        rows, axes: the keys of the entries that name a row, and that name a column.

    Returns:
        The columns of `with_published`, without means. Rows have the names of the paper, with the method after the
        first name if no key is the method.
    """
    reference = read(published.path)
    keys = [*rows, *axes]
    named = _shared(entries, keys, cells)
    wanted = [_translated(entry, published) for entry in named]
    several = _of_each_metric(entries, keys, cells, named, published)
    # The possible names of the number of a column: a single name, or a name for each metric.
    ways: dict[tuple[Any, ...], dict[tuple[tuple[str, ...], ...], None]] = {}
    for column, direct, each in zip(entries[list(axes)].itertuples(index=False), wanted, several, strict=True):
        for wanted_words in ([direct], each):
            way = tuple((word["dataset"], word["target"], word["metric"]) for word in wanted_words)
            ways.setdefault(tuple(column), {})[way] = None
    ours = {(word["model"], word["method"], word["source"]) for word in wanted}
    published_rows = dict.fromkeys((model, method, source) for _, model, method, source, _, _ in reference.index)
    own_rows = {tuple(map(str, row)) for row in entries[list(rows)].itertuples(index=False)}
    lines = []
    for model, method, source in published_rows:
        words = {"encoder": model, "method": method, "source": source}
        names = [words.get(key, "") for key in rows]
        names[0] = (names[0] or model) + ("" if "method" in rows else f", {method}")
        names[0] += " (published)" if tuple(names) in own_rows else ""
        for place, ways_of_place in ways.items() if (model, method, source) not in ours else ():
            for numbers_wanted in filter(None, ways_of_place):
                index = [(dataset, model, method, source, target, metric) for dataset, target, metric in numbers_wanted]
                if all(key in reference.index for key in index):
                    numbers = reference.loc[index]
                    note = " ".join(filter(None, numbers["contradiction"]))
                    lines.append([*names, *place, round(numbers["value"].mean(), DECIMALS), note])
                    break
    table = pd.DataFrame(lines, columns=[*keys, "published", "contradiction"])
    return table.assign(n_seeds=0, n_seeds_expected=0, verdict="").reindex(columns=[*keys, *STATISTICS, *COMPARED])


def _of_each_metric(
    entries: pd.DataFrame,
    keys: Sequence[str],
    cells: pd.DataFrame,
    named: Sequence[Mapping[NamedAxis, str]],
    published: Published,
) -> list[list[dict[PublishedColumn, str]]]:
    """For each entry that averages over several metrics, the paper's names for each metric; empty for other entries."""
    metrics = cells.groupby(list(keys), sort=False)["metric"].unique()
    of_entries = metrics.loc[pd.MultiIndex.from_frame(entries[list(keys)])]
    return [
        [_translated({**entry, "metric": metric}, published) for metric in of_entry]
        if entry["metric"] == SEVERAL
        else []
        for entry, of_entry in zip(named, of_entries, strict=True)
    ]


def _shared(entries: pd.DataFrame, keys: Sequence[str], cells: pd.DataFrame) -> list[dict[NamedAxis, str]]:
    """The values that the cells of each entry share, under the names of the study."""
    axes = [axis for axis in COLUMNS if axis in cells]
    # The keys are renamed, because a column may both name an entry and be an axis.
    groups = cells[axes].groupby([cells[name].rename(f"of {name}") for name in keys], sort=False)
    shared = groups.first().astype(str).where(groups.nunique() == 1, SEVERAL)
    shared = shared.loc[pd.MultiIndex.from_frame(entries[list(keys)])]
    return [dict(zip(axes, values, strict=True)) for values in shared.itertuples(index=False)]


def _seeds(entry: Mapping[NamedAxis, str], published: Published) -> int:
    """The number of seeds behind a number of the paper: the smallest number for the names of the entry."""
    of_axes = [seeds for axis, each in published.seeds_of.items() if (seeds := each.get(entry.get(axis, "")))]
    return min(of_axes, default=published.seeds)


def _translated(entry: Mapping[NamedAxis, str], published: Published) -> dict[PublishedColumn, str]:
    """The paper's names for an entry."""
    words: dict[PublishedColumn, str] = {}
    wide: dict[PublishedColumn, str] = {}
    for axis, value in entry.items():
        name = published.names.get(axis, {}).get(value, f"{SEVERAL}:{value}" if axis == "group" else value)
        words[COLUMNS[axis]] = name if isinstance(name, str) else value
        wide |= {} if isinstance(name, str) else name
    return words | wide


def _why_none(wanted: pd.DataFrame, reference: pd.DataFrame) -> str:
    for column in KEY:
        known = list(reference.index.unique(column))
        if not set(wanted[column]) & set(known):
            return unknown(column, wanted[column].iloc[0], known)
    return "the file has each of its names, but never together"
