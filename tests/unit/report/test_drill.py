"""The details behind the entries of a page, against the exhibits and the exported predictions."""

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import confusion_matrix, f1_score
from wide_fixture import LABELS, made

from xlgrid.plan.plan import Plan
from xlgrid.report import drill, page, predictions


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("wide"))
        yield made()


@pytest.fixture(scope="module")
def details(plan: Plan) -> dict[str, Any]:
    element = drill.script(page.load("wide", Path()))
    packed = json.loads(re.sub(r"^<script[^>]*>|</script>$", "", element))
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.mark.parametrize("name", ["matrix", "gain", "rows", "panels", "blocks"])
def test_an_entry_leads_to_the_cells_whose_scores_it_shows(plan: Plan, details: dict[str, Any], name: str) -> None:
    exhibit = plan.study.exhibit(name)
    entries = exhibit.rendering(plan).sheet.entries.sort_index()
    cells = [numbers for numbers in details["exhibits"][name]["entries"] if numbers is not None]
    assert len(cells) == len(entries)
    for entry, numbers in zip(entries.to_dict("records"), cells, strict=True):
        behind = [details["cells"][number] for number in numbers]
        metric = plan.study.printed[entry.get("metric", "accuracy")]
        scores: dict[str, list[float]] = {}
        for cell in behind:
            if metric in cell.get("scores", {}):
                scores.setdefault(cell["axes"][2], []).append(cell["scores"][metric][0])
        if entry["n_seeds"] == entry["n_seeds_expected"]:
            means = [np.mean(values) for values in scores.values()]
            expected = np.mean(scores["bitfit"]) - np.mean(scores["full-ft"]) if name == "gain" else np.mean(means)
            assert entry["mean"] == pytest.approx(expected, abs=1e-3)


def test_names_of_facts_are_free(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    exhibit = plan.study.exhibit("blocks")
    rendering = exhibit.rendering(plan)
    entries, behind = (
        frame.rename(columns={"target": "corpus-size"}) for frame in (rendering.sheet.entries, rendering.behind)
    )
    renamed = rendering._replace(sheet=replace(rendering.sheet, rows=("corpus-size",), entries=entries), behind=behind)
    monkeypatch.setattr(type(exhibit), "rendering", lambda *_: renamed)
    assert drill._entries(plan, "blocks", {}) is not None


def test_a_blank_entry_leads_nowhere(details: dict[str, Any]) -> None:
    """Most languages have no other one of their family."""
    assert None in details["exhibits"]["rows"]["entries"]


def test_the_examples_of_a_cell_are_some_that_it_got_wrong(plan: Plan, details: dict[str, Any]) -> None:
    predictions.export(plan, Path("predictions.parquet"))
    exported = pq.read_table("predictions.parquet").to_pandas().set_index(["path", "example"]).sort_index()
    shown = [cell for cell in details["cells"] if "examples" in cell]
    assert {cell["axes"][5] for cell in shown} == {"1", "2"}, "the first seed with a result of each run and target"
    assert len({tuple(cell["axes"][:5]) for cell in shown}) == len(shown)
    for cell in shown[::20]:
        rows = exported.loc[cell["path"]]
        assert cell["wrong"] == (~rows["is_right"].astype(bool)).sum()
        assert len(cell["examples"]) == min(drill.EXAMPLES, cell["wrong"])
        for number, text, _, gold, predicted, *_ in cell["examples"]:
            row = rows.loc[number]
            assert (text, gold, predicted) == (row["input_text"], row["gold"], row["predicted"])
            assert gold != predicted


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([], "give no answers in single examples"),
        (None, "An earlier version of xlgrid made this cell"),
        (FileNotFoundError("no data"), "cannot be read: no data"),
    ],
)
def test_a_cell_without_examples_says_why(plan: Plan, monkeypatch: pytest.MonkeyPatch, found: Any, reason: str) -> None:
    def examples(*_: Any) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(predictions, "examples", examples)
    shown = [cell["without"] for cell in drill.details(plan)["cells"] if "without" in cell]
    assert len(shown) == 2 * 16 * 16
    assert all(reason in text for text in shown)


def test_answers_of_another_method_and_of_the_language_of_training_are_beside(
    plan: Plan, details: dict[str, Any]
) -> None:
    """The test sets are parallel, as their equal labels show."""
    of = {tuple(cell["axes"]): cell for cell in details["cells"]}
    predictions.export(plan, Path("predictions.parquet"))
    exported = pq.read_table("predictions.parquet").to_pandas().set_index(["path", "example"])
    cell = of["news", "large", "full-ft", "fr", "th", "1"]
    assert (cell["other"], cell["home"]) == ("bitfit", "fr")
    for number, _, translation, _, _, other, home in cell["examples"]:
        assert other == exported.loc[(of["news", "large", "bitfit", "fr", "th", "1"]["path"], number), "predicted"]
        at_home = exported.loc[(of["news", "large", "full-ft", "fr", "fr", "1"]["path"], number)]
        assert (translation, home) == (at_home["input_text"], at_home["predicted"])


def test_labels_have_the_scores_and_the_confusions_of_scikit_learn(plan: Plan, details: dict[str, Any]) -> None:
    predictions.export(plan, Path("predictions.parquet"))
    exported = pq.read_table("predictions.parquet").to_pandas()
    cell = next(cell for cell in details["cells"] if "matrix" in cell)
    rows = exported[exported["path"] == cell["path"]]
    sides = rows["gold"], rows["predicted"]
    assert cell["matrix"]["counts"] == confusion_matrix(*sides, labels=LABELS).tolist()
    f1 = f1_score(*sides, labels=LABELS, average=None, zero_division=0)
    assert [label[3] for label in cell["labels"]] == pytest.approx(100 * f1, abs=0.05)


def test_a_run_has_its_curve_its_files_and_its_recipe(details: dict[str, Any]) -> None:
    run = details["runs"][0]
    assert run["curve"] == [[10, 60.0], [20, 70.0]]
    assert {"lr": 2e-5, "batch size": 32, "steps": 20, "n train": 500}.items() <= dict(run["facts"]).items()
    assert run["log"] == "results/wide/logs/runs/news/large/full-ft/en/seed1.log"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["B-PER O O", "B-PER O B-LOC", "O O B-LOC"], ["Rom O", "Rom B-LOC", "Rom B-LOC"]),
        (["1:a 2:b 0:c", "1:a 2:x", ""], ["in 2:b, Rom 0:c", "in 2:x, Rom –", ""]),
        (["O O", "B-PER O", ""], ["O O", "B-PER O", ""]),
    ],
    ids=["where gold and predicted differ", "a word without a prediction", "a word without a gold label"],
)
def test_labels_of_words_are_those_that_differ(answers: list[str], expected: list[str]) -> None:
    assert drill._briefly(["Ada", "in", "Rom"], answers) == expected


def test_a_long_text_is_cut_around_its_answer() -> None:
    text = "a " * 500 + "Rome " + "b " * 500
    cut = drill._clipped(text, "Rome / the old Rome")
    assert "Rome" in cut and cut.startswith("…") and cut.endswith("…") and len(cut) <= drill.LONGEST + 2
