"""Properties of the rules, as Snakemake reads them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from plan_fixture import begun
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

from xlgrid.exhibits import Table
from xlgrid.plan import workflow
from xlgrid.plan.plan import Plan
from xlgrid.products import product_of
from xlgrid.products.data import Data, Meanings, Text
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.evaluate import Cell
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.product import Product
from xlgrid.products.report import Claims, Report, Summary
from xlgrid.products.train import Run
from xlgrid.report.stages import OTHER, TRAINING, stage_of_rule
from xlgrid.study.encoders import Checkpoint, FolderEncoder, HubEncoder
from xlgrid.study.schema import MethodEntry
from xlgrid.study.tasks import TaskEntry
from xlgrid.training.derived import ALL_DERIVED_RUNS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rules() -> dict[str, Any]:
    """Name -> rule of Snakemake, of each rule with a command."""
    with pytest.MonkeyPatch.context() as patch, SnakemakeApi(OutputSettings(quiet={"all"})) as api:
        patch.chdir(ROOT)
        patch.setattr("sys.argv", ["snakemake"])
        settings = ConfigSettings(config={"study": "first", "gpus": 2})
        workflow = api.workflow(ResourceSettings(cores=1), settings, snakefile=ROOT / "Snakefile")._workflow
        return {rule.name: rule for rule in workflow.rules if rule.shellcmd}


def resource(rule: Any, name: str, attempt: int = 1) -> Any:
    """What a job of a rule asks for; None if the rule says nothing."""
    if name not in rule.resources:
        return None
    # A merge asks by its inputs, and needs no GPU without these; a group of runs asks by the number of its runs.
    inputs = SimpleNamespace(tokens=[], dev=[])
    group = SimpleNamespace(study="first", task="ner", encoder="mini-xlmr", method="bitfit", source="qa1", seed=1)
    return rule.resources[name].evaluate(group, input=inputs, attempt=attempt).value


def test_the_rules_are_found(rules: dict[str, Any]) -> None:
    assert {"train", "evaluate", "table", "report_html", "download"} <= rules.keys()


def test_a_job_has_the_same_number_of_threads_everywhere(rules: dict[str, Any]) -> None:
    """Results are the same bytes with the same number of threads."""
    assert [name for name, rule in rules.items() if resource(rule, "_cores") != 1] == []


def test_a_rule_states_its_minutes_and_more_memory_for_a_second_attempt(rules: dict[str, Any]) -> None:
    """So that any executor of a cluster asks for them."""
    assert [name for name, rule in rules.items() if not resource(rule, "runtime")] == []
    memory = {name: [resource(rule, "mem_mb", attempt) for attempt in (1, 2)] for name, rule in rules.items()}
    assert [name for name, (first, second) in memory.items() if not 0 < first < second] == []


def test_the_profile_for_slurm_gives_gpus_to_the_rules_that_use_them(rules: dict[str, Any]) -> None:
    profile = yaml.safe_load((ROOT / "slurm" / "profile.v9+.yaml").read_text())["set-resources"]
    with_gpus = {name for name, rule in rules.items() if resource(rule, "gpu")}
    assert with_gpus == {name for name in rules if profile.get(name, {}).get("gpus")}


def test_trainings_are_measured(rules: dict[str, Any]) -> None:
    """Of a cell, the file has its time in it."""
    assert [name for name in TRAINING if not rules[name].benchmark] == []


# Products of papers, where these are installed: words that a run labels, and a run that others trained.
UNLABELLED = product_of("results/begun/unlabelled/words/fr.parquet")
OF_PAPERS = [Data("begun", "words", "fr", "train"), UNLABELLED] if UNLABELLED else []
IS_IMPORTED = "imported" in ALL_DERIVED_RUNS.names()
if IS_IMPORTED:
    OF_PAPERS.append(Run("begun", "mlm", "mini", "read", "en", 1))


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A study with a product for each rule."""
    study = begun()
    own = {
        "kind": "sequence",
        "inputs": ["a"],
        "target": "b",
        "labels": ["x", "y"],
        "data": {"local": "{language}.{split}.csv"},
    }
    teacher = {"task": "words", "encoder": "mini", "method": "mlm", "source": "en"}
    labelled = {"local": "{language}.csv", "languages": ["fr"], "by": teacher}
    data = {"local": "{language}.{split}.csv", "labelled": labelled}
    study.tasks["own"] = TaskEntry.model_validate(own)
    if UNLABELLED:
        study.tasks["words"] = TaskEntry.model_validate({"kind": "udpos", "data": data})
    study.encoders.update(hub=HubEncoder(hub="a/b"), path=FolderEncoder(path="x"), of=Checkpoint(of="mini", step=1))
    if IS_IMPORTED:
        imported = {"hub": "a/{language}", "revision": "v1"}
        study.methods["read"] = MethodEntry.model_validate({"base": "madx", "imported": imported})
    merge = {"by": "average", "of": [{"method": "mlm", "task": "siqa"}]}
    study.methods["merged"] = MethodEntry.model_validate({"base": "full-ft", "merge": merge})
    look = {"kind": "table", "title": "T", "rows": ["encoder"], "columns": "target"}
    study.exhibits["scores"] = Table.model_validate(look)
    return Plan(study)


def made(plan: Plan) -> list[tuple[str, Product]]:
    """Products of the study, each with the rule that makes it."""
    encoders, tokenizers = plan.study.encoders, plan.study.all_tokenizers
    products = [
        Meanings("begun", "siqa"),
        Data("begun", "siqa", "en", "train"),
        Data("begun", "own", "en", "test"),
        *OF_PAPERS,
        Text("begun", "en"),
        *(Tokenizer("begun", name) for name in tokenizers),
        *(Encoder("begun", name) for name in encoders),
        Tokens("begun", "siqa", "mini", "en", "test"),
        Run("begun", "mlm", "mini", "mlm", "en", 1),
        Run("begun", "siqa", "mini", "merged", "en", 1),
        Cell("begun", "siqa", "mini", "mlm-src", "en", "fr", 1),
        Exhibit("begun", "scores"),
        Claims("begun"),
        Summary("begun"),
        Report("begun"),
    ]
    return [(rule_of(plan, product), product) for product in products]


def rule_of(plan: Plan, product: Product) -> str:
    """The rule that makes a product, by the constraint of its study where there are several."""
    for rule in product.makers(plan.study):
        constraint = workflow.made_by({"begun": plan}, rule, type(product))
        if re.match(rf"results/(?:{constraint})/", product.path):
            return rule
    return product.rules[0]


def test_a_product_has_the_log_that_its_rule_writes(plan: Plan, rules: dict[str, Any]) -> None:
    for rule, product in made(plan):
        fields = {field: getattr(product, field) for field in product.__match_args__}  # type: ignore[attr-defined]
        assert product.log(plan.study) in [log.apply_wildcards(fields) for log in rules[rule].log], product


def test_a_rule_is_in_the_file_of_its_stage(rules: dict[str, Any]) -> None:
    files = {name: Path(rule.snakefile) for name, rule in rules.items()}
    core = [name for name, file in files.items() if file.parent.name == "rules"]
    assert {name: stage_of_rule(name) for name in core} == {name: files[name].stem for name in core}
    assert all(stage_of_rule(name) != OTHER for name in rules)


def test_a_rule_gives_its_command_every_setting_of_a_product(plan: Plan, rules: dict[str, Any]) -> None:
    """A setting that no command is given could change no result."""
    for rule, product in made(plan):
        assert product.settings(plan.study).keys() <= {*rules[rule].params.keys()}, product


def test_the_environment_of_a_paper_s_rule_installs_xlgrid(rules: dict[str, Any]) -> None:
    """Conda runs the script that lies beside the file, wherever Snakemake has copied it."""
    in_papers = [rule for rule in rules.values() if Path(rule.snakefile).parent.name != "rules"]
    assert all(Path(rule.conda_env).with_suffix(".post-deploy.sh").is_file() for rule in in_papers)
