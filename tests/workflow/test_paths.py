"""A path names its study: what one call of Snakemake plans, refuses, and hands to the processes that run its jobs."""

import os
import shutil
import time
from pathlib import Path

import pytest
from project import ROOT, make, planned, project, refused, shell, small, write

RULETAKER = "cells/ruletaker-d0/mini-bert/full-ft/en/fr/seed1.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the demo, a study that extends it with data and an encoder of its own, and a broken one."""
    root = project(tmp_path_factory.mktemp("paths"), small())
    mine = {
        "extends": "demo",
        "tasks": {"ner": {"data": {"local": "mine/{language}/{split}.jsonl"}}},
        "encoders": {"mini-bert": {"scratch": None, "training": None, "path": "encoder"}},
        "exhibits": {"ner-full-ft": None, "ner-bitfit-minus-full-ft": None, "learning-curves": None},
    }
    write(root, mine, "mine")
    (root / "studies" / "broken.yaml").write_text("title: [\n")
    for language in ("qa1", "qa2", "qb1"):
        for split in ("train", "dev", "test"):
            path = root / "mine" / language / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"tokens": ["a", "b"], "ner_tags": [1, 2]}\n' * 20)
    encoder = root / "encoder"
    encoder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (encoder / name).touch()
    return root


def change(file: Path, content: bytes) -> None:
    """Give a file another content and, whatever the clock's resolution, a later time than all others."""
    file.write_bytes(content)
    later = time.time() + 10
    os.utime(file, (later, later))


def test_exhibits_of_several_studies_are_planned_in_one_call(folder: Path) -> None:
    """The same names mean other rules in each: `mine` reads the data that the demo generates."""
    exhibits = ["results/demo/exhibits/ner-transfer.csv", "results/mine/exhibits/ner-transfer.csv"]
    alone = [planned(folder, exhibit) for exhibit in exhibits]
    both = planned(folder, *exhibits)
    # The encoder, and the tokenizer, text and tokens (three languages and a pair) from which it is made, are those of the
    # demo in both.
    shared = {"text": 3, "tokenizer": 1, "tokens": 2 * (3 + 1), "pretrain": 1}
    assert both == {
        rule: sum(jobs.get(rule, 0) for jobs in alone) - shared.get(rule, 0) for rule in {*alone[0], *alone[1]}
    }
    assert (alone[0].get("data"), alone[0].get("fetch_data")) == (3, None)
    assert (alone[1].get("data"), alone[1].get("fetch_data")) == (None, 5)


def test_a_path_may_be_written_in_other_ways(folder: Path) -> None:
    for path in ("./results/mine/summary.csv", "studies/../results/mine//summary.csv"):
        assert planned(folder, path)["report_notebook"] == 1


def test_a_broken_default_does_not_disturb_a_named_study(folder: Path) -> None:
    (folder / "config.yaml").write_text("study: broken\nhub_lock: hub.lock.yaml\n")
    try:
        assert planned(folder, "--cores all", f"results/demo/{RULETAKER}")["evaluate"] == 1
        assert "broken.yaml:2: not valid YAML" in refused(folder, "snakemake --dry-run")
        assert "broken.yaml:2: not valid YAML" in refused(folder, f"snakemake --dry-run all results/demo/{RULETAKER}")
        assert planned(folder, "--config study=demo")["all"] == 1
    finally:
        shutil.copy(ROOT / "config.yaml", folder)


def test_a_pretraining_has_a_process_for_each_gpu_of_its_job(folder: Path) -> None:
    """The profile of a cluster says how many."""
    encoder = "results/demo/encoders/mini-xlmr/model.safetensors"
    process = shell(folder, f"snakemake -n -p {encoder} --set-resources pretrain:gpus=3")
    assert "--processes 3 " in process.stdout, process.stderr


def test_a_process_for_one_job_loads_the_study_of_its_job_only(folder: Path) -> None:
    """As the executor starts it, while the default study is another and broken."""
    (folder / "config.yaml").write_text("study: broken\nhub_lock: hub.lock.yaml\n")
    job = "fetch_data:study=mine,task=ner,language=qa1,split=test"
    command = (
        f"snakemake --snakefile workflow/Snakefile --target-jobs {job} --allowed-rules fetch_data --cores 1 --force "
        "--target-files-omit-workdir-adjustment --nolock --ignore-incomplete --mode remote"
    )
    try:
        process = shell(folder, command)
    finally:
        shutil.copy(ROOT / "config.yaml", folder)
    assert process.returncode == 0, process.stderr[-3000:]
    assert (folder / "results/mine/data/ner/qa1/test.parquet").stat().st_size


def test_a_changed_file_of_ones_own_is_read_again_and_a_missing_one_is_told(folder: Path) -> None:
    target, own = "results/mine/data/ner/qb1/test.parquet", folder / "mine/qb1/test.jsonl"
    make(folder, target)
    assert planned(folder, target) == {}
    change(own, own.read_bytes() * 2)
    assert planned(folder, target) == {"fetch_data": 1}
    own.rename(own.with_suffix(".aside"))
    output = refused(folder, f"snakemake --dry-run {target}")
    own.with_suffix(".aside").rename(own)
    assert "Missing input files for rule fetch_data" in output and "mine/qb1/test.jsonl" in output


def test_a_changed_encoder_of_ones_own_is_copied_again_and_a_missing_file_is_told(folder: Path) -> None:
    target, own = "results/mine/encoders/mini-bert/config.json", folder / "encoder"
    source = folder / "results/demo/encoders/mini-bert"
    make(folder, f"{source.relative_to(folder)}/config.json")
    for file in source.iterdir():
        shutil.copy(file, own)
    make(folder, target)
    assert planned(folder, target) == {}
    weights = own / "model.safetensors"
    change(weights, weights.read_bytes()[:-1] + b"x")
    assert planned(folder, target) == {"fetch_encoder": 1}
    (own / "model.safetensors").rename(own / "aside")
    output = refused(folder, f"snakemake --dry-run {target}")
    (own / "aside").rename(own / "model.safetensors")
    assert "Missing input files for rule fetch_encoder" in output and "encoder/model.safetensors" in output
