"""LaTeX: escapes, labels, captions, widths, and tables of this project's studies that LaTeX itself sets in two columns.

The documents have the sizes of the style of ACL, see `latex_fixture`.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import STATISTICS, three_keys
from hypothesis import given
from hypothesis import strategies as st
from latex_fixture import complaints, log_of, needs_latex
from shipped import STUDIES

from xlgrid.exhibits.drawing import sheet as printing
from xlgrid.exhibits.drawing.latex import escape_latex, latex, too_wide
from xlgrid.exhibits.drawing.sheet import Sheet
from xlgrid.exhibits.latex import Latex
from xlgrid.plan.load import load_plan

PLAIN = Latex()


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])))
def test_escaped_latex_has_no_active_character_left(text: str) -> None:
    mathematics = r"\$\\(?:pm|times|surd|leq|geq|approx|neq|rightarrow)\$|\$-\$|\$\^2\$"
    commands = (
        rf"\\textbackslash\{{\}}|\\text\w+\{{\}}|\\textsuperscript\{{\\(?:d?dag|S)\}}|{mathematics}|\\[{{}}$&#%_]"
    )
    left = re.sub(commands, "", escape_latex(text))
    assert not set(left) & set("\\{}$&#%_^~"), f"{text!r} became {escape_latex(text)!r}"


def test_the_text_of_a_table() -> None:
    assert latex(three_keys(), "t", PLAIN).splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"% Mean ± standard deviation over n = 2 seeds.",
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{6pt}",
        r"\begin{tabular}{@{}lllr@{}}",
        r"\toprule",
        r"Task & Source & Method & en \\",
        r"\midrule",
        r"xnli & en & adapters & 1.0 $\pm$ 0.5 \\",
        r" &  & bitfit & 1.0 $\pm$ 0.5 \\",
        r" & fr & adapters & 1.0 $\pm$ 0.5 \\",
        r"\midrule",
        r"paws & fr & adapters & 1.0 $\pm$ 0.5 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\caption{T. Mean $\pm$ standard deviation over n = 2 seeds.}",
        r"\label{tab:t}",
        r"\end{table}",
    ]


def caption_of(sheet: Sheet) -> str:
    return next(line for line in latex(sheet, "t", PLAIN).splitlines() if line.startswith(r"\caption"))


def test_the_caption_is_the_author_s_unless_a_cell_is_missing() -> None:
    sheet = replace(three_keys(), caption="What the author says.")
    assert caption_of(sheet) == r"\caption{T. What the author says.}"
    assert "% Mean ± standard deviation over n = 2 seeds." in latex(sheet, "t", PLAIN)
    lacking = replace(sheet, entries=sheet.entries.assign(state=["complete"] * 3 + ["incomplete"]))
    assert caption_of(lacking) == r"\caption{T. What the author says. Mean $\pm$ standard deviation over n = 2 seeds.}"


def test_the_best_entries_are_bold_and_only_then_does_the_caption_explain_it() -> None:
    sheet = three_keys()
    marked = replace(sheet, entries=sheet.entries.assign(is_best=[False, True, False, False]), bold="Bold: the best.")
    rows = [line for line in latex(marked, "t", PLAIN).splitlines() if "pm" in line and line.endswith(r"\\")]
    assert [r"\textbf{1.0 $\pm$ 0.5}" in row for row in rows] == [False, True, False, False]
    assert "Bold: the best." in caption_of(marked) and "Bold" not in caption_of(sheet)


def test_names_have_their_labels_and_the_heads_of_keys_too() -> None:
    labels = {"xnli": "XNLI", "adapters": "Adapters", "en": "English", "method": "Approach"}
    text = latex(replace(three_keys(), labels=labels), "t", PLAIN)
    assert r"Task & Source & Approach & English \\" in text and r"XNLI & English & Adapters & 1.0" in text


def wide(columns: int) -> Sheet:
    """A table of two methods with so many columns."""
    counts = STATISTICS | {"n_cells": 2, "n_cells_expected": 2}
    names = [f"q{i:02}" for i in range(columns)]
    entries = [{"method": method, "column": name} | counts for method in ("a", "b") for name in names]
    return printing.sheet(
        pd.DataFrame(entries), title="T", rows=["method"], order={"method": ["a", "b"], "column": names}
    )


@pytest.mark.parametrize(
    ("columns", "width", "begin"),
    [(2, None, "table"), (2, "page", "table*"), (8, None, "table*"), (8, "column", "table")],
)
def test_a_table_is_in_a_column_if_it_fits_there(columns: int, width: Any, begin: str) -> None:
    assert rf"\begin{{{begin}}}[t]" in latex(wide(columns), "t", PLAIN, width)


def test_a_table_that_is_too_wide_says_what_would_fit() -> None:
    comment = latex(wide(30), "t", PLAIN).splitlines()[1]
    assert comment.startswith("% the table is about ") and "and a page has 6.3 in: write " in comment
    assert comment.endswith("`latex: {transpose: true}` or `latex: {split: 3}`")
    assert too_wide(wide(30), Latex(transpose=True), None) == too_wide(wide(30), Latex(split=3), None) == ""
    assert "write `width: page`" in too_wide(wide(8), PLAIN, "column")


def test_a_transposed_table_has_its_rows_as_columns() -> None:
    text = latex(three_keys(), "t", Latex(transpose=True))
    assert text.splitlines()[6:14] == [
        r"\begin{tabular}{@{}lrrrr@{}}",
        r"\toprule",
        r" & \multicolumn{2}{c}{xnli en} & \multicolumn{1}{c}{xnli fr} & \multicolumn{1}{c}{paws fr} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-4} \cmidrule(lr){5-5}",
        r" & adapters & bitfit & adapters & adapters \\",
        r"\midrule",
        r"en & 1.0 $\pm$ 0.5 & 1.0 $\pm$ 0.5 & 1.0 $\pm$ 0.5 & 1.0 $\pm$ 0.5 \\",
        r"\bottomrule",
    ]


def test_a_split_table_has_each_column_once_and_the_keys_in_each_part() -> None:
    parts = latex(wide(7), "t", Latex(split=3)).split(r"\medskip")
    heads = [next(line for line in part.splitlines() if line.startswith("Method")) for part in parts]
    assert heads == [r"Method & q00 & q01 & q02 \\", r"Method & q03 & q04 & q05 \\", r"Method & q06 \\"]


def test_the_picture_of_a_figure_is_in_a_comment() -> None:
    comment = latex(three_keys(), "t", PLAIN, picture="page").splitlines()[3]
    assert comment.startswith(r"% \begin{figure*}[t] \centering \includegraphics{t.pdf} \caption{T.")


@needs_latex
@pytest.mark.thorough
def test_latex_sets_every_character_that_is_escaped(tmp_path: Path) -> None:
    title = r"100% of $x_1 & {y}#~^\<>| ± × √(sd² + 1) – − † ≤ ≥ ≈ ≠ → … ’ ñ ü"
    sheet = replace(three_keys(), title=title)
    # A row that begins as the optional argument of a line break does.
    keys = sheet.entries.assign(task=["[CLS]", "[CLS]", "[CLS]", "*"])
    assert complaints(log_of({"t": latex(replace(sheet, entries=keys), "t", PLAIN)}, tmp_path)) == []


def made_up(study: str, name: str, missing: float = 0.0) -> tuple[Any, Any, pd.DataFrame]:
    """A study, its exhibit of this name, and its cells with scores that are drawn at random, a share of which are missing."""
    plan = load_plan(STUDIES[study])
    exhibit, rng = plan.study.exhibit(name), np.random.default_rng(1)
    rows = [
        cell.shown._asdict()
        | plan.study.facts[cell.encoder]
        | {"path": cell.path, "metric": metric, "n": 100, "score": rng.uniform(0, 100)}
        for cell in exhibit.cells(plan.cells, plan.study.facts)
        for metric in plan.study.metrics[cell.task][: None if exhibit.names_metric else 1]
    ]
    frame = pd.DataFrame(rows)
    return plan.study, exhibit, frame.assign(score=frame["score"].mask(rng.random(len(frame)) < missing))


def written(study: Any, exhibit: Any, cells: pd.DataFrame, settings: dict[str, Any], folder: Path) -> str:
    """The LaTeX of the exhibit with these settings."""
    options = exhibit.latex.model_dump() | settings
    exhibit = exhibit.model_copy(update={"latex": type(exhibit.latex).model_validate(options)})
    exhibit.write("t", folder, exhibit.of_scores(study, cells))
    return (folder / "t.tex").read_text()


SIX: dict[str, tuple[str, str, float, dict[str, Any]]] = {
    "two-keys": ("demo", "ruletaker-transfer", 0.02, {}),
    "two-axes": ("foroutan2023-mini", "table01", 0.02, {"split": 2}),
    "averages": ("pfeiffer2020-mini", "table02", 0, {"deviation": False}),
    "long-heads": ("pfeiffer2020-mini", "family", 0.001, {"split": 2}),
    "metrics": ("pfeiffer2020-mini", "table04", 0, {"transpose": True}),
    "benchmark": ("luo2021-mini", "table02-transfer", 0, {"transpose": True}),
}


@needs_latex
@pytest.mark.thorough
def test_six_tables_are_set_in_two_columns_without_overfull_boxes(tmp_path: Path) -> None:
    tables = {
        name: written(*made_up(study, exhibit, missing), settings, tmp_path / name)
        for name, (study, exhibit, missing, settings) in SIX.items()
    }
    assert complaints(log_of(tables, tmp_path)) == []


@needs_latex
@pytest.mark.thorough
def test_a_table_that_is_too_wide_is_complained_about(tmp_path: Path) -> None:
    """The test above can fail."""
    tables = {f"t{columns}": latex(wide(columns), "t", PLAIN, "column") for columns in (3, 8)}
    assert [too_wide(wide(columns), PLAIN, "column") == "" for columns in (3, 8)] == [True, False]
    assert [line.split()[0] for line in complaints(log_of(tables, tmp_path))] == ["Overfull"]
