"""The miniature of MAD-X's paper, cut down once more: from text and data to all of its exhibits and claims."""

import csv
import json
import shutil
import sys
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from project import FEW, ROOT, SIZES, commands, make, planned, project, shell, shown, small, succeeds, write
from shipped import STUDIES

from xlgrid.models.deltas import read_delta
from xlgrid.plan.load import load_study
from xlgrid.study.schema import Study

BASE, PAPER = (yaml.safe_load((STUDIES[name]).read_text()) for name in ("pfeiffer2020-mini", "pfeiffer2020"))
RESULTS = "results/demo"
# Of two families and scripts.
LANGUAGES = ["qa1", "ql1"]
PAGE = "docs/how-to/language-adapter.md"
CELLS = f"{RESULTS}/cells/wikiann/mini-xlmr"


def study() -> dict[str, Any]:
    """The miniature in a seen and an unseen language, with everything smaller, and one seed."""
    steps = {"steps": 4, "batch_tokens": 256, "evaluations": 2}
    grids: dict[str, Any] = {name: {"seed": [1]} for name in PAPER["grids"]}
    grids["ner-checkpoints"]["checkpoints"] = [2, 4]
    scratch = SIZES | {"languages": ["qa1", "qb1"], "bitext": [["qa1", "qb1"]]}
    claims = load_study(STUDIES["pfeiffer2020-mini"]).claims
    return {
        "extends": "pfeiffer2020-mini",
        "groups": {
            **{name: LANGUAGES for name in ("ner", "xcopa", "xquad")},
            **{name: ["qa1"] for name in ("seen", "high-resource")},
            **{name: ["ql1"] for name in ("unseen", "unseen-truly-low-resource", "xcopa-unseen")},
        },
        "text": {"sentences": 200},
        "encoders": {
            name: {"scratch": scratch, "training": FEW} for name in BASE["encoders"] if BASE["encoders"][name]
        },
        # Windows, because with so few pieces a text is long.
        "tasks": {
            name: {"options": {"n": 100} | ({"stride": 32} if name == "xquad" else {})}
            for name in BASE["tasks"]
            if name != "mlm"
        },
        "training": [{"set": steps}, {"when": {"task": "mlm"}, "set": {"checkpoints": [2, 4]}}],
        "grids": grids,
        # The others have no cell here.
        "exhibits": {
            "resource": {"groups": ["zero-shot:high-resource", "zero-shot:unseen-truly-low-resource"]},
            "family": {"groups": ["zero-shot:family:qa", "zero-shot:family:ql"]},
            "relation": {"groups": ["other-family", "other-script"]},
        },
        "claims": here({name: claim.model_dump(mode="json", exclude_unset=True) for name, claim in claims.items()}),
    }


def here(claims: Any) -> Any:
    """Claims, or parts of them, about sources and seeds of this slice alone."""
    if isinstance(claims, list):
        return [here(each) for each in claims]
    if not isinstance(claims, dict):
        return claims
    left = {"source": LANGUAGES, "seed": [1]}
    return {
        key: [value for value in left[key] if value in entry] if key in left else here(entry)
        for key, entry in claims.items()
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("adapters"), study())
    for name in ("pfeiffer2020", "pfeiffer2020-mini"):
        shutil.copy(STUDIES[name], folder / "studies")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def loaded(built: Path) -> Study:
    return load_study(built / "studies" / "demo.yaml")


def cell(folder: Path, path: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / CELLS / path).read_text())
    return read


def test_all_exhibits_and_claims_of_the_miniature_are_in_the_slice(loaded: Study) -> None:
    whole = load_study(STUDIES["pfeiffer2020-mini"])
    assert (loaded.exhibits.keys(), loaded.claims.keys()) == (whole.exhibits.keys(), whole.claims.keys())


def test_every_claim_has_a_verdict_from_all_of_its_cells(built: Path, loaded: Study) -> None:
    judged = pd.read_csv(built / RESULTS / "claims.csv")
    assert judged["claim"].to_list() == list(loaded.claims)
    # One seed is not enough, and trainings of four steps learn nothing.
    assert judged["effect"].notna().all() and {*judged["verdict"]} <= {"not enough runs", "a side has learnt nothing"}
    assert (judged["n_cells"] == judged["n_cells_expected"]).all()


def test_the_report_shows_every_exhibit_and_claim(built: Path, loaded: Study) -> None:
    page = (built / RESULTS / "report.html").read_text()
    assert [name for name in loaded.exhibits if f'id="exhibit-{name}"' not in page] == []
    assert [name for name, claim in loaded.claims.items() if escape(claim.says) not in page] == []
    assert "Not made yet" not in page


def test_no_cell_of_any_exhibit_is_missing(built: Path) -> None:
    for path in sorted((built / RESULTS / "exhibits").glob("*.csv")):
        table = pd.read_csv(path)
        assert not table.empty, path.name
        if "n_cells" in table:
            assert (table["n_cells"] == table["n_cells_expected"]).all(), path.name


def test_a_cell_says_which_adapters_are_active(built: Path) -> None:
    for target in LANGUAGES:
        stack = cell(built, f"madx/qa1/{target}/seed1.json")["stack"]
        assert stack == [f"invertible:{target}", f"language:{target}", "task:wikiann"]
    assert cell(built, "madx-noinv/qa1/ql1/seed1.json")["stack"] == ["language:ql1", "task:wikiann"]
    assert cell(built, "madx-task-only/qa1/ql1/seed1.json")["stack"] == ["task:wikiann"]


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        ("wikiann/mini-xlmr/madx/qa1", {"task", "classifier"}),
        # Nothing reads the head of a language model again.
        ("mlm/mini-xlmr/adapter/qa1", {"language", "invertible"}),
        ("mlm/mini-xlmr/adapter-noinv/qa1", {"language"}),
    ],
)
def test_a_run_of_adapters_stores_them_and_the_head_of_its_task_alone(built: Path, run: str, parts: set[str]) -> None:
    stored = built / RESULTS / "runs" / run / "seed1/delta.safetensors"
    assert stored.stat().st_size < (built / RESULTS / "encoders/mini-xlmr/model.safetensors").stat().st_size
    tensors, _, _ = read_delta(stored)
    matches = {name: parts.intersection(name.split(".")) for name in tensors}
    assert [name for name, of in matches.items() if not of] == []
    assert set().union(*matches.values()) == parts


def test_a_run_of_adapters_on_a_task_stores_all_that_it_trained(built: Path) -> None:
    folder = built / RESULTS / "runs/wikiann/mini-xlmr/madx/qa1/seed1"
    trained = json.loads((folder / "run.json").read_text())["parameters"]["trained"]
    tensors, _, _ = read_delta(folder / "delta.safetensors")
    assert sum(tensor.numel() for tensor in tensors.values()) == trained
    assert trained * 4 <= (folder / "delta.safetensors").stat().st_size


def test_a_program_that_scores_by_itself_has_the_scores_of_cells_with_adapters(built: Path) -> None:
    program = ROOT / "benchmarks" / "score_cells.py"
    process = shell(built, f"{sys.executable} {program} demo --task wikiann siqa-copa --method full-ft madx")
    assert process.returncode == 0, process.stderr[-4000:]
    assert "cells, of which 0 differ; the largest difference is 0.000000 points" in process.stdout.splitlines()[-1]
    assert {row.split()[2] for row in process.stdout.splitlines()[1:-1]} == {*LANGUAGES}


@pytest.fixture
def mine(tmp_path: Path, finished: Path) -> Path:
    """In a copy of the project, the study of docs/how-to/language-adapter.md, and the one that it extends, cut down as well."""
    folder = tmp_path / "project"
    shutil.copytree(finished, folder, symlinks=True)
    shutil.copy(STUDIES["pfeiffer2020"], folder / "studies")
    mini = yaml.safe_load((STUDIES["pfeiffer2020-mini"]).read_text())
    mini["text"]["sentences"] = 200
    mini["encoders"]["mini-xlmr"]["scratch"] |= SIZES
    mini["encoders"]["mini-xlmr"]["training"] |= FEW
    mini["tasks"]["wikiann"]["options"]["n"] = 100
    steps = {"steps": 4, "batch_tokens": 256, "evaluations": 2}
    mini["training"] = [{"set": steps}, {"when": {"task": "mlm"}, "set": {"checkpoints": [2]}}]
    mini["grids"]["ner-checkpoints"]["checkpoints"] = [2]
    write(folder, mini, "pfeiffer2020-mini")
    study = yaml.safe_load(shown(PAGE))
    study["grids"] = {"ner": {"source": ["qa1", "qa9"], "target": ["qa1", "qa9"], "seed": [1]}}
    write(folder, study, "added-language")
    return folder


def added(folder: Path, study: str) -> dict[str, Any]:
    """The cell of the language that a study adds."""
    path = f"results/{study}/cells/wikiann/mini-xlmr/madx/qa1/qa9/seed1.json"
    read: dict[str, Any] = json.loads((folder / path).read_text())
    return read


@pytest.mark.thorough
def test_from_a_text_of_your_own_to_the_heatmap(mine: Path) -> None:
    """The commands of docs/how-to/language-adapter.md in their order, each of which needs what the one before it has made."""
    for command in commands(PAGE):
        succeeds(mine, command)
    with (mine / "results/added-language/exhibits/figure10.csv").open() as file:
        assert {row["column"] for row in csv.DictReader(file)} == {"qa1", "qa9"}
    trained = added(mine, "added-language")
    assert "language:qa9" in trained["stack"]

    # The exported adapters, imported in the place of training, give the same cell.
    [export] = [command for command in commands(PAGE) if "export-adapter" in command]
    succeeds(
        mine, export.replace("qa9", "qa1").replace("results/added-language/runs", "results/pfeiffer2020-mini/runs")
    )
    again = {
        "extends": "added-language",
        "title": "Again",
        "methods": {"adapter": {"imported": {"path": "adapters/{language}"}}},
    }
    again |= {"grids": {"ner-checkpoints": None}, "exhibits": {"figure04": None}}
    write(mine, again, "again")
    succeeds(mine, "snakemake --profile laptop results/again/cells/wikiann/mini-xlmr/madx/qa1/qa9/seed1.json")
    assert not (mine / "results/again/tokens/mlm").exists(), "adapters that are imported were trained"
    assert added(mine, "again")["outcomes"] == trained["outcomes"]


def imported(folder: Path) -> Path:
    """A project whose language adapters are those in a folder of it."""
    content = small()
    read = {"base": "madx", "options": {"tune": "language"}, "imported": {"path": "adapters/{language}"}}
    content["tasks"]["mlm"] = {"kind": "mlm"}
    content["methods"] |= {"read": read, "stacked": {"base": "madx", "start": {"task": "mlm", "method": "read"}}}
    content["grids"]["stacked"] = content["grids"]["ruletaker"] | {"method": ["stacked"], "source": ["fr"]}
    for language in ("en", "fr"):
        (folder / "adapters" / language).mkdir(parents=True)
        for name in ("adapter_config.json", "pytorch_adapter.bin"):
            (folder / "adapters" / language / name).touch()
    return project(folder, content)


def test_an_imported_adapter_whose_weights_have_changed_is_read_again(tmp_path: Path) -> None:
    folder, run = imported(tmp_path), "results/demo/runs/mlm/mini-bert/read/fr/seed1/delta.safetensors"
    beside = [str(Path(run).with_name(name)) for name in ("run.json", "curve.jsonl")]
    for path in ("results/demo/encoders/mini-bert/model.safetensors", run, *beside):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    assert planned(folder, run) == {}
    (folder / "adapters/fr/pytorch_adapter.bin").write_bytes(b"other")
    assert planned(folder, run) == {"import_adapter": 1}
