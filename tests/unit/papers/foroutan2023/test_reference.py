"""The published numbers, and the project's own tables fed with them: published cells give the published averages.

No training: the per-target numbers of tables 13 to 16 become one seed of results, and the tables made of them must be tables 3
and 4, wherever the paper agrees with itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from shipped import PUBLISHED

from xlgrid.exhibits import Table
from xlgrid.results import published as compare
from xlgrid.results.naming import Published
from xlgrid.study.schema import Study

FOLDER = PUBLISHED["foroutan2023"]
# Table of targets: the table of its averages, how many averages those are, and for how many no target is absent.
TABLES = {
    "table13": ("table03", 192, 176),
    "table14": ("table04", 48, 48),
    "table15": ("table03", 192, 167),
    "table16": ("table04", 48, 48),
}
ROWS = {"table01": 100, "table02": 135, "table03": 384, "table04": 96, "table05": 15, "table06": 8, "table07": 100}
ROWS |= {"table08": 135, "table09": 48, "table11": 12, "table12": 6, "table13": 1561, "table14": 400, "table15": 1518}
ROWS |= {"table16": 400}
# The cells' rounding (half of 0.01), the average's (likewise), and 0.01 where the paper cuts off instead.
TOLERANCE = 0.0201

CELL = ["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n"]
STUDY = Study(
    name="published",
    title="published",
    languages=["en", "fr", "fa", "de", "ar", "es", "zh", "ru", "it"],
    encoders={"mbert": {"hub": "a/b"}, "xlmr-base": {"hub": "a/c"}},
    tasks={"ruletaker-d0": {"kind": "ruletaker"}},
    methods={"bitfit": {}},
    grids={
        "main": {
            "task": ["ruletaker-d0"],
            "encoder": ["mbert"],
            "method": ["bitfit"],
            "source": ["en+en-fr"],
            "target": ["mono", "en-X", "X-en"],
            "seed": [1],
        }
    },
)
TARGETS = [code for group in STUDY.grids["main"].target for code in STUDY.expand(group, STUDY.grids["main"])]


def cells(table: str) -> pd.DataFrame:
    """A published table of single targets as the records of one seed; a cell that it lacks is planned and has no score."""
    numbers = compare.read(FOLDER / f"{table}.csv")
    runs = numbers.index.droplevel(["target", "metric"]).unique()
    rows = []
    for (task, encoder, method, source), target in product(runs, TARGETS):
        key = (task, encoder, method, source, target, "accuracy")
        rows.append((*key[:5], 1, "accuracy", numbers["value"].get(key, float("nan")), 1000))
    return pd.DataFrame(rows, columns=CELL)


def rendered(
    frame: pd.DataFrame, table: str, rows: tuple[Any, ...], groups: tuple[str, ...], names: dict[Any, Any] | None = None
) -> pd.DataFrame:
    """The comparison of an exhibit of these cells with a published table; without groups its columns are targets."""
    exhibit = Table(
        title="t",
        rows=rows,
        columns="group" if groups else "target",
        groups=groups,
        published=Published(file=f"foroutan2023/{table}", names=names or {}),
    )
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.chdir(FOLDER.parents[1])
        exhibit.write_published("t", folder, exhibit.of_scores(STUDY, frame))
        comparison = pd.read_csv(Path(folder) / "t-published.csv", dtype={"contradiction": str})
    return comparison.fillna({"contradiction": ""})


@cache
def averages(table: str) -> pd.DataFrame:
    """The comparison of a table made of published cells with the table of published averages."""
    return rendered(cells(table), TABLES[table][0], ("encoder", "task", "source", "method"), ("mono", "en-X", "X-en"))


def test_the_files_are_whole() -> None:
    assert {name: len(compare.read(FOLDER / f"{name}.csv")) for name in ROWS} == ROWS


@pytest.mark.parametrize("table", TABLES)
def test_every_average_is_published_and_has_no_mean_where_a_cell_is_absent(table: str) -> None:
    comparison = averages(table)
    assert (len(comparison), comparison["published"].count(), comparison["mean"].count()) == (
        TABLES[table][1],
        *TABLES[table][1:],
    )


@pytest.mark.parametrize("table", TABLES)
def test_published_cells_give_the_published_averages(table: str) -> None:
    comparison = averages(table)
    tested = comparison[comparison["mean"].notna() & (comparison["contradiction"] == "")]
    wrong = tested[tested["difference"].abs() > TOLERANCE]
    assert wrong.empty, f"\n{wrong.drop(columns=['sd', 'margin', 'verdict']).to_string()}"


@pytest.mark.parametrize("table", TABLES)
def test_what_the_paper_contradicts_really_differs(table: str) -> None:
    comparison = averages(table)
    marked = comparison[comparison["contradiction"] != ""]
    assert len(marked)
    assert (marked["difference"].abs() > TOLERANCE).all(), f"\n{marked.to_string()}"


@dataclass(frozen=True)
class Layout:
    """What an exhibit like a table of the paper varies, and what the paper calls its groups, its encoder and its tasks."""

    tasks: Sequence[str]
    methods: Sequence[str]
    sources: Sequence[str]
    targets: Sequence[str]
    groups: dict[str, str] = field(default_factory=dict)
    encoder: str = "mbert"
    probes: dict[str, dict[str, str]] = field(default_factory=dict)


MONO, EN_X, X_EN = TARGETS[:9], TARGETS[9:17], TARGETS[17:]
MIXES = ["en+en-fr", "en+en-de", "en+en-ru", "en+en-zh"]
DEPTHS = ["ruletaker-d0", "ruletaker-d1", "ruletaker-d2", "ruletaker-d3"]
ALL = {"mono": "avg:mono", "en-X": "avg:en-X", "X-en": "avg:X-en"}
NEW = {f"new-language:{group}": name for group, name in ALL.items()}
TRANSFER = {"in-language": "avg:in-lang", "zero-shot": "avg:cross-ling"}
PAIRS = {"in-language": "avg:in-lang", "zero-shot:en-X": "avg:en-X", "X-en": "avg:X-en"}
PROBES = {
    f"{task}-{probe}": {"dataset": task, "method": probe}
    for task in ("lot", "lot-explicit")
    for probe in ("context-only", "subject-swap", "object-swap", "subject-object-swap")
}
STRUCTURED = ["bitfit", "cs-baseline", "shared-qcross", "pair-qcross"]
LAYOUTS = {
    "table01": Layout([*DEPTHS, "lot"], ["full-ft"], MONO, MONO, TRANSFER),
    "table02": Layout([*DEPTHS, "lot"], ["full-ft"], EN_X, [*EN_X, *X_EN], PAIRS),
    "table05": Layout(["xnli"], STRUCTURED, ["en", "en+en-fr"], TARGETS, NEW),
    "table06": Layout(list(PROBES), ["bitfit"], ["en"], ["en"], {}, "unspecified", PROBES),
    "table07": Layout([*DEPTHS, "lot"], ["full-ft"], MONO, MONO, TRANSFER, "xlmr-base"),
    "table08": Layout([*DEPTHS, "lot"], ["full-ft"], EN_X, [*EN_X, *X_EN], PAIRS, "xlmr-base"),
    "table09": Layout(DEPTHS[:2], ["full-ft", "bitfit"], MIXES, TARGETS, ALL),
    "table11": Layout(DEPTHS[:1], ["full-ft", "full-ft+drop", "bitfit", "bitfit+drop"], MIXES[:1], TARGETS, ALL),
    "table12": Layout(DEPTHS[:1], ["pair-qcross", "pair-qcross-noninterfering"], MIXES[:1], TARGETS, ALL),
    "table14": Layout(["lot"], STRUCTURED, MIXES, TARGETS),
}


@pytest.mark.parametrize("table", LAYOUTS)
def test_every_number_of_a_table_stands_beside_an_entry(table: str) -> None:
    """Exhibits can be laid out as the paper's other tables; its "Average" rows are entries that do not name the source."""
    layout = LAYOUTS[table]
    axes = (layout.tasks, ["mini"], layout.methods, layout.sources, layout.targets, [1], ["accuracy"], [50.0], [1000])
    planned = pd.DataFrame(product(*axes), columns=CELL)
    names = {"encoder": {"mini": layout.encoder}, "group": layout.groups, "task": layout.probes}
    averaged = "avg" in compare.read(FOLDER / f"{table}.csv").index.unique("source")
    keys = [("task", "method", "source"), *([("task", "method")] if averaged else [])]
    comparisons = [rendered(planned, table, rows, tuple(layout.groups), names) for rows in keys]
    assert sum(comparison["published"].count() for comparison in comparisons) == ROWS[table]


def test_every_contradiction_names_a_published_number() -> None:
    listed = compare.contradictions(FOLDER / "contradictions.csv")
    for table, notes in listed.groupby("exhibit"):
        marked = compare.read(FOLDER / f"{table}.csv")["contradiction"]
        assert int((marked != "").sum()) == len(notes), f"a line of contradictions.csv names no number of {table}"


def test_a_mean_over_other_targets_is_another_number() -> None:
    """The published averages include the trained targets, as `mono` does and `zero-shot:mono` does not."""
    frame = cells("table14")
    selection = frame[(frame["method"] == "bitfit") & (frame["source"] == "en+en-fr")]
    mean = {
        group: selection["score"][[STUDY.belongs(group, "en+en-fr", target) for target in selection["target"]]].mean()
        for group in ("mono", "zero-shot:mono", "new-language:mono")
    }
    assert mean["mono"] == pytest.approx(65.71, abs=TOLERANCE)
    assert min(abs(mean[group] - 65.71) for group in ("zero-shot:mono", "new-language:mono")) > 0.5
