"""Cross-lingual queries through the whole workflow: with which runs, on text and of a first task, a cell is evaluated and attention drawn."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from project import make, project, small
from safetensors.torch import load_file

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.papers.foroutan2023 import compare

CELLS = "results/demo/cells/ruletaker-d0/mini-bert"
RUNS = "results/demo/runs"
PAIRS = ["en-fr", "en-de"]
# A method's runs for each target on a second task.
STAGED = [f"results/demo/cells/second/mini-bert/{place}/fr/seed1.json" for place in ("mlm-src/en", "mlm-trg/en@fr")]
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
    demo["training"].append({"when": {"task": "mlm", "source": ["en", "fr"]}, "set": {"checkpoints": [2, 4]}})
    axes = {"encoder": ["mini-bert"], "source": ["en"], "target": ["fr"], "seed": [1]}
    demo["grids"]["staged"] = axes | {"task": ["second"], "method": ["mlm-src", "mlm-trg"]}
    demo["grids"]["early"] = axes | {"task": ["ruletaker-d0"], "method": ["own-qcross"], "checkpoints": [2, 4]}
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
        "early": {"kind": "curve", "title": "Steps", "x": "checkpoint", "lines": "target", "select": {"source": "en"}},
        "masks": {"kind": "masks", "title": "Masks", "methods": ["pair-qcross"]},
    }
    return demo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("starts"), study())
    targets = [f"results/demo/exhibits/{name}.csv" for name in study()["exhibits"]]
    make(folder, *targets, *STAGED)
    return folder


def test_attention_is_drawn_with_the_mlm_run_of_each_target(built: Path) -> None:
    path = "results/demo/attention/ruletaker-d0/mini-bert/pair-qcross/en+en-fr/en-fr/en-de/seed1.json"
    record = compare.read(built / path)
    assert record["speaks"] == [[f"{RUNS}/mlm/mini-bert/query/{pair}/seed1"] for pair in PAIRS]
    assert record["n"] + record["left_out"] > 0
    assert record["drawn"][0]["tokens"][0] == "[CLS]"
    assert "divergence" in (built / "results/demo/exhibits/attention.svg").read_text()


@pytest.mark.parametrize(
    ("method", "target", "mlm_run"),
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
def test_a_cell_is_evaluated_with_the_mlm_run_of_its_target(
    built: Path, method: str, target: str, mlm_run: str
) -> None:
    cell = json.loads((built / CELLS / method / "en+en-fr" / target / "seed1.json").read_text())
    assert cell["speaks"] == [f"{RUNS}/mlm/mini-bert/{mlm_run}/seed1"]


def test_the_weights_of_the_query_are_the_targets_and_its_bias_the_runs(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built)
    run = Path(f"{RUNS}/ruletaker-d0/mini-bert/pair-qcross/en+en-fr/seed1")
    data = batches.read("results/demo/tokens/ruletaker-d0/mini-bert/en-de/test.arrow", "en-de")
    mlm_run = Path(f"{RUNS}/mlm/mini-bert/query/en-de/seed1")
    model = trained.model_of(trained.read(run), "results/demo/encoders/mini-bert", data, mlm_run)
    now = model.state_dict()
    assert torch.equal(now[f"{QUERY}.bias"], load_file(run / "delta.safetensors")[f"{QUERY}.bias"])
    queries = {pair: load_file(f"{RUNS}/mlm/mini-bert/query/{pair}/seed1/delta.safetensors") for pair in PAIRS}
    assert torch.equal(now[f"{QUERY}.weight"], queries["en-de"][f"{QUERY}.weight"])
    assert not torch.equal(queries["en-fr"][f"{QUERY}.weight"], queries["en-de"][f"{QUERY}.weight"])


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
    assert [(float(row["checkpoint"]), row["column"], row["n_seeds"]) for row in rows] == [
        (2, "fr", "1"),
        (4, "fr", "1"),
    ]
    monkeypatch.chdir(built)
    run = Path(f"{RUNS}/ruletaker-d0/mini-bert/own-qcross/en/seed1")
    data = batches.read("results/demo/tokens/ruletaker-d0/mini-bert/fr/test.arrow", "fr")
    mlm_run = Path(f"{RUNS}/mlm/mini-bert/query/fr/seed1")
    for step in (2, 4):
        model = trained.model_of(trained.read(run), "results/demo/encoders/mini-bert", data, mlm_run, step)
        stored = load_file(mlm_run / f"step{step}.safetensors")
        assert torch.equal(model.state_dict()[f"{QUERY}.weight"], stored[f"{QUERY}.weight"])
