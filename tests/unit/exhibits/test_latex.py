"""The key `latex` of an exhibit: which settings fit, and which entries of a table are bold, from the files of its cells."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from exhibit_fixture import EXHIBIT
from pydantic import ValidationError

from xlgrid import heads
from xlgrid.evaluation.cell import pack
from xlgrid.exhibits.latex import LatexOfScores
from xlgrid.plan.load import load_plan

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "export.md"
TABLE = {"kind": "table", "title": "T", "rows": ["method"], "columns": "target"}
STUDY = """\
title: Tiny
languages: [qa1, qa2]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qa2]}}}
tasks: {ner: {kind: wikiann}}
methods: {full-ft: {}, bitfit: {}}
grids: {main: {task: [ner], encoder: [tiny], method: [full-ft, bitfit], source: [qa1], target: [mono], seed: [1, 2, 3]}}
"""
# Method and target -> the share of the entities that are right, in all seeds.
SHARES = {("full-ft", "qa1"): 0.9, ("bitfit", "qa1"): 0.5, ("full-ft", "qa2"): 0.5, ("bitfit", "qa2"): 0.52}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"width": "text"}, "Input should be 'column' or 'page'"),
        ({"latex": {"split": 0}}, "greater than or equal to 1"),
        ({"latex": {"bold": "metod"}}, "whose values compete, got 'metod'; there are method"),
        ({"latex": {"bold": "target"}}, "whose values compete, got 'target'; there are method"),
        ({"rows": ["task"], "latex": {"bold": "method"}}, "got 'method'; there are none: leave it out"),
        ({"latex": {"bald": "method"}}, "unknown key 'bald', did you mean 'bold'"),
        ({"kind": "heatmap", "method": "full-ft", "latex": {"bold": "method"}}, "unknown key 'bold'"),
    ],
)
def test_the_schema_refuses(spec: dict[str, Any], message: str) -> None:
    table = TABLE if spec.get("kind", "table") == "table" else {"title": "T"}
    with pytest.raises(ValidationError, match=re.escape(message)):
        EXHIBIT.validate_python(table | spec)


def test_another_option_renders_an_exhibit_again() -> None:
    study = SimpleNamespace(facts={}, order={}, main_metrics={}, labels={})
    other, _ = EXHIBIT.validate_python(TABLE | {"latex": {"bold": "method"}}).settings(study)
    assert '"bold":["method"]' in other


def test_the_example_of_the_page_is_a_table_and_the_page_lists_all_keys() -> None:
    section = PAGE.read_text().partition("## LaTeX\n")[2].partition("\n## ")[0]
    [exhibit] = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])["exhibits"].values()
    settings = EXHIBIT.validate_python(exhibit).latex
    assert settings == LatexOfScores(transpose=True, deviation=False, bold=("method",))
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*LatexOfScores.model_fields]


# The entities of one word, of two types.
LABELS = ["O", "B-PER", "B-LOC"]
Render = Callable[..., dict[str, str]]


@pytest.fixture
def render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Render:
    """Writes the cells of a study and renders its table with some keys: suffix -> text of each file."""
    monkeypatch.chdir(tmp_path)

    def rendered(
        spec: Mapping[str, Any], seeds: int = 3, shares: Mapping[tuple[str, str], float] = SHARES
    ) -> dict[str, str]:
        Path("studies").mkdir(exist_ok=True)
        Path("studies/tiny.yaml").write_text(f"{STUDY}exhibits: {{x: {json.dumps(TABLE | dict(spec))}}}\n")
        plan = load_plan("tiny")
        rng = np.random.default_rng(1)
        for cell in plan.cells:
            if cell.seed <= seeds:
                right = rng.random(300) < shares[cell.method, str(cell.target)]
                outcomes = [[[1], [1]] if each else [[1], [2]] for each in right]
                score = heads.HEADS["token"].metric(LABELS, "f1").score(outcomes)
                scores = {"metric": {"name": "f1", "implementation": "i"}, "scores": {"f1": score}} | {
                    "head": "token",
                    "labels": LABELS,
                }
                Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
                Path(cell.path).write_text(
                    json.dumps({**cell._asdict(), **scores, "n": 300, "outcomes": pack(outcomes)})
                )
        plan.study.exhibit("x").render("x", plan, "out")
        return {path.suffix: path.read_text() for path in Path("out").iterdir()}

    return rendered


def bold(tex: str) -> list[list[bool]]:
    """For each row of a table, which of its entries are bold."""
    rows = tex.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    return [[entry.strip().startswith(r"\textbf{") for entry in row.split(" & ")[1:]] for row in rows]


def test_the_best_is_bold_where_the_test_says_so(render: Render) -> None:
    tex = render({"latex": {"bold": "method"}, "average": True})[".tex"]
    assert r"full-ft & \textbf{8" in tex or r"full-ft & \textbf{9" in tex
    assert bold(tex) == [[True, False, True], [False, False, False]]
    assert (
        "Bold: the best method for each target, where it is better than the runner-up with p below 0.05, paired over seeds, "
        "targets and test examples, corrected by Holm over 3 comparisons."
    ) in tex


def test_columns_compete_too_and_the_average_over_them_has_no_rival(render: Render) -> None:
    tex = render({"rows": ["target"], "columns": "method", "average": True, "latex": {"bold": "method"}})[".tex"]
    assert bold(tex) == [[True, False, False], [False, False, False]]


def test_no_entry_is_bold_with_two_seeds(render: Render) -> None:
    tex = render({"latex": {"bold": "method"}}, seeds=2)[".tex"]
    assert bold(tex) == [[False, False]] * 2
    comments = [line for line in tex.splitlines() if line.startswith("% ")]
    assert "No entry is bold: a test needs 3 complete seeds of all entries that it compares." in "".join(comments)
    assert "bold" not in tex.partition(r"\begin{table}")[2], "the caption is the author's"


def test_without_deviations_the_note_does_not_promise_any(render: Render) -> None:
    files = render({"latex": {"deviation": False}})
    assert r"\pm" not in files[".tex"] and "Mean over n = 3 seeds." in files[".tex"]
    assert bold(files[".tex"]) == [[False, False]] * 2


@pytest.mark.parametrize(
    ("columns", "head"), [("target", r"Target & full-ft & bitfit \\"), (["task", "target"], r"Task & Target & full-ft")]
)
def test_a_transposed_table_says_what_its_rows_are(render: Render, columns: str | list[str], head: str) -> None:
    assert head in render({"columns": columns, "latex": {"transpose": True}})[".tex"]


def test_the_other_formats_do_not_change(render: Render) -> None:
    plain = render({})
    changed = render({"latex": {"bold": "method", "deviation": False, "transpose": True}})
    assert {suffix for suffix in plain if plain[suffix] != changed[suffix]} == {".tex"}
