"""A plan has the cells and runs of its study, and knows which products are those of a study that its study extends."""

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.data import Data, Meanings, Text
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.product import Product, flat
from xlgrid.products.train import Run
from xlgrid.synthetic.miniatures import wikiann
from xlgrid.tasks import mlm

ROOT = Path(__file__).parents[3]
STUDY = """\
title: Old
languages: [qa1, qb1]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1, qb1]}, training: {steps: 5}}}
tasks: {ner: {kind: wikiann, options: {n: 100}}, mlm: {kind: mlm}}
methods: {full-ft: {}, bitfit: {}, mlm: {base: full-ft}, mlm-src: {base: full-ft, start: {task: mlm, method: mlm}}}
training: [{set: {steps: 4}}, {when: {method: bitfit}, set: {lr: 0.01}}]
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft, bitfit, mlm-src], source: [qa1], target: [mono], seed: [1, 2]}
exhibits:
  scores: {kind: table, title: Scores, rows: [method], columns: target}
"""
METHOD = {
    "methods": {"slow": {"base": "bitfit"}},
    "grids": {"main": {"method": ["full-ft", "bitfit", "mlm-src", "slow"]}},
}


def write(name: str, **keys: object) -> None:
    Path(f"studies/{name}.yaml").write_text(yaml.safe_dump(keys))


def extended(**changes: object) -> Plan:
    """The plan of a study that extends the old one with these keys."""
    write("new", extends="old", **changes)
    return load_plan("new")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/old.yaml").write_text(STUDY)


def run(method: str, seed: int = 1, task: str = "ner") -> Run:
    return Run("new", task, "tiny", method, "qa1", seed)


def cell(method: str, target: str = "qb1", seed: int = 1) -> Cell:
    return Cell("new", "ner", "tiny", method, "qa1", target, seed)


PRODUCTS: dict[str, Product] = {
    "meanings": Meanings("new", "ner"),
    "data": Data("new", "ner", "qa1", "train"),
    "text qa1": Text("new", "qa1"),
    "text qb1": Text("new", "qb1"),
    "tokenizer": Tokenizer("new", "tiny"),
    "encoder": Encoder("new", "tiny"),
    "tokens": Tokens("new", "ner", "tiny", "qa1", "train"),
    "MLM run": run("mlm", task="mlm"),
    "full-ft": run("full-ft"),
    "bitfit": run("bitfit"),
    "mlm-src": run("mlm-src"),
    "cell": cell("full-ft"),
    "cell of bitfit": cell("bitfit"),
    "cell of mlm-src": cell("mlm-src"),
}
RESULTS = {name for name in PRODUCTS if name.startswith("cell")} | {"full-ft", "bitfit", "mlm-src"}
TASK = {"meanings", "data", "tokens"} | RESULTS
ON_TEXT = {"MLM run", "mlm-src", "cell of mlm-src"}
ENCODER = {"encoder", "MLM run"} | RESULTS
TOKENIZER = {"tokenizer", "tokens"} | ENCODER


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({}, set()),
        ({"title": "New", "exhibits": {"scores": {"title": "Other"}}}, set()),
        ({"languages": ["qa1", "qb1", "qa2"]}, set()),
        (METHOD, set()),
        ({"training": [{"set": {"steps": 4, "checkpoint_seconds": 5}}, *yaml.safe_load(STUDY)["training"][1:]]}, set()),
        ({"training": [{"set": {"steps": 4}}]}, {"bitfit", "cell of bitfit"}),
        ({"training": [*yaml.safe_load(STUDY)["training"], {"when": {"task": "mlm"}, "set": {"lr": 1}}]}, ON_TEXT),
        ({"tasks": {"ner": {"max_length": 64}}}, {"tokens"} | RESULTS),
        ({"tasks": {"ner": {"options": {"n": 99}}}}, TASK),
        ({"tasks": {"ner": {"data": {"local": "x/{language}/{split}.jsonl"}, "options": None}}}, TASK - {"meanings"}),
        ({"encoders": {"tiny": {"training": {"steps": 6}}}}, ENCODER),
        ({"encoders": {"tiny": {"scratch": None, "training": None, "path": "x"}}}, TOKENIZER),
        ({"text": {"seed": 2}}, {"text qa1", "text qb1"} | TOKENIZER),
        ({"text": {"files": {"qb1": "my.txt"}}}, {"text qb1"} | TOKENIZER),
        ({"methods": {"bitfit": {"base": "full-ft"}}}, {"bitfit", "cell of bitfit"}),
        ({"methods": {"mlm": {"base": "bitfit"}}}, ON_TEXT),
    ],
)
def test_a_study_makes_what_a_change_concerns_and_no_more(changes: dict[str, object], own: set[str]) -> None:
    plan = extended(**changes)
    makes = {
        name: plan.owned(product).study
        for name, product in PRODUCTS.items()
        if name != "meanings" or product.is_in(plan)
    }
    assert {name for name, study in makes.items() if study == "new"} == own
    assert {*makes.values()} <= {"old", "new"}


def test_options_that_are_the_defaults_change_nothing() -> None:
    plan = extended(
        tasks={"ner": {"options": wikiann.Options(n=100).model_dump()}, "mlm": {"options": mlm.Options().model_dump()}}
    )
    assert {plan.owned(product).study for product in PRODUCTS.values()} == {"old"}


def test_a_name_of_a_new_language_in_the_data_leaves_those_of_the_others_as_they_are() -> None:
    data = {"hub": "some/ner", "name": "{language}", "languages": ["qa1", "qb1"]}
    Path("studies/old.yaml").write_text(STUDY.replace("options: {n: 100}", f"data: {json.dumps(data)}"))
    more = {"names": {"qa2": "new"}, "languages": ["qa1", "qb1", "qa2"]}
    plan = extended(languages=more["languages"], tasks={"ner": {"data": more}})
    assert {each.target for each in plan.cells if each.study == "new"} == {"qa2"}
    assert {each.study for each in plan.runs if each.task == "ner"} == {"old"}
    assert [plan.owned(Data("new", "ner", code, "test")).study for code in more["languages"]] == ["old", "old", "new"]


def test_one_more_method_is_all_that_a_study_with_one_more_method_trains() -> None:
    plan = extended(**METHOD)
    own = [result for result in (*plan.cells, *plan.runs) if result.study == "new"]
    assert own == [
        *(cell("slow", target, seed) for target in ("qa1", "qb1") for seed in (1, 2)),
        run("slow"),
        run("slow", 2),
    ]
    assert len(plan.cells) == 4 * 4 and len(plan.runs) == 2 * (4 + 1)
    assert plan.shared == "12 of 16 cells and 8 of 10 runs are those of old"
    assert run("slow").inputs(plan)["train"] == ["results/old/tokens/ner/tiny/qa1/train.arrow"]
    assert cell("slow").inputs(plan)["runs"] == run("slow").delta
    assert cell("slow").inputs(plan)["tokens"] == "results/old/tokens/ner/tiny/qb1/test.arrow"
    rests = Counter(product.study for product in plan.rests_on(cell("slow")))
    # Meanings, two languages of data, two of text, the tokenizer, the encoder, three files of tokens, and the four on which the encoder was pre-trained.
    assert rests == {"new": 2, "old": 14}


def test_a_new_target_is_evaluated_with_the_run_that_is_there() -> None:
    plan = extended(languages=["qa1", "qb1", "qa2"], grids={"main": {"method": ["full-ft", "bitfit"]}})
    expected = [cell(method, "qa2", seed) for method in ("full-ft", "bitfit") for seed in (1, 2)]
    assert [each for each in plan.cells if each.study == "new"] == expected
    inputs = cell("full-ft", "qa2").inputs(plan)
    assert inputs["runs"] == "results/old/runs/ner/tiny/full-ft/qa1/seed1/delta.safetensors"
    assert inputs["tokens"] == "results/new/tokens/ner/tiny/qa2/test.arrow"
    assert {each.study for each in plan.runs} == {"old"}


def test_everything_that_a_report_rests_on_comes_once_and_after_what_it_is_made_from() -> None:
    plan = load_plan("old")
    products = plan.products
    assert len(products) == len({*products}) and {*plan.cells, *plan.runs} <= {*products}
    assert [product.path for product in products[-3:]] == [
        f"results/old/{name}" for name in ("exhibits/scores.csv", "summary.csv", "report.html")
    ]
    for at, product in enumerate(products):
        made_from = {*map(product_of, flat(product.inputs(plan)))} & {*products}
        assert made_from <= {*products[:at]}, product
    data = [product for product in products if isinstance(product, Data)]
    assert {product.split for product in data} == {"test"}, "one job makes all splits"


def test_the_first_of_several_ancestors_has_what_is_equal() -> None:
    write("middle", extends="old", training=[{"set": {"steps": 4}}], **METHOD)
    old = yaml.safe_load(STUDY)["training"]
    write("new", extends="middle", training=[*old, {"when": {"method": "slow"}, "set": {"lr": 0.5}}])
    plan = load_plan("new")
    makers = {name: plan.owned(run(name)).study for name in ("full-ft", "bitfit", "slow")}
    assert makers == {"full-ft": "old", "bitfit": "old", "slow": "new"}, "its bitfit is again that of the first"
    write("new", extends="middle", grids={"main": {"target": ["qb1"], "seed": [1, 2, 3]}})
    plan = load_plan("new")
    by_seed = {seed: [plan.owned(cell(name, seed=seed)).study for name in ("full-ft", "bitfit")] for seed in (1, 3)}
    assert by_seed == {1: ["old", "middle"], 3: ["new", "new"]}


def test_a_change_of_the_ancestor_changes_whose_a_product_is_only_if_the_study_says_otherwise() -> None:
    write("new", extends="old", tasks={"ner": {"options": {"n": 100}}})
    assert load_plan("new").owned(run("full-ft")).study == "old"
    Path("studies/old.yaml").write_text(STUDY.replace("n: 100", "n: 50"))
    assert load_plan("new").owned(run("full-ft")).study == "new"
    write("new", extends="old")
    assert load_plan("new").owned(run("full-ft")).study == "old"


def test_a_mistake_in_the_study_that_is_extended_names_its_file() -> None:
    Path("studies/old.yaml").write_text(STUDY.replace("source: [qa1]", "source: [qa9]"))
    with pytest.raises(ValueError, match=r"old\.yaml:8: .*'qa9'"):
        extended(grids={"main": {"source": ["qa1"]}})


def test_seeds_of_two_studies_are_averaged() -> None:
    plan = extended(grids={"main": {"seed": [1, 2, 3]}})
    for each in plan.cells:
        record = each._asdict() | {
            "head": "token",
            "labels": [],
            "scores": {"f1": 10.0 * each.seed},
            "metric": {"name": "f1"},
            "n": 1,
            "outcomes": "",
        }
        Path(each.path).parent.mkdir(parents=True, exist_ok=True)
        Path(each.path).write_text(json.dumps(record))
    assert Counter(each.study for each in plan.cells) == {"old": 12, "new": 6}
    plan.study.exhibit("scores").render("scores", plan, "out")
    entry = next(line for line in Path("out/scores.csv").read_text().splitlines() if line.startswith("full-ft,qb1"))
    assert ",20.0," in entry and ",3,3" in entry
    made, unmade = (plan.study.exhibit("scores").rendering(each).sheet.entries for each in (plan, plan.unmade))
    assert (made["n_seeds"].tolist(), unmade["n_seeds"].unique().tolist()) == (made["n_seeds_expected"].tolist(), [0])
    assert Counter(each.study for each in plan.cells) == {"old": 12, "new": 6}, "the plan itself is as before"
