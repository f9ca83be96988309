"""Every cell and run has a state, and a failed one a reason; the time that is left follows from those that are done."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
from status_fixture import CELL, DONE, NOW, RESULT, RUN, RUN_LOG, bundle, failed, look, running, write

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products import kinds
from xlgrid.products.product import Inputs, Product
from xlgrid.report import ledger, overview, status

pytestmark = pytest.mark.usefixtures("tiny_project")


@pytest.mark.parametrize(
    ("run", "cell", "expected"),
    [
        (None, None, "waiting"),
        ("queued", None, "queued"),
        ("running", None, "training"),
        ("done", "queued", "queued"),
        ("done", "running", "running"),
        ("done", None, "waiting"),
        ("done", "revoked", "waiting"),
        ("done", "done", "done"),
    ],
)
def test_a_cell_is_as_far_as_its_own_job_or_else_its_run(run: str | None, cell: str | None, expected: str) -> None:
    for place, output, state in (("1/a", RESULT, run), ("2/a", CELL.path, cell)):
        if state == "done":
            write(output, DONE)
        elif state:
            bundle(place, (output, running() if state == "running" else None))
        if state == "revoked":
            write(ledger.FOLDER / place / "revoked")
    view = look()
    assert view.cells[CELL] == expected
    assert view.runs[RUN] == ({"running": "training", None: "waiting"}.get(run, run))
    assert not view.broken


def test_a_cell_is_stale_if_its_run_has_been_trained_again_since() -> None:
    for path, when in ((RESULT, NOW), (RUN.delta, NOW), (CELL.path, NOW + 1)):
        write(path, DONE, when=when)
    assert look().cells[CELL] == "done"
    write(RUN.delta, DONE, when=NOW + 2)
    overview_of_both = look()
    assert overview_of_both.cells[CELL] == "stale"
    assert "0 of 12 cells done, 1 older than their run, so that Snakemake makes them again ↻" in str(
        status.totals(overview_of_both)
    )


def test_a_failure_holds_up_the_runs_and_cells_that_rest_on_it_only() -> None:
    failed("results/tiny/tokens/ner/tiny/qb1/test.arrow", NOW)
    failed("results/tiny/tokens/ner/tiny/qa2/train.arrow", NOW)
    view = look()
    assert {run.source for run, state in view.runs.items() if state == "failed"} == {"qa2"}
    assert {(cell.source, cell.target) for cell, state in view.cells.items() if state == "failed"} == {
        ("qa1", "qb1"),
        *(("qa2", target) for target in ("qa1", "qa2", "qb1")),
    }


def test_each_product_is_asked_once_what_it_is_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time would grow with the cells times the files on which each rests."""
    asked: Counter[Product] = Counter()
    for kind in kinds():
        whole = kind.inputs

        def counted(product: Product, plan: Plan, whole: Callable[..., Inputs] = whole) -> Inputs:
            asked[product] += 1
            return whole(product, plan)

        monkeypatch.setattr(kind, "inputs", counted)
    plan = load_plan("tiny")
    asked.clear()
    overview.look(plan, ledger.FOLDER)
    overview.look(plan, ledger.FOLDER)
    results = [product for product in plan.products if not product.shows_results]
    assert {*asked} == {*results} and {*asked.values()} == {1}


def test_jobs_of_the_study_that_is_extended_are_seen_even_if_no_run_or_cell_is_its_own() -> None:
    write("studies/other.yaml", "extends: tiny\ntraining: [{set: {lr: 0.5}}]\n")
    plan = load_plan("other")
    assert not plan.shared
    log = write("results/tiny/logs/encoders/tiny.log", "error: the disk is full\n")
    view = overview.look(plan, ledger.FOLDER)
    assert {*view.cells.values(), *view.runs.values()} == {"failed"}
    encoder = "results/tiny/encoders/tiny/model.safetensors"
    assert {*view.broken.values()} == {overview.Failure(encoder, "the disk is full", str(log))}
    bundle("1/a", (encoder, running()), rule="pretrain")
    assert overview.look(plan, ledger.FOLDER).flight == {("pretrain", "running"): 1}
    write(encoder)
    assert not overview.look(plan, ledger.FOLDER).broken, "the log of what exists says nothing of what rests on it"


def test_an_encoder_from_a_folder_below_results_that_nothing_makes_is_only_a_file() -> None:
    write("studies/near.yaml", "extends: tiny\nencoders: {tiny: {scratch: null, path: results/near/encoders/other}}\n")
    assert {*overview.look(load_plan("near"), ledger.FOLDER).cells.values()} == {"waiting"}


def test_a_failure_has_the_ledgers_cause_and_the_last_error_that_message_or_log_tell() -> None:
    write(RUN_LOG, "warning\nerror: the loss is nan\n")
    assert look().broken[CELL] == overview.Failure(RESULT, "the loss is nan", RUN_LOG), "without a ledger"
    bundle("1/a", (RESULT, {"state": "failed", "cause": "NaN", "message": "exit code 1"}))
    assert look().broken[CELL] == overview.Failure(RESULT, "NaN: exit code 1: the loss is nan", RUN_LOG)
    failed(RESULT, NOW + 1, "exception", "exit code 1\nsome.log:\nTraceback:\n  ...\nValueError: no such file\n")
    assert look().broken[CELL] == overview.Failure(RESULT, "exception: exit code 1: ValueError: no such file", "a.log")
    failed(RESULT, NOW + 2, "exception", "error: the loss is nan")
    assert look().broken[CELL].reason == "exception: error: the loss is nan", "not twice"


def test_what_is_tried_again_or_exists_did_not_fail() -> None:
    write(RUN_LOG, "error: the loss is nan\n")
    failed(RESULT, NOW - 1)
    bundle("1/a", (RESULT, running()))
    assert look().runs[RUN] == "training"
    write(RESULT)
    assert look().runs[RUN] == "done"
    assert not look().broken, "the log of what exists says nothing of its cells"


def test_what_snakemake_says_failed_did_even_if_it_left_its_bundle() -> None:
    bundle("1/a", (RESULT, running()))
    assert look((RESULT,)).broken[CELL].reason == "it ended without a message: was it killed?"


def every(seconds: float, number: int, until: float = NOW) -> list[float]:
    return [until - seconds * i for i in range(number)]


@pytest.mark.parametrize(
    ("cells_done", "cells_left", "runs_done", "runs_left", "expected"),
    [
        (every(9, 1000), 600, [], 0, "about 1 h 30 min left for the whole study at the rate of the last 15 min"),
        (every(10, 31), 6, [], 0, "about 1 min left for the whole study at the rate of the last 5 min"),
        (every(600, 20), 6 * 24 * 3, [], 0, "about 3 d left for the whole study at the rate of the last 1 h"),
        (every(1, 200), 200, every(300, 9), 12, "about 1 h left for the whole study at the rate of the last 40 min"),
        ([], 100, every(60, 100), 90, "about 1 h 30 min until all runs are trained at the rate of the last 15 min"),
        (every(60, 4), 100, [], 3, ""),
        (every(60, 100, NOW - 86400), 100, [], 3, ""),
        (every(60, 100), 0, every(60, 100), 0, ""),
    ],
    ids=["steady", "just-begun", "slow", "runs-last-longer", "runs-only", "too-few", "long-ago", "nothing-left"],
)
def test_time_left(
    cells_done: list[float], cells_left: int, runs_done: list[float], runs_left: int, expected: str
) -> None:
    assert overview.time_left(NOW, cells_done, cells_left, runs_done, runs_left) == expected


def test_a_burst_of_cells_now_and_then_is_not_taken_for_the_pace() -> None:
    bursts = [NOW - 1200 * i - j for i in range(5) for j in range(90)]
    assert "15 h" in overview.time_left(NOW, bursts, 5400, [], 0)


def test_time_is_told_while_something_is_in_flight() -> None:
    for target in ("qa1", "qa2", "qb1"):
        for seed in (1, 2):
            write(CELL._replace(target=target, seed=seed).path, DONE, when=time.time() - 20 * seed)
    assert not look().left
    bundle("1/a", (RESULT.replace("qa1", "qa2"), running()))
    assert look().left.startswith("about 1 min left")
