"""Properties of the rules, as Snakemake reads them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

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
    return rule.resources[name].evaluate(None, attempt=attempt).value if name in rule.resources else None


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
    assert with_gpus == {name for name, resources in profile.items() if resources.get("gpus")}


def test_trainings_are_measured(rules: dict[str, Any]) -> None:
    """Of a cell, the file has its time in it."""
    assert [name for name in ("pretrain", "train") if not rules[name].benchmark] == []
