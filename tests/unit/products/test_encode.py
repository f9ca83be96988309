"""What tokenizers, encoders and tokens are made from, and the settings that change them."""

from dataclasses import replace

import pytest
from plan_fixture import begun
from products_fixture import CELL

from xlgrid.data.downloads import Download
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.data import Data
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.study.encoders import EncoderWithHead, FolderEncoder, HubEncoder, ScratchEncoder
from xlgrid.study.schema import Study
from xlgrid.study.tasks import TaskEntry


def test_an_encoder_of_another_study_is_a_file_and_rests_on_nothing_here(plan: Plan) -> None:
    """Even if both studies give it one name."""
    path = "results/demo/encoders/mine"
    plan.study.encoders["mine"] = FolderEncoder(path=path)
    cell = CELL._replace(encoder="mine")
    assert f"{path}/model.safetensors" in Encoder("tiny", "mine").inputs(plan)["files"]
    assert {product.study for product in plan.rests_on(cell)} == {"tiny"}


def test_weights_that_are_downloaded_are_in_the_format_of_their_name(plan: Plan) -> None:
    entry = Download(url="https://a.test/x.bin")
    plan.study.encoders["mine"] = FolderEncoder(path="coming")
    plan.study.downloads["coming/pytorch_model.bin"] = entry
    assert Encoder("tiny", "mine").inputs(plan)["files"] == ["coming/config.json", "coming/pytorch_model.bin"]
    plan.study.downloads.clear()
    assert Encoder("tiny", "mine").inputs(plan)["files"] == ["coming/config.json", "coming/model.safetensors"]


def test_encoders_with_one_tokenizer_share_tokens(plan: Plan) -> None:
    study = plan.study
    cells = [CELL, CELL._replace(encoder="mine")]
    apart = {cell.tokens(plan) for cell in cells}
    shared = study.encoders | {"mine": FolderEncoder(path="encoder", tokenizer="tiny")}
    together = Plan(study.model_copy(update={"encoders": shared}))
    assert len(apart) == 2 and {cell.tokens(together).tokenizer for cell in cells} == {"tiny"}
    tokenizers = [each for each in together.rests_on(cells[1]) if isinstance(each, Tokenizer)]
    assert tokenizers == [Tokenizer("tiny", "tiny")]
    texts = [f"results/tiny/text/{code}.parquet" for code in ("qa1", "qa2", "qb1")]
    assert tokenizers[0].inputs(together) == {"texts": texts}


def test_an_encoder_that_begins_with_another_rests_on_it(plan: Plan) -> None:
    begun_with = {"tokenizer": "tiny", "scratch": {"kind": "bert", "languages": ["qa1"], "begin": "tiny"}}
    encoders = plan.study.encoders | {"more": ScratchEncoder.model_validate(begun_with)}
    whole = Plan(plan.study.model_copy(update={"encoders": encoders}))
    tiny, more = Encoder("tiny", "tiny"), Encoder("tiny", "more")
    assert more.inputs(whole)["begin"] == [tiny.path] and tiny.inputs(whole)["begin"] == []
    assert tiny in whole.rests_on(more)


def test_an_encoder_reads_bitext_as_tokens_of_the_task_that_it_names(plan: Plan) -> None:
    scratch = {"kind": "bert", "languages": ["qa1", "qb1"], "bitext": [["qa1", "qb1"]], "bitext_task": "opus"}
    opus = {"kind": "mlm", "inputs": ["a", "b"], "data": {"local": "x/{language}-{split}.jsonl"}}
    changes = {
        "encoders": plan.study.encoders | {"more": ScratchEncoder.model_validate({"scratch": scratch})},
        "tasks": plan.study.tasks | {"opus": TaskEntry.model_validate(opus)},
    }
    whole = Plan(plan.study.model_copy(update=changes))
    inputs = Encoder("tiny", "more").inputs(whole)
    parts = ["pretraining/more/qa1", "pretraining/more/qb1", "opus/more/qa1-qb1"]
    assert inputs["dev"] == [f"results/tiny/tokens/{part}/dev.arrow" for part in parts]
    assert Data("tiny", "opus", "qa1-qb1", "train") in whole.rests_on(Encoder("tiny", "more"))


@pytest.mark.usefixtures("queries")
def test_a_method_that_reads_a_second_language_has_tokens_of_both() -> None:
    scratch = {"kind": "xlmr", "languages": ["en", "fr"]}
    axes = {"task": ["nli"], "encoder": ["mini"], "seed": [1], "source": ["fr+en"], "target": ["de"]}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": scratch}},
        tasks={"nli": {"kind": "ruletaker"}},
        methods={"plug-in": {"base": "queries", "options": {"parallel": "en"}}, "full-ft": {}},
        grids={"g": axes | {"method": ["plug-in", "full-ft"]}},
    )
    plan = Plan(study)
    second, plain = ({cell.method: cell for cell in plan.cells}[name] for name in ("plug-in", "full-ft"))
    assert second.tokens(plan).language == "de~en" and plain.tokens(plan).language == "de"
    assert [tokens.language for tokens in second.run.tokens(plan, "dev")] == ["fr~en", "en~en"]
    tokens = second.tokens(plan)
    assert product_of(tokens.path) == tokens and tokens.is_in(plan)
    assert not replace(tokens, language="de~sw").is_in(plan) and not replace(tokens, language="sw~en").is_in(plan)
    data = [Data("s", "nli", code, "test") for code in ("de", "en")]
    assert tokens.inputs(plan)["data"] == [each.path for each in data]
    assert {*data} <= {*plan.rests_on(second)}


@pytest.mark.usefixtures("queries")
def test_parallel_examples_of_a_test_set_may_be_those_of_another_task() -> None:
    """Test sets that differ from language to language; training sets are translations of one another, and so is English its own parallel example."""
    scratch = {"kind": "xlmr", "languages": ["en", "fr"]}
    data = {"local": "{language}/{split}.jsonl"}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": scratch}},
        tasks={
            "nli": {"kind": "xnli", "data": data, "parallel": "in-english"},
            "in-english": {"kind": "xnli", "data": {"local": "t/{language}-en.jsonl", "languages": ["fr", "de"]}},
        },
        methods={"plug-in": {"base": "queries", "options": {"parallel": "en"}}},
        grids={
            "g": {"task": ["nli"], "encoder": ["mini"], "method": ["plug-in"], "source": ["fr"], "target": ["en", "de"]}
            | {"seed": [1]}
        },
    )
    plan = Plan(study)
    tokens = {cell.target: cell.tokens(plan).inputs(plan)["data"] for cell in plan.cells}
    assert tokens == {
        "de": ["results/s/data/nli/de/test.parquet", "results/s/data/in-english/de/test.parquet"],
        "en": ["results/s/data/nli/en/test.parquet"] * 2,
    }
    for split in ("train", "dev"):
        [of_run] = plan.runs[0].tokens(plan, split)
        assert of_run.inputs(plan)["data"] == [f"results/s/data/nli/{code}/{split}.parquet" for code in ("fr", "en")]
    translated = Data("s", "in-english", "de", "test")
    assert translated.inputs(plan) == {"files": ["t/de-en.jsonl"]} and translated.is_in(plan)


def test_a_head_is_trained_from_an_encoder_and_the_text_of_its_languages(plan: Plan) -> None:
    plan.study.encoders["mine-mlm"] = EncoderWithHead.model_validate(
        {"of": "mine", "lm_head": {"languages": ["qa1", "qb1"]}}
    )
    named = Encoder("tiny", "mine-mlm").inputs(plan)
    assert named["tokenizer"] == "results/tiny/tokenizers/mine/tokenizer.json"
    assert named["begin"] == ["results/tiny/encoders/mine/model.safetensors"]
    for split in ("train", "dev"):
        places = [f"results/tiny/tokens/pretraining/mine/{code}/{split}.arrow" for code in ("qa1", "qb1")]
        assert named[split] == places
    recipe = Encoder("tiny", "mine-mlm").settings(plan.study)
    assert recipe and '"lm_head":{"languages":["qa1","qb1"]}' in str(recipe["recipe"])


def test_the_layers_to_keep_are_a_setting_of_the_copy(plan: Plan) -> None:
    assert Encoder("tiny", "mine").settings(plan.study)["changes"] == []
    plan.study.encoders["mine"] = FolderEncoder(path="encoder", layers=6)
    assert Encoder("tiny", "mine").settings(plan.study)["changes"] == ["--layers=6"]


def test_an_encoder_is_taken_over_from_where_it_is_with_its_modules() -> None:
    study = begun()
    modules = {"fr": "fr_FR"}
    study.encoders["hub"] = HubEncoder(hub="a/b", revision="v1", modules=modules)
    study.encoders["path"] = FolderEncoder(path="x")
    of_hub = {"place": "a/b", "revision": ["--revision=v1"]}
    assert Encoder("begun", "hub").settings(study) == of_hub | {"changes": ['--modules={"fr":"fr_FR"}']}
    assert Encoder("begun", "path").settings(study) == {"place": "x", "revision": [], "changes": []}
    assert Tokenizer("begun", "hub").settings(study) == of_hub


def test_tokens_of_text_depend_on_the_split_and_those_of_data_do_not() -> None:
    study = begun()
    of_text, of_dev = (Tokens("begun", "mlm", "mini", "en", split).settings(study) for split in ("train", "dev"))
    assert of_text and of_dev and "--split train" in str(of_text["text"]) and "--split dev" in str(of_dev["text"])
    of_data, of_test = (Tokens("begun", "siqa", "mini", "en", split).settings(study) for split in ("train", "test"))
    assert of_data == of_test and of_data and of_data["text"] == ""
