"""Training data that a run of the study labels: what they are made from, which rule makes them, and which runs can label."""

import json
import re
from pathlib import Path

import pytest

from xlgrid.languages.sources import Source
from xlgrid.papers.luo2021.labelled import Unlabelled
from xlgrid.plan import workflow
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.data import Data
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.report.page import read_preparation

LABELLED = """\
title: labelled
languages: [en, fr, de]
encoders: {mini: {scratch: {languages: [en]}}, other: {scratch: {languages: [en]}}}
tasks:
  ner:
    kind: wikiann
    mix: whole
    data:
      local: "gold/{language}/{split}.jsonl"
      labelled:
        local: "raw/{language}.jsonl"
        languages: [fr, de]
        by: {task: ner, encoder: mini, method: full-ft, source: en, seed: 1}
  pos: {kind: udpos, data: {local: "gold/{language}/{split}.jsonl"}}
methods: {full-ft: {}, bitfit: {}, plug-in: {options: {parallel: en}}}
grids:
  transfer: {task: [ner, pos], encoder: [mini], method: [full-ft], source: [en], target: [mono], seed: [1]}
  all: {task: [ner], encoder: [mini, other], method: [full-ft], source: ["mix:mono"], target: [mono], seed: [1]}
"""
TEACHER = Run("labelled", "ner", "mini", "full-ft", "en", 1)
BY = "by: {task: ner, encoder: mini, method: full-ft, source: en, seed: 1}"


def load(folder: Path, text: str = LABELLED, name: str = "labelled") -> Plan:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    return load_plan(folder / f"{name}.yaml")


def test_labelled_data_rest_on_the_run_and_other_splits_do_not(tmp_path: Path) -> None:
    plan = load(tmp_path)
    inputs = Data("labelled", "ner", "de", "train").inputs(plan)
    assert inputs == {
        "rows": "results/labelled/unlabelled/ner/de.parquet",
        "delta": TEACHER.delta,
        "encoder": "results/labelled/encoders/mini/model.safetensors",
        "tokenizer": "results/labelled/tokenizers/mini/tokenizer.json",
    }
    assert Unlabelled("labelled", "ner", "de").inputs(plan) == {"files": ["raw/de.jsonl"]}
    for language, split in (("en", "train"), ("de", "dev"), ("de", "test")):
        files = {"files": [f"gold/{language}/{split}.jsonl"]}
        assert Data("labelled", "ner", language, split).inputs(plan) == files
    source = json.loads(Unlabelled("labelled", "ner", "de").settings(plan.study)["source"])
    assert source["local"] == "raw/{language}.jsonl" and "by" not in source


def test_a_run_on_all_languages_rests_on_the_one_that_labels(tmp_path: Path) -> None:
    plan = load(tmp_path)
    mixed = TEACHER._replace(encoder="other", source=Source("en+fr+de"))
    chain = plan.rests_on(Cell("labelled", "ner", "other", "full-ft", "en+fr+de", "fr", 1))
    order = [TEACHER, Data("labelled", "ner", "de", "train"), mixed]
    assert [chain.index(product) for product in order] == sorted(chain.index(product) for product in order)
    assert plan.study.recipe(*mixed[1:]).mix == "whole"


def test_a_study_that_extends_another_has_its_labelled_data_unless_the_run_changes(tmp_path: Path) -> None:
    load(tmp_path)
    data = Data("more", "ner", "de", "train")
    same = load(tmp_path, "extends: labelled\ntitle: more\n", "more")
    assert same.owned(data).study == "labelled" and not any(run.study == "more" for run in same.runs)
    other = load(tmp_path, "extends: labelled\ntraining: [{when: {source: en}, set: {lr: 1.0e-3}}]\n", "more")
    assert other.owned(data).study == "more", "a run with another recipe labels them"
    assert other.owned(Unlabelled("more", "ner", "de")).study == "labelled"
    assert {run for run in other.runs if run.study == "more"} >= {mixed for mixed in other.runs if "+" in mixed.source}


def test_the_rules_that_fetch_and_label_data_share_no_file(tmp_path: Path) -> None:
    plans = {"labelled": load(tmp_path)}
    tasks = ["ner", "pos"]
    fetch, label = (workflow.made_by(plans, rule, Data) for rule in ("fetch_data", "label_data"))
    makers = {}
    for task in tasks:
        for language in ("en", "fr", "de"):
            for split in ("train", "dev", "test"):
                path = f"results/labelled/data/{task}/{language}/{split}.parquet"
                makers[task, language, split] = [
                    name
                    for name, constraint in (("fetch", fetch), ("label", label))
                    if re.fullmatch(rf"results/(?P<study>{constraint})/data/[^/]+/[^/]+/[^/]+\.parquet", path)
                ]
    assert {key for key, each in makers.items() if each == ["label"]} == {
        ("ner", "fr", "train"),
        ("ner", "de", "train"),
    }
    assert all(each in (["label"], ["fetch"]) for each in makers.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "task: ner, encoder: mini, method",
            "task: nr, encoder: mini, method",
            r"by.task: unknown task 'nr', did you mean 'ner'",
        ),
        (
            "encoder: mini, method: full-ft, source: en, s",
            "encoder: x, method: full-ft, source: en, s",
            "unknown encoder 'x'",
        ),
        (
            BY,
            BY.replace("seed: 1", "seed: 7"),
            r"trains on labels from .*ner/mini/full-ft/en/seed7, which no grid has \(unknown seed '7'.*add that run to a grid",
        ),
        (BY, BY.replace("task: ner", "task: pos"), "pos has the labels ADJ.*, and ner has O, B-PER.*the same labels"),
        (BY, BY.replace("full-ft", "plug-in"), "plug-in reads parallel examples in en: name a method that trains"),
        (
            BY,
            BY.replace("source: en", "source: en+de"),
            r"labels that come from itself \(ner on en\+de\): name a source in none",
        ),
        (BY, BY.replace("source: en", "source: fr"), "would train on labels that come from itself"),
        ("        languages: [fr, de]\n", "", "`labelled` applies to some languages: list them"),
        ("kind: wikiann", "kind: xnli", "`labelled` needs a task with a label for each word, and xnli has no labels"),
        (
            "kind: wikiann",
            "kind: udparse",
            "`labelled` needs a task with a label for each word, and udparse has no labels",
        ),
        (
            BY,
            f"{BY}\n        labels: {{PER: B-PER}}",
            "the labels of `labelled` come from the run under `by`: leave out `labels`",
        ),
    ],
)
def test_a_run_that_cannot_label_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert LABELLED.count(old) == 1
    load(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(tmp_path, LABELLED.replace(old, new))


def test_runs_that_label_one_another_s_data_are_told(tmp_path: Path) -> None:
    labelled = (
        "labelled: {local: x, languages: [%s], by: {task: %s, encoder: mini, method: full-ft, source: %s, seed: 1}}"
    )
    text = LABELLED.replace(
        'pos: {kind: udpos, data: {local: "gold/{language}/{split}.jsonl"}}',
        'ner2: {kind: wikiann, data: {local: "gold/{language}/{split}.jsonl", '
        + labelled % ("en", "ner", "en+fr")
        + "}}",
    ).replace("task: [ner, pos]", "task: [ner]")
    load(tmp_path, text)
    with pytest.raises(ValueError, match=r"come from itself \(ner2 on en -> ner on en\+fr\)"):
        load(tmp_path, text.replace(BY, BY.replace("task: ner", "task: ner2")))


def test_rows_before_a_run_labels_them_are_a_stage_of_the_preparation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = load(tmp_path / "studies")
    measured = tmp_path / "results/labelled/benchmarks/unlabelled/ner/de.tsv"
    measured.parent.mkdir(parents=True)
    measured.write_text("s\th:m:s\n4\t0:00:04\n")
    jobs = read_preparation(plan)
    assert jobs[["stage", "seconds"]].to_numpy().tolist() == [["unlabelled", 4.0]]


def test_rows_to_label_are_the_training_set_of_their_languages(tmp_path: Path) -> None:
    data = load(tmp_path).study.tasks["ner"].data
    assert data and data.of("train", "de").paths("de", "train") == ["raw/de.jsonl"]
    assert data.derived_data("train", "de") is data.derived["labelled"]
    for split, language in (("train", "en"), ("dev", "de"), ("test", "fr")):
        assert data.derived_data(split, language) is None and data.of(split, language) == data.origin


def test_rows_are_checked_before_a_run_labels_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan, product = load(tmp_path / "studies"), Unlabelled("labelled", "ner", "de")
    assert product.rows(plan.study) is None
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/de.jsonl").write_text('{"tokens": ["Ada", "schl\u00e4ft"], "ner_tags": ["no", "labels"]}\n')
    rows = product.rows(plan.study)
    assert rows and rows.to_pylist() == [{"tokens": ["Ada", "schl\u00e4ft"]}]
    assert product_of(product.path) == product
