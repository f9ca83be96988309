"""The report on a synthetic study with gaps: what its parts say, and the page that the template makes of a notebook."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pandas as pd
import pytest

from xlgrid.report import figures, notebook
from xlgrid.report import page as report

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
NAN = float("nan")
LANGUAGES = {
    "en": SimpleNamespace(name="English", family="Germanic", script="Latn", direction="ltr"),
    "ar": SimpleNamespace(name="العربية", family="Semitic", script="Arab", direction="rtl"),
}
RUNS = [
    {
        "task": "logic",
        "encoder": "mini",
        "method": "full",
        "seconds": 50,
        "device": "cpu",
        "versions": {"torch": "2.13"},
    },
    {
        "task": "logic",
        "encoder": "mini",
        "method": "full",
        "seconds": 70,
        "device": "cuda",
        "versions": {"torch": "2.13"},
    },
]


def frame(**scores: list[float]) -> pd.DataFrame:
    """Cells of source `en`: method__target -> score by seed."""
    rows = []
    for name, values in scores.items():
        method, target = name.split("__")
        for seed, score in enumerate(values):
            rows.append(("logic", "mini", method, "en", target, seed, "accuracy", score, 100, 2.0))
    names = ["task", "encoder", "method", "source", "target", "seed", "metric", "score", "n", "seconds"]
    return pd.DataFrame(rows, columns=names)


def study_of(cells: pd.DataFrame, **parts: Any) -> report.Report:
    """A study called demo with these cells."""
    empty: dict[str, Any] = {"exhibits": {}, "curves": pd.DataFrame(), "runs": [], "preparation": pd.DataFrame()}
    texts = ("demo", "A title", "What it is.")
    return report.Report(*texts, languages=LANGUAGES, cells=cells, **empty | parts)


@pytest.fixture
def cells() -> pd.DataFrame:
    return frame(full__en=[90, 94], full__ar=[60, NAN], bitfit__en=[NAN, NAN])


@pytest.fixture
def curves() -> pd.DataFrame:
    rows = [("logic", "mini", "full", "en", seed, step, 50 + step / 10 + seed) for seed in (0, 1) for step in (0, 100)]
    return pd.DataFrame(rows, columns=["task", "encoder", "method", "source", "seed", "step", "score"])


def test_overview_counts_cells_and_runs(cells: pd.DataFrame) -> None:
    html = report.overview(study_of(cells))
    assert "<h1>demo</h1>" in html
    assert "3<small> / 6</small></b>cells" in html
    # Seed 0 of `full` has both its cells; every other run lacks one.
    assert "1<small> / 4</small></b>runs" in html
    assert "planned cells without a result: 3" in html


def test_overview_of_a_complete_study_says_so() -> None:
    assert "All planned cells have a result." in report.overview(study_of(frame(full__en=[1.0, 2.0])))


def test_names_are_escaped(cells: pd.DataFrame) -> None:
    cells["method"] = "a<b"
    html = report.overview(replace(study_of(cells), title="x & y")) + report.coverage(cells) + report.cost(cells, [])
    assert "a<b" not in html
    assert "x &amp; y" in html


def test_language_table_has_each_language_of_pairs_and_mixes_once(cells: pd.DataFrame) -> None:
    cells = cells.assign(source="en+en-ar", target="q1")
    html = report.language_table(LANGUAGES, cells)
    assert [html.count(f'<th scope="row">{code}</th>') for code in ("en", "ar", "q1")] == [1, 1, 1]
    assert "<td>العربية</td><td>Semitic</td><td>Arab</td><td>rtl</td><td>source</td>" in html


def test_coverage_marks_complete_incomplete_missing_and_not_planned(cells: pd.DataFrame) -> None:
    html = report.coverage(cells)
    full, bitfit = html.index(">full<"), html.index(">bitfit<")
    assert '<td class="complete">2/2</td><td class="incomplete">1/2</td>' in html[full:bitfit]
    assert '<td class="missing">0/2</td><td></td>' in html[bitfit:]


def test_coverage_counts_a_cell_with_two_metrics_once(cells: pd.DataFrame) -> None:
    assert report.coverage(pd.concat([cells, cells.assign(metric="f1")])) == report.coverage(cells)


def test_targets_as_of_a_step_stand_apart(cells: pd.DataFrame) -> None:
    """As of step 10 and of the end, with scores far apart."""
    both = pd.concat([cells.assign(snapshot=NAN), cells.assign(snapshot=10.0, score=cells["score"] - 50)])
    found = report.summary(both)
    assert found.loc[found["target"].eq("en") & found["method"].eq("full"), "mean"].tolist() == [92.0, 42.0]
    assert figures.seed_deviations(both)["deviation"].abs().max() == 2.0
    head = report.coverage(both).partition("</thead>")[0]
    assert [head.count(f">{target}<") for target in ("en", "ar", "en@10", "ar@10")] == [1, 1, 1, 1]


def test_runs_of_one_source_for_one_target_each_are_several(cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    apart = cells.assign(run=cells["method"] + cells["target"] + cells["seed"].astype(str))
    assert "3<small> / 6</small></b>runs" in report.overview(study_of(apart))
    twice = pd.concat([curves.assign(target="en"), curves.assign(target="ar")])
    lines = [len(figures.curves(one).axes[0].lines) for one in (curves, twice)]
    assert lines == [2, 4]


def test_exhibits_keep_the_order_of_the_study_and_embed_what_exists(
    cells: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/demo/exhibits")
    folder.mkdir(parents=True)
    (folder / "table.html").write_text("<table class='exhibit'>rendered</table>")
    (folder / "table.csv").write_text("")
    (folder / "figure.svg").write_text("<svg/>")
    planned = {
        name: SimpleNamespace(title=f"The {name}", caption=f"About {name}.", suffixes=suffixes)
        for name, suffixes in (("figure", [".csv", ".svg"]), ("absent", [".csv", ".svg"]), ("table", [".csv", ".html"]))
    }
    html = report.exhibits(study_of(cells, exhibits=planned))
    assert [html.index(f'<h3 id="exhibit-{name}">The {name}</h3>') for name in planned] == sorted(
        html.index(f'<h3 id="exhibit-{name}">') for name in planned
    )
    assert "rendered</table>" in html
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+" alt="The figure"' in html
    assert f"snakemake {folder}/absent.csv" in html, "an exhibit that is missing says how to make it"
    assert '<a href="exhibits/table.csv">csv</a>' in html


def test_seed_deviations_need_two_seeds_and_centre_each_cell(cells: pd.DataFrame) -> None:
    found = figures.seed_deviations(cells)
    assert found[["method", "target", "deviation"]].values.tolist() == [["full", "en", -2.0], ["full", "en", 2.0]]


def test_spread_bar_is_the_pooled_standard_deviation() -> None:
    # Squared deviations 2 * 2**2 + 2 * 4**2 over one free seed in each of two cells: sqrt(20).
    figure = figures.spread(figures.seed_deviations(frame(full__en=[90, 94], full__ar=[60, 68])))
    assert [text.get_text() for text in figure.axes[0].texts] == ["4.5"]


def test_spread_is_drawn_where_a_task_lacks_another_one_s_seeds() -> None:
    more, fewer = frame(full__en=[90, 94, 92]), frame(full__en=[60, 68]).assign(task="spans")
    figure = figures.spread(figures.seed_deviations(pd.concat([more, fewer])))
    drawn = [[len(line.get_xdata()) for line in ax.lines[:3]] for ax in figure.axes]
    assert drawn == [[1, 1, 1], [1, 1, 0]]


def test_learning_curves_have_a_panel_per_method_and_a_line_per_run(curves: pd.DataFrame) -> None:
    figure = figures.curves(pd.concat([curves, curves[curves["seed"] == 0].assign(method="bitfit")]))
    assert [len(ax.lines) for ax in figure.axes] == [2, 1]


def test_cost_adds_up_training_and_evaluation(cells: pd.DataFrame) -> None:
    html = report.cost(cells, RUNS)
    said = "<td>2</td><td>2 min 0 s</td><td>1 min 0 s</td><td>3</td><td>6.0 s</td><td>2 min 6 s</td>"
    assert f'<th scope="row">full</th>{said}' in html
    assert f'<th scope="row" colspan="3">All</th>{said}' in html


def test_preparation_adds_up_by_stage(tmp_path: Path) -> None:
    for name, seconds in (("text/en", 2), ("tokens/t/e/en/train", 30), ("tokens/t/e/en/test", 40)):
        path = tmp_path / "benchmarks" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\n{seconds}\t0:00:00\n")
    html = report.preparation(report.read_preparation(tmp_path))
    assert '<th scope="row">text</th><td>1</td><td>2.0 s</td><td>2.0 s</td>' in html
    assert '<th scope="row">tokens</th><td>2</td><td>1 min 10 s</td><td>35.0 s</td>' in html


def test_environment_marks_what_differs_between_runs() -> None:
    html = report.environment(RUNS)
    assert '<td class="incomplete" title="the runs differ">cpu (1 run), cuda (1 run)</td>' in html
    assert "<td>2.13</td>" in html


def test_summary_counts_seeds_and_never_invents_a_mean(cells: pd.DataFrame) -> None:
    found = report.summary(cells).set_index(["method", "target"])
    assert found.loc[("full", "en"), "mean"] == 92
    assert found["n_seeds"].to_dict() == {("full", "en"): 2, ("full", "ar"): 1, ("bitfit", "en"): 0}
    assert pd.isna(found.loc[("bitfit", "en"), "mean"])
    assert set(found["n_seeds_expected"]) == {2}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.0 s"), (59.96, "1 min 0 s"), (725, "12 min 5 s"), (3599.9, "1 h 0 min"), (12_000, "3 h 20 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert report.duration(seconds) == said


def test_figures_have_the_same_bytes_each_time(cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    assert report.spread(cells) == report.spread(cells)
    assert report.learning_curves(curves, cells) == report.learning_curves(curves, cells)


@pytest.mark.parametrize(
    "part",
    [
        lambda none: report.spread(none["cells"]),
        lambda none: report.learning_curves(none["curves"], none["cells"]),
        lambda none: report.cost(none["cells"], []),
        lambda none: report.preparation(report.read_preparation("nowhere")),
        lambda none: report.environment([]),
        lambda none: report.exhibits(study_of(none)),
    ],
)
def test_a_part_without_results_says_so(part: Callable[[Any], str], cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    assert 'class="missing"' in part({"cells": cells.assign(score=NAN), "curves": curves[:0]})


def test_a_broken_run_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "logic" / "seed0" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"seed0/run\.json is not JSON"):
        report.read_runs([path])


def test_run_records_carry_the_identity_of_their_recipe(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "logic" / "seed0" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"seconds": 3, "recipe": {"method": "full"}}')
    (found,) = report.read_runs([path, tmp_path / "not" / "yet"])
    assert (found["method"], found["seconds"]) == ("full", 3)


def test_a_study_without_any_result_still_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(NOTEBOOKS.parent / "studies", "studies")
    study = report.load("demo")
    assert len(study.cells) > 0
    assert study.cells["score"].isna().all()
    html = notebook.to_html(run_notebook(study, monkeypatch))
    assert f"planned cells without a result: {len(study.cells)}" in html


def run_notebook(study: report.Report, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook with its outputs, its cells run here rather than in a kernel, which would take seconds."""
    monkeypatch.setattr(report, "load", lambda name: study if name == study.name else None)
    executed = notebook.for_study(nbformat.read(NOTEBOOKS / "report.ipynb", as_version=4), study.name)
    names: dict[str, Any] = {}
    for cell in executed.cells:
        if cell.cell_type == "code":
            *before, last = cell.source.splitlines()
            exec("\n".join(before), names)
            if " = " in last:
                exec(last, names)
            elif isinstance(value := eval(last, names), report.Html):
                cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": value._repr_html_()})]
    return executed


@pytest.mark.slow
def test_a_saved_notebook_names_its_study_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run by a kernel, and a copy of it in another project reads that project."""
    study = (NOTEBOOKS.parent / "studies" / "demo.yaml").read_text(encoding="utf-8")
    for place, title in (("first", "the first one"), ("second", "the second one")):
        folder = tmp_path / place
        (folder / "studies").mkdir(parents=True)
        (folder / "studies" / "other.yaml").write_text(re.sub("(?m)^title: .*$", f"title: {title}", study))
        monkeypatch.chdir(folder)
        source = NOTEBOOKS / "report.ipynb" if place == "first" else tmp_path / "first" / "report.ipynb"
        notebook.execute("other", source, Path("report.ipynb"))
        text = Path("report.ipynb").read_text(encoding="utf-8")
        assert title in text
        assert "Out[" not in notebook.to_html(nbformat.reads(text, as_version=4)), "a prompt of the kernel"
        assert str(tmp_path) not in text and str(NOTEBOOKS.parent) not in text
        assert [path.name for path in folder.iterdir() if path.name != "studies"] == ["report.ipynb"]


def test_claims_are_a_part_of_the_page_of_a_study_that_has_any(
    cells: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/demo")
    folder.mkdir(parents=True)
    assert report.claims(study_of(cells)) is None
    study = study_of(cells, claims={"chance": SimpleNamespace()})
    assert "snakemake results/demo/claims.html" in str(report.claims(study))
    (folder / "claims.html").write_text("<table>verdicts</table>")
    (folder / "claims.svg").write_text("<svg/>")
    html = str(report.claims(study))
    assert '<h3 id="claims">' in html
    assert "<table>verdicts</table>" in html
    assert 'src="data:image/svg+xml;base64,' in html
    assert 'href="claims.csv"' in html


@pytest.fixture
def html(tmp_path: Path, cells: pd.DataFrame, curves: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a study with an exhibit that is not made yet."""
    exhibits = {"table01": SimpleNamespace(title="Accuracy & more", caption="", suffixes=[".csv", ".html"])}
    parts = {"exhibits": exhibits, "curves": curves, "runs": RUNS, "preparation": report.read_preparation(tmp_path)}
    return notebook.to_html(run_notebook(study_of(cells, **parts), monkeypatch))


def test_page_contents_lead_to_every_heading(html: str) -> None:
    contents = html[html.index("<nav") : html.index("</nav>")]
    targets = [part.split('"')[0] for part in contents.split('href="#')[1:]]
    assert targets[:3] == ["Exhibits", "exhibit-table01", "Languages"]
    assert [target for target in targets if f'id="{target}"' not in html] == [], "contents lead nowhere"
    assert len(targets) == html.count("<h2") + html.count("<h3"), "a heading is not in the contents"


def test_page_is_offline_and_without_scripts(html: str) -> None:
    assert "<script" not in html
    assert "://" not in html.replace("http://www.w3.org", "")
    assert "table.exhibit .incomplete" in html, "the style sheet is part of the page"


def test_page_is_named_after_the_study_and_shows_no_code(html: str) -> None:
    assert "<title>demo</title>" in html
    assert "report.overview" not in html


def test_page_leaves_out_warnings_and_shows_errors() -> None:
    cell = nbformat.v4.new_code_cell("f()")
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        nbformat.v4.new_output("error", ename="ValueError", evalue="bad", traceback=["ValueError: bad"]),
    ]
    html = notebook.to_html(nbformat.v4.new_notebook(cells=[cell]))
    assert "a warning" not in html
    assert "ValueError: bad" in html


def test_notebook_is_committed_without_outputs_and_defines_nothing() -> None:
    source = json.loads((NOTEBOOKS / "report.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in source["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert not any("def " in line for cell in code for line in cell["source"])
