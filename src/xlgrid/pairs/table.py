"""A table of pairs as a file: a CSV with the columns `source`, `target` and `value`."""

import csv
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from xlgrid.base.names import missing_column
from xlgrid.base.settings import LocalPath, Strict
from xlgrid.languages import Language, language
from xlgrid.languages.iso import standard
from xlgrid.languages.sources import Source

COLUMNS = ("source", "target", "value")
# How tables write that a pair has no value.
MISSING = ("", "na", "nan")


class PairsFile(Strict):
    """A table of values of pairs of languages, such as distances.

    The file is a CSV with the columns `source`, `target` and `value`, and perhaps others. An empty value, `NA` or `nan`
    is a missing one. Languages have codes of ISO 639 with two or three letters, or the codes of the study. Rows about
    other languages than those of the study do no harm.
    """

    file: LocalPath = Field(description="the CSV, as a path relative to the project's folder")
    symmetric: bool = Field(
        False, description="whether each row holds for both directions; false: a row holds from source to target only"
    )
    quantity: str = Field("", description="what the values are, for the labels of axes; absent: the table's name")
    nearest: Literal["lowest", "highest"] = Field(
        "lowest",
        description="the values of the sources that are nearest to a target: the lowest, as for distances, or the "
        "highest, as for similarities",
    )


def _of_path(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


# What a study may write: a path, or the keys of `PairsFile`.
AnyPairs = Annotated[PairsFile, BeforeValidator(_of_path, json_schema_input_type=str | PairsFile)]


def read(entry: PairsFile, languages: Mapping[str, Language]) -> dict[tuple[str, str], float]:
    """The values of a file, by source and target, with the codes of the study. Pairs without a value are missing.

    Args:
        languages: code -> language, for the languages of the study.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: a column is missing, a code is not that of a language, a value is not a number, or two rows about the
            same pair have different values. The message has the line.
    """
    path, named = Path(entry.file), _naming(languages)
    if not path.is_file():
        raise FileNotFoundError(
            f"no table of pairs in {path}: write one with the columns {', '.join(COLUMNS)}, or by `xlgrid distances`"
        )
    found: dict[tuple[str, str], tuple[float | None, int]] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        for column in COLUMNS:
            if column not in (rows.fieldnames or ()):
                raise ValueError(f"{path}: {missing_column(column, rows.fieldnames or ())}")
        for row in rows:
            where = f"{path}:{rows.line_num}"
            try:
                source, target = named(row["source"] or ""), named(row["target"] or "")
                value = _number(row["value"] or "")
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            for pair in ((source, target), (target, source))[: 1 + entry.symmetric]:
                before, line = found.setdefault(pair, (value, rows.line_num))
                if before != value:
                    both = ", and `symmetric` takes both directions as one" * entry.symmetric
                    raise ValueError(
                        f"{where}: {' '.join(pair)} has {_shown(value)} here and {_shown(before)} in line {line}{both}: "
                        "leave out one of the two"
                    )
    return {pair: value for pair, (value, _) in found.items() if value is not None}


def is_one_way(values: Mapping[tuple[str, str], float]) -> bool:
    """Whether no pair of two languages has values in both directions, so that the file may be meant as symmetric."""
    pairs = [(source, target) for source, target in values if source != target]
    return bool(pairs) and not any((target, source) in values for source, target in pairs)


def _naming(languages: Mapping[str, Language]) -> Callable[[str], str]:
    """A function from a language, pair or mix of a file to its name in the study: `eng` is `en` if the study has `en`."""
    standards = {code: standard(code) for code in languages}
    codes = {same: code for code, known in standards.items() if known for same in known.codes}
    codes |= {code: code for code in languages}

    def of_code(code: str) -> str:
        return codes.get(code) or language(code, languages).code

    @cache
    def named(text: str) -> str:
        source = Source(text.strip())
        return "+".join("-".join(map(of_code, part.languages)) for part in source.parts) or str(source)

    return named


def _number(text: str) -> float | None:
    if text.strip().lower() in MISSING:
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("inf")
    if not isfinite(number):
        raise ValueError(f"value {text!r} is not a number: write one, or leave it empty if it is missing")
    return number


def _shown(value: float | None) -> str:
    return "no value" if value is None else f"the value {value:.12g}"
