"""Runs that other runs begin with, on text and of a first task: which are made, and with which of them a cell is evaluated."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from project import planned, project, shell, small
from safetensors.torch import load_file

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.papers.foroutan2023 import compare

CELLS = "results/demo/cells/ruletaker-d0/mini-bert"
RUNS = "results/demo/runs"
PAIRS = ["en-fr", "en-de"]
# A method's runs for each target on a second task.
STAGED = [f"results/demo/cells/second/mini-bert/{place}/fr/seed1.json" for place in ("mlm-src/en", "mlm-trg/en@fr")]
# Train and dev of four languages and a pair.
OF_PRETRAINING = 2 * (4 + 1)
QUERY = "bert.encoder.layer.0.attention.self.query.cross"


def study() -> dict[str, Any]:
    """Cross-lingual queries of two pairs and a shared one, and an encoder trained on both; en-it has none of its own. Beside
    them queries of single languages as of two steps, and encoders trained on a source's or a target's text."""
    demo = small()
    demo["languages"] = codes = ["en", "fr", "de", "it"]
    del demo["encoders"]["mini-xlmr"], demo["tasks"]["ner"], demo["grids"]["ner"]
    demo["encoders"]["mini-bert"]["scratch"]["languages"] = codes
    both = "+".join(PAIRS)
    demo["methods"] = {
        "query": {"base": "qcross", "options": {"tune": "query", "p_mask": 1.0}},
        "cs-mlm": {"base": "full-ft"},
        "pair-qcross": {"base": "qcross", "start": {"task": "mlm", "method": "query", "pairs": PAIRS}},
        "shared-qcross": {"base": "qcross", "start": {"task": "mlm", "method": "query", "source": both}},
        "cs-baseline": {"base": "bitfit", "start": {"task": "mlm", "method": "cs-mlm", "source": both}},
        "own-qcross": {"base": "qcross", "start": {"task": "mlm", "method": "query"}},
        "mlm-src": {"base": "full-ft", "start": {"task": "mlm", "method": "cs-mlm", "at": "source"}},
        "mlm-trg": {"base": "full-ft", "start": {"task": "mlm", "method": "cs-mlm", "at": "target"}},
    }
    demo["tasks"]["mlm"] = {"kind": "mlm"}
    demo["tasks"]["second"] = demo["tasks"]["ruletaker-d0"] | {"start": "ruletaker-d0"}
    demo["training"].append({"when": {"task": "mlm", "source": ["en", "fr"]}, "set": {"snapshots": [2, 4]}})
    axes = {"encoder": ["mini-bert"], "source": ["en"], "target": ["fr"], "seed": [1]}
    demo["grids"]["staged"] = axes | {"task": ["second"], "method": ["mlm-src", "mlm-trg"]}
    demo["grids"]["early"] = axes | {"task": ["ruletaker-d0"], "method": ["own-qcross"], "snapshots": [2, 4]}
    demo["grids"]["ruletaker"] |= {
        "languages": codes,
        "method": ["pair-qcross", "shared-qcross", "cs-baseline"],
        "source": ["en+en-fr"],
        "target": ["en-X", "de-en", "de"],
    }
    demo["exhibits"] = {
        "ruletaker-transfer": demo["exhibits"]["ruletaker-transfer"]
        | {"rows": ["method"], "groups": ["mono", "en-X", "X-en"]},
        "attention": {
            "kind": "attention",
            "title": "Attention",
            "select": {"method": "pair-qcross"},
            "targets": ["en-fr", "en-de"],
        },
        "early": {"kind": "curve", "title": "Steps", "x": "snapshot", "lines": "target", "select": {"source": "en"}},
        "masks": {"kind": "masks", "title": "Masks", "methods": ["pair-qcross"]},
    }
    return demo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("starts"), study())
    targets = [f"results/demo/exhibits/{name}.csv" for name in study()["exhibits"]]
    process = shell(folder, f"snakemake --profile laptop {' '.join([*targets, *STAGED])}")
    assert process.returncode == 0, process.stderr[-4000:]
    return folder


def test_a_text_run_is_made_once_for_all_that_begin_with_it(tmp_path: Path) -> None:
    jobs = planned(project(tmp_path, study()), "results/demo/exhibits/ruletaker-transfer.csv")
    texts, runs, cells = 2 + 1 + 1, 3, 3 * (3 + 1 + 1)
    assert (jobs["train"], jobs["evaluate"]) == (texts + runs, cells)


def test_attention_needs_no_cells_but_the_text_runs_of_both_targets(tmp_path: Path) -> None:
    folder = project(tmp_path, study())
    jobs = planned(folder, "results/demo/exhibits/attention.csv")
    texts, runs = 2, 1
    assert (jobs["train"], jobs["attention"], jobs.get("evaluate", 0)) == (texts + runs, 1, 0)
    assert planned(folder, "results/demo/exhibits/masks.csv") == {"figure": 1}


def test_attention_is_drawn_with_the_run_on_text_of_each_target(built: Path) -> None:
    path = "results/demo/attention/ruletaker-d0/mini-bert/pair-qcross/en+en-fr/en-fr/en-de/seed1.json"
    record = compare.read(built / path)
    assert record["speaks"] == [[f"{RUNS}/mlm/mini-bert/query/{pair}/seed1"] for pair in PAIRS]
    assert record["n"] + record["left_out"] > 0
    assert record["drawn"][0]["tokens"][0] == "[CLS]"
    assert "divergence" in (built / "results/demo/exhibits/attention.svg").read_text()


@pytest.mark.parametrize(
    ("method", "target", "text_run"),
    [
        ("pair-qcross", "en-fr", "query/en-fr"),
        ("pair-qcross", "en-de", "query/en-de"),
        ("pair-qcross", "de-en", "query/en-de"),
        ("pair-qcross", "en-it", "query/en-fr"),
        ("pair-qcross", "de", "query/en-fr"),
        ("shared-qcross", "en-de", "query/en-fr+en-de"),
        ("cs-baseline", "en-de", "cs-mlm/en-fr+en-de"),
    ],
)
def test_a_cell_is_evaluated_with_the_run_on_text_of_its_target(
    built: Path, method: str, target: str, text_run: str
) -> None:
    cell = json.loads((built / CELLS / method / "en+en-fr" / target / "seed1.json").read_text())
    assert cell["speaks"] == [f"{RUNS}/mlm/mini-bert/{text_run}/seed1"]


def test_the_weights_of_the_query_are_the_targets_and_its_bias_the_runs(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built)
    run = Path(f"{RUNS}/ruletaker-d0/mini-bert/pair-qcross/en+en-fr/seed1")
    data = batches.read("results/demo/tokens/ruletaker-d0/mini-bert/en-de/test.arrow", "en-de")
    text_run = Path(f"{RUNS}/mlm/mini-bert/query/en-de/seed1")
    model = trained.model_of(trained.read(run), "results/demo/encoders/mini-bert", data, text_run)
    now = model.state_dict()
    assert torch.equal(now[f"{QUERY}.bias"], load_file(run / "delta.safetensors")[f"{QUERY}.bias"])
    queries = {pair: load_file(f"{RUNS}/mlm/mini-bert/query/{pair}/seed1/delta.safetensors") for pair in PAIRS}
    assert torch.equal(now[f"{QUERY}.weight"], queries["en-de"][f"{QUERY}.weight"])
    assert not torch.equal(queries["en-fr"][f"{QUERY}.weight"], queries["en-de"][f"{QUERY}.weight"])


def test_a_text_run_trains_the_query_alone(built: Path) -> None:
    delta = load_file(built / f"{RUNS}/mlm/mini-bert/query/en-fr/seed1/delta.safetensors")
    assert set(delta) == {f"{QUERY}.weight", f"{QUERY}.bias"}
    whole = load_file(built / f"{RUNS}/mlm/mini-bert/cs-mlm/en-fr+en-de/seed1/delta.safetensors")
    assert "bert.embeddings.word_embeddings.weight" in whole


def test_a_run_for_a_target_rests_on_its_text_and_on_the_first_stage(tmp_path: Path) -> None:
    folder = project(tmp_path, study())
    source, target = (planned(folder, cell) for cell in STAGED)
    text, first, second = 1, 1, 1
    assert source["train"] == target["train"] == text + first + second
    both = planned(folder, *STAGED)
    assert (both["train"], both["evaluate"]) == (6, 2)
    splits_of_texts, splits_of_tasks = 2 * 2, 2 + 3
    assert both["tokens"] == OF_PRETRAINING + splits_of_texts + splits_of_tasks


@pytest.mark.parametrize(("method", "source", "text"), [("mlm-src", "en", "en"), ("mlm-trg", "en@fr", "fr")])
def test_a_cell_of_a_second_stage_tells_what_it_rests_on(built: Path, method: str, source: str, text: str) -> None:
    cell = json.loads((built / f"results/demo/cells/second/mini-bert/{method}/{source}/fr/seed1.json").read_text())
    assert (cell["source"], cell["target"]) == (source, "fr")
    assert cell["speaks"] == [f"{RUNS}/mlm/mini-bert/cs-mlm/{text}/seed1"]
    record = json.loads((built / cell["run"] / "run.json").read_text())
    assert record["recipe"]["first"] == "ruletaker-d0"
    logs = built / f"results/demo/logs/runs/ruletaker-d0/mini-bert/{method}/{source}/seed1.log"
    assert "step 4/4" in logs.read_text()


def test_a_target_is_spoken_as_of_each_step(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (built / "results/demo/exhibits/early.csv").read_text().splitlines()
    rows = [dict(zip(table[0].split(","), line.split(","), strict=True)) for line in table[1:]]
    assert [(float(row["snapshot"]), row["column"], row["n_seeds"]) for row in rows] == [(2, "fr", "1"), (4, "fr", "1")]
    monkeypatch.chdir(built)
    run = Path(f"{RUNS}/ruletaker-d0/mini-bert/own-qcross/en/seed1")
    data = batches.read("results/demo/tokens/ruletaker-d0/mini-bert/fr/test.arrow", "fr")
    text_run = Path(f"{RUNS}/mlm/mini-bert/query/fr/seed1")
    for step in (2, 4):
        model = trained.model_of(trained.read(run), "results/demo/encoders/mini-bert", data, text_run, step)
        stored = load_file(text_run / f"step{step}.safetensors")
        assert torch.equal(model.state_dict()[f"{QUERY}.weight"], stored[f"{QUERY}.weight"])


def test_snapshots_stay_out_of_tables(built: Path) -> None:
    assert "own-qcross" not in (built / "results/demo/exhibits/ruletaker-transfer.csv").read_text()


def test_a_misspelt_target_of_a_run_is_told_before_any_job(tmp_path: Path) -> None:
    folder = project(tmp_path, study())
    process = shell(folder, f"snakemake --dry-run {STAGED[1].replace('@fr', '@fx')}")
    assert process.returncode and "did you mean 'en@fr'" in process.stdout + process.stderr


def imported(folder: Path) -> Path:
    """A project whose language adapters are those in a folder of it."""
    content = study()
    content["methods"]["query"] = {
        "base": "madx",
        "options": {"tune": "language"},
        "imported": {"path": "adapters/{language}"},
    }
    content["methods"]["pair-qcross"] = {"base": "madx", "start": {"task": "mlm", "method": "query"}}
    content["grids"] = {"main": content["grids"]["staged"] | {"task": ["ruletaker-d0"], "method": ["pair-qcross"]}}
    content["exhibits"] = {}
    for language in ("en", "fr"):
        (folder / "adapters" / language).mkdir(parents=True)
        for name in ("adapter_config.json", "pytorch_adapter.bin"):
            (folder / "adapters" / language / name).touch()
    return project(folder, content)


def test_imported_adapters_are_read_where_others_would_be_trained(tmp_path: Path) -> None:
    jobs = planned(imported(tmp_path), f"{CELLS}/pair-qcross/en/fr/seed1.json")
    assert (jobs["import_adapter"], jobs["train"], jobs["evaluate"]) == (2, 1, 1)
    assert jobs["tokens"] == OF_PRETRAINING + 3, "those of the task and of no other text"


def test_an_imported_adapter_whose_weights_have_changed_is_read_again(tmp_path: Path) -> None:
    folder, run = imported(tmp_path), "results/demo/runs/mlm/mini-bert/query/fr/seed1/delta.safetensors"
    beside = [str(Path(run).with_name(name)) for name in ("run.json", "curve.jsonl")]
    for path in ("results/demo/encoders/mini-bert/model.safetensors", run, *beside):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    assert planned(folder, run) == {}
    (folder / "adapters/fr/pytorch_adapter.bin").write_bytes(b"other")
    assert planned(folder, run) == {"import_adapter": 1}


def test_an_adapter_that_is_not_there_is_told_before_any_job(tmp_path: Path) -> None:
    folder = imported(tmp_path)
    (folder / "adapters/fr/adapter_config.json").unlink()
    process = shell(folder, f"snakemake --dry-run {CELLS}/pair-qcross/en/fr/seed1.json")
    assert process.returncode and "adapters/fr/adapter_config.json" in process.stdout + process.stderr
