"""The stages are those of the rule files, and every product has one."""

import re
from pathlib import Path
from typing import get_args

import pytest

from xlgrid.plan.products import Cell, Exhibit, Product
from xlgrid.report.stages import OTHER, PRODUCTS, RULES, TRAINING, Stage, stage_of, stage_of_rule, stages

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("stage", RULES)
def test_a_stage_has_the_rules_of_its_file(stage: str) -> None:
    text = (ROOT / "rules" / f"{stage}.smk").read_text()
    assert set(RULES[stage]) == {*re.findall(r"^(?:rule|use rule \w+ as) (\w+)", text, re.MULTILINE)}


def test_every_kind_of_product_is_of_one_stage() -> None:
    kinds = [kind for of_stage in PRODUCTS.values() for kind in of_stage]
    assert len(kinds) == len({*kinds}) and {*kinds} == {*get_args(Product)}


def test_the_rules_that_train_are_rules() -> None:
    assert {stage_of_rule(rule) for rule in TRAINING} == {"train", "encode"}


def test_a_rule_of_another_workflow_is_of_no_stage() -> None:
    assert stage_of_rule("xlgrid_train") == OTHER


def test_a_product_is_of_the_stage_that_makes_it() -> None:
    cell = Cell("s", "t", "e", "m", "en", "fr", 1)
    assert (stage_of(cell), stage_of(Exhibit("s", "table"))) == ("evaluate", "exhibits")


def test_jobs_are_counted_by_stage_and_state_in_the_order_of_the_stages() -> None:
    states = [("train", "running"), ("data", "done"), ("train", "waiting"), ("train", "failed"), ("other", "queued")]
    assert stages(states) == [
        Stage("data", 1, done=1),
        Stage("train", 3, running=1, failed=1),
        Stage("other", 1, queued=1),
    ]
