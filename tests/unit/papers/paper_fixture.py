"""What tests hold of the study of a paper: its published numbers, the effects of its claims, and the page about it."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from xlgrid.exhibits import Benchmark, Table
from xlgrid.products.evaluate import Cell
from xlgrid.results.claims import Term
from xlgrid.study.schema import Study

ROOT = Path(__file__).parents[3]


def compared(study: Study, planned: Sequence[Cell], exhibit_name: str, folder: Path) -> pd.DataFrame:
    """The comparison of an exhibit with published numbers, if each planned cell has a score of 50 in each of its metrics."""
    exhibit = study.exhibit(exhibit_name)
    assert isinstance(exhibit, Table | Benchmark)
    rows = [
        cell._asdict() | study.facts[cell.encoder] | {"metric": metric, "score": 50.0, "n": 100}
        for cell in exhibit.cells(planned, study.facts)
        for metric in study.metrics[cell.task][: None if exhibit.names_metric else 1]
    ]
    frame = pd.DataFrame(rows).drop(columns="study")
    exhibit.write_published(exhibit_name, folder, exhibit.of_scores(study, frame))
    return pd.read_csv(folder / f"{exhibit_name}-published.csv", keep_default_na=False)


def effect(terms: Sequence[Term], metric: str | None, study: Study, score: Callable[[Cell, str], float]) -> float:
    """The effect of a claim in a paper's numbers, for the first seed.

    Args:
        score: the paper's number for a cell and a metric.

    Raises:
        KeyError: the paper prints no number for one of the cells.
    """
    seed = terms[0].cell.seed
    return sum(
        term.weight * score(term.cell, metric or study.metrics[term.cell.task][0])
        for term in terms
        if term.cell.seed == seed
    )


def listed_exhibits(page: str) -> dict[str, int]:
    """Name -> number of cells, of the exhibits in the section "Exhibits" of a page."""
    section = (ROOT / "docs" / "papers" / page).read_text().partition("## Exhibits")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w[\w-]*)` +\| (.*) \|$", section, re.MULTILINE)
    return {name: int(row.rpartition("|")[2].replace(",", "")) for name, row in rows}


def switches(page: str) -> list[tuple[str, str]]:
    """The switches of the open choices of a page, each as the place of a key and the key."""
    named = re.findall(r"[|,] `(\w+): ([\w., ]+)(?:: [^`]*)?`", (ROOT / "docs" / "papers" / page).read_text())
    return [(place, key) for place, keys in named for key in keys.split(", ")]
