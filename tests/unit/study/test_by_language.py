"""An entry with {language} in its `hub` or `path` describes an encoder for each language; a run has that of its source."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from xlgrid.methods import ALL_METHODS
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.encode import Encoder, Tokenizer
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run

STUDY: dict[str, Any] = {
    "title": "Monolingual encoders beside a multilingual one",
    "languages": ["en", "sw", "yo"],
    "encoders": {
        "mono": {"hub": "some/bert-{language}", "names": {"sw": "swahili"}},
        "xlmr": {"hub": "FacebookAI/xlm-roberta-base"},
    },
    "tasks": {"ner": {"kind": "wikiann", "data": {"local": "names/{language}/{split}.jsonl"}, "max_length": 64}},
    "methods": {"full-ft": {}},
    "grids": {
        "all": {
            "task": ["ner"],
            "encoder": ["mono", "xlmr"],
            "method": ["full-ft"],
            "source": ["en", "sw"],
            "target": ["mono"],
            "seed": [1],
        }
    },
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    return tmp_path


def plan(encoders: dict[str, Any] | None = None, **grid: Any) -> Plan:
    study = yaml.safe_load(yaml.safe_dump(STUDY))
    study["encoders"] |= encoders or {}
    study["grids"]["all"] |= grid
    Path("studies/s.yaml").write_text(yaml.safe_dump(study))
    return load_plan("s")


def test_a_run_has_the_encoder_and_the_tokenizer_of_its_source() -> None:
    planned = plan()
    run = Run("s", "ner", "mono", "full-ft", "sw", 1)
    assert run in planned.runs
    assert run.inputs(planned)["encoder"] == Encoder("s", "mono.sw").path
    assert run.inputs(planned)["train"] == ["results/s/tokens/ner/mono.sw/sw/train.arrow"]
    other = Run("s", "ner", "xlmr", "full-ft", "sw", 1)
    assert other.inputs(planned)["encoder"] == Encoder("s", "xlmr").path


def test_a_cell_on_another_language_has_the_encoder_and_the_tokenizer_of_the_source() -> None:
    planned = plan()
    cell = Cell("s", "ner", "mono", "full-ft", "sw", "yo", 1)
    assert cell in planned.cells and len(planned.cells) == 2 * 2 * 3
    inputs = cell.inputs(planned)
    assert (inputs["encoder"], inputs["tokens"]) == (
        Encoder("s", "mono.sw").path,
        "results/s/tokens/ner/mono.sw/yo/test.arrow",
    )


def test_only_the_encoders_of_sources_are_needed_and_each_is_a_repository() -> None:
    planned = plan()
    needed = {product for product in planned.needed if isinstance(product, Encoder | Tokenizer)}
    names = ("mono.en", "mono.sw", "xlmr")
    assert needed == {kind("s", name) for kind in (Encoder, Tokenizer) for name in names}
    repositories = {product.repository(planned.study).name for product in needed}  # type: ignore[union-attr]
    assert repositories == {"some/bert-en", "some/bert-swahili", "FacebookAI/xlm-roberta-base"}
    assert Encoder("s", "mono.sw").settings(planned.study)["place"] == "some/bert-swahili"


def test_no_rule_makes_the_entry_itself() -> None:
    study = plan().study
    made = {f"encoders/{name}" for name in ("mono.en", "mono.sw", "mono.yo", "xlmr")}
    assert {*Encoder.makers(study)["fetch_encoder"]} == made
    assert "mono" not in study.all_tokenizers


@pytest.mark.parametrize("hub", ["some/bert-{language}", "{language}"])
def test_names_of_languages_that_an_extending_study_leaves_out_go_unused(hub: str) -> None:
    plan({"mono": {"hub": hub, "names": {"en": "a/english", "sw": "b/kiswahili"}}})
    Path("studies/one.yaml").write_text("extends: s\nlanguages: [en, yo]\ngrids: {all: {source: [en]}}\n")
    narrowed = load_plan("one").study
    assert narrowed.encoders["mono.en"].repository and "mono.sw" not in narrowed.encoders
    Path("studies/one.yaml").write_text("extends: s\nencoders: {mono: {names: {sw2: c}}}\n")
    with pytest.raises(ValueError, match=r"encoders.mono.names: .*sw2"):
        load_plan("one")


def test_whole_names_of_repositories_stand_in_names() -> None:
    planned = plan({"mono": {"hub": "{language}", "names": {"en": "a/english", "sw": "b/kiswahili"}}})
    places = {name: planned.study.encoders[name].origin["place"] for name in ("mono.en", "mono.sw")}
    assert places == {"mono.en": "a/english", "mono.sw": "b/kiswahili"} and "mono.yo" not in planned.study.encoders


def test_folders_and_named_tokenizers_have_the_language_too() -> None:
    encoders = {
        "mono": {"path": "checkpoints/{language}", "tokenizer": "pieces-{language}"},
        "one": {"hub": "some/one", "tokenizer": "mono.en"},
    }
    with pytest.raises(ValueError, match=r"mono.en: unknown tokenizer 'pieces-en'"):
        plan(encoders)
    encoders["mono"] = {"path": "checkpoints/{language}"}
    study = plan(encoders).study
    assert study.encoders["mono.sw"].folder == "checkpoints/sw" and study.tokenizer_of("one") == "mono.en"


def test_settings_of_training_name_the_entry() -> None:
    study = yaml.safe_load(yaml.safe_dump(STUDY))
    study["training"] = [{"when": {"encoder": "mono"}, "set": {"lr": 7e-5}}]
    Path("studies/s.yaml").write_text(yaml.safe_dump(study))
    recipe = load_plan("s").study.recipe
    assert recipe("ner", "mono", "full-ft", "sw", 1).training.lr == 7e-5
    assert recipe("ner", "xlmr", "full-ft", "sw", 1).training.lr != 7e-5


@pytest.mark.parametrize(
    ("encoders", "grid", "message"),
    [
        ({}, {"source": ["en+sw"]}, r"mono is one for each language, and en\+sw is not one language"),
        ({"mono": {"hub": "{language}", "names": {"en": "a/b"}}}, {}, "`names` lacks sw"),
        ({"mono": {"hub": "{language}"}}, {}, "{language} alone needs `names`"),
        ({"mono": {"hub": "a/b-{lang}"}}, {}, "{lang} in `hub` or `path`: only {language} can stand there"),
        ({"mono": {"hub": "a/b", "names": {"en": "c"}}}, {}, "`names` is for {language} in `hub` or `path`"),
        ({"mono": {"hub": "a/b-{language}", "names": {"swa": "c"}}}, {}, "names: .*did you mean 'sw'"),
        ({"mono.sw": {"hub": "a/b"}}, {}, "mono.sw is the name of mono's encoder of a language"),
    ],
)
def test_what_an_encoder_for_each_language_cannot_do_is_refused(
    encoders: dict[str, Any], grid: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan(encoders, **grid)


def test_an_evaluation_without_training_has_no_source_whose_encoder_it_could_take() -> None:
    study = yaml.safe_load(yaml.safe_dump(STUDY))
    study["tasks"] = {"ppl": {"kind": "perplexity", "max_length": 64}}
    study["text"] = {"files": {code: f"{code}.txt" for code in study["languages"]}}
    study["methods"] = {"as-is": {}}
    study["grids"]["all"] |= {"task": ["ppl"], "method": ["as-is"], "source": ["none"]}
    Path("studies/s.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(
        ValueError, match="mono is one for each language, and evaluation without training has no source"
    ):
        load_plan("s")


@pytest.mark.skipif("madx" not in ALL_METHODS.names(), reason="the adapters are those of a paper")
def test_a_method_that_begins_with_runs_in_other_languages_is_refused() -> None:
    study = yaml.safe_load(yaml.safe_dump(STUDY))
    study["tasks"]["mlm"] = {"kind": "mlm", "max_length": 64}
    study["text"] = {"files": {code: f"{code}.txt" for code in study["languages"]}}
    study["methods"] = {
        "adapter": {"base": "madx", "options": {"tune": "language"}},
        "madx": {"start": {"task": "mlm", "method": "adapter"}},
    }
    study["grids"]["all"]["method"] = ["madx"]
    Path("studies/s.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(ValueError, match=r"mono is one for each language, and method madx begins with an MLM run"):
        load_plan("s")
