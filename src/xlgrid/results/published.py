"""Published numbers: reading those of a paper, and comparing entries of an exhibit with them.

A paper's numbers are CSV files in `reference/{paper}/`, one number per row, in the unit of its metric and in the paper's own
words: columns `exhibit`, `model`, `dataset`, `method`, `source`, `target`, `metric`, `value`. A mix is written `mix(en,en-fr)`; an
average over sources or targets is `avg`, over a group of targets `avg:{group}`. Beside these files, `contradictions.csv` lists
numbers that another number of the same paper contradicts: the same columns, with a sentence in `note` instead of `value`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from xlgrid.base.names import unknown
from xlgrid.results.naming import SEVERAL, NamedAxis, Published, PublishedColumn

# Axis of the study -> column of the paper. A group comes last, because an entry that has one has no single target.
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


def read(path: str | Path) -> pd.DataFrame:
    """The numbers of one exhibit of a paper.

    Returns:
        A row per number, indexed by `dataset`, `model`, `method`, `source`, `target`, `metric`, with mixes as the project writes
        them (`en+en-fr`): `value`, `rounding` (half a unit of its last printed place), `contradiction` (a sentence, "" where the
        paper does not contradict the number).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is missing, a value is not a number, or one stands twice.
    """
    path = Path(path)
    numbers = _read(path, "value")
    value = pd.to_numeric(numbers["value"], errors="coerce")
    if value.isna().any():
        wrong = numbers["value"][value.isna()]
        raise ValueError(f"{path}:{wrong.index[0] + 2}: {wrong.iloc[0]!r} is no number: leave out cells without one")
    if numbers.duplicated(KEY).any():
        twice = numbers[numbers.duplicated(KEY)]
        raise ValueError(f"{path}:{twice.index[0] + 2}: a second number for {' '.join(twice[KEY].iloc[0])}")
    decimals = numbers["value"].str.partition(".")[2].str.len()
    numbers = numbers.assign(value=value, rounding=0.5 * 10.0**-decimals).set_index(KEY)
    contradicted = contradictions(path.with_name("contradictions.csv"))
    notes = contradicted[contradicted["exhibit"] == path.stem].groupby(KEY)["note"].agg(" ".join)
    return numbers.assign(contradiction=notes.reindex(numbers.index).fillna(""))[["value", "rounding", "contradiction"]]


def contradictions(path: str | Path) -> pd.DataFrame:
    """A paper's `contradictions.csv`; without rows where there is no such file."""
    return _read(Path(path), "note") if Path(path).exists() else pd.DataFrame(columns=["exhibit", *KEY, "note"])


def _read(path: Path, last: str) -> pd.DataFrame:
    table = read_csv(path, ["exhibit", *KEY, last])
    mix = table["source"].str.extract(r"^mix\((.*)\)$")[0]
    return table.assign(source=mix.str.replace(",", "+").fillna(table["source"]))


def read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A file of published numbers, as text.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it lacks a column.
    """
    try:
        # Languages are called no and nan.
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError as error:
        others = sorted(f"{other.parent.name}/{other.stem}" for other in path.parent.parent.glob("*/*.csv"))
        name = f"{path.parent.name}/{path.stem}"
        raise FileNotFoundError(f"no published numbers in {path}: {unknown('file', name, others)}") from error
    if missing := [name for name in columns if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(missing)}: it should have {', '.join(columns)}")
    return table


def beside(entries: pd.DataFrame, keys: Sequence[str], cells: pd.DataFrame, published: Published) -> pd.DataFrame:
    """The entries of an exhibit with the paper's numbers.

    An entry's published number is the one with the entry's task, encoder, method, source, target or group, and metric, in
    the paper's words; an axis on which the cells of the entry differ is `avg`.

    Args:
        entries: `keys`, `mean`, `sd`, `n_seeds`, `n_seeds_expected`.
        keys: the columns that name an entry.
        cells: the cells behind the entries: the identity columns, `keys`, and `group` where columns are groups.
        published: the file of the paper's numbers, and the paper's names.

    Returns:
        One row per entry, in the same order: `keys`, `mean`, `sd`, `n_seeds`, `n_seeds_expected`, `published`, `difference` (the
        study's minus the paper's), `margin`, `verdict`, `contradiction`. `margin` is what chance allows of the difference: half of
        the 95 % interval of the difference of two means, over our n and the paper's seeds, if the paper's runs spread like ours (t
        with n - 1 degrees of freedom), and the rounding of the printed number. `verdict` is "within" or "beyond" it, or "" below
        two seeds or without a published number.

    Raises:
        FileNotFoundError: there are no such published numbers.
        ValueError: they are damaged, or none of the entries has one.
    """
    from scipy.stats import t as student

    reference = read(published.path)
    named = _shared(entries, keys, cells, reference)
    wanted = pd.DataFrame([_translated(entry, published) for entry in named], columns=KEY)
    numbers = reference.reindex(pd.MultiIndex.from_frame(wanted))
    # The metric of a task with several is not known as long as there is no result at all.
    if numbers["value"].isna().all() and (wanted["metric"] != "").all():
        raise ValueError(
            f"{published.path} has no number for any entry of the exhibit: {_why_none(wanted, reference)}. `names` says what "
            "the paper calls the names of the study"
        )
    entries = entries[[*keys, "mean", "sd", "n_seeds", "n_seeds_expected"]]
    n = entries["n_seeds"]
    t = student.ppf(0.975, n.clip(lower=2) - 1)
    value, rounding = (pd.Series(numbers[name].to_numpy(), entries.index) for name in ("value", "rounding"))
    difference = entries["mean"] - value
    seeds = pd.Series([_seeds(entry, published) for entry in named], entries.index)
    # Without a standard deviation, below two seeds, there is no margin.
    margin = t * entries["sd"] * (1 / n.clip(lower=1) + 1 / seeds) ** 0.5 + rounding
    decided = (difference.abs() <= margin).map({True: "within", False: "beyond"})
    return entries.assign(
        published=value,
        difference=difference,
        margin=margin,
        verdict=decided.where(difference.notna() & margin.notna(), ""),
        contradiction=numbers["contradiction"].fillna("").to_numpy(),
    )


def _shared(
    entries: pd.DataFrame, keys: Sequence[str], cells: pd.DataFrame, reference: pd.DataFrame
) -> list[dict[NamedAxis, str]]:
    """The values that the cells of each entry share, in the words of the study."""
    axes = [axis for axis in COLUMNS if axis in cells]
    # Renamed, because a column may both name an entry and be an axis.
    groups = cells[axes].groupby([cells[name].rename(f"of {name}") for name in keys], sort=False)
    shared = groups.first().astype(str).where(groups.nunique() == 1, SEVERAL)
    shared = shared.loc[pd.MultiIndex.from_frame(entries[list(keys)])]
    metrics = reference.index.unique("metric")
    if len(metrics) == 1:
        # As long as no cell of a task has a result, its metric is not known.
        shared["metric"] = shared["metric"].where(shared["metric"] != "", metrics[0])
    return [dict(zip(axes, values, strict=True)) for values in shared.itertuples(index=False)]


def _seeds(entry: Mapping[NamedAxis, str], published: Published) -> int:
    """The number of seeds behind the paper's number: the smallest that the axes of an entry name."""
    of_axes = [seeds for axis, each in published.seeds_of.items() if (seeds := each.get(entry.get(axis, "")))]
    return min(of_axes, default=published.seeds)


def _translated(entry: Mapping[NamedAxis, str], published: Published) -> dict[PublishedColumn, str]:
    """The paper's words for an entry."""
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
    return "each of its words stands there, but never together"
