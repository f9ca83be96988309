"""What a reader sees of a table, the schema of tables, and the files of a rendered table."""

import re
from collections import Counter
from io import StringIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from exhibit_fixture import EXHIBIT, draw
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from xlgrid.results import stats

NAN = float("nan")


def grid(missing: tuple[tuple[str, str, int], ...] = (), seeds: int = 2) -> pd.DataFrame:
    """Two tasks × two methods × three targets; `missing` lists (method, target, seed) without a result."""
    rows = []
    for task, t in (("xnli", 0), ("paws_x", 5)):
        for method, m in (("full-ft", 0), ("adapters", 10)):
            for target, g in (("en", 20), ("fr", 2), ("sw", -4)):
                for seed in range(seeds):
                    score = NAN if (method, target, seed) in missing else 60.0 + t + m + g + seed
                    rows.append((task, "mini", method, "en", target, seed, "accuracy", score, 100))
    return pd.DataFrame(rows, columns=["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n"])


def belongs(group: str, source: str, target: str) -> bool:
    return (target == source) == (group == "in-language")


def render(spec: dict[str, Any], cells: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Suffix -> text of the files of a table."""
    files = draw({"kind": "table"} | spec, cells, folder, name="table01", belongs=belongs)
    return {suffix: contents.decode() for suffix, contents in files.items()}


BY_GROUP = {
    "rows": ["task", "method"],
    "columns": "group",
    "groups": ["in-language", "zero-shot"],
}
BY_TARGET = {"rows": ["method"], "columns": "target", "average": True, "select": {"task": "xnli"}}


def parse(markdown: str) -> list[list[str]]:
    """The cells of a pipe table, without its rule."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    split = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    plain = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in line] for line in split]
    return [plain[0], *plain[2:]]


def test_markdown_parses_back(tmp_path: Path) -> None:
    text = render(BY_TARGET, grid(), tmp_path)[".md"]
    assert parse(text) == [
        ["Method", "en", "fr", "sw", "average"],
        ["full-ft", "80.5 ± 0.7", "62.5 ± 0.7", "56.5 ± 0.7", "66.5 ± 0.7"],
        ["adapters", "90.5 ± 0.7", "72.5 ± 0.7", "66.5 ± 0.7", "76.5 ± 0.7"],
    ]


def test_an_incomplete_entry_is_marked_and_an_empty_one_has_no_mean(tmp_path: Path) -> None:
    missing = (("full-ft", "fr", 1), ("adapters", "fr", 0), ("adapters", "sw", 1))
    text = render(BY_GROUP, grid(missing), tmp_path)[".md"]
    assert parse(text)[1:3] == [
        ["xnli", "full-ft", "80.5 ± 0.7", "59.0 † (3/4 cells, 1/2 seeds)"],
        ["xnli", "adapters", "90.5 ± 0.7", "– (2/4)"],
    ]
    assert "Cells with a result: 18 of 24." in text
    assert "† fewer seeds are complete than planned" in text
    assert "– no seed is complete" in text
    assert "compare only entries without a mark" in text


def test_a_complete_table_needs_no_marks(tmp_path: Path) -> None:
    text = render(BY_GROUP, grid(), tmp_path)[".md"]
    assert "†" not in text
    assert "Cells with a result: 24 of 24. Mean ± standard deviation over n = 2 seeds." in text
    assert "Cells averaged within each seed: 2 in zero-shot." in text


def test_n_stands_with_each_entry_where_it_differs(tmp_path: Path) -> None:
    cells = grid()
    text = render(BY_TARGET, cells[(cells["seed"] == 0) | (cells["method"] == "adapters")], tmp_path)[".md"]
    assert parse(text)[1][1] == "80.0 (n=1)"
    assert parse(text)[2][1] == "90.5 ± 0.7 (n=2)"


def test_rows_over_fewer_cells_are_called_out(tmp_path: Path) -> None:
    cells = grid()
    cells = cells[(cells["method"] == "adapters") | (cells["target"] != "sw")]
    text = render(BY_TARGET, cells, tmp_path)[".md"]
    assert parse(text)[1][3] == "", "not planned, so blank"
    assert "Blank: not planned in this study." in text
    assert "average different numbers of cells are only roughly comparable" in text


def test_an_entry_is_a_mean_and_a_standard_deviation(tmp_path: Path) -> None:
    assert parse(render(BY_TARGET, grid(), tmp_path)[".md"])[1][1] == "80.5 ± 0.7"


def test_the_order_of_select_is_the_order_of_the_table(tmp_path: Path) -> None:
    spec = BY_TARGET | {"select": {"task": "xnli", "target": ["sw", "en"], "method": ["adapters", "full-ft"]}}
    table = parse(render(spec, grid(), tmp_path)[".md"])
    assert table[0] == ["Method", "sw", "en", "average"]
    assert [row[0] for row in table[1:]] == ["adapters", "full-ft"]


def test_csv_read_back_equals_the_entries(tmp_path: Path) -> None:
    cells = grid((("adapters", "fr", 0),))
    render(BY_TARGET, cells, tmp_path)
    chosen = stats.select(cells, {"task": ["xnli"]})
    expected = stats.entries(chosen, ["method"], "target", average=True).set_index(["method", "column"])
    table = pd.read_csv(tmp_path / "table01.csv").set_index(["method", "column"])
    assert list(table) == ["mean", "sd", "min", "max", "n_seeds", "n_seeds_expected", "n_cells", "n_cells_expected"]
    pd.testing.assert_frame_equal(table.sort_index(), expected.sort_index(), check_exact=True, check_index_type=False)


def test_latex_is_a_booktabs_table_with_every_special_character_escaped(tmp_path: Path) -> None:
    spec = BY_GROUP | {"title": r"100% of $x_1 & {y}#~^\<>|", "caption": "A ± B."}
    text = render(spec, grid((("adapters", "fr", 0),)), tmp_path)[".tex"]
    assert r"100\% of \$x\_1 \& \{y\}\#\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert r"\textless{}\textgreater{}\textbar{}" in text
    assert r"paws\_x & full-ft & 85.5 $\pm$ 0.7 & 64.5 $\pm$ 0.7 \\" in text
    assert r"\textsuperscript{\dag} (3/4 cells, 1/2 seeds)" in text
    body = text[text.index(r"\begin{tabular}") : text.index(r"\end{tabular}")]
    assert [body.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 2, 1]
    assert r"\label{tab:table01}" in text


def test_html_is_one_well_formed_table(tmp_path: Path) -> None:
    text = render(BY_GROUP | {"title": "R&D <b>"}, grid((("adapters", "fr", 0), ("adapters", "sw", 1))), tmp_path)[
        ".html"
    ]
    table = ElementTree.fromstring(text)
    assert (table.tag, table.get("class")) == ("table", "exhibit")
    assert table.findtext("caption/strong") == "R&D <b>"
    assert "Cells with a result: 20 of 24." in (table.findtext("caption/small") or "")
    first = table.find("tbody/tr/th")
    assert first is not None
    assert (first.text, first.get("rowspan")) == ("xnli", "2")
    states = [cell.get("class") for cell in table.findall("tbody/tr/td")]
    assert states == ["complete", "complete", "complete", "missing"] * 2
    cell = table.findall("tbody/tr/td")[0]
    assert cell.get("title") == "2 of 2 seeds, 2 of 2 cells, mean 80.500, sd 0.707"


def blocks(columns: list[str]) -> dict[str, Any]:
    """A table with two axes of columns."""
    return {"rows": ["method"], "columns": columns, "groups": ["in-language", "zero-shot"] * ("group" in columns)}


def test_html_of_two_axes_has_a_header_over_each_block(tmp_path: Path) -> None:
    cells = grid()
    cells = cells[(cells["task"] == "xnli") | (cells["target"] != "sw")]
    spec = {"rows": ["method", "source"], "columns": ["task", "target"]}
    table = ElementTree.fromstring(render(spec, cells, tmp_path)[".html"])
    above, below = (
        [(cell.text, cell.get("scope"), cell.get("colspan") or cell.get("rowspan")) for cell in row]
        for row in table.findall("thead/tr")
    )
    assert above == [
        *(("Method", "col", "2"), ("Source", "col", "2")),
        *(("xnli", "colgroup", "3"), ("paws_x", "colgroup", "2")),
    ]
    assert below == [(target, "col", None) for target in ("en", "fr", "sw", "en", "fr")]
    assert [group.get("span") for group in table.findall("colgroup")] == ["2", "3", "2"], "what the headers stand over"


def test_the_axes_tell_the_number_of_cells_together_where_neither_does_alone(tmp_path: Path) -> None:
    cells = grid()
    cells = cells[(cells["task"] == "xnli") | (cells["target"] != "sw")]
    text = render(blocks(["task", "group"]), cells, tmp_path)[".md"]
    assert "Cells averaged within each seed: 2 in xnli zero-shot." in text
    assert "compare only roughly" not in text, "of each column all entries average as many"


def from_markdown(text: str, columns: list[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    head, *lines = parse(text)
    assert head[1:] == [" ".join(column) for column in columns]
    return [(line[0], *column, value) for line in lines for column, value in zip(columns, line[1:], strict=True)]


def from_latex(text: str) -> list[tuple[str, str, str, str]]:
    plain = text.replace(r"\_", "_")
    above, below, *lines = (
        line.removesuffix(r" \\").split(" & ") for line in plain.splitlines() if line.endswith(r" \\")
    )
    spans = [re.fullmatch(r"\\multicolumn\{(\d+)\}\{c\}\{(.+)\}", cell) for cell in above[1:]]
    outer = [span[2] for span in spans if span for _ in range(int(span[1]))]
    columns = list(zip(outer, below[1:], strict=True))
    return [(line[0], *column, value) for line in lines for column, value in zip(columns, line[1:], strict=True)]


def from_html(text: str) -> list[tuple[str, str, str, str]]:
    table = ElementTree.fromstring(text)
    above, below = table.findall("thead/tr")
    outer = [cell.text for cell in above[1:] for _ in range(int(cell.get("colspan", "")))]
    columns = list(zip(outer, [cell.text for cell in below], strict=True))
    lines = [[cell.text or "" for cell in line] for line in table.findall("tbody/tr")]
    return [(line[0], *column, value) for line in lines for column, value in zip(columns, line[1:], strict=True)]  # type: ignore[misc]


@settings(max_examples=15)
@given(
    st.sets(
        st.sampled_from([(m, t, g) for m in ("a", "b") for t in ("x_1", "y", "z") for g in ("en", "fr")]), min_size=1
    ),
    st.permutations(["task", "target"]),
)
def test_every_entry_of_two_axes_stands_once_in_every_format(
    planned: set[tuple[str, str, str]], axes: list[str]
) -> None:
    rows = [
        {"task": task, "encoder": "mini", "method": method, "source": "en", "target": target}
        | {"seed": 1, "metric": "accuracy", "score": 10.0 + i, "n": 100}
        for i, (method, task, target) in enumerate(sorted(planned))
    ]
    expected = Counter((row["method"], row[axes[0]], row[axes[1]], f"{row['score']:.1f}") for row in rows)
    with TemporaryDirectory() as folder:
        files = render({"rows": ["method"], "columns": axes}, pd.DataFrame(rows), Path(folder))
        table = pd.read_csv(Path(folder) / "table01.csv", dtype={"mean": str})
    html = from_html(files[".html"])
    columns = list(dict.fromkeys(entry[1:3] for entry in html))
    outer, inner = (dict.fromkeys(row[axis] for row in rows) for axis in axes)
    pairs = {entry[1:3] for entry in expected}
    assert columns == [column for column in product(outer, inner) if column in pairs]
    for form, entries in {
        "csv": list(table[["method", *axes, "mean"]].itertuples(index=False, name=None)),
        "md": from_markdown(files[".md"], columns),
        "tex": from_latex(files[".tex"]),
        "html": html,
    }.items():
        assert Counter(entry for entry in entries if entry[3]) == expected, form


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"columns": "target", "digts": 2}, "digts"),
        ({"columns": "group"}, "`groups` goes with `columns: group`"),
        ({"columns": ["task", "group"]}, "`groups` goes with `columns: group`"),
        ({"columns": "target", "groups": ["mono"]}, "`groups` goes with `columns: group`"),
        ({"columns": "method"}, "name 'method' twice: rows ['method'], columns ['method']"),
        ({"columns": ["task", "method"]}, "name 'method' twice: rows ['method'], columns ['task', 'method']"),
        ({"columns": ["task", "task"]}, "name 'task' twice"),
        ({"columns": []}, "at least 1 item"),
        ({"columns": ["task", "encoder", "target"]}, "at most 2 items"),
        ({"columns": "group", "groups": ["mono"], "rows": ["target"]}, "a group averages over its targets"),
        ({"columns": ["group", "target"], "groups": ["mono"]}, "remove 'target' from the columns"),
        ({"columns": ["task", "target"], "average": True}, "`average` goes with one axis of columns"),
        (
            {"columns": "group", "groups": ["mono"], "average": True},
            "`average` cannot average over columns that are groups",
        ),
        ({"columns": "target", "difference": ["en", "en"]}, "needs two columns, got 'en' twice"),
        ({"columns": ["task", "target"], "difference": ["en", "fr"]}, "`difference` goes with one axis of columns"),
        ({"columns": "group", "groups": ["mono", "all"], "difference": ["mono", "al"]}, "did you mean 'all'?"),
        ({"columns": "target", "select": {"target": False}}, "select.target.0.str"),
        ({"columns": "target", "select": {"source": []}}, "at least 1 item"),
        ({"kind": "heatmap"}, "give exactly one"),
        ({"kind": "heatmap", "method": "a", "difference": ["a", "b"]}, "give exactly one"),
        ({"kind": "heatmap", "difference": ["a", "a"]}, "needs two methods"),
        ({"kind": "heatmap", "method": "a", "select": {"method": "b"}}, "names 'method'"),
        ({"kind": "curve", "x": "step", "lines": "target"}, "which have no target"),
        ({"kind": "curve", "x": "step", "lines": "method", "select": {"metric": "f1"}}, "which have no metric"),
        ({"kind": "picture"}, "'table', 'heatmap', 'heatmaps', 'curve'"),
    ],
)
def test_the_schema_refuses(spec: dict[str, Any], message: str) -> None:
    table = {"rows": ["method"]} if spec.get("kind", "table") == "table" else {}
    with pytest.raises(ValidationError, match=re.escape(message)):
        EXHIBIT.validate_python({"kind": "table", "title": "T"} | table | spec)


def gaps(missing: tuple[tuple[str, str, int], ...], folder: Path) -> pd.DataFrame:
    """The columns of differences, by task and method."""
    spec = BY_GROUP | {"difference": ["in-language", "zero-shot"]}
    entries = pd.read_csv(StringIO(render(spec, grid(missing), folder)[".csv"]))
    return entries[entries["column"] == "in-language − zero-shot"].set_index(["task", "method"])


def test_a_difference_is_that_of_two_columns_within_each_seed(tmp_path: Path) -> None:
    """en scores 20 more than the method's mean, fr and sw 2 more and 4 less; seeds cancel."""
    differences = gaps((), tmp_path)
    assert differences[["mean", "sd", "n_seeds", "n_cells"]].to_numpy().tolist() == [[21.0, 0.0, 2, 6]] * 4


def test_a_difference_leaves_out_seeds_that_lack_a_cell_of_either_column(tmp_path: Path) -> None:
    differences = gaps((("adapters", "sw", 1),), tmp_path)
    assert differences.loc["xnli", "n_seeds"].to_dict() == {"full-ft": 2, "adapters": 1}


def test_a_difference_of_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"difference: unknown column 'frr', did you mean 'fr'\?"):
        render(BY_TARGET | {"difference": ["en", "frr"]}, grid(), tmp_path)


def with_reasons(reason: str) -> pd.DataFrame:
    """The cells of `grid`, of which those of `adapters` on XNLI are of models that have learnt nothing."""
    cells = grid()
    nothing = (cells["task"] == "xnli") & (cells["method"] == "adapters")
    return cells.assign(learnt_nothing=nothing.map({True: reason, False: ""}))


def test_entries_of_models_that_have_learnt_nothing_have_a_mark_and_the_caption_says_why(tmp_path: Path) -> None:
    spec = {"rows": ["task", "method"], "columns": "target", "average": True}
    files = render(spec, with_reasons("f1 0.0, chance 0.0"), tmp_path)
    marked = {row: row.count("§") for row in files[".md"].splitlines() if row.startswith("|")}
    assert {count for row, count in marked.items() if "xnli" in row and "adapters" in row} == {4}
    assert sum(marked.values()) == 4
    for suffix in (".md", ".html"):
        assert "2 of 8 models have learnt nothing" in files[suffix] and "f1 0.0, chance 0.0" in files[suffix]
    assert r"\S" in files[".tex"]


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    text = render(BY_TARGET, grid(seeds=1), tmp_path)[".md"]
    assert parse(text)[1][1] == "80.0"
    assert "One seed (n = 1), so no deviation." in text
