"""Products of retrieval and mining: what tokens are made from, and with which settings."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.data import Data, Meanings
from xlgrid.products.encode import Tokens
from xlgrid.study.schema import Study

STUDY = """\
title: a study
languages: [fr, en, qa1, qb1]
encoders: {mine: {path: encoder}}
tasks:
  tatoeba: {kind: tatoeba, data: {local: "t/{language}/{split}.jsonl"}}
  bucc: {kind: bucc, data: {local: "b/{language}.{split}.{part}", splits: {dev: sample, test: training}}}
  made: {kind: bucc, options: {layer: 3, n: 40, seed: 2}}
methods: {as-is: {}}
grids:
  real: {task: [tatoeba, bucc], encoder: [mine], method: [as-is], source: [none], target: [fr-en], seed: [1]}
  made: {task: [made], encoder: [mine], method: [as-is], source: [none], target: [qa1-qb1], seed: [1]}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/s.yaml").write_text(STUDY)
    yield load_plan("s")


def test_a_pair_is_read_from_files_of_its_own(plan: Plan) -> None:
    assert Data("s", "tatoeba", "fr-en", "test").inputs(plan) == {"files": ["t/fr-en/test.jsonl"]}
    parts = [f"b/fr-en.training.{part}" for part in ("fr", "en", "gold")]
    assert Data("s", "bucc", "fr-en", "test").inputs(plan) == {"files": parts}


def test_tokens_of_mining_are_made_from_the_test_set_and_the_dev_set(plan: Plan) -> None:
    tokens = Tokens("s", "bucc", "mine", "fr-en", "test").inputs(plan)
    assert tokens["data"] == [f"results/s/data/bucc/fr-en/{split}.parquet" for split in ("test", "dev")]
    tokens = Tokens("s", "tatoeba", "mine", "fr-en", "test").inputs(plan)
    assert tokens["data"] == ["results/s/data/tatoeba/fr-en/test.parquet"]


def test_a_cell_rests_on_the_dev_set_of_mining(plan: Plan) -> None:
    [cell] = [cell for cell in plan.cells if cell.task == "bucc"]
    data = {product.path for product in plan.rests_on(cell) if isinstance(product, Data)}
    assert data == {f"results/s/data/bucc/fr-en/{split}.parquet" for split in ("test", "dev")}


def of_evaluation(study: Study, task: str) -> dict[str, object]:
    stated = Tokens("s", task, "mine", "fr-en", "test").settings(study)
    assert stated
    option, value = shlex.split(str(stated["text"]))
    assert option == "--options"
    options: dict[str, object] = json.loads(value)
    return options


def test_the_settings_of_evaluation_go_into_the_tokens_and_those_of_data_into_the_meanings(plan: Plan) -> None:
    assert of_evaluation(plan.study, "made") == {
        "layer": 3,
        "pool": "mean",
        "special_tokens": True,
        "score": "ratio",
        "k": 4,
    }
    assert of_evaluation(plan.study, "tatoeba")["queries"] == "second"
    assert Meanings("s", "made").settings(plan.study) == {"kind": "bucc", "options": '{"n": 40, "seed": 2}'}
