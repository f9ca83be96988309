"""Results read back as they were written, and a damaged file is named."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from xlgrid.base.errors import Damaged
from xlgrid.evaluation.cell import pack
from xlgrid.results import records

LABELS = ["O", "B-PER", "I-PER"]
# Two sentences: an entity that is found, and one that is not.
OUTCOMES = [[[1, 2], [1, 2]], [[0, 1], [1, 0]]]
WHO = {"task": "t", "encoder": "e", "method": "m", "source": "en", "target": "fr", "seed": 1}


def cell(folder: Path, name: str = "cell.json", **changes: Any) -> Path:
    defaults = {
        "study": "s",
        **WHO,
        "head": "token",
        "labels": LABELS,
        "scores": {"f1": 50.0},
        "metric": {"name": "f1", "implementation": "i"},
        "n": 2,
    }
    path = folder / name
    path.write_text(json.dumps({**defaults, "outcomes": pack(OUTCOMES), **changes}))
    return path


def test_outcomes_read_back(tmp_path: Path) -> None:
    assert records.outcomes("cell.json", records.read_cell(cell(tmp_path))) == OUTCOMES


def test_outcomes_and_answers_are_unpacked_once() -> None:
    records._unpacked.cache_clear()
    cell = {"head": "span", "n": 2, "outcomes": pack([1, 2]), "answers": pack(["a", "b"])}
    for _ in range(2):
        assert (records.outcomes("x", cell), records.answers("x", cell)) == ([1, 2], ["a", "b"])
    assert records._unpacked.cache_info().misses == 2


def test_a_wrong_number_of_outcomes_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"cell\.json has 2 outcomes but n 3: delete it") as refused:
        records.outcomes("cell.json", records.read_cell(cell(tmp_path, n=3)))
    assert refused.value.paths == ("cell.json",)


def test_damaged_outcomes_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"cell\.json has damaged outcomes .* delete it") as refused:
        records.outcomes("cell.json", records.read_cell(cell(tmp_path, outcomes=pack([1, 1])[:-8])))
    assert refused.value.paths == ("cell.json",)


def test_a_truncated_cell_is_named(tmp_path: Path) -> None:
    path = cell(tmp_path)
    path.write_text(path.read_text()[:-5])
    with pytest.raises(Damaged, match=r"cell\.json is truncated .*delete it") as refused:
        records.read_cell(path)
    assert refused.value.paths == (path,)


def test_a_row_per_expected_cell(tmp_path: Path) -> None:
    expected = [(cell(tmp_path), {**WHO, "size": 10}), (tmp_path / "missing.json", {**WHO, "seed": 2, "size": 20})]
    table = records.read_cells(expected, {"t": ("f1",)})
    columns = [*WHO, "size", "metric", "score", "n", "seconds", "cpu_seconds", "learnt_nothing", "implementation"]
    assert list(table.columns) == columns
    assert table["size"].tolist() == [10, 20]
    assert table["metric"].tolist() == ["f1", "f1"]
    assert table["score"][0] == 50.0 and math.isnan(table["score"][1])
    assert table["n"][0] == 2 and math.isnan(table["n"][1])
    assert table["implementation"].isna().tolist() == [False, True] and table["implementation"][0] == "i"


SQUAD = {"squad-f1": 75.0, "squad-em": 50.0}


def questions(folder: Path, **changes: Any) -> Path:
    defaults = {
        "head": "span",
        "labels": [],
        "scores": SQUAD,
        "metric": {"name": "squad-f1", "implementation": "i"},
        "outcomes": pack([[1, 1], [0.5, 0]]),
    }
    return cell(folder, **(defaults | changes))


def test_a_row_per_metric_that_is_asked_for_whether_there_is_a_result_or_not(tmp_path: Path) -> None:
    expected = [(questions(tmp_path), WHO), (tmp_path / "missing.json", {**WHO, "seed": 2})]
    table = records.read_cells(expected, {"t": ("squad-f1", "squad-em"), "other": ("accuracy",)})
    assert table["metric"].tolist() == ["squad-f1", "squad-em"] * 2
    assert table["seed"].tolist() == [1, 1, 2, 2]
    assert table["score"].tolist()[:2] == [75.0, 50.0] and table["score"][2:].isna().all()
    assert table["implementation"].notna().tolist() == [True, False, False, False], "a cell says it of its main metric"


def test_a_metric_that_a_cell_does_not_list_is_computed_from_its_outcomes(tmp_path: Path) -> None:
    table = records.read_cells([(questions(tmp_path, scores={"squad-f1": 75.0}), WHO)], {"t": ("squad-em",)})
    assert table["score"].tolist() == [50.0]
    table = records.read_cells([(cell(tmp_path), WHO)], {"t": ("recall", "f1:PER", "accuracy")})
    assert table["score"].tolist() == [50.0, 50.0, 50.0]


def test_a_cell_that_cannot_have_a_metric_is_named(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match=r"cell\.json has no f1:PRE: unknown .* did you mean 'f1:PER'.* delete it"):
        records.read_cells([(cell(tmp_path), WHO)], {"t": ("f1:PRE",)})


def test_a_cell_at_the_wrong_path_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="target 'fr' instead of 'de'"):
        records.read_cells([(cell(tmp_path), {**WHO, "target": "de"})], {"t": ("f1",)})


def run(folder: Path) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"recipe": WHO}))
    (folder / "curve.jsonl").write_text('{"step": 5, "score": 60.0, "lr": 1}\n{"step": 10, "score": 70.0, "lr": 0}\n')
    return folder


def test_curves_have_a_row_per_evaluation_of_finished_runs(tmp_path: Path) -> None:
    table = records.read_curves([run(tmp_path / "a"), tmp_path / "unfinished"])
    assert list(table.columns) == ["task", "encoder", "method", "source", "seed", "step", "score", "run"]
    assert table[["step", "score"]].values.tolist() == [[5, 60.0], [10, 70.0]]


def test_a_truncated_curve_is_named(tmp_path: Path) -> None:
    path = run(tmp_path / "a") / "curve.jsonl"
    path.write_text(path.read_text()[:-5])
    with pytest.raises(Damaged, match=r"curve\.jsonl in .* is damaged") as refused:
        records.read_curves([tmp_path / "a"])
    assert refused.value.paths == (tmp_path / "a",)


def test_what_follows_the_at_becomes_the_checkpoint_and_is_not_shown(tmp_path: Path) -> None:
    early, own = {**WHO, "target": "fr@10"}, {**WHO, "source": "en@fr"}
    frame = records.read_cells(
        [(cell(tmp_path, "early.json", target="fr@10"), early), (cell(tmp_path, "own.json", source="en@fr"), own)],
        {"t": ("f1",)},
    )
    assert frame[["source", "target"]].values.tolist() == [["en", "fr"], ["en", "fr"]]
    assert frame["score"].notna().all()
    assert frame["checkpoint"][0] == 10 and math.isnan(frame["checkpoint"][1])
    with pytest.raises(ValueError, match="target 'fr@10' instead of 'fr'"):
        records.read_cells([(tmp_path / "early.json", WHO)], {"t": ("f1",)})


def test_curves_of_runs_for_one_target_each_say_which(tmp_path: Path) -> None:
    folders = []
    for source in ("en", "en@fr"):
        folder = tmp_path / source
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"recipe": {**WHO, "source": source}}))
        (folder / "curve.jsonl").write_text('{"step": 5, "score": 1}\n')
        folders.append(folder)
    assert "target" not in records.read_curves(folders[:1])
    curves = records.read_curves(folders)
    assert curves[["source", "target", "step"]].values.tolist() == [["en", "", 5], ["en", "fr", 5]]
