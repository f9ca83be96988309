"""What data and texts are made from, and the settings that change them."""

from pathlib import Path

from plan_fixture import begun
from products_fixture import CELL

from xlgrid.plan.plan import Plan
from xlgrid.products.data import Data
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.study.tasks import TaskEntry


def test_a_cell_rests_on_the_splits_that_are_fetched_for_it_and_its_run_on_those_of_another_task(plan: Plan) -> None:
    products = {product.path: product for product in plan.rests_on(CELL)}
    data = {name.removeprefix("results/tiny/data/") for name in products if "/data/" in name}
    assert data == {"siqa/meanings.parquet", "siqa/qa1/test.parquet", "own/qb1/test.parquet"}
    tokens = {name.removeprefix("results/tiny/tokens/") for name in products if "/tokens/" in name}
    splits = [f"{code}/{split}" for code in ("qa1", "qa2", "qb1") for split in ("train", "dev")]
    of_encoder = {f"pretraining/tiny/{split}.arrow" for split in splits}
    assert tokens == {"siqa/tiny/qa1/train.arrow", "siqa/tiny/qa1/dev.arrow", "own/tiny/qb1/test.arrow"} | of_encoder


def test_files_of_ones_own_are_inputs(plan: Plan) -> None:
    assert Data("tiny", "own", "qa1", "dev").inputs(plan) == {"files": ["x/qa1/dev.jsonl"]}
    tokenizer = Tokenizer("tiny", "mine")
    weights = {"tokenizer": tokenizer.path, "files": ["encoder/config.json", "encoder/model.safetensors"]}
    assert Encoder("tiny", "mine").inputs(plan) == weights
    assert tokenizer.inputs(plan) == {"files": ["encoder/tokenizer.json"]}
    for name in ("vocab.txt", "notes.md", "pytorch_model.bin"):
        Path("encoder").mkdir(exist_ok=True)
        Path("encoder", name).touch()
    pickled = ["encoder/config.json", "encoder/pytorch_model.bin"]
    assert Encoder("tiny", "mine").inputs(plan) == weights | {"files": pickled}, "there are no others"
    Path("encoder", "model.safetensors").touch()
    assert Encoder("tiny", "mine").inputs(plan) == weights
    assert tokenizer.inputs(plan) == {"files": ["encoder/tokenizer.json", "encoder/vocab.txt"]}


def test_a_pair_is_read_from_its_own_file_or_from_those_of_its_languages(plan: Plan) -> None:
    pair = Data("tiny", "own", "qa1-qb1", "dev")
    assert pair.inputs(plan) == {"files": ["x/qa1/dev.jsonl", "x/qb1/dev.jsonl"]}
    Path("x/qa1-qb1").mkdir(parents=True)
    Path("x/qa1-qb1/dev.jsonl").touch()
    assert pair.inputs(plan) == {"files": ["x/qa1-qb1/dev.jsonl"]}


def test_data_depend_on_the_labels_that_a_task_has_of_its_own() -> None:
    study = begun()
    data = {"local": "{language}.txt", "columns": ["tokens", "_", "ner_tags"]}
    study.tasks["ner"] = TaskEntry.model_validate({"kind": "wikiann", "labels": ["O", "B-DATE"], "data": data})
    values = Data("begun", "ner", "en", "test").settings(study) or {}
    tokens = Tokens("begun", "ner", "mini", "en", "test").settings(study) or {}
    assert values["columns"] == tokens["columns"] == '{"labels": ["O", "B-DATE"]}'
    assert '"columns":["tokens","_","ner_tags"]' in str(values["source"])
