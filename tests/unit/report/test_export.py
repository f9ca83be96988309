"""Exported cells and learning curves, read back by the libraries that other programs use."""

import builtins
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from results_fixture import result
from status_fixture import CELL, RUN, write

from xlgrid.base.errors import Damaged
from xlgrid.languages.sources import Target
from xlgrid.plan.load import load_plan
from xlgrid.products.encode import Encoder
from xlgrid.report import export

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "export.md"
# Questions, whose answers have two metrics, a perplexity of an encoder without training, and facts.
STUDY = """\
title: Wide
languages: [qa1, qa2]
encoders:
  tiny: {scratch: {kind: bert, languages: [qa1, qa2]}, facts: {share: 0.5}}
  large: {path: models/large, facts: {share: 1, variant: wide}}
tasks:
  qa: {kind: xquad}
  perplexity: {kind: perplexity}
methods: {full-ft: {}, as-is: {}}
grids:
  qa: {task: [qa], encoder: [tiny, large], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
  bare: {task: [perplexity], encoder: [tiny], method: [as-is], source: [none], target: [qa1], seed: [1]}
"""

pytestmark = pytest.mark.usefixtures("tiny_project")


def exported(study: str = "tiny") -> pd.DataFrame:
    plan = load_plan(study)
    export.export_cells(plan, Path("cells.parquet"))
    return pq.read_table("cells.parquet").to_pandas()


def test_every_planned_cell_is_a_row_and_a_missing_result_is_null() -> None:
    result(CELL, {"f1": 61.5})
    message = export.export_cells(load_plan("tiny"), Path("cells.parquet"))
    assert message == "wrote cells.parquet: 1 of 12 planned cells have a result"
    frame = pq.read_table("cells.parquet").to_pandas()
    assert frame["path"].tolist() == [cell.path for cell in load_plan("tiny").cells]
    with_result = frame[frame["score"].notna()]
    assert with_result["path"].tolist() == [CELL.path]
    assert frame.loc[frame["score"].isna(), ["n", "device", "version_torch"]].isna().all(axis=None)


def test_a_row_has_the_identity_the_scores_and_the_circumstances_of_its_cell() -> None:
    result(CELL, {"f1": 61.5})
    row = exported().set_index("path").loc[CELL.path]
    expected = {
        **{axis: getattr(CELL, axis) for axis in ("study", "task", "encoder", "method", "source", "target", "seed")},
        "metric": "f1",
        "score": 61.5,
        "score_f1": 61.5,
        "n": 2,
        "seconds": 2.5,
        "cpu_seconds": 3.5,
        "device": "cuda (A100)",
        "threads": 4,
        "digest": "d1",
        "run": RUN.folder,
        "version_python": "3.11.7",
        "version_torch": "2.13",
        "fact_languages": 3,
    }
    assert {name: row[name] for name in expected} == expected
    assert pd.isna(row["checkpoint"])


def test_each_metric_has_a_column_and_facts_have_the_type_of_their_values() -> None:
    write("studies/wide.yaml", STUDY)
    [cell] = [cell for cell in load_plan("wide").cells if cell.encoder == "large" and cell.target == "qa2"]
    result(cell, {"squad-f1": 75.0, "squad-em": 50.0})
    row = exported("wide").set_index("path").loc[cell.path]
    assert row[["metric", "score", "score_squad-f1", "score_squad-em"]].tolist() == ["squad-f1", 75.0, 75.0, 50.0]
    kinds = {field.name: str(field.type) for field in pq.read_schema("cells.parquet")}
    assert {name: kind for name, kind in kinds.items() if name.startswith("fact_")} == {
        "fact_share": "double",
        "fact_variant": "string",
        "fact_languages": "int64",
        "fact_updates": "int64",
    }


def test_what_follows_the_at_is_the_checkpoint() -> None:
    plan = load_plan("tiny")
    cell = CELL._replace(target=Target("qb1@10"))
    export.export_cells(SimpleNamespace(study=plan.study, cells=[cell], owned=plan.owned), Path("cells.parquet"))  # type: ignore[arg-type]
    assert pq.read_table("cells.parquet").to_pandas()[["target", "checkpoint"]].values.tolist() == [["qb1", 10]]


def test_a_cell_of_an_encoder_without_training_has_no_run() -> None:
    write("studies/wide.yaml", STUDY)
    frame = exported("wide")
    assert frame[frame["run"].isna()]["source"].tolist() == ["none"]


def test_a_cell_of_an_extended_study_is_under_the_study_that_makes_it() -> None:
    result(CELL, {"f1": 61.5})
    write(
        "studies/more.yaml",
        "extends: tiny\ntitle: More\nmethods: {bitfit: {}}\ngrids: {main: {method: [full-ft, bitfit]}}\n",
    )
    frame = exported("more")
    assert frame["study"].value_counts().to_dict() == {"tiny": 12, "more": 12}
    assert frame["score"].notna().sum() == 1


def test_a_damaged_cell_is_named_and_an_earlier_file_stays() -> None:
    earlier = exported()
    write(CELL.path, "{")
    with pytest.raises(Damaged, match=r"seed1\.json is truncated .*delete it"):
        exported()
    pd.testing.assert_frame_equal(pq.read_table("cells.parquet").to_pandas(), earlier)


def section() -> str:
    """The text about exports on the page."""
    return PAGE.read_text().partition("\n## ")[0]


def test_the_page_describes_every_column() -> None:
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section(), re.MULTILINE))
    assert described == {name: text for name, (_, text) in export.COLUMNS.items()}


def test_the_lines_of_the_page_average_the_scores() -> None:
    write("studies/demo.yaml", Path("studies/tiny.yaml").read_text())
    for seed, score in ((1, 60.0), (2, 70.0)):
        result(CELL._replace(study="demo", seed=seed), {"f1": score})
    plan = load_plan("demo")
    export.export_cells(plan, export.cells_path(plan))
    names: dict[str, Any] = {}
    exec(section().partition("```python\n")[2].partition("```")[0], names)
    assert names["means"]["ner", "full-ft", "qb1"] == 65.0


CURVE = [
    {"step": 100, "loss": 0.7, "score": 40.0, "lr": 1e-3, "seconds": 5.0},
    {"step": 200, "loss": float("nan"), "score": 55.0, "lr": 0.0, "seconds": 9.0},
]


def trained(folder: str, metric: str = "f1", ended: float = 1_000_010.0) -> None:
    """Write the record and the curve of a training."""
    write(f"{folder}/curve.jsonl", "".join(json.dumps(point) + "\n" for point in CURVE))
    write(f"{folder}/run.json", json.dumps({"metric": metric, "seconds": 10.0}), when=ended)


def scalars(folder: Path) -> dict[str, list[tuple[float, int, float]]]:
    """Tag -> time, step and value of each point, as TensorBoard itself reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder)).Reload()
    return {
        tag: [(event.wall_time, event.step, event.value) for event in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }


def test_tensorboard_reads_the_curve_of_a_run() -> None:
    trained(RUN.folder)
    message = export.export_curves(load_plan("tiny"), Path("tb"))
    assert (
        message == "wrote the learning curves of 1 of 5 planned trainings to tb; `tensorboard --logdir tb` shows them"
    )
    curves = scalars(Path("tb/ner/tiny/full-ft/qa1/seed1"))
    assert curves["dev/f1"] == [(1_000_005.0, 100, 40.0), (1_000_009.0, 200, 55.0)]
    assert curves["train/learning_rate"] == [(1_000_005.0, 100, pytest.approx(1e-3)), (1_000_009.0, 200, 0.0)]
    assert curves["train/loss"] == [(1_000_005.0, 100, pytest.approx(0.7))], "a loss that is no number has no point"


def test_an_encoder_that_is_trained_here_has_a_curve() -> None:
    trained(Encoder("tiny", "tiny").folder, metric="perplexity")
    export.export_curves(load_plan("tiny"), Path("tb"))
    assert [step for _, step, _ in scalars(Path("tb/encoders/tiny"))["dev/perplexity"]] == [100, 200]


def test_a_second_export_replaces_the_first() -> None:
    trained(RUN.folder)
    for _ in range(2):
        export.export_curves(load_plan("tiny"), Path("tb"))
    assert [step for _, step, _ in scalars(Path("tb/ner/tiny/full-ft/qa1/seed1"))["dev/f1"]] == [100, 200]
    assert len([path for path in Path("tb").rglob("*") if path.is_file()]) == 1


def test_without_any_run_nothing_is_written() -> None:
    message = export.export_curves(load_plan("tiny"), Path("tb"))
    assert message == "wrote the learning curves of 0 of 5 planned trainings to tb"
    assert not os.path.exists("tb")


def test_without_the_package_an_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("tensorboard"):
            raise ModuleNotFoundError("No module named 'tensorboard'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ValueError, match=r"need the package tensorboard .*`pip install 'tensorboard>=2\.18'`, then run"
    ):
        export.export_curves(load_plan("tiny"), Path("tb"))
