"""What the parts of the report say about a synthetic study with gaps."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from page_fixture import LANGUAGES, NAN, NOTEBOOKS, PREPARATION, RECIPE, RUNS, frame, run_notebook, study_of
from status_fixture import write

from xlgrid.plan.load import load_plan
from xlgrid.report import notebook
from xlgrid.report import page as report


def rows(html: str) -> list[list[str]]:
    """The texts of a table, without its head."""
    body = html.partition("<tbody>")[2]
    return [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", body, re.DOTALL)]


def test_overview_counts_cells_and_runs(cells: pd.DataFrame) -> None:
    html = report.overview(study_of(cells))
    assert "<h1>A title</h1>" in html
    assert "3<small> / 6</small></b>cells" in html
    # Seed 0 of `full` has both its cells; every other run lacks one.
    assert "1<small> / 4</small></b>runs" in html
    assert "planned cells without a result: 3" in html


def test_overview_says_whose_results_are_shown(cells: pd.DataFrame) -> None:
    note = "2 of 6 cells are those of old"
    assert note in report.overview(study_of(cells, shared=note))
    assert "Not made here" not in report.overview(study_of(cells))


def test_overview_of_a_complete_study_says_so() -> None:
    assert "All planned cells have a result." in report.overview(study_of(frame(full__en=[1.0, 2.0])))


def test_names_are_escaped(cells: pd.DataFrame) -> None:
    cells["method"] = "a<b"
    study = study_of(cells)
    html = report.overview(replace(study, title="x & y")) + report.cost(study)
    assert "a<b" not in html
    assert "x &amp; y" in html


def test_language_table_has_each_language_of_pairs_and_mixes_once(cells: pd.DataFrame) -> None:
    cells = cells.assign(source="en+en-ar", target="q1")
    html = report.language_table(LANGUAGES, cells)
    assert [html.count(f"<td>{code}</td>") for code in ("en", "ar", "q1")] == [1, 1, 1]
    assert rows(html)[1] == ["ar", "العربية", "Semitic", "Arab", "rtl", "source"]


def test_the_languages_are_described_as_a_sample(cells: pd.DataFrame) -> None:
    html = report.language_table(LANGUAGES, cells.assign(source="en", target="ar"))
    assert "<p>Languages: 2. Families: 2. Scripts: 2. Effective number of families" in html


def test_targets_as_of_a_step_stand_apart(cells: pd.DataFrame) -> None:
    """As of step 10 and of the end, with scores far apart."""
    both = pd.concat([cells.assign(checkpoint=NAN), cells.assign(checkpoint=10.0, score=cells["score"] - 50)])
    summary = report.summary(both)
    assert summary.loc[summary["target"].eq("en") & summary["method"].eq("full"), "mean"].tolist() == [92.0, 42.0]


def test_runs_of_one_source_for_one_target_each_are_several(cells: pd.DataFrame) -> None:
    apart = cells.assign(run=cells["method"] + cells["target"] + cells["seed"].astype(str))
    assert "3<small> / 6</small></b>runs" in report.overview(study_of(apart))


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
        name: SimpleNamespace(title=f"The {name}", caption=f"About {name}.", suffixes=suffixes, is_compared=False)
        for name, suffixes in (("figure", [".csv", ".svg"]), ("absent", [".csv", ".svg"]), ("table", [".csv", ".html"]))
    }
    html = report.exhibits(study_of(cells, exhibits=planned))
    assert [html.index(f'<h3 id="exhibit-{name}">The {name}</h3>') for name in planned] == sorted(
        html.index(f'<h3 id="exhibit-{name}">') for name in planned
    )
    assert "rendered</table>" in html
    assert '<svg role="img" aria-label="The figure"' in html
    assert f"snakemake --cores all {folder}/absent.csv" in html, "an exhibit that is missing says how to make it"
    assert '<a href="exhibits/table.csv">csv</a>' in html


TIMES = ["2", "2 min", "1 min", "3", "6.0 s", "2 min 6 s"]


def test_cost_adds_up_training_and_evaluation(cells: pd.DataFrame) -> None:
    """A run and its cells share a row: the record of a run has the path of its encoder, too."""
    assert rows(report.cost(study_of(cells, runs=RUNS))) == [
        ["logic", "mini", "full", *TIMES, "3 min 29 s"],
        ["All", "", "", *TIMES, "3 min 29 s"],
    ]


def test_cost_has_no_cpu_time_where_a_record_lacks_it(cells: pd.DataFrame) -> None:
    """A sum over some of the records would look like that of all."""
    before = {name: value for name, value in RUNS[0].items() if name != "cpu_seconds"}
    older = cells.assign(cpu_seconds=cells["cpu_seconds"].where(cells["seed"] > 0))
    for study in (study_of(cells, runs=[before, RUNS[1]]), study_of(older, runs=RUNS)):
        assert [row[3:] for row in rows(report.cost(study))] == [[*TIMES, "–"]] * 2


def test_cost_leaves_out_what_another_study_made(cells: pd.DataFrame) -> None:
    others = [{**record, "recipe": RECIPE | {"study": "first"}, "seconds": 5000} for record in RUNS]
    all_cells = pd.concat([cells, cells.assign(study="first", seconds=900.0)])
    both = report.cost(study_of(all_cells, runs=[*RUNS, *others]))
    assert both == report.cost(study_of(cells, runs=RUNS))
    assert 'class="missing"' in report.cost(replace(study_of(cells), name="own"))


@pytest.mark.usefixtures("tiny_project")
def test_a_report_is_loaded_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [run, *_] = load_plan("tiny").runs
    write(run.path, json.dumps({"recipe": run._asdict(), "seconds": 5}))
    write(f"{run.folder}/curve.jsonl", json.dumps({"step": 1, "score": 50.0}))
    write("results/tiny/benchmarks/text/qa1.tsv", "s\th:m:s\n2\t0:00:00\n")
    write("results/tiny/exhibits/absent.csv")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    study = report.load("studies/tiny.yaml", tmp_path)
    assert (len(study.runs), len(study.curves), study.preparation["seconds"].tolist()) == (1, 1, [2.0])
    absent = SimpleNamespace(title="T", caption="", suffixes=[".csv"], is_compared=False)
    assert '<a href="exhibits/absent.csv">csv</a>' in report.exhibits(replace(study, exhibits={"absent": absent}))
    assert [*Path().iterdir()] == [], "nothing is written"


@pytest.mark.usefixtures("tiny_project")
def test_preparation_adds_up_by_stage_and_study() -> None:
    """The study `other` has tokens of its own; text that none of its cells needs is not counted."""
    for name, seconds in (
        ("tiny/benchmarks/text/qa1", 2),
        ("tiny/benchmarks/text/en", 200),
        ("tiny/benchmarks/tokenizers/tiny", 3),
        ("tiny/benchmarks/data/ner/qa1", 7),
        ("tiny/benchmarks/tokens/ner/tiny/qa1/test", 500),
        ("other/benchmarks/tokens/ner/tiny/qa1/train", 30),
        ("other/benchmarks/tokens/ner/tiny/qa1/test", 40),
    ):
        write(f"results/{name}.tsv", f"s\th:m:s\n{seconds}\t0:00:00\n")
    write("studies/other.yaml", "extends: tiny\ntasks: {ner: {max_length: 60}}\n")
    html = report.preparation(report.read_preparation(load_plan("other")))
    assert [row[:4] for row in rows(html)] == [
        ["data", "tiny", "1", "7.0 s"],
        ["text", "tiny", "1", "2.0 s"],
        ["tokenizers", "tiny", "1", "3.0 s"],
        ["tokens", "other", "2", "1 min 10 s"],
    ]


def test_environment_says_what_differs_between_runs() -> None:
    commits = ["a" * 40, f"{'a' * 40}-dirty"]
    facts = {
        what: (value, note)
        for what, value, note in rows(
            report.environment([{**run, "commit": commit} for run, commit in zip(RUNS, commits, strict=True)])
        )
    }
    assert facts == {
        "device": ("cpu (1 run), cuda (1 run)", "the runs differ"),
        "torch": ("2.13", ""),
        "commit of xlgrid": (f"{commits[0]} (1 run), {commits[1]} (1 run)", "the runs differ"),
    }
    assert "commit" not in report.environment(RUNS), "a wheel has none"


def test_summary_counts_seeds_and_never_invents_a_mean(cells: pd.DataFrame) -> None:
    summary = report.summary(cells).set_index(["method", "target"])
    assert summary.loc[("full", "en"), "mean"] == 92
    assert summary["n_seeds"].to_dict() == {("full", "en"): 2, ("full", "ar"): 1, ("bitfit", "en"): 0}
    assert pd.isna(summary.loc[("bitfit", "en"), "mean"])
    assert set(summary["n_seeds_expected"]) == {2}


def test_parts_print_the_labels_of_the_study(cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    labels = {"logic": "RuleTaker", "mini": "mBERT", "full": "Full fine-tuning", "bitfit": "BitFit"}
    study = study_of(cells, labels=labels, runs=RUNS)
    parts = [report.overview(study), report.cost(study)]
    figures = [report.spread(cells, labels), report.learning_curves(curves, cells, labels)]
    for part in [*parts, *figures]:
        assert labels["logic"] in part and labels["full"] in part
        assert not re.search(r"\b(logic|mini|full)\b", part)


def test_long_parts_are_behind_their_summaries(cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    many = pd.concat([curves.assign(encoder=f"e{number}") for number in range(report.MOST_PANELS + 1)])
    assert not report.learning_curves(curves, cells).startswith("<details")
    assert report.learning_curves(many, cells).startswith(
        '<details class="folded"><summary>The curves of 13 tasks, encoders and methods</summary>'
    )
    runs = [{**RUNS[0], "recipe": {**RUNS[0]["recipe"], "encoder": f"e{number}"}} for number in range(31)]
    assert "<summary>31 runs and 0 cells took" in report.cost(study_of(cells[:0], runs=runs))


def test_figures_have_the_same_bytes_each_time(cells: pd.DataFrame, curves: pd.DataFrame) -> None:
    assert report.spread(cells) == report.spread(cells)
    assert report.learning_curves(curves, cells) == report.learning_curves(curves, cells)


@pytest.mark.parametrize(
    "part",
    [
        lambda none: report.spread(none["cells"]),
        lambda none: report.learning_curves(none["curves"], none["cells"]),
        lambda none: report.cost(study_of(none["cells"])),
        lambda none: report.preparation(PREPARATION),
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


def test_a_study_without_any_result_still_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(NOTEBOOKS.parent / "studies", "studies")
    study = report.load("demo")
    assert len(study.cells) > 0
    assert study.cells["score"].isna().all()
    html = notebook.to_html(run_notebook(study, monkeypatch))
    assert f"planned cells without a result: {len(study.cells)}" in html
