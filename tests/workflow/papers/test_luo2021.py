"""Training data that a run of the study labels, in a mix that takes each of its languages whole; and bitext of OPUS."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from project import FEW, SIZES, planned, project, small, succeeds

from xlgrid.data.formats import notes
from xlgrid.data.generated import make_data, make_meanings

TEACHER = "results/demo/runs/ner/mini/full-ft/qa1/seed1"
LABELLED = "results/demo/data/ner/qb1/train.parquet"
CELL = "results/demo/cells/ner/mini/bitfit/qa1+qb1/qb1/seed1.json"


def study() -> dict[str, Any]:
    by = {"task": "ner", "encoder": "mini", "method": "full-ft", "source": "qa1"}
    data = {
        "local": "gold/{language}/{split}.parquet",
        "labelled": {"local": "translations/{language}.parquet", "languages": ["qb1"], "by": by},
    }
    axes = {"task": ["ner"], "encoder": ["mini"], "target": ["mono"], "seed": [1]}
    return {
        "title": "Labels from a run",
        "languages": ["qa1", "qb1"],
        "text": {"sentences": 200},
        "encoders": {"mini": {"scratch": {"kind": "xlmr", "languages": ["qa1", "qb1"], **SIZES}, "training": FEW}},
        "tasks": {"ner": {"kind": "wikiann", "mix": "whole", "max_length": 64, "data": data}},
        "methods": {"full-ft": {}, "bitfit": {}},
        "training": [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2}}],
        "grids": {
            "transfer": axes | {"method": ["full-ft"], "source": ["qa1"]},
            "all": axes | {"method": ["bitfit"], "source": ["mix:mono"]},
        },
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("labels"), study())
    make_meanings("wikiann", {"n": 100}, folder / "meanings.parquet")
    for code in ("qa1", "qb1"):
        make_data("wikiann", {"n": 100}, code, folder / "meanings.parquet", folder / "gold" / code)
    # Fewer sentences than in the other language, and with no labels.
    (folder / "translations").mkdir()
    sentences = pq.read_table(folder / "gold/qb1/train.parquet").select(["tokens"]).slice(0, 50)
    pq.write_table(sentences, folder / "translations/qb1.parquet")
    return folder


def test_a_run_labels_the_training_data_of_another(folder: Path) -> None:
    jobs = planned(folder, CELL)
    assert {name: jobs[name] for name in ("fetch_unlabelled", "label_data", "train")} == {
        "fetch_unlabelled": 1,
        "label_data": 1,
        "train": 2,
    }
    # Training and dev set of the first language, and the dev and test set of the second.
    assert jobs["fetch_data"] == 4
    succeeds(folder, f"snakemake --profile laptop {CELL}")
    digest = json.loads((folder / TEACHER / "run.json").read_text())["digest"]
    assert notes(folder / LABELLED) == {"labelled_by": TEACHER, "digest": digest}
    run = json.loads((folder / "results/demo/runs/ner/mini/bitfit/qa1+qb1/seed1/run.json").read_text())
    assert (run["n_train"], run["n_dev"], run["recipe"]["mix"]) == (70 + 50, 10 + 10, "whole")
    assert planned(folder, CELL) == {}


def test_another_teacher_makes_the_data_anew(folder: Path) -> None:
    changed = study()
    changed["training"].append({"when": {"method": "full-ft"}, "set": {"lr": 1.0e-3}})
    (folder / "studies/demo.yaml").write_text(json.dumps(changed))
    jobs = planned(folder, CELL)
    assert (jobs["train"], jobs["label_data"], jobs["evaluate"]) == (2, 1, 1) and "fetch_unlabelled" not in jobs


@pytest.mark.slow
def test_the_bitext_of_a_pair_comes_out_of_archives_which_are_gone_afterwards(tmp_path: Path) -> None:
    server, folder = tmp_path / "server", tmp_path / "project"
    (server / "OPUS-Books/v1").mkdir(parents=True)
    with zipfile.ZipFile(server / "OPUS-Books/v1/de-en.txt.zip", "w") as archive:
        for code in ("de", "en"):
            archive.writestr(f"Books.de-en.{code}", "".join(f"{code} {i}\n" for i in range(30)))
    url = f"{server.as_uri()}/OPUS-{{corpus}}/{{pair}}.txt.zip"
    downloads = {
        "opus/{pair}/{split}.jsonl": {"url": url, "corpora": {"Books/v1": ["de", "en"]}},
        # The entry above wins over this one.
        "{folder}/{pair}/{split}.jsonl": {"by_hand": "ask"},
    }
    project(folder, small() | {"downloads": downloads})
    succeeds(folder, "snakemake --cores 2 opus/en-de/train.jsonl opus/en-de/dev.jsonl")
    rows = [
        json.loads(line) for split in ("train", "dev", "test") for line in (folder / f"opus/en-de/{split}.jsonl").open()
    ]
    assert len(rows) == 30 and all(row["first"].removeprefix("en") == row["second"].removeprefix("de") for row in rows)
    assert not [*(folder / "downloads").rglob("*.zip")]
    assert "OPUS-Books/v1/de-en.txt.zip" in (folder / "hub.lock.yaml").read_text()
