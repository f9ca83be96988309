"""What follows from the events of a run."""

from pathlib import Path

import pytest
from events import failed, planned, started
from xlgrid.report.ledger import Job as Known
from xlgrid.report.overview import Failure
from xlgrid.report.stages import Stage
from xlgrid.report.trainings import Training

from snakemake_logger_plugin_xlgrid.workflow import Job, Workflow, clock, reason, running_jobs, trainings

RUN = "results/demo/runs/ner/mini/full-ft/qa1/seed1/delta.safetensors"


@pytest.fixture
def workflow() -> Workflow:
    """Two jobs of data, four trainings, eight evaluations."""
    workflow = Workflow(0.0)
    workflow.plan(planned(data=2, train=4, evaluate=8).__dict__["stats"])
    return workflow


def test_the_jobs_of_a_run_are_counted_by_stage_without_its_target(workflow: Workflow) -> None:
    assert workflow.stages() == [Stage("data", 2), Stage("train", 4), Stage("evaluate", 8)]


def test_a_job_is_queued_then_running_then_done(workflow: Workflow) -> None:
    workflow.submit(started(1, "train"))
    assert workflow.stages()[1] == Stage("train", 4, queued=1)
    workflow.look(1.0, {1}, {})
    assert workflow.stages()[1] == Stage("train", 4, running=1)
    workflow.finish(1)
    assert workflow.stages()[1] == Stage("train", 4, done=1)
    assert workflow.finished == {"results/demo/train1"}


def test_a_failure_is_kept_with_its_log_until_the_job_is_tried_again(workflow: Workflow) -> None:
    workflow.submit(started(1, "train", RUN, "a.log"))
    failure = workflow.fail(1, "no such column")
    assert failure == Failure(RUN, "no such column", "a.log")
    assert workflow.stages()[1] == Stage("train", 4, failed=1) and [*workflow.failures.values()] == [failure]
    workflow.submit(started(1, "train", RUN, "a.log"))
    assert workflow.stages()[1] == Stage("train", 4, queued=1) and not workflow.failures


@pytest.mark.parametrize(
    ("text", "message", "expected"),
    [
        ("error: no such column\n", "exception: exit code 1\nlog: ...", "no such column"),
        ("error: first\nstep 1\nerror: last\nmore\n", None, "last"),
        ("ValueError: bad\n", "out of memory: killed by SIGKILL", "out of memory: killed by SIGKILL: ValueError: bad"),
        ("step 1/2\n", "timeout: it ran for longer than its limit", "timeout: it ran for longer than its limit"),
        ("", None, "it ended without a message: was it killed?"),
        (None, None, "it ended without a message: was it killed?"),
    ],
)
def test_the_reason_of_a_failure_is_the_last_error_of_the_log(
    tmp_path: Path, text: str | None, message: str | None, expected: str
) -> None:
    log = tmp_path / "job.log"
    if text is not None:
        log.write_text(text)
    assert reason(failed(1, message, str(log))) == expected


def test_jobs_run_where_snakemake_runs_or_as_the_ledger_says() -> None:
    jobs = {number: Job("train", (f"out{number}",), "", is_local=number == 0) for number in range(5)}
    known = {
        "out1": Known("train", ("out1",), "running"),
        "out2": Known("train", ("out2",), "queued"),
        "out3": Known("train", ("out3",), "done"),
    }
    assert running_jobs(jobs, known) == {0, 1, 3} and running_jobs(jobs, {}) == {0}


def test_running_trainings_are_read_from_their_logs(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("step 60/300  loss 0.4  dev 88.20  3 s\n")
    jobs = {
        1: Job("train", (RUN,), str(log), False),
        2: Job("train", (RUN,), str(log), False),
        3: Job("data", ("a",), "", True),
    }
    assert trainings(jobs, {1, 3}) == {1: Training("ner mini full-ft qa1 seed1", 60, 300, 88.2, str(log))}


def test_time_left_follows_from_what_jobs_of_a_rule_took(workflow: Workflow) -> None:
    for number, rule in enumerate(("data", "data", "train", "train", "evaluate")):
        workflow.submit(started(number, rule))
    workflow.look(0.0, {0, 1}, {})
    workflow.look(10.0, {2, 3}, {})
    workflow.look(310.0, {4}, {})
    workflow.look(340.0, set(), {})
    for number in range(5):
        workflow.finish(number)
    # Two trainings took 300 s together, an evaluation 30 s; two trainings and seven evaluations are left.
    assert workflow.left() == "about 8 min left"


def test_a_training_counts_for_the_steps_that_it_has_done(workflow: Workflow) -> None:
    workflow.plan({"train": 2})
    workflow.submit(started(1, "train"))
    workflow.look(0.0, {1}, {1: Training("a", 50, 100)})
    assert workflow.left() == "", "the first half was done before this run"
    workflow.look(300.0, {1}, {1: Training("a", 75, 100)})
    assert workflow.left() == "about 25 min left", "a quarter took 5 min, and five quarters are left"


def test_a_rule_whose_duration_nobody_knows_makes_the_time_left_a_bound(workflow: Workflow) -> None:
    workflow.submit(started(1, "train"))
    assert workflow.left() == ""
    workflow.look(0.0, {1}, {})
    workflow.look(100.0, set(), {})
    workflow.finish(1)
    assert workflow.left() == "more than 5 min left"
    workflow.plan({"report_html": 1})
    assert workflow.left() == "less than a minute left", "the last jobs are short"


def test_a_line_says_all_stages_and_failures_and_the_last_one_what_is_not_done(workflow: Workflow) -> None:
    """The target is no job, and a failure that is reported twice is one."""
    for number, rule in enumerate(("all", "train", "train")):
        workflow.submit(started(number, rule))
    workflow.finish(0)
    workflow.finish(1)
    assert workflow.fail(2, "a") and workflow.fail(2, "a") is None
    assert workflow.line() == "data 0/2, train 1/4, evaluate 0/8, 1 failed"
    assert workflow.end(61.0) == "demo: 1 of 14 jobs done in 1:01, 1 failed, 12 not done"


def test_the_page_of_a_report_is_what_to_open() -> None:
    workflow = Workflow(0.0)
    workflow.plan({"report_html": 1})
    workflow.submit(started(1, "report_html", "results/demo/report.html"))
    workflow.finish(1)
    assert workflow.reports == ["results/demo/report.html"]


def test_a_stopwatch() -> None:
    assert [clock(7), clock(61), clock(3723)] == ["0:07", "1:01", "1:02:03"]
