"""What runs are made from: tokens, encoders, tokenizers and other runs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fixture import EARLY, begun
from products_fixture import CELL, STUDY
from queries_fixture import ReadQueries

from xlgrid.languages.sources import Source
from xlgrid.plan.checks import plan_problems
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.study.encoders import FolderEncoder
from xlgrid.study.schema import MethodEntry, Study
from xlgrid.training.recipe import Recipe

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,11}", fullmatch=True)


codes = st.from_regex(r"[A-Za-z0-9._]{1,5}", fullmatch=True)


ends = codes | st.builds("{}-{}".format, codes, codes)


targets = ends | st.builds("{}@{}".format, ends, st.integers(1, 10**6))


mixes = st.lists(ends, min_size=1, max_size=3).map("+".join)


sources = mixes | st.builds("{}@{}".format, mixes, targets)


seeds = st.integers(0, 10**9)


@given(st.builds(Run, names, names, names, names, sources, seeds))
def test_a_run_comes_back_from_its_files(run: Run) -> None:
    assert {Run.parse(run.file(name)) for name in run.files} == {run}
    assert Run.parse(run.folder) is None


@pytest.mark.usefixtures("queries")
def test_derived_runs_rest_on_no_text_and_no_tokens() -> None:
    study = begun()
    read = study.methods["mlm"].model_copy(update={"base": "queries", "derived": ReadQueries(folder="x")})
    run = Run("begun", "mlm", "mini", "mlm", "fr", 1)
    changed = {"methods": study.methods | {"mlm": read}, "encoders": {"mini": FolderEncoder(path="x")}}
    plan = Plan(study.model_copy(update=changed))
    files = [product.path for product in plan.rests_on(run)]
    encoder = ["results/begun/tokenizers/mini/tokenizer.json", "results/begun/encoders/mini/model.safetensors"]
    assert files == [*encoder, f"{run.folder}/run.json"]
    assert run.inputs(plan)["files"] == ["x/fr/queries.safetensors"]
    assert run.settings(plan.study)["place"] == "x/fr"
    assert Run.makers(plan.study)["read_queries"] == ["runs/*/*/mlm"]


def test_an_mlm_run_that_begins_with_another_rests_on_it_and_so_do_its_users() -> None:
    """What an MLM run stores is what it changed beside the runs with which it began."""
    study = begun()
    second = MethodEntry.model_validate({"base": "full-ft", "start": {"task": "mlm", "method": "mlm"}})
    third = MethodEntry.model_validate(
        {"base": "full-ft", "start": {"task": "mlm", "method": "second", "at": "source"}}
    )
    study = study.model_copy(update={"methods": study.methods | {"second": second, "third": third}})
    run = Run("begun", "copa", "mini", "third", "en", 1)
    inputs = run.inputs(Plan(study))
    folder = "results/begun/runs"
    assert inputs["start"] == [f"{folder}/mlm/mini/second/en/seed1/delta.safetensors"]
    assert inputs["earlier"] == [f"{folder}/mlm/mini/mlm/en/seed1/delta.safetensors"]
    assert inputs["first"] == [f"{folder}/siqa/mini/third/en/seed1/delta.safetensors"]
    assert second.start and study.recipe("mlm", "mini", "second", "en", 1).start == second.start.for_run(Source("en"))


def other_tokenizer(**methods: object) -> Plan:
    """The study `begun`, with text in a tokenizer of its own."""
    keys = begun(early=EARLY).model_dump(mode="json", exclude_unset=True)
    keys["tokenizers"] = {"own": {"languages": ["en", "fr"]}}
    keys["tasks"]["mlm"]["tokenizer"] = "own"
    keys["methods"] |= methods
    keys["methods"]["plain"] = {"base": "full-ft"}
    keys["grids"]["plain"] = keys["grids"]["g"] | {"method": ["plain"]}
    return Plan(Study.model_validate(keys))


def test_what_begins_with_text_in_a_tokenizer_of_its_own_reads_its_tokens_and_all_else_those_of_the_encoder() -> None:
    plan = other_tokenizer()
    assert not plan_problems(plan)
    for user in [*plan.cells, *plan.runs]:
        tokenizer = user.tokenizer(plan)
        assert tokenizer == ("mini" if user.method == "plain" else "own"), user.path
        if isinstance(user, Cell):
            assert user.tokens(plan).tokenizer == tokenizer
            continue
        assert {tokens.tokenizer for tokens in user.tokens(plan, "train")} == {tokenizer}
        resized = ["results/begun/tokenizers/own/tokenizer.json"] if user.task == "mlm" else []
        assert user.inputs(plan)["tokenizer"] == resized, user.path


def test_the_tokenizer_of_the_encoder_resizes_nothing() -> None:
    plan = other_tokenizer()
    encoders = {"mini": FolderEncoder(path="x", tokenizer="own")}
    same = Plan(plan.study.model_copy(update={"encoders": encoders}))
    assert {run.tokenizer(same) for run in same.runs} == {"own"}
    assert not any(run.new_tokenizer(same) for run in same.runs)


def test_mlm_runs_that_begin_with_others_have_the_tokenizer_of_the_encoder() -> None:
    plan = other_tokenizer(mlm={"base": "full-ft", "start": {"task": "mlm", "method": "plain", "source": "en"}})
    [problem] = plan_problems(plan)
    assert problem.startswith("tasks.mlm.tokenizer: results/begun/runs/mlm/mini/mlm/")
    assert "leave out `tokenizer`, or the `start` of one method" in problem


def test_a_run_with_dev_targets_needs_their_dev_sets_and_no_other(plan: Plan) -> None:
    text = STUDY + "training: [{set: {dev_targets: [qa2, qb1]}}]\n"
    Path("studies/tiny.yaml").write_text(text)
    chosen = CELL.run.inputs(load_plan("tiny"))
    folder = "results/tiny/tokens/siqa/tiny"
    assert chosen["dev"] == [f"{folder}/qa2/dev.arrow", f"{folder}/qb1/dev.arrow"]
    assert chosen["train"] == [f"{folder}/qa1/train.arrow"]
    assert CELL.run.inputs(plan)["dev"] == [f"{folder}/qa1/dev.arrow"]


def test_a_run_is_told_its_recipe_and_a_cell_nothing() -> None:
    study = begun()
    run = Run("begun", "copa", "mini", "both", "en", 1)
    values = run.settings(study)
    assert values and Recipe.parse(str(values["recipe"])) == study.recipe(*run[1:])
    assert "checkpoints" not in json.loads(str(values["recipe"]))["training"]
    assert Cell(*run[:-1], "fr", 1).settings(study) == {}
