"""What the rules ask: which studies a command line names, which rule makes a file, and what it reads."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from plan_fixture import begun, small

from xlgrid.data.downloads import find
from xlgrid.exhibits import Table
from xlgrid.plan import workflow
from xlgrid.plan.plan import Plan
from xlgrid.products.data import Data, Text
from xlgrid.products.encode import Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.train import Run

CONFIG = {"study": "one", "hub_lock": "hub.lock.yaml"}
SETTINGS = workflow.Settings(study="one")
STUDY = """\
title: Tiny
languages: [qa1, qb1]
encoders: {tiny: {scratch: {kind: bert, languages: [qa1]}}}
tasks: {ner: {kind: wikiann}}
methods: {full-ft: {}}
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
"""


@pytest.mark.parametrize(("gigabytes", "expected"), [(None, 8000), (0.7, 8000), (1.1, 8000), (2.24, 8480), (14, 32000)])
def test_memory_follows_the_encoder_that_a_job_reads(gigabytes: float | None, expected: int) -> None:
    weights = Path("model.safetensors")
    if gigabytes:
        # The file has no blocks on the disk.
        weights.touch()
        os.truncate(weights, int(gigabytes * 10**9))
    read = SimpleNamespace(encoder=str(weights))
    assert [workflow.megabytes(None, read, attempt) for attempt in (1, 2)] == [expected, 2 * expected]
    assert workflow.megabytes(None, SimpleNamespace(begin=[str(weights)]), 1) == expected
    assert workflow.megabytes(None, SimpleNamespace(data=[str(weights)]), 1) == 8000


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    for name in ("one", "two"):
        Path(f"studies/{name}.yaml").write_text(STUDY)
    Path("studies/broken.yaml").write_text("[")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "studies"),
    [
        ("", ["one"]),
        ("--cores all", ["one"]),
        ("--cores all results/two/report.html", ["two"]),
        ("-c all -q all -- results/two/report.html", ["two"]),
        ("--configfile results/two/b.yaml --cores all", ["one"]),
        ("--configfile my.yaml results/two/b.yaml -n", ["one"]),
        ("--shadow-prefix results/two/x results/one/report.html", ["one"]),
        ("results/one/report.html --until evaluate results/two/summary.csv", ["one", "two"]),
        ("all results/two/report.html", ["two", "one"]),
        ("results/two/report.html results/one/summary.csv", ["two", "one"]),
        ("--report results/two/report.html", ["one"]),
        ("--report=results/two/x.zip", ["one"]),
        ("results/two/report.html --config study=one", ["two", "one"]),
        ("results/two/report.html --forcerun results/one/summary.csv", ["two", "one"]),
        ("--target-jobs evaluate:study=two,task=ner,seed=1", ["two"]),
        ("--target-jobs data:task=ner,study=two train:study=one,task=ner", ["two", "one"]),
        ("--target-jobs all:", ["one"]),
        ("reports/two/report.html", ["one"]),
        # Without a target, Snakemake makes `all`.
        ("--forcerun results/two/report.html", ["two", "one"]),
        ("--target-jobs text:study=two,language=en --wait-for-files results/one/logs/x.log /tmp/y", ["two"]),
    ],
)
def test_a_command_loads_the_studies_that_it_names(command: str, studies: list[str]) -> None:
    assert list(workflow.load_plans(SETTINGS, command.split())) == studies


def test_a_path_is_taken_from_the_working_directory(project: Path) -> None:
    files = [f"{project}/results/two/report.html", "./results/two/summary.csv", "results/x/../two/a", "../results/b/c"]
    assert workflow.read_command(files, "one").files == [
        "results/two/report.html",
        "results/two/summary.csv",
        "results/two/a",
    ]


@pytest.mark.parametrize(
    ("config", "command", "message"),
    [
        ({"stduy": "one"}, "", "unknown setting 'stduy', did you mean 'study'"),
        ({"gpus": "two"}, "", "--config: gpus: must be a whole number, got 'two'"),
        ({"gpus": -1}, "", "--config: gpus: must be greater than or equal to 0, got -1"),
        ({"study": "/away/one.yaml"}, "", "no study file /away/one.yaml: unknown study 'one'"),
        ({}, "results/tow/report.html", "unknown study 'tow', did you mean 'two'"),
        ({}, "results/broken/report.html", "broken.yaml:1: "),
        ({}, "result/x", "nothing makes result/x: unknown folder 'result', did you mean 'results'?"),
        ({}, "result/two/report.html", "nothing makes result/two/report.html: unknown folder 'result', did you mean"),
        ({}, "results/two", "nothing makes results/two. "),
        ({}, "results/two/cells/ner/tiny/ful-ft/qa1/qb1/seed1.json", "did you mean 'full-ft'"),
    ],
)
def test_a_mistake_is_told_when_the_rules_are_read(config: dict[str, str], command: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        workflow.load_plans(workflow.read_settings(CONFIG | config), command.split())


def test_a_workflow_of_someone_else_may_have_more_settings_and_files() -> None:
    settings = workflow.read_settings({"study": "one", "samples": "x"}, is_module=True)
    assert settings == workflow.Settings(study="one"), "what is missing has its default"
    assert list(workflow.load_plans(settings, ["results/qc/report.html"], is_module=True)) == ["one"]


def test_the_configuration_that_comes_with_xlgrid_has_all_settings_and_their_defaults() -> None:
    project = Path(__file__).parents[3]
    assert yaml.safe_load((project / "config.yaml").read_text()) == workflow.Settings().model_dump()
    # snakedeploy copies this folder, so the file that it finds there has to have the same settings.
    assert (project / "config" / "config.yaml").read_bytes() == (project / "config.yaml").read_bytes()


def test_a_study_file_may_be_anywhere_and_so_may_the_study_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/base.yaml").write_text(STUDY)
    (tmp_path / "elsewhere/own.yaml").write_text("extends: base\ntraining: [{set: {steps: 5}}]\n")
    settings = workflow.Settings(study="elsewhere/own.yaml")
    assert list(workflow.load_plans(settings, [])) == ["own"]
    # As an executor starts a job of the study that is extended.
    plans = workflow.load_plans(settings, ["--target-jobs", "data:task=ner,study=base"])
    assert plans["base"].path == Path("elsewhere/base.yaml")
    assert list(workflow.load_plans(settings, ["results/two/report.html"])) == ["two"]


def test_a_job_finds_a_study_that_another_extends_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/base.yaml").write_text(STUDY)
    Path("studies/own.yaml").write_text("extends: ../shared/base.yaml\ntraining: [{set: {steps: 5}}]\n")
    for arguments in (
        ["results/own/report.html"],
        ["results/base/report.html"],
        ["--target-jobs", "data:task=ner,study=base"],
    ):
        plans = workflow.with_ancestors(workflow.load_plans(workflow.Settings(), arguments))
        assert plans["base"].path == Path("shared/base.yaml")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/base.yaml").write_text(STUDY)
    Path("studies/mine.yaml").write_text("extends: ../other/base.yaml\n")
    with pytest.raises(ValueError, match=r"base.yaml and .*base.yaml would both make results/base/: rename"):
        workflow.load_plans(workflow.Settings(), ["results/base/report.html"])
    Path("studies/base.yaml").write_text(STUDY)
    with pytest.raises(
        ValueError, match=r"shared/base.yaml and studies/base.yaml would both make results/base/: rename"
    ):
        workflow.load_plans(workflow.Settings(), ["results/own/report.html"])


def test_two_study_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(STUDY)
    with pytest.raises(ValueError, match=r"one.yaml and studies/one.yaml would both make results/one/: rename"):
        workflow.load_plans(workflow.Settings(study=str(tmp_path / "one.yaml")), [])
    assert list(workflow.load_plans(workflow.Settings(study="studies/one.yaml"), [])) == ["one"]


def test_a_rule_makes_the_data_of_the_tasks_of_each_study_that_are_generated() -> None:
    plans = {"small": Plan(small()), "begun": Plan(begun())}
    constraint = workflow.made_by(plans, "data", Data)
    pattern = re.compile(rf"results/(?P<study>{constraint})/data/(?P<task>[^/]+)/en/test\.parquet")
    assert pattern.fullmatch("results/small/data/ner/en/test.parquet")
    assert pattern.fullmatch("results/begun/data/copa/en/test.parquet")
    assert not pattern.fullmatch("results/small/data/copa/en/test.parquet")
    assert not pattern.fullmatch("results/begun/data/cop/en/test.parquet")


def test_a_name_that_begins_another_is_not_taken_for_it() -> None:
    study = small()
    look = {"kind": "table", "title": "T", "rows": ["encoder"], "columns": "target"}
    study.exhibits.update({name: Table.model_validate(look) for name in ("ner", "a.b")})
    constraint = workflow.made_by({"small": Plan(study)}, "table", Exhibit)
    pattern = re.compile(rf"results/(?P<study>{constraint})/exhibits/(?P<exhibit>[^/]+)\.csv")
    assert all(pattern.fullmatch(f"results/small/exhibits/{name}.csv") for name in ("ner", "a.b"))
    others = ("ner-full", "ner-published", "nere", "a", "a-b")
    assert not any(pattern.fullmatch(f"results/small/exhibits/{name}.csv") for name in others)


def test_no_value_is_matched_by_no_text() -> None:
    assert not re.fullmatch(workflow.either([]), "")
    assert re.fullmatch(workflow.either(["a+b", "a"]), "a+b")


def test_the_wildcards_of_a_rule_are_the_fields_of_what_it_makes() -> None:
    axes = {"study": "s", "task": "t", "encoder": "e", "method": "m", "source": "en@fr", "target": "fr@10", "seed": "7"}
    wildcards = SimpleNamespace(**axes, tokenizer="v", other="de", language="en", split="dev")
    assert workflow.product(Run, wildcards) == Run("s", "t", "e", "m", "en@fr", 7)
    assert workflow.product(Cell, wildcards) == Cell("s", "t", "e", "m", "en@fr", "fr@10", 7)
    assert workflow.product(Tokens, wildcards, split="train") == Tokens("s", "t", "v", "en", "train")
    assert workflow.product(Data, wildcards) == Data("s", "t", "en", "dev")


def test_inputs_of_what_does_not_exist_are_refused_with_what_is_near() -> None:
    plans = {"small": Plan(small())}
    assert workflow.inputs_of(plans, Text("small", "fr")) == {"files": []}
    with pytest.raises(ValueError, match=r"results/small/text/it.parquet: unknown language 'it'"):
        workflow.inputs_of(plans, Text("small", "it"))


def test_an_exhibit_lacks_a_cell_that_was_deleted() -> None:
    Path("studies/shown.yaml").write_text(
        STUDY + "exhibits: {scores: {kind: table, title: T, rows: [source], columns: target}}\n"
    )
    plans = workflow.load_plans(SETTINGS, ["results/shown/report.html"])
    table = Exhibit("shown", "scores")
    files = workflow.inputs_of(plans, table)
    cells = [Path(cell.path) for cell in plans["shown"].cells]
    assert not workflow.lacks_results(table, files), "the exhibit was never made"
    for path in (*cells, Path(table.path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert not workflow.lacks_results(table, files | {"encoders": ["results/shown/encoders/tiny/model.safetensors"]})
    cells[0].unlink()
    assert workflow.lacks_results(table, files)
    assert not workflow.lacks_results(plans["shown"].cells[0], {"tokens": "deleted"}), "a cell needs no tokens any more"


def test_results_are_asked_for_with_all_their_files_and_encoders_if_only_some_exist() -> None:
    Path("studies/shown.yaml").write_text(
        STUDY + "exhibits: {scores: {kind: table, title: T, rows: [source], columns: target}}\n"
    )
    plan = workflow.load_plans(SETTINGS, ["results/shown/report.html"])["shown"]
    results = {f"results/shown/exhibits/scores{suffix}" for suffix in (".csv", ".md", ".tex", ".html")}
    results |= {"results/shown/summary.csv", "results/shown/report.html", *(cell.path for cell in plan.cells)}
    results |= {run.file(name) for run in plan.runs for name in ("run.json", "delta.safetensors", "curve.jsonl")}
    assert {*workflow.everything(plan)} == results, "encoders may be deleted"
    files = [
        Path("results/shown/encoders/tiny", name) for name in ("model.safetensors", "config.json", "tokenizer.json")
    ]
    files[0].parent.mkdir(parents=True)
    for number, file in enumerate(files, 1):
        file.touch()
        damaged = {*map(str, files)} if number < len(files) else set()
        assert {*workflow.everything(plan)} == results | damaged


def test_the_rules_know_the_studies_that_a_study_extends() -> None:
    Path("studies/three.yaml").write_text("extends: two\ntraining: [{set: {steps: 5}}]\n")
    named = workflow.load_plans(SETTINGS, ["results/three/report.html"])
    plans = workflow.with_ancestors(named)
    assert (list(named), list(plans)) == (["three"], ["two", "three"])
    cell = Cell("three", "ner", "tiny", "full-ft", "qa1", "qb1", 1)
    inputs = workflow.inputs_of(plans, cell)
    assert inputs["runs"] == cell.run.delta
    assert inputs["tokens"] == "results/two/tokens/ner/tiny/qb1/test.arrow"
    run = Run("two", "ner", "tiny", "full-ft", "qa1", 1)
    recipes = {name: str(run._replace(study=name).settings(plans[name].study)["recipe"]) for name in plans}
    assert "steps" in recipes["three"] and "steps" not in recipes["two"]
    with pytest.raises(ValueError, match=r"ask for results/two/encoders/tiny/model\.safetensors"):
        workflow.load_plans(SETTINGS, ["results/three/encoders/tiny/model.safetensors"])


@pytest.mark.parametrize("study", ["one", "two"])
@pytest.mark.parametrize("own", ["text/{name}.txt", "{folder}/{code}.txt"], ids=["another", "inherited"])
def test_a_pattern_of_a_derived_study_wins_over_those_that_it_inherits(study: str, own: str) -> None:
    inherited = {"text/{code}.txt": "https://a.test/one", "{folder}/{code}.txt": "https://a.test/any"}
    base = {"downloads": {path: {"url": url} for path, url in inherited.items()}}
    Path("studies/one.yaml").write_text(STUDY + yaml.safe_dump(base, sort_keys=False))
    derived = {"extends": "one", "title": "two", "downloads": {own: {"url": "https://a.test/two"}}}
    Path("studies/two.yaml").write_text(yaml.safe_dump(derived))
    plans = workflow.load_plans(SETTINGS, [f"results/{study}/report.html"])
    expected = ["https://a.test/two" if study == "two" else "https://a.test/one"]
    assert workflow.downloads_of(workflow.with_ancestors(plans)).find("text/en.txt").urls == expected
    found = find(plans[study].study.downloads, "text/en.txt")
    assert found and found.urls == expected
