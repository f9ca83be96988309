"""The settings of the commands that make products."""

import json
import re
import shlex
from pathlib import Path

import pytest
from plan_fixture import begun

from xlgrid.plan.products import Data, Encoder, Exhibit, Meanings, Report, Text, Tokens, Unlabelled, Vocabulary
from xlgrid.plan.settings import settings
from xlgrid.results.identity import Cell, Run
from xlgrid.study.schema import ImportedAdapters
from xlgrid.study.tasks import TaskEntry
from xlgrid.training.encoders import EncoderEntry
from xlgrid.training.recipe import Recipe

RULES = Path(__file__).parents[3] / "rules"


def test_every_setting_that_a_rule_asks_for_is_one_of_its_product_and_none_is_forgotten() -> None:
    """A setting that no command is given could change no result."""
    text = "".join(path.read_text() for path in RULES.glob("*.smk"))
    requests = {(kind, name) for name, kind in re.findall(r'=setting\("(\w+)", (\w+)[,)]', text)}
    study = begun()
    own = {
        "kind": "sequence",
        "inputs": ["a"],
        "target": "b",
        "labels": ["x", "y"],
        "data": {"local": "{language}.{split}.csv"},
    }
    study.tasks["own"] = TaskEntry.model_validate(own)
    teacher = {"task": "words", "encoder": "mini", "method": "mlm", "source": "en"}
    labelled = {"local": "{language}.csv", "languages": ["fr"], "by": teacher}
    data = {"local": "{language}.{split}.csv", "labelled": labelled}
    study.tasks["words"] = TaskEntry.model_validate({"kind": "udpos", "data": data})
    study.encoders.update(hub=EncoderEntry(hub="a/b"), path=EncoderEntry(path="x"), of=EncoderEntry(of="mini", step=1))
    imported = ImportedAdapters(hub="a/{language}", revision="v1")
    study.methods["read"] = study.methods["mlm"].model_copy(update={"base": "madx", "imported": imported})
    products = {
        "Meanings": [Meanings("begun", "siqa")],
        "Data": [
            Data("begun", "siqa", "en", "train"),
            Data("begun", "own", "en", "test"),
            Data("begun", "words", "fr", "train"),
        ],
        "Unlabelled": [Unlabelled("begun", "words", "fr")],
        "Text": [Text("begun", "en")],
        "Vocabulary": [Vocabulary("begun", name) for name in study.all_vocabularies],
        "Encoder": [Encoder("begun", name) for name in study.encoders],
        "Tokens": [Tokens("begun", "siqa", "mini", "en", "test")],
        "Run": [Run("begun", "mlm", "mini", "read", "en", 1)],
    }
    stated = {
        (kind, name) for kind, each in products.items() for product in each for name in settings(study, product) or ()
    }
    assert requests == stated
    place = settings(study, products["Run"][0]) or {}
    assert (place["place"], place["revision"]) == ("a/en", ["--revision=v1"])


def test_data_depend_on_the_labels_that_a_task_has_of_its_own() -> None:
    study = begun()
    data = {"local": "{language}.txt", "columns": ["tokens", "_", "ner_tags"]}
    study.tasks["ner"] = TaskEntry.model_validate({"kind": "wikiann", "labels": ["O", "B-DATE"], "data": data})
    values = settings(study, Data("begun", "ner", "en", "test")) or {}
    tokens = settings(study, Tokens("begun", "ner", "mini", "en", "test")) or {}
    assert values["columns"] == tokens["columns"] == '{"labels": ["O", "B-DATE"]}'
    assert '"columns":["tokens","_","ner_tags"]' in str(values["source"])


def test_an_encoder_is_taken_over_from_where_it_is_with_its_modules() -> None:
    study = begun()
    modules = {"fr": "fr_FR"}
    study.encoders["hub"] = EncoderEntry(hub="a/b", revision="v1", modules=modules)
    study.encoders["path"] = EncoderEntry(path="x")
    of_hub = {"hub": "a/b", "revision": "v1"}
    assert settings(study, Encoder("begun", "hub")) == of_hub | {"modules": ['--modules={"fr":"fr_FR"}']}
    assert settings(study, Encoder("begun", "path")) == {"path": "x", "modules": []}
    assert settings(study, Vocabulary("begun", "hub")) == of_hub


def test_tokens_of_text_depend_on_the_split_and_those_of_data_do_not() -> None:
    study = begun()
    of_text, of_dev = (settings(study, Tokens("begun", "mlm", "mini", "en", split)) for split in ("train", "dev"))
    assert of_text and of_dev and "--split train" in str(of_text["text"]) and "--split dev" in str(of_dev["text"])
    of_data, of_test = (settings(study, Tokens("begun", "siqa", "mini", "en", split)) for split in ("train", "test"))
    assert of_data == of_test and of_data and of_data["text"] == ""


def test_tokens_depend_on_settings_of_evaluation_that_a_task_states_and_generated_data_do_not() -> None:
    study = begun()
    stated = {"bleu_tokenizer": {"qa1": "char"}}
    for name, options in (("mt", {}), ("chars", stated)):
        study.tasks[name] = TaskEntry.model_validate({"kind": "translation", "options": options})
    of_tokens = [
        str((settings(study, Tokens("begun", name, "mini", "qa1-qb1", "dev")) or {})["text"])
        for name in ("mt", "chars")
    ]
    assert of_tokens[0] == "" and json.loads(shlex.split(of_tokens[1])[1]) == stated
    usual, chars = (settings(study, Meanings("begun", name)) for name in ("mt", "chars"))
    assert usual == chars and usual


def test_a_run_is_told_its_recipe_and_a_cell_nothing() -> None:
    study = begun()
    run = Run("begun", "copa", "mini", "both", "en", 1)
    values = settings(study, run)
    assert values and Recipe.parse(str(values["recipe"])) == study.recipe(*run[1:])
    assert "snapshots" not in json.loads(str(values["recipe"]))["training"]
    assert settings(study, Cell(*run[:-1], "fr", 1)) == {}


@pytest.mark.parametrize("product", [Exhibit("begun", "x"), Report("begun")])
def test_exhibits_and_reports_depend_on_the_whole_study(product: Exhibit | Report) -> None:
    assert settings(begun(), product) is None
