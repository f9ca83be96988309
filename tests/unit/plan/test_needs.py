"""What each product is made from: the rules' inputs, and the jobs on which a cell rests."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from plan_fixture import EARLY, begun

from xlgrid.data.downloads import Download
from xlgrid.exhibits.parameters import Parameters
from xlgrid.plan import needs
from xlgrid.plan.checks import plan_problems
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.plan.products import Data, Encoder, Exhibit, Summary, Vocabulary, product_of
from xlgrid.plan.settings import settings
from xlgrid.results.identity import Cell, Run
from xlgrid.study.schema import ImportedAdapters, MethodEntry, Study
from xlgrid.study.tasks import TaskEntry
from xlgrid.training.encoders import EncoderEntry

RULES = Path(__file__).parents[3] / "rules"
STUDY = """\
title: Tiny
languages: [qa1, qa2, qb1]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qa2, qb1]}}, mine: {path: encoder}}
tasks:
  siqa: {kind: siqa}
  own: {kind: copa, trained_on: siqa, data: {local: "x/{language}/{split}.jsonl"}}
methods: {full-ft: {}}
grids:
  main: {task: [own], encoder: [tiny, mine], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
exhibits:
  scores: {kind: table, title: Scores, rows: [encoder], columns: target, select: {encoder: tiny}}
"""
CELL = Cell("tiny", "own", "tiny", "full-ft", "qa1", "qb1", 1)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)
    yield load_plan("tiny")


def test_a_cell_rests_on_the_splits_that_are_fetched_for_it_and_its_run_on_those_of_another_task(plan: Plan) -> None:
    products = {product.path: product for product in plan.rests_on(CELL)}
    data = {name.removeprefix("results/tiny/data/") for name in products if "/data/" in name}
    assert data == {"siqa/meanings.parquet", "siqa/qa1/test.parquet", "own/qb1/test.parquet"}
    tokens = {name.removeprefix("results/tiny/tokens/") for name in products if "/tokens/" in name}
    splits = [f"{code}/{split}" for code in ("qa1", "qa2", "qb1") for split in ("train", "dev")]
    of_encoder = {f"pretraining/tiny/{split}.arrow" for split in splits}
    assert tokens == {"siqa/tiny/qa1/train.arrow", "siqa/tiny/qa1/dev.arrow", "own/tiny/qb1/test.arrow"} | of_encoder


def test_everything_comes_after_what_it_is_made_from(plan: Plan) -> None:
    for whole in (plan, Plan(begun(early=EARLY))):
        for cell in whole.cells:
            order = [product.path for product in whole.rests_on(cell)]
            assert len(set(order)) == len(order) and order[-1] == cell.path
            for product in whole.rests_on(cell):
                for files in needs.inputs(whole, product).values():
                    earlier = [product_of(file) for file in ([files] if isinstance(files, str) else files)]
                    paths = {whole.rests_on(each)[-1].path for each in earlier if each}
                    assert paths <= set(order[: order.index(product.path)]), product


def rules() -> Iterator[tuple[str, str, str]]:
    """Name, first output and log of each rule that states both."""
    text = "".join(path.read_text() for path in sorted(RULES.glob("*.smk")))
    for name in ("LAYOUT", "VOCABULARY"):
        [files] = re.findall(rf"{name} = (?:\[|multiext\()\s*(.*?)[\])]", text, re.DOTALL)
        text = text.replace(f"        {name},\n", f"        {files.rstrip()},\n")
    for rule in re.split(r"^(?:use )?rule ", text, flags=re.MULTILINE)[1:]:
        output = re.search(r'output:.*?"(results/.*?)"(?:, "(.*?)")?', rule, re.DOTALL)
        log = re.search(r'log:.*?"(results/[^"]*\.log)"', rule, re.DOTALL)
        if output and log:
            yield (
                rule.partition(":")[0],
                "".join(filter(None, output.groups())).replace("{{", "{").replace("}}", "}"),
                log[1],
            )


@pytest.mark.parametrize(("rule", "output", "log"), [*rules()])
def test_a_log_is_where_the_rule_writes_it(plan: Plan, rule: str, output: str, log: str) -> None:
    values = {"study": "tiny", "task": "siqa" if rule in ("meanings", "data") else "own", "encoder": "tiny"}
    values["vocabulary"] = "tiny"
    values |= {"method": "full-ft", "source": "qa1", "target": "qb1", "other": "qa2", "seed": "1"}
    values |= {"language": "qa1", "split": "test", "exhibit": "scores"}
    product = product_of(output.format(**values))
    assert product and needs.log(plan, product) == log.format(**values)


def test_every_rule_of_a_product_states_a_log() -> None:
    text = "".join(path.read_text() for path in RULES.glob("*.smk"))
    # Downloaded files are an input of several studies, and no product of one.
    downloads = {"download", "download_archive", "unpack", "join_bitext", "by_hand"}
    of_products = {*re.findall(r"^rule (\w+):", text, re.MULTILINE)} - downloads
    assert {name for name, _, _ in rules()} == of_products


def test_an_encoder_of_another_study_is_a_file_and_rests_on_nothing_here(plan: Plan) -> None:
    """Even if both studies give it one name."""
    path = "results/demo/encoders/mine"
    plan.study.encoders["mine"] = EncoderEntry(path=path)
    cell = CELL._replace(encoder="mine")
    assert f"{path}/model.safetensors" in needs.inputs(plan, Encoder("tiny", "mine"))["files"]
    assert {product.study for product in plan.rests_on(cell)} == {"tiny"}


def test_files_of_ones_own_are_inputs(plan: Plan) -> None:
    assert needs.inputs(plan, Data("tiny", "own", "qa1", "dev")) == {"files": ["x/qa1/dev.jsonl"]}
    vocabulary = Vocabulary("tiny", "mine")
    weights = {"vocabulary": vocabulary.path, "files": ["encoder/config.json", "encoder/model.safetensors"]}
    assert needs.inputs(plan, Encoder("tiny", "mine")) == weights
    assert needs.inputs(plan, vocabulary) == {"files": ["encoder/tokenizer.json"]}
    for name in ("vocab.txt", "notes.md", "pytorch_model.bin"):
        Path("encoder").mkdir(exist_ok=True)
        Path("encoder", name).touch()
    pickled = ["encoder/config.json", "encoder/pytorch_model.bin"]
    assert needs.inputs(plan, Encoder("tiny", "mine")) == weights | {"files": pickled}, "there are no others"
    Path("encoder", "model.safetensors").touch()
    assert needs.inputs(plan, Encoder("tiny", "mine")) == weights
    assert needs.inputs(plan, vocabulary) == {"files": ["encoder/tokenizer.json", "encoder/vocab.txt"]}


def test_weights_that_are_downloaded_are_in_the_format_of_their_name(plan: Plan) -> None:
    entry = Download(url="https://a.test/x.bin")
    plan.study.encoders["mine"] = EncoderEntry(path="coming")
    plan.study.downloads["coming/pytorch_model.bin"] = entry
    assert needs.inputs(plan, Encoder("tiny", "mine"))["files"] == ["coming/config.json", "coming/pytorch_model.bin"]
    plan.study.downloads.clear()
    assert needs.inputs(plan, Encoder("tiny", "mine"))["files"] == ["coming/config.json", "coming/model.safetensors"]


def test_encoders_with_one_vocabulary_share_tokens(plan: Plan) -> None:
    study = plan.study
    cells = [CELL, CELL._replace(encoder="mine")]
    apart = {needs.test_tokens(plan, cell) for cell in cells}
    shared = study.encoders | {"mine": EncoderEntry(path="encoder", vocabulary="tiny")}
    together = Plan(study.model_copy(update={"encoders": shared}))
    assert len(apart) == 2 and {needs.test_tokens(together, cell).vocabulary for cell in cells} == {"tiny"}
    vocabularies = [each for each in together.rests_on(cells[1]) if isinstance(each, Vocabulary)]
    assert vocabularies == [Vocabulary("tiny", "tiny")]
    texts = [f"results/tiny/text/{code}.parquet" for code in ("qa1", "qa2", "qb1")]
    assert needs.inputs(together, vocabularies[0]) == {"texts": texts}


def test_a_count_of_parameters_reads_the_encoders_whose_sizes_are_not_known_without_them(plan: Plan) -> None:
    encoders = plan.study.encoders | {"base": EncoderEntry(hub="FacebookAI/xlm-roberta-base")}
    sizes = Parameters(title="Sizes", encoders=("tiny", "mine", "base"), methods=("full-ft",))
    changed = Plan(plan.study.model_copy(update={"encoders": encoders, "exhibits": {"sizes": sizes}}))
    files = [f"results/tiny/encoders/{name}/model.safetensors" for name in ("tiny", "mine")]
    assert needs.inputs(changed, Exhibit("tiny", "sizes"))["encoders"] == files


def test_a_pair_is_read_from_its_own_file_or_from_those_of_its_languages(plan: Plan) -> None:
    pair = Data("tiny", "own", "qa1-qb1", "dev")
    assert needs.inputs(plan, pair) == {"files": ["x/qa1/dev.jsonl", "x/qb1/dev.jsonl"]}
    Path("x/qa1-qb1").mkdir(parents=True)
    Path("x/qa1-qb1/dev.jsonl").touch()
    assert needs.inputs(plan, pair) == {"files": ["x/qa1-qb1/dev.jsonl"]}


def test_imported_adapters_rest_on_no_text_and_no_tokens() -> None:
    study = begun()
    read = study.methods["mlm"].model_copy(update={"base": "madx", "imported": ImportedAdapters(path="{language}")})
    run = Run("begun", "mlm", "mini", "mlm", "fr", 1)
    changed = {"methods": study.methods | {"mlm": read}, "encoders": {"mini": EncoderEntry(path="x")}}
    plan = Plan(study.model_copy(update=changed))
    files = [product.path for product in plan.rests_on(run)]
    encoder = ["results/begun/vocabularies/mini/tokenizer.json", "results/begun/encoders/mini/model.safetensors"]
    assert files == [*encoder, f"{run.folder}/run.json"]
    assert needs.inputs(plan, run)["adapter"] == ["fr/adapter_config.json", "fr/adapter.safetensors"]


def test_a_run_on_text_that_begins_with_another_rests_on_it_and_so_do_its_users() -> None:
    """What a run on text stores is what it changed beside the runs with which it began."""
    study = begun()
    second = MethodEntry.model_validate({"base": "full-ft", "start": {"task": "mlm", "method": "mlm"}})
    third = MethodEntry.model_validate(
        {"base": "full-ft", "start": {"task": "mlm", "method": "second", "at": "source"}}
    )
    study = study.model_copy(update={"methods": study.methods | {"second": second, "third": third}})
    run = Run("begun", "copa", "mini", "third", "en", 1)
    inputs = needs.inputs(Plan(study), run)
    folder = "results/begun/runs"
    assert inputs["start"] == [f"{folder}/mlm/mini/second/en/seed1/delta.safetensors"]
    assert inputs["earlier"] == [f"{folder}/mlm/mini/mlm/en/seed1/delta.safetensors"]
    assert inputs["first"] == [f"{folder}/siqa/mini/third/en/seed1/delta.safetensors"]
    assert study.recipe("mlm", "mini", "second", "en", 1).start == second.start


def test_a_summary_needs_the_cells_that_no_exhibit_shows(plan: Plan) -> None:
    inputs = needs.inputs(plan, Summary("tiny"))
    assert {str(path).split("/")[4] for path in inputs["cells"]} == {"mine"} and len(inputs["cells"]) == 3
    assert inputs["exhibits"] == ["results/tiny/exhibits/scores.csv"]


def other_vocabulary(**methods: object) -> Plan:
    """The study `begun`, with text in a vocabulary of its own."""
    keys = begun(early=EARLY).model_dump(mode="json", exclude_unset=True)
    keys["vocabularies"] = {"own": {"languages": ["en", "fr"]}}
    keys["tasks"]["mlm"]["vocabulary"] = "own"
    keys["methods"] |= methods
    keys["methods"]["plain"] = {"base": "full-ft"}
    keys["grids"]["plain"] = keys["grids"]["g"] | {"method": ["plain"]}
    return Plan(Study.model_validate(keys))


def test_what_begins_with_text_in_a_vocabulary_of_its_own_reads_its_tokens_and_all_else_those_of_the_encoder() -> None:
    plan = other_vocabulary()
    assert not plan_problems(plan)
    for user in [*plan.cells, *plan.runs]:
        vocabulary = needs.vocabulary_of(plan, user)
        assert vocabulary == ("mini" if user.method == "plain" else "own"), user.path
        if isinstance(user, Cell):
            assert needs.test_tokens(plan, user).vocabulary == vocabulary
            continue
        assert {tokens.vocabulary for tokens in needs.source_tokens(plan, user, "train")} == {vocabulary}
        resized = ["results/begun/vocabularies/own/tokenizer.json"] if user.task == "mlm" else []
        assert needs.inputs(plan, user)["vocabulary"] == resized, user.path


def test_the_vocabulary_of_the_encoder_resizes_nothing() -> None:
    plan = other_vocabulary()
    encoders = {"mini": EncoderEntry(path="x", vocabulary="own")}
    same = Plan(plan.study.model_copy(update={"encoders": encoders}))
    assert {needs.vocabulary_of(same, run) for run in same.runs} == {"own"}
    assert not any(needs.new_vocabulary(same, run) for run in same.runs)


def test_runs_on_text_that_begin_with_others_have_the_vocabulary_of_the_encoder() -> None:
    plan = other_vocabulary(mlm={"base": "full-ft", "start": {"task": "mlm", "method": "plain", "source": "en"}})
    [problem] = plan_problems(plan)
    assert problem.startswith("tasks.mlm.vocabulary: results/begun/runs/mlm/mini/mlm/")
    assert "have the vocabulary of the encoder: leave out `vocabulary`, or the `start` of one method" in problem


def test_a_run_with_dev_targets_needs_their_dev_sets_and_no_other(plan: Plan) -> None:
    text = STUDY + "training: [{set: {dev_targets: [qa2, qb1]}}]\n"
    Path("studies/tiny.yaml").write_text(text)
    chosen = needs.inputs(load_plan("tiny"), CELL.run)
    folder = "results/tiny/tokens/siqa/tiny"
    assert chosen["dev"] == [f"{folder}/qa2/dev.arrow", f"{folder}/qb1/dev.arrow"]
    assert chosen["train"] == [f"{folder}/qa1/train.arrow"]
    assert needs.inputs(plan, CELL.run)["dev"] == [f"{folder}/qa1/dev.arrow"]


def test_an_encoder_that_begins_with_another_rests_on_it(plan: Plan) -> None:
    begun_with = {"vocabulary": "tiny", "scratch": {"kind": "bert", "languages": ["qa1"], "begin": "tiny"}}
    encoders = plan.study.encoders | {"more": EncoderEntry.model_validate(begun_with)}
    whole = Plan(plan.study.model_copy(update={"encoders": encoders}))
    tiny, more = Encoder("tiny", "tiny"), Encoder("tiny", "more")
    assert needs.inputs(whole, more)["begin"] == [tiny.path] and needs.inputs(whole, tiny)["begin"] == []
    assert tiny in whole.rests_on(more)


def test_an_encoder_reads_bitext_as_tokens_of_the_task_that_it_names(plan: Plan) -> None:
    scratch = {"kind": "bert", "languages": ["qa1", "qb1"], "bitext": [["qa1", "qb1"]], "bitext_task": "opus"}
    opus = {"kind": "mlm", "inputs": ["a", "b"], "data": {"local": "x/{language}-{split}.jsonl"}}
    changes = {
        "encoders": plan.study.encoders | {"more": EncoderEntry.model_validate({"scratch": scratch})},
        "tasks": plan.study.tasks | {"opus": TaskEntry.model_validate(opus)},
    }
    whole = Plan(plan.study.model_copy(update=changes))
    inputs = needs.inputs(whole, Encoder("tiny", "more"))
    parts = ["pretraining/more/qa1", "pretraining/more/qb1", "opus/more/qa1-qb1"]
    assert inputs["dev"] == [f"results/tiny/tokens/{part}/dev.arrow" for part in parts]
    assert Data("tiny", "opus", "qa1-qb1", "train") in whole.rests_on(Encoder("tiny", "more"))


def test_a_method_that_reads_a_second_language_has_tokens_of_both() -> None:
    scratch = {"kind": "xlmr", "architecture": "veco", "languages": ["en", "fr"]}
    axes = {"task": ["nli"], "encoder": ["mini"], "seed": [1], "source": ["fr+en"], "target": ["de"]}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": scratch}},
        tasks={"nli": {"kind": "ruletaker"}},
        methods={"plug-in": {"options": {"companion": "en"}}, "full-ft": {}},
        grids={"g": axes | {"method": ["plug-in", "full-ft"]}},
    )
    plan = Plan(study)
    second, plain = ({cell.method: cell for cell in plan.cells}[name] for name in ("plug-in", "full-ft"))
    assert needs.test_tokens(plan, second).language == "de~en" and needs.test_tokens(plan, plain).language == "de"
    assert [tokens.language for tokens in needs.source_tokens(plan, second.run, "dev")] == ["fr~en", "en~en"]
    tokens = needs.test_tokens(plan, second)
    assert product_of(tokens.path) == tokens and plan.has(tokens)
    assert not plan.has(replace(tokens, language="de~sw")) and not plan.has(replace(tokens, language="sw~en"))
    data = [Data("s", "nli", code, "test") for code in ("de", "en")]
    assert needs.inputs(plan, tokens)["data"] == [each.path for each in data]
    assert {*data} <= {*plan.rests_on(second)}


def test_companions_of_a_test_set_may_be_those_of_another_task() -> None:
    """Test sets that differ from language to language; training sets are translations of one another, and so is English its own companion."""
    scratch = {"kind": "xlmr", "architecture": "veco", "languages": ["en", "fr"]}
    data = {"local": "{language}/{split}.jsonl"}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        encoders={"mini": {"scratch": scratch}},
        tasks={
            "nli": {"kind": "xnli", "data": data, "companions": "in-english"},
            "in-english": {"kind": "xnli", "data": {"local": "t/{language}-en.jsonl", "languages": ["fr", "de"]}},
        },
        methods={"plug-in": {"options": {"companion": "en"}}},
        grids={
            "g": {"task": ["nli"], "encoder": ["mini"], "method": ["plug-in"], "source": ["fr"], "target": ["en", "de"]}
            | {"seed": [1]}
        },
    )
    plan = Plan(study)
    tokens = {cell.target: needs.inputs(plan, needs.test_tokens(plan, cell))["data"] for cell in plan.cells}
    assert tokens == {
        "de": ["results/s/data/nli/de/test.parquet", "results/s/data/in-english/de/test.parquet"],
        "en": ["results/s/data/nli/en/test.parquet"] * 2,
    }
    for split in ("train", "dev"):
        [of_run] = needs.source_tokens(plan, plan.runs[0], split)
        assert needs.inputs(plan, of_run)["data"] == [
            f"results/s/data/nli/{code}/{split}.parquet" for code in ("fr", "en")
        ]
    translated = Data("s", "in-english", "de", "test")
    assert needs.inputs(plan, translated) == {"files": ["t/de-en.jsonl"]} and plan.has(translated)


def added_languages() -> Plan:
    """Fine-tuning from a pre-trained source and from an added one, with pre-trained and added targets."""
    scratch = {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "fr"]}
    axes = {"task": ["ner"], "encoder": ["mini"], "method": ["xmod"], "seed": [1]}
    start = {"task": "text", "method": "add", "pairs": ["de", "ru"], "missing": "none"}
    study = Study(
        name="s",
        title="s",
        languages=["en", "fr", "de", "ru"],
        vocabularies={f"own-{code}": {"kind": "xlmr", "languages": [code]} for code in ("de", "ru")},
        encoders={"mini": {"scratch": scratch}},
        tasks={"ner": {"kind": "ruletaker"}, "text": {"kind": "mlm", "vocabulary": "own-{language}"}},
        methods={"xmod": {"start": start}, "add": {"base": "xmod", "options": {"tune": "language"}}},
        grids={"g": axes | {"source": ["en", "de"], "target": ["fr", "de", "ru"]}},
    )
    return Plan(study)


def test_a_cell_has_the_vocabulary_of_its_target_where_embeddings_belong_to_a_language() -> None:
    plan = added_languages()
    vocabularies = {(cell.source, cell.target): needs.vocabulary_of(plan, cell) for cell in plan.cells}
    assert vocabularies == {
        (source, target): vocabulary
        for source in ("en", "de")
        for target, vocabulary in (("fr", "mini"), ("de", "own-de"), ("ru", "own-ru"))
    }
    on_text = {run.source: needs.new_vocabulary(plan, run)[0].vocabulary for run in plan.runs if run.task == "text"}
    assert on_text == {"de": "own-de", "ru": "own-ru"}
    of_runs = {run.source: needs.vocabulary_of(plan, run) for run in plan.runs if run.task == "ner"}
    assert of_runs == {"en": "mini", "de": "own-de"}


def test_a_vocabulary_that_a_language_lacks_is_named() -> None:
    study = added_languages().study
    lacking = study.model_copy(update={"vocabularies": {"own-de": study.vocabularies["own-de"]}})
    [problem] = plan_problems(Plan(lacking))
    assert "tasks.text.vocabulary: results/s/runs/text/mini/add/ru/seed1 has unknown vocabulary 'own-ru'" in problem


def test_a_head_is_trained_from_an_encoder_and_the_text_of_its_languages(plan: Plan) -> None:
    plan.study.encoders["mine-mlm"] = EncoderEntry.model_validate(
        {"of": "mine", "lm_head": {"languages": ["qa1", "qb1"]}}
    )
    named = needs.inputs(plan, Encoder("tiny", "mine-mlm"))
    assert named["vocabulary"] == "results/tiny/vocabularies/mine/tokenizer.json"
    assert named["begin"] == ["results/tiny/encoders/mine/model.safetensors"]
    for split in ("train", "dev"):
        places = [f"results/tiny/tokens/pretraining/mine/{code}/{split}.arrow" for code in ("qa1", "qb1")]
        assert named[split] == places
    recipe = settings(plan.study, Encoder("tiny", "mine-mlm"))
    assert recipe and '"lm_head":{"languages":["qa1","qb1"]}' in str(recipe["recipe"])


def test_the_layers_to_keep_are_a_setting_of_the_copy(plan: Plan) -> None:
    assert (settings(plan.study, Encoder("tiny", "mine")) or {})["modules"] == []
    plan.study.encoders["mine"] = EncoderEntry(path="encoder", layers=6)
    assert (settings(plan.study, Encoder("tiny", "mine")) or {})["modules"] == ["--layers=6"]
