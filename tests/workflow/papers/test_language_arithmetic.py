"""Language arithmetic over the adapters of MAD-X, in the real Snakemake: the last study of docs/how-to/merging.md."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import blocks, make, planned, project, small
from safetensors.torch import load_file

from xlgrid.models.deltas import DELTA
from xlgrid.plan.load import load_plan

[PAGE] = [block for block in blocks("docs/how-to/merging.md", "yaml") if "madx-mixed" in block]
SHOWN: dict[str, Any] = yaml.safe_load(PAGE)
RUNS, CELLS = "results/demo/runs/mlm/mini-xlmr", "results/demo/cells/ner/mini-xlmr"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = small()
    content["tasks"]["mlm"] = {"kind": "mlm"}
    adapter = {"base": "madx", "options": {"tune": "language", "language_reduction": 4}}
    task = {
        "base": "madx",
        "options": SHOWN["methods"]["madx-mixed"]["options"],
        "start": {"task": "mlm", "method": "adapter"},
    }
    content["methods"] = {"adapter": adapter, "madx": task, **SHOWN["methods"]}
    content["grids"] = {"ner": content["grids"]["ner"] | {"method": ["madx", "madx-mixed"], "target": ["qa1", "qa2"]}}
    content["exhibits"] = {}
    content["claims"] = {}
    folder = project(tmp_path_factory.mktemp("arithmetic"), content)
    cells = [
        f"{CELLS}/{method}/qa1/{target}/seed1.json" for method in ("madx", "madx-mixed") for target in ("qa1", "qa2")
    ]
    assert planned(folder, *cells)["merge"] == 2
    make(folder, *cells)
    return folder


def test_the_adapter_of_a_target_is_the_sum_of_two(built: Path) -> None:
    source, target, mixed = (
        load_file(built / RUNS / run / "seed1" / DELTA) for run in ("adapter/qa1", "adapter/qa2", "mixed/qa2")
    )
    assert mixed.keys() == source.keys() and all({"language", "invertible"} & {*name.split(".")} for name in mixed)
    for name, tensor in mixed.items():
        assert tensor.equal((0.3 * source[name].double() + 0.7 * target[name].double()).float())


def test_the_adapter_of_the_source_is_itself(built: Path) -> None:
    own, mixed = (load_file(built / RUNS / run / "seed1" / DELTA) for run in ("adapter/qa1", "mixed/qa1"))
    assert all(tensor.equal(own[name]) for name, tensor in mixed.items())


def test_a_cell_takes_the_sum_in_the_place_of_the_adapter_of_its_target(built: Path) -> None:
    cells = {
        (method, target): json.loads((built / CELLS / method / "qa1" / target / "seed1.json").read_text())
        for method in ("madx", "madx-mixed")
        for target in ("qa1", "qa2")
    }
    assert cells["madx-mixed", "qa2"]["speaks"] == [f"{RUNS}/mixed/qa2/seed1"]
    assert cells["madx-mixed", "qa2"]["stack"] == ["invertible:qa2", "language:qa2", "task:ner"]
    # In the language of the source, both have the same adapters, so that both train the same weights.
    assert cells["madx-mixed", "qa1"]["outcomes"] == cells["madx", "qa1"]["outcomes"]


def test_the_study_of_the_page_mixes_the_adapter_of_each_target(tmp_path: Path) -> None:
    (tmp_path / "arithmetic.yaml").write_text(PAGE)
    plan = load_plan(str(tmp_path / "arithmetic.yaml"))
    merged = [run for run in plan.runs if run.method == "mixed"]
    assert {run.source for run in merged} == {*plan.study.groups["ner"]}
    shown = plan.study.exhibits["arithmetic"].cells(plan.cells, plan.study.facts)
    assert {cell.method for cell in shown} == {"madx", "madx-mixed"}
    assert len([cell for cell in shown if cell.method == "madx-mixed"]) == 3 * len(merged)
