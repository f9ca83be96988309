"""The stages of rules, and their jobs."""

from xlgrid.report.stages import OTHER, TRAINING, Stage, stage_of_rule, stages


def test_the_rules_that_train_are_rules() -> None:
    assert {stage_of_rule(rule) for rule in TRAINING} == {"train", "encode"}


def test_a_rule_of_another_workflow_is_of_no_stage() -> None:
    assert stage_of_rule("xlgrid_train") == OTHER


def test_jobs_are_counted_by_stage_and_state_in_the_order_of_the_stages() -> None:
    states = [("train", "running"), ("data", "done"), ("train", "waiting"), ("train", "failed"), ("other", "queued")]
    assert stages(states) == [
        Stage("data", 1, done=1),
        Stage("train", 3, running=1, failed=1),
        Stage("other", 1, queued=1),
    ]
