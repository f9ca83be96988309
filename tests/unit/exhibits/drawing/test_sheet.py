"""Printing: numbers, escapes, and labels of rows."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import STATISTICS, three_keys
from hypothesis import given, settings
from hypothesis import strategies as st

from xlgrid.exhibits.drawing import sheet as printing


def parse(markdown: str) -> list[list[str]]:
    """The cells of a pipe table, without its rule."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    split = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    plain = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in line] for line in split]
    return [plain[0], *plain[2:]]


@pytest.mark.parametrize(("value", "text"), [(-0.04, "0.0"), (-1.26, "−1.3"), (87.25, "87.2"), (100, "100.0")])
def test_numbers(value: float, text: str) -> None:
    assert printing.number(value, 1) == text


@settings(max_examples=50)
@given(st.text(alphabet="ab|\\*`<_ é中").map(lambda name: " ".join(name.split())).filter(bool))
def test_any_name_survives_markdown(name: str) -> None:
    statistics = {"mean": 1.0, "sd": 0.5, "min": 0.5, "max": 1.5, "n_seeds": 2, "n_seeds_expected": 2}
    entry = {"method": name, "column": "en", **statistics, "n_cells": 2, "n_cells_expected": 2}
    sheet = printing.sheet(
        pd.DataFrame([entry]), title="T", rows=["method"], order={"method": [name], "column": ["en"]}
    )
    assert parse(printing.markdown(sheet))[1:] == [[name, "1.0 ± 0.5"]]


@pytest.mark.parametrize(
    ("complete", "differs"), [((2, 2), False), ((1, 2), True), ((1, 1), False)], ids=["all", "some", "none"]
)
def test_a_note_warns_where_some_entries_are_complete_and_others_not(complete: tuple[int, int], differs: bool) -> None:
    counts = [STATISTICS | {"n_seeds": seeds, "n_cells": seeds, "n_cells_expected": 2} for seeds in complete]
    entries = [{"method": name, "column": "en"} | each for name, each in zip("ab", counts, strict=True)]
    order = {"method": ["a", "b"], "column": ["en"]}
    text = printing.markdown(printing.sheet(pd.DataFrame(entries), title="T", rows=["method"], order=order))
    assert ("Coverage differs between entries" in text) is differs
    # With one cell for each seed, the number of seeds says all.
    assert ("† (1/2 seeds)" in text) is (1 in complete)


def test_a_label_stands_once_for_neighbours_that_agree_in_all_keys_before_it() -> None:
    table = ElementTree.fromstring(printing.html(three_keys()))
    labels = [[(key.text, key.get("rowspan")) for key in row.findall("th")] for row in table.findall("tbody/tr")]
    assert labels == [
        [("xnli", "3"), ("en", "2"), ("adapters", None)],
        [("bitfit", None)],
        [("fr", "1"), ("adapters", None)],
        [("paws", "1"), ("fr", "1"), ("adapters", None)],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60, "60"),
        (9500, "9500"),
        (12345, "12345"),
        (np.int64(125000), "125k"),
        (12500.0, "12.5k"),
        (1500000, "1.5M"),
        (1_250_000, "1250k"),
        (0.5, "0.5"),
        ("125000", "125000"),
    ],
)
def test_a_round_number_of_five_digits_is_written_in_thousands(value: Any, text: str) -> None:
    assert printing.label(value) == text


@pytest.mark.parametrize(
    ("ways", "note"),
    [
        (["tok:zh", "tok:zh"], None),
        (["tok:zh", None], None),
        (
            ["tok:zh", "tok:13a"],
            r"accuracy is computed in 2 ways, .*: tok:zh \(target en-zh\); tok:13a \(target en-de\)\.",
        ),
    ],
)
def test_a_table_says_that_its_cells_are_scored_in_several_ways(ways: list[str | None], note: str | None) -> None:
    axes = dict.fromkeys(("task", "encoder", "method", "source"), "a")
    cells = pd.DataFrame(
        [
            {**axes, "target": target, "seed": seed, "metric": "accuracy", "score": 1.0, "implementation": way}
            for target, way in zip(("en-zh", "en-de"), ways, strict=True)
            for seed in (1, 2)
        ]
    )
    notes = printing.about(cells)
    if note is None:
        assert not any("ways" in sentence for sentence in notes)
    else:
        assert any(re.search(note, sentence) for sentence in notes), notes
