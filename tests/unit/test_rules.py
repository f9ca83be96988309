"""Properties of the rules, as they are written."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
# Name -> text of each rule with a command.
RULES = {
    name: body
    for file in sorted((ROOT / "rules").glob("*.smk"))
    for name, body in re.findall(r"^rule (\w+):\n((?:(?: .*)?\n)*)", file.read_text(), re.MULTILINE)
}


def test_the_rules_are_found() -> None:
    assert {"train", "evaluate", "table", "report_html", "download_cc100"} <= RULES.keys()


@pytest.mark.parametrize("name", RULES)
def test_a_rule_states_what_its_jobs_need(name: str) -> None:
    """So that any executor of a cluster asks for it; a job that is tried again asks for more memory."""
    lines = [line.strip() for line in RULES[name].splitlines()]
    assert "threads: 1" in lines, "results are the same bytes with the same number of threads"
    assert "mem_mb=lambda w, attempt: 8000 * attempt," in lines
    assert [line for line in lines if re.fullmatch(r"runtime=\d+,", line)], "minutes"


def test_the_profile_for_slurm_gives_gpus_to_the_rules_that_use_them() -> None:
    profile = yaml.safe_load((ROOT / "slurm" / "profile.v9+.yaml").read_text())["set-resources"]
    with_gpus = {name for name, body in RULES.items() if "gpu=SETTINGS.gpus," in body}
    assert with_gpus == {name for name, resources in profile.items() if resources.get("gpus")}


def test_jobs_that_take_time_are_measured() -> None:
    """A cell has its time in it, the rest takes seconds or waits for the network."""
    unmeasured = {name for name, body in RULES.items() if "    benchmark:\n" not in body}
    downloads = {"download_cc100", "download_bucc", "import_adapter"}
    assert unmeasured == downloads | {
        "evaluate",
        "attention",
        "table",
        "compared",
        "claims",
        "report_notebook",
        "report_html",
    }
