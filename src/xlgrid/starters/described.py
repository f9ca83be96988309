"""Looks at data that exist, and finds the values of a study on them, with what was guessed, why, and what else was possible."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.names import missing_column
from xlgrid.data.published import HUB
from xlgrid.heads.schemes import scheme_of
from xlgrid.languages import language
from xlgrid.methods import make
from xlgrid.starters.guess import Guess, columns_of, guess, labels_of
from xlgrid.starters.look import Place, in_files, on_hub, rows
from xlgrid.tasks import task

if TYPE_CHECKING:
    import pyarrow as pa

ENCODER = "FacebookAI/xlm-roberta-base"
# Training examples -> passes over them, so that small sets have enough steps.
_EPOCHS = ((1_000, 20), (10_000, 10), (50_000, 5))
# The share of the most frequent label, as a multiple of its share among equally frequent labels, above which macro-F1 is named.
_UNEVEN = 1.5


class Wishes(NamedTuple):
    """What a user says about a study on data. What is None or empty is guessed.

    Attributes:
        task: the data set on the Hub; or
        data: the pattern of local files.
    """

    task: str | None = None
    data: str | None = None
    encoder: str | None = None
    languages: Sequence[str] = ()
    head: str | None = None
    inputs: Sequence[str] = ()
    target: str | None = None
    labels: Sequence[str] = ()

    @property
    def first(self) -> str:
        """The first option that is given."""
        return next(name for name, value in self._asdict().items() if value)


def study_values(wishes: Wishes) -> dict[str, Any]:
    """The values of the template `described.yaml.j2`.

    Raises:
        OSError, ValueError: the data cannot be read, or leave something open; the message names the option that decides.
    """
    if (wishes.task is None) == (wishes.data is None):
        raise ValueError("--task names the data on the Hub, and --data local files: give one of the two")
    of_encoder = _encoder(wishes.encoder or ENCODER)
    wanted = [*dict.fromkeys(language(code).code for code in wishes.languages)] or None
    place = on_hub(wishes.task, wanted) if wishes.task else in_files(str(wishes.data), wanted)
    trained = [code for code in place.names if place.has(code, "train")]
    if not trained:
        there = ", ".join(sorted({name for _, name in place.present}))
        raise ValueError(
            f"{place.source} has no training set in {', '.join(place.names)} (its splits: {there}): add a language that has "
            "one to --languages, or describe another set to train on, by `train` and `dev` in `data` or by `trained_on` of a "
            "task, as the study `benchmarks` does"
        )
    read = cache(partial(rows, place, "parse" if wishes.head == "parse" else "token"))
    sample = read(trained[0], "train")
    found, also = guess(sample, place.source, wishes.head, wishes.inputs, wishes.target)
    labels, translated, labels_from = _labels(place, read, sample, found, wishes.labels)

    def count(code: str, split: str) -> int | None:
        """The number of rows, if it is known."""
        if "local" in place.data:
            return read(code, split).num_rows
        return place.stated(code, split)

    counts = {code: count(code, "train") for code in trained}
    source = max(counts, key=lambda code: (counts[code] or 0, code == "en"))
    splits, remark = _splits(place, source)
    place = place._replace(splits=splits)
    if not (targets := [code for code in place.names if place.has(code, "test")]):
        raise ValueError(
            f"{place.source} has a training set and nothing to evaluate on in {', '.join(place.names)}: divide it into files "
            "for train, dev and test, with {split} in the pattern"
        )
    uneven = _uneven(sample, found, labels)
    names = ", ".join(language(code).name for code in place.names)
    most = sorted(counts, key=lambda code: -(counts[code] or 0))[:3]
    title = place.source.rpartition("/")[2] if wishes.task else Path(place.source.partition("{")[0] or "data").name
    columns = {"inputs": found.inputs, "choices": [*found.choices], "target": found.target}
    return of_encoder | {
        "place": place,
        "title": title,
        "task": _as_name(title),
        "languages": [*place.names],
        "language_names": names if len(place.names) < 6 else f"{len(place.names)} languages",
        "data": place.entry() | ({"labels": translated} if translated else {}),
        "found": found,
        "also": also,
        "columns": {key: value for key, value in columns.items() if value},
        "labels": labels,
        "labels_from": labels_from,
        "metric": "macro-f1" if uneven else task(found.head, {**columns, "labels": labels}).metrics[0],
        "uneven": uneven,
        "most": ", ".join(f"{code}: {counts[code]:,}" for code in most) if counts[source] and len(counts) > 1 else "",
        "source": source,
        "targets": targets,
        "examples": {split: number for split in splits if wishes.task and (number := count(source, split))},
        "remark": remark,
        "epochs": next((epochs for most, epochs in _EPOCHS if (counts[source] or math.inf) <= most), 3),
    }


def _uneven(table: "pa.Table", found: Guess, labels: Sequence[str]) -> str:
    """A sentence if one label is so frequent that accuracy says little; "" otherwise, and for other heads."""
    if found.head != "sequence":
        return ""
    column = columns_of(table)[found.target]
    (label, count), *_ = Counter(column.values).most_common(1)
    name = column.classes[label] if column.classes and isinstance(label, int) else label
    share = count / len(column.values)
    return f"{share:.0%} of the examples have the label {name}" if share * len(labels) > _UNEVEN else ""


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "mine"


def _labels(
    place: Place, read: "Callable[[str, str], pa.Table]", sample: "pa.Table", found: Guess, given: Sequence[str]
) -> tuple[list[str], dict[str, str], str]:
    """The labels of the task, those of the data that have other names there, and where they are from."""
    if found.head in ("span", "regression") or found.labels:
        return [*found.labels], {}, "A column of the data for each label"
    columns = [columns_of(sample)[found.target]]
    if not (given or columns[0].classes):
        # Without names of labels, all that occur have to be seen.
        pairs = [(code, split) for code in place.names for split in place.splits if place.has(code, split)]
        columns = [_column(read(*pair), found.target, f"{place.source} ({', '.join(pair)})") for pair in pairs]
    labels, translated, stated = labels_of(columns, found, given, place.source)
    scheme = scheme_of(tuple(labels)) if found.head == "token" else None
    return labels, translated, f"{stated}, which follow {scheme.description}" if scheme else stated


def _column(table: "pa.Table", name: str, where: str) -> Any:
    """A column of one of several files.

    Raises:
        ValueError: the file has no such column.
    """
    if name not in table.column_names:
        raise ValueError(
            f"{where} has no column {name!r}, as other files have: {missing_column(name, table.column_names)}. Files without a "
            "header have their first row as names: put a header into each, or write a study with `columns` in `data`"
        )
    return columns_of(table)[name]


def _splits(place: Place, source: str) -> tuple[dict[str, str], str]:
    """The splits that the study uses, and a remark if one is missing: no test set may choose weights."""
    splits, train, dev = place.splits, place.splits["train"], place.splits.get("dev")
    if dev and "test" not in splits:
        why = f"There is no test set: cells are evaluated on `{dev}`, so runs choose no weights on it: they keep their last weights."
        return splits | {"dev": train, "test": dev}, why
    if not place.has(source, "dev"):
        why = "There is no dev set: runs keep their last weights, and the curve shows the score on the training set."
        return splits | {"dev": train}, why
    return splits, ""


def _encoder(place: str) -> dict[str, Any]:
    """The values about an encoder, and whether BitFit suits it."""
    folder, config = Path(place).expanduser(), dict(HUB.get(place, {}))
    if folder.is_dir():
        if not (file := folder / "config.json").is_file():
            raise ValueError(
                f"--encoder {place}: there is no config.json in the folder: name one in the layout of the Hub"
            )
        config = json.loads(file.read_text("utf-8"))
    elif not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", place):
        raise ValueError(f"--encoder {place}: there is no such folder, and a repository on the Hub is owner/name")
    entry = {"path" if folder.is_dir() else "hub": place}
    return {"encoder": _as_name(folder.name), "encoder_entry": entry, "bitfit": not make("bitfit", {}).misfit(config)}
