"""Ours beside published numbers: which number belongs to an entry, the difference and its verdict, and what a reader sees."""

import csv
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from exhibit_fixture import draw
from study_fixture import TEXT

from xlgrid.exhibits import Table
from xlgrid.plan.load import load_study
from xlgrid.report import page as report
from xlgrid.study.schema import Study

NAN = float("nan")
HEAD = "exhibit,model,dataset,method,source,target,metric,value"
NUMBERS = """\
t1,mbert,logic,full-ft,en,fr,accuracy,60.00
t1,mbert,logic,full-ft,"mix(en,en-fr)",fr,accuracy,71.5
t1,mbert,logic,full-ft,avg,fr,accuracy,66
t1,mbert,logic,full-ft,en,avg,accuracy,80.25
t1,mbert,logic,full-ft,en,avg:others,accuracy,55.0
t1,mbert,logic,probe,en,fr,accuracy,40.0
t1,mbert,logic,adapters-minus-full-ft,en,fr,accuracy-difference,-3.5
"""
NOTES = """\
exhibit,model,dataset,method,source,target,metric,note
t1,mbert,logic,full-ft,en,fr,accuracy,Table 2 prints 61.
t1,mbert,logic,full-ft,en,fr,accuracy,The text says 62.
t2,mbert,logic,full-ft,en,avg,accuracy,Of another table.
"""


@pytest.fixture(autouse=True)
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of published numbers where rendering looks for it."""
    folder = tmp_path / "reference" / "paper"
    folder.mkdir(parents=True)
    (folder / "t1.csv").write_text(f"{HEAD}\n{NUMBERS}")
    (folder / "contradictions.csv").write_text(NOTES)
    monkeypatch.chdir(tmp_path)
    return folder


def cells(*changes: dict[str, Any], seeds: int = 3) -> pd.DataFrame:
    """Cells of one score per seed, 60, 61, ..., with what each of `changes` says."""
    identity = {"task": "logic", "encoder": "mbert", "method": "full-ft", "source": "en", "target": "fr"}
    rows = [
        {**identity, "seed": seed, "metric": "accuracy", "score": 60.0 + seed, "n": 100, **change}
        for change in (changes or ({},))
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def render(spec: dict[str, Any], frame: pd.DataFrame, **published: Any) -> pd.DataFrame:
    """The comparison of an exhibit, read back."""
    base = {"title": "Scores", "published": {"file": "paper/t1", "seeds": 3, **published}}
    shape = {"kind": "table", "rows": ["method"], "columns": "target"} if "kind" not in spec else {}
    languages = {code: SimpleNamespace(family="F", script="Latn") for code in ("en", "fr", "sw")}
    draw(base | shape | spec, frame, Path("out"), belongs=belongs, languages=languages)
    return pd.read_csv("out/x-published.csv", dtype={"verdict": str, "contradiction": str}).fillna(
        {"verdict": "", "contradiction": ""}
    )


def belongs(group: str, source: str, target: str) -> bool:
    return group == "all" or target not in source.split("+")


def shown() -> str:
    return Path("out/x-published.md").read_text(encoding="utf-8")


def test_an_entry_stands_beside_the_number_of_its_identity() -> None:
    entries = render({"rows": ["source"]}, cells({}, {"source": "en+en-fr", "score": 70.0}))
    assert entries[["source", "mean", "published", "difference"]].values.tolist() == [
        ["en", 61.0, 60.0, 1.0],
        ["en+en-fr", 70.0, 71.5, -1.5],
    ]


def test_what_differs_among_the_cells_of_an_entry_is_an_average() -> None:
    assert render({}, cells({}, {"source": "fr"}))["published"].tolist() == [66.0], "two sources"
    entries = render({"columns": "target", "average": True}, cells({}, {"target": "sw"})).set_index("column")
    assert entries["published"].to_dict() == {"fr": 60.0, "sw": pytest.approx(NAN, nan_ok=True), "average": 80.25}


def test_a_group_is_an_average_by_its_own_or_by_the_paper_s_name() -> None:
    shape = {"columns": "group", "groups": ["new"]}
    names = {"group": {"new": "avg:others"}}
    assert render(shape, cells({}, {"target": "sw"}), names=names)["published"].tolist() == [55.0]
    assert render({"columns": "group", "groups": ["others"]}, cells())["published"].tolist() == [55.0]


def test_columns_of_two_axes_have_the_paper_s_numbers_under_both() -> None:
    frame = cells({"target": "sw"}, {"source": "en+en-fr"}, {})
    shape = {"columns": ["source", "group"], "groups": ["all", "others"]}
    entries = render(shape, frame, names={"group": {"all": "fr"}})
    assert entries[["method", "source", "group", "published"]].fillna(0).values.tolist() == [
        ["full-ft", "en", "all", 60.0],
        ["full-ft", "en", "others", 55.0],
        ["full-ft", "en+en-fr", "all", 71.5],
        ["full-ft", "en+en-fr", "others", 0],
    ]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown().splitlines() if line.startswith("|")]
    assert [lines[0], lines[3]] == [
        ["Method", "Value", "en all", "en others", "en+en-fr all", "en+en-fr others"],
        ["", "paper", "60.0 ‡", "55.0", "71.5", "–"],
    ]
    table = ElementTree.fromstring(Path("out/x-published.html").read_text(encoding="utf-8"))
    above = [(cell.text, cell.get("colspan")) for cell in table.findall("thead/tr[1]/th[@scope='colgroup']")]
    assert above == [("en", "2"), ("en+en-fr", "2")]


def test_names_of_ours_are_translated_to_one_or_more_of_the_paper_s_columns() -> None:
    frame = cells({"encoder": "mini", "task": "logic-probe"})
    names = {"encoder": {"mini": "mbert"}, "task": {"logic-probe": {"dataset": "logic", "method": "probe"}}}
    assert render({}, frame, names=names)["published"].tolist() == [40.0]
    assert "This study has mini for mbert." in shown()


def test_a_heatmap_of_a_difference_is_compared_too() -> None:
    frame = cells({}, {"method": "adapters", "score": 55.0})
    entries = render({"kind": "heatmap", "difference": ["adapters", "full-ft"]}, frame)
    assert entries[["source", "column", "published", "difference"]].values.tolist() == [["en", "fr", -3.5, -2.5]]


@pytest.mark.parametrize(("score", "difference", "verdict"), [(60.005, 0.005, "within"), (60.3, 0.3, "beyond")])
def test_a_difference_is_that_of_the_decimal_numbers(score: float, difference: float, verdict: str) -> None:
    """In binary fractions, 60.005 - 60.00 is more than 0.005, half of the last place of the published 60.00."""
    render({}, cells({"score": score}))
    (row,) = csv.DictReader(Path("out/x-published.csv").read_text().splitlines())
    assert (row["difference"], row["margin"], row["verdict"]) == (str(difference), "0.005", verdict)


@pytest.mark.parametrize(("seeds", "verdict"), [(1, ""), (2, "within"), (3, "within")])
def test_a_verdict_needs_two_seeds(seeds: int, verdict: str) -> None:
    assert render({}, cells(seeds=seeds))["verdict"].tolist() == [verdict]
    assert ("No verdict without two seeds" in shown()) == (seeds == 1)


@pytest.mark.parametrize(("seeds", "t"), [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (41, 2.021)])
def test_the_margin_is_that_of_the_difference_of_two_means(seeds: int, t: float) -> None:
    """With Student's t as printed in tables."""
    frame = cells(seeds=seeds)
    margin = render({}, frame)["margin"].iloc[0]
    exact = t * frame["score"].std() * math.sqrt(1 / seeds + 1 / 3) + 0.005
    assert margin == pytest.approx(exact, rel=5e-4)


def test_the_margin_is_wider_for_a_method_of_which_the_paper_has_fewer_runs() -> None:
    frame = pd.concat([cells(), cells().assign(method="probe")])
    margins = render({}, frame, seeds_of={"method": {"probe": 1}}).set_index("method")["margin"]
    assert margins["full-ft"] == pytest.approx(4.303 * (1 / 3 + 1 / 3) ** 0.5 + 0.005, rel=5e-4)
    assert margins["probe"] == pytest.approx(4.303 * (1 / 3 + 1) ** 0.5 + 0.05, rel=5e-4), "printed as 40.0"
    assert "the paper's m seeds (taken as 3, 1 of probe)" in shown()


@pytest.mark.parametrize(("factor", "verdict"), [(0.99, "within"), (1.01, "beyond")])
def test_the_margin_decides(factor: float, verdict: str) -> None:
    margin = render({}, cells())["margin"].iloc[0]
    frame = cells()
    frame["score"] += 60 + factor * margin - frame["score"].mean()
    assert render({}, frame)["verdict"].tolist() == [verdict]
    assert ("+3.6 ≠" if verdict == "beyond" else "+3.5 ≈") in shown()


def test_a_contradiction_is_marked_and_told() -> None:
    entries = render({"rows": ["source"]}, cells({}, {"source": "en+en-fr"}))
    assert entries["contradiction"].tolist() == ["Table 2 prints 61. The text says 62.", ""]
    text = shown()
    assert "60.0 ‡ |" in text and "71.5 |" in text
    assert "‡ the paper contradicts this number. Table 2 prints 61. The text says 62." in text
    assert "Of another table" not in text


def test_three_lines_for_each_row_in_the_order_of_the_exhibit_and_a_total() -> None:
    frame = cells({"source": "en+en-fr", "score": 71.25}, {"target": "sw"}, {})
    render({"rows": ["method", "source"]}, frame, seeds=1)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown().splitlines() if line.startswith("|")]
    assert [lines[0], *lines[2:]] == [
        ["Method", "Source", "Value", "fr", "sw"],
        ["full-ft", "en+en-fr", "ours", "71.2 ± 0.0", ""],
        ["", "", "paper", "71.5", ""],
        ["", "", "difference", "−0.2 ≠", ""],
        ["", "en", "ours", "61.0 ± 1.0", "61.0 ± 1.0"],
        ["", "", "paper", "60.0 ‡", "–"],
        ["", "", "difference", "+1.0 ≈", ""],
        ["all rows", "", "mean difference", "+0.4", ""],
    ]
    assert "In total: 1 within seed noise, 1 beyond it; mean difference 0.4, mean size 0.6." in shown()


def test_many_contradictions_are_counted_and_each_stands_with_its_entry(reference: Path) -> None:
    targets = ["fr", "sw", "de", "ru"]
    numbers = "".join(f"t1,mbert,logic,full-ft,en,{target},accuracy,60.0\n" for target in targets)
    notes = "".join(f"t1,mbert,logic,full-ft,en,{target},accuracy,Of {target}.\n" for target in targets)
    (reference / "t1.csv").write_text(f"{HEAD}\n{numbers}")
    (reference / "contradictions.csv").write_text(NOTES.splitlines()[0] + f"\n{notes}")
    render({}, cells(*({"target": target} for target in targets)))
    assert "4 contradictions, listed in reference/paper/contradictions.csv." in shown()
    assert "Of fr." not in shown()
    assert "Of fr." in Path("out/x-published.html").read_text(encoding="utf-8")


def test_html_is_one_well_formed_table_that_tells_more() -> None:
    render({}, cells())
    table = ElementTree.fromstring(Path("out/x-published.html").read_text(encoding="utf-8"))
    attributes = [(cell.get("class"), cell.get("title")) for cell in table.findall("tbody/tr/td")]
    assert attributes == [
        ("complete", "3 of 3 seeds, 3 of 3 cells, mean 61.000, sd 1.000"),
        ("contradicted", "published 60. Table 2 prints 61. The text says 62."),
        ("within", "difference 1.000, within ± 3.518"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "mbrt"}, "unknown model 'mbrt', did you mean 'mbert'?"),
        ({"target": "fa"}, "unknown target 'fa'"),
        ({"source": "en+en-fr", "method": "probe"}, "the file has each of its names, but never together"),
    ],
)
def test_an_exhibit_about_something_else_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        render({}, cells(change))


def test_a_misspelt_file_names_its_neighbour() -> None:
    with pytest.raises(FileNotFoundError, match="did you mean 'paper/t1'"):
        render({}, cells(), file="paper/t11")


STUDY = (
    TEXT.partition("  bitfit: {}")[0]
    + """\
grids:
  main: {task: [rt], encoder: [mini], method: [full-ft], source: [en], target: [mono, en-X], seed: [1]}
published: {seeds: 3, names: {encoder: {mini: mbert}, task: {rt: logic}}}
exhibits:
  a: {kind: table, title: t, rows: [method], columns: target, published: {file: paper/t1, names: {task: {rt: probe}}}}
  b: {kind: table, title: t, rows: [method], columns: group, groups: ["zero-shot:mono"]}
"""
)


def study(text: str = STUDY) -> Study:
    Path("s.yaml").write_text(text)
    return load_study("s.yaml")


def test_an_exhibit_s_names_win_over_the_study_s() -> None:
    exhibit = study().exhibit("a")
    assert isinstance(exhibit, Table) and exhibit.published
    assert exhibit.published.names == {"encoder": {"mini": "mbert"}, "task": {"rt": "probe"}}
    assert exhibit.published.seeds == 3
    assert study().exhibit("b") == study().exhibits["b"], "not compared, so as it stands"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{mini: mbert}",
            "{mino: mbert}",
            "s.yaml:11: published.names.encoder: unknown encoder 'mino', did you mean 'mini'?",
        ),
        (
            "{rt: probe}",
            "{rtt: probe}",
            "s.yaml:13: exhibits.a.published.names.task: unknown task 'rtt', did you mean 'rt'?",
        ),
        ("{rt: probe}", "{rt: {data: logic}}", "s.yaml:13: exhibits.a.published.names.task.rt"),
        ("file: paper/t1", "file: t1", "s.yaml:13: exhibits.a.published.file"),
        ("file: paper/t1", "fil: paper/t1", "did you mean 'file'?"),
        ("seeds: 3", "seeds: 0", "s.yaml:11: published.seeds"),
        (
            "seeds: 3",
            "seeds_of: {method: {ful-ft: 1}}",
            "s.yaml:11: published.seeds_of.method: unknown method 'ful-ft', did you mean 'full-ft'?",
        ),
        (
            "names: {encoder",
            "names: {group: {mno: m}, encoder",
            "s.yaml:11: published.names.group: unknown group 'mno'",
        ),
        ("b: {kind", "a-published: {kind", "such names are for comparisons with published numbers"),
        ("zero-shot:mono", "zero-shot:mno", "s.yaml:14: exhibits.b.groups: unknown group 'mno', did you mean 'mono'?"),
    ],
)
def test_a_mistake_in_a_study_names_its_place(old: str, new: str, message: str) -> None:
    assert old in STUDY
    with pytest.raises(ValueError, match=re.escape(message)):
        study(STUDY.replace(old, new, 1))


def test_the_report_shows_a_comparison_under_its_exhibit() -> None:
    planned = study()
    folder = Path(f"results/{planned.name}/exhibits")
    folder.mkdir(parents=True)
    for name in ("a.html", "a.csv", "a-published.html", "a-published.csv", "b.html", "b-published.html"):
        (folder / name).write_text(f"<p>{name}</p>")
    (folder / "a-published.csv").write_text("published,mean,verdict,contradiction\n50,51,within,\n")
    html = report.exhibits(SimpleNamespace(name=planned.name, exhibits=planned.exhibits, path_of=Path))  # type: ignore[arg-type]
    assert html.index("<p>a.html</p>") < html.index("<p>a-published.html</p>") < html.index("<p>b.html</p>")
    assert '<a href="exhibits/a-published.csv">published.csv</a>' in html
    assert "<summary>Ours and the published numbers: 1 of 1 within noise</summary>" in html
    assert "b-published" not in html, "left by an earlier study"


def test_where_several_axes_name_a_number_of_runs_the_smallest_counts() -> None:
    frame = pd.concat([cells(), cells().assign(method="probe")])
    margins = render({}, frame, seeds_of={"method": {"probe": 1}, "task": dict.fromkeys(frame["task"], 2)})
    margin = margins.set_index("method")["margin"]
    assert margin["full-ft"] == pytest.approx(4.303 * (1 / 3 + 1 / 2) ** 0.5 + 0.005, rel=5e-4)
    assert margin["probe"] == pytest.approx(4.303 * (1 / 3 + 1) ** 0.5 + 0.05, rel=5e-4)
