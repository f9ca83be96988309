"""LaTeX: escapes, labels, the two widths, and six tables of this project's studies that LaTeX itself sets in two columns."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exhibit_fixture import three_keys
from hypothesis import given
from hypothesis import strategies as st
from shipped import STUDIES

from xlgrid.exhibits.drawing.latex import escape_latex, latex
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


def test_without_options_the_text_is_what_it_has_always_been() -> None:
    assert latex(three_keys(), "t", PLAIN).splitlines() == [
        r"% needs \usepackage{adjustbox,booktabs}",
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        r"\begin{adjustbox}{max width=\linewidth}",
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
        r"\end{adjustbox}",
        r"\caption{T. Mean $\pm$ standard deviation over n = 2 seeds.}",
        r"\label{tab:t}",
        r"\end{table}",
    ]


@pytest.mark.parametrize(
    ("settings", "begin", "width"),
    [
        ({"environment": "table*"}, r"\begin{table*}[t]", r"{max width=\linewidth}"),
        ({"resize": "column"}, r"\begin{table}[t]", r"{width=\columnwidth}"),
        ({"environment": "table*", "resize": "text"}, r"\begin{table*}[t]", r"{width=\textwidth}"),
    ],
)
def test_the_environment_and_the_width_are_settings(settings: dict[str, Any], begin: str, width: str) -> None:
    lines = latex(three_keys(), "t", Latex(**settings)).splitlines()
    assert lines[1] == begin and lines[-1] == begin.replace("begin", "end").removesuffix("[t]")
    assert lines[4] == rf"\begin{{adjustbox}}{width}"


def test_the_best_entries_are_bold() -> None:
    sheet = three_keys()
    marked = replace(sheet, entries=sheet.entries.assign(is_best=[False, True, False, False]))
    rows = [line for line in latex(marked, "t", PLAIN).splitlines() if "pm" in line and line.endswith(r"\\")]
    assert [r"\textbf{1.0 $\pm$ 0.5}" in row for row in rows] == [False, True, False, False]


needs_latex = pytest.mark.skipif(
    not shutil.which("pdflatex"),
    reason="no LaTeX here: `apt-get install --no-install-recommends texlive-latex-extra` installs it",
)


def log_of(tables: Mapping[str, str], folder: Path) -> str:
    """The log of an article in two columns with these tables, which LaTeX has set without an error."""
    folder.mkdir(exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.tex").write_text(text)
    body = "".join(rf"Text.\input{{{name}}}\clearpage" + "\n" for name in tables)
    packages = r"\usepackage{adjustbox,booktabs}"
    article = rf"\documentclass[twocolumn]{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (folder / "article.tex").write_text(article)
    process = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "article.tex"],
        cwd=folder,
        # Lines of the log are not wrapped.
        env=os.environ | {"max_print_line": "10000"},
        capture_output=True,
        timeout=300,
    )
    log = (folder / "article.log").read_text(errors="replace")
    assert process.returncode == 0, log[-2000:]
    return log


def complaints(log: str) -> list[str]:
    """The lines on boxes, floats and characters that do not fit."""
    return [line for line in log.splitlines() if re.match(r"Overfull|LaTeX Warning: Float|Missing character", line)]


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
    "two-axes": ("foroutan2023-mini", "table01", 0.02, {"environment": "table*"}),
    "averages": ("pfeiffer2020-mini", "table02", 0, {"deviation": False}),
    "long-heads": ("pfeiffer2020-mini", "family", 0.001, {"environment": "table*", "resize": "text"}),
    "metrics": ("pfeiffer2020-mini", "table04", 0, {"resize": "column"}),
    "benchmark": ("luo2021-mini", "table02-transfer", 0, {}),
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
    text = written(*made_up("demo", "ruletaker-transfer"), {}, tmp_path)
    wide = re.sub(r"\\(begin|end)\{adjustbox\}(\{.*\})?", "", text)
    assert [line.split()[0] for line in complaints(log_of({"wide": wide}, tmp_path))] == ["Overfull"]
