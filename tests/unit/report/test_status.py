"""The ledger is read whatever stands in it; a study's matrices say what is done, under way, and why the rest is not."""

import io
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from xlgrid.cli import app
from xlgrid.evaluation.cell import pack
from xlgrid.plan.load import load_plan
from xlgrid.report import ledger, overview, status
from xlgrid.results.identity import Cell, Run
from xlgrid.study.schema import EncoderEntry, ImportedAdapters

STUDY = """\
title: Tiny
languages: [qa1, qa2, qb1]
encoders: {tiny: {mini: {kind: bert, languages: [qa1, qa2, qb1]}}}
tasks: {ner: {kind: wikiann}}
methods: {full-ft: {}}
grids:
  main: {task: [ner], encoder: [tiny], method: [full-ft], source: [qa1, qa2], target: [mono], seed: [1, 2]}
"""
RUN = Run("tiny", "ner", "tiny", "full-ft", "qa1", 1)
CELL = Cell(*RUN[:-1], "qb1", RUN.seed)
RESULT = f"{RUN.folder}/run.json"
RUN_LOG = "results/tiny/logs/runs/ner/tiny/full-ft/qa1/seed1.log"
NOW = 1_000_000.0


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("studies/tiny.yaml", STUDY)
    return tmp_path


def write(path: str | Path, text: str = "", when: float | None = None) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if when:
        os.utime(path, (when, when))
    return path


def bundle(
    place: str, *jobs: tuple[str, dict[str, Any] | None], rule: str = "train", when: float = NOW, submitted: bool = True
) -> None:
    """A bundle of jobs with one output each; a job without a status is queued."""
    folder = ledger.FOLDER / place
    if submitted:
        write(folder.parent / "array.json", json.dumps({"cluster": "slurm", "tasks": ["1"], "submitted": when}))
    entries = [{"rule": rule, "outputs": [output]} for output, _ in jobs]
    write(folder / "bundle.json", json.dumps({"jobs": entries}), when)
    for number, (_, told) in enumerate(jobs):
        if told:
            write(folder / f"status/{number}.json", json.dumps(told))


def failed(output: str, when: float, cause: str = "out of memory", message: str = "") -> None:
    line = {"outputs": [output], "rule": "train", "cause": cause, "message": message, "logs": ["a.log"], "time": when}
    path = ledger.FOLDER / "failures.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def running(when: float = NOW) -> dict[str, Any]:
    return {"state": "running", "started": when, "host": "node1", "attempt": 1}


def states() -> dict[str, str]:
    return {output: job.state for output, job in ledger.read(ledger.FOLDER).items()}


def look(failed: tuple[str, ...] = ()) -> overview.Overview:
    return overview.look(load_plan("tiny"), ledger.FOLDER, failed)


def text(seen: overview.Overview, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    for table in status.matrices(seen, width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# The ledger


def test_no_ledger_is_an_empty_one() -> None:
    assert ledger.read("nowhere") == {}


def test_a_job_is_queued_until_its_status_file_says_otherwise() -> None:
    gone = {"state": "failed", "started": NOW, "ended": NOW, "cause": "timeout", "message": "after\n1 h"}
    bundle("1/a", ("a", None), ("b", running()), ("c", {"state": "done", "started": NOW}), ("d", gone))
    assert states() == {"a": "queued", "b": "running", "c": "done", "d": "failed"}
    assert ledger.read(ledger.FOLDER)["d"] == ledger.Job("train", ("d",), "failed", "timeout", "after\n1 h")


def test_the_end_of_a_job_stands_when_snakemake_knows_it() -> None:
    bundle("1/a", ("a", {"state": "failed", "cause": "timeout"}), ("b", {"state": "stopped"}), ("c", {"state": "done"}))
    for number in (0, 2):
        status_file = ledger.FOLDER / f"1/a/status/{number}.json"
        status_file.rename(status_file.with_suffix(".closed"))
    assert states() == {"a": "failed", "b": "queued", "c": "done"}


def test_nothing_of_a_revoked_bundle_is_under_way() -> None:
    bundle("1/a", ("a", {"state": "failed"}), ("b", {"state": "done"}), ("c", running()), ("d", None))
    write(ledger.FOLDER / "1/a/revoked")
    bundle("0/a", ("d", None), when=NOW - 60)
    assert states() == {"a": "failed", "b": "done", "c": "revoked", "d": "revoked"}


@pytest.mark.parametrize(("old", "new"), [("1/a", "2/a"), ("2/a", "1/a")])
def test_the_newest_bundle_of_an_output_counts(old: str, new: str) -> None:
    bundle(old, ("a", running()), when=NOW)
    bundle(new, ("a", None), when=NOW + 60)
    assert states() == {"a": "queued"}


@pytest.mark.parametrize("submitted", [True, False])
@pytest.mark.parametrize("told", [None, running(NOW + 5)])
def test_a_failure_counts_until_the_job_is_tried_again(told: dict[str, Any] | None, submitted: bool) -> None:
    bundle("1/a", ("a", told), when=NOW, submitted=submitted)
    again = "running" if told else "queued"
    failed("a", NOW - 1)
    assert states() == {"a": again}, "it was submitted after the failure"
    failed("a", NOW + 10)
    assert states() == {"a": "failed"}, "what killed the job left no status"
    bundle("1/a", ("a", running(NOW + 20)), when=NOW, submitted=submitted)
    assert states() == {"a": "running"}, "its bundle was started again"


def test_the_latest_failure_of_an_output_counts() -> None:
    failed("a", NOW, "timeout")
    failed("a", NOW + 1, "NaN", "the loss")
    assert ledger.read(ledger.FOLDER)["a"] == ledger.Job("train", ("a",), "failed", "NaN", "the loss", "a.log")


def test_what_vanishes_while_it_is_read_or_is_half_written_is_passed_over() -> None:
    bundle("1/a", ("a", None), ("b", None))
    for name in ("0.json", "2.json"):
        path = ledger.FOLDER / "1/a/status" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("gone")  # listed, but not there when it is opened
    (ledger.FOLDER / "1/empty").mkdir()
    write(ledger.FOLDER / "1/bad/bundle.json", '{"jobs": [{"rule"')
    failed("c", NOW)
    with (ledger.FOLDER / "failures.jsonl").open("a") as file:
        file.write('{"outputs": ["d"], "ti')
    assert states() == {"a": "queued", "b": "queued", "c": "failed"}


def test_the_status_of_what_exists_is_not_read() -> None:
    bundle("1/a", ("a", running()), ("b", running()))
    found = ledger.read(ledger.FOLDER, made={"a"})
    assert {output: job.state for output, job in found.items()} == {"a": "done", "b": "running"}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["jobs", "outputs", "rule", "state", "time", "logs"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(anything, anything, anything, anything)
def test_any_json_is_read(array: object, jobs: object, told: object, failure: object) -> None:
    folder = ledger.FOLDER / "1"
    write(folder / "array.json", json.dumps(array))
    write(folder / "a/bundle.json", json.dumps({"jobs": jobs}))
    write(folder / "a/status/0.json", json.dumps(told))
    write(ledger.FOLDER / "failures.jsonl", json.dumps(failure) + "\n")
    assert all(isinstance(job, ledger.Job) for job in ledger.read(ledger.FOLDER).values())


# A study


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
            write(output)
        elif state:
            bundle(place, (output, running() if state == "running" else None))
        if state == "revoked":
            write(ledger.FOLDER / place / "revoked")
    seen = look()
    assert seen.cells[CELL] == expected
    assert seen.runs[RUN] == ({"running": "training", None: "waiting"}.get(run, run))
    assert not seen.broken


def test_a_failure_holds_up_the_runs_and_cells_that_rest_on_it_only() -> None:
    failed("results/tiny/tokens/ner/tiny/qb1/test.arrow", NOW)
    failed("results/tiny/tokens/ner/tiny/qa2/train.arrow", NOW)
    seen = look()
    assert {run.source for run, state in seen.runs.items() if state == "failed"} == {"qa2"}
    assert {(cell.source, cell.target) for cell, state in seen.cells.items() if state == "failed"} == {
        ("qa1", "qb1"),
        *(("qa2", target) for target in ("qa1", "qa2", "qb1")),
    }


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


def test_a_cell_rests_on_the_splits_that_are_fetched_for_it() -> None:
    """And on those of the task that its own is trained on."""
    tasks = "{siqa: {kind: siqa}, own: {kind: copa, trained_on: siqa, data: {local: 'x/{split}.csv'}}}"
    write("studies/tiny.yaml", STUDY.replace("{ner: {kind: wikiann}}", tasks).replace("[ner]", "[own]"))
    made = overview.jobs(load_study("studies/tiny.yaml"), Cell("tiny", "own", "tiny", "full-ft", "qa1", "qb1", 1))
    logs = dict(made)
    data = {name.removeprefix("results/tiny/data/") for name in logs if "/data/" in name}
    assert data == {"siqa/meanings.parquet", "siqa/qa1/test.parquet", "own/qb1/test.parquet"}
    assert logs["results/tiny/data/own/qb1/test.parquet"] == "results/tiny/logs/data/own/qb1/test.log"
    tokens = {name.removeprefix("results/tiny/tokens/") for name in logs if "/tokens/" in name}
    assert tokens == {"siqa/tiny/qa1/train.arrow", "siqa/tiny/qa1/dev.arrow", "own/tiny/qb1/test.arrow"}


def test_a_box_counts_its_seeds_and_has_the_mark_of_what_needs_a_look_most() -> None:
    first, second = (f"results/tiny/cells/ner/tiny/full-ft/qa1/{target}/seed1.json" for target in ("qa1", "qa2"))
    for seed in (1, 2):
        write(f"results/tiny/runs/ner/tiny/full-ft/qa1/seed{seed}/run.json")
    write(first)
    bundle("1/a", (second, running()), (second.replace("seed1", "seed2"), None), (CELL.path, None), rule="evaluate")
    failed(CELL.path.replace("seed1", "seed2"), NOW)
    shown = text(look())
    assert "qa1     1/2    0/2 ▶  0/2 ✗" in shown, shown


def test_a_box_is_dim_only_while_nothing_of_it_is_done() -> None:
    write(CELL.path)
    [table] = [part for part in status.matrices(look(), 200) if isinstance(part, Table)]
    looks = {str(box): str(box.style) for column in table.columns[1:] for box in column.cells if isinstance(box, Text)}
    assert looks == {"0/2": "dim", "1/2": ""}


@settings(max_examples=40)
@given(
    st.lists(st.from_regex(r"[a-h]{1,9}|[a-h]{1,4}-[a-h]{1,4}", fullmatch=True), unique=True, min_size=1, max_size=40),
    st.integers(24, 120),
)
def test_a_matrix_is_as_wide_as_there_is_room_and_nothing_in_it_is_cut(targets: list[str], width: int) -> None:
    planned = {
        Cell("tiny", "t", "e", "m", source, target, seed): "done"
        for source in ("en", "en+fr")
        for target in targets
        for seed in range(10)
    }
    shown = text(overview.Overview("tiny", planned, {}, {}, Counter(), ""), width)
    words = shown.split()
    assert words.count("10/10") == 2 * len(targets), shown
    assert set(targets) <= set(words) and "…" not in shown, shown


def test_the_totals_name_the_marks_and_count_cells_runs_and_jobs() -> None:
    for seed in (1, 2):
        write(f"results/tiny/runs/ner/tiny/full-ft/qa1/seed{seed}/run.json")
    write(CELL.path)
    failed(CELL.path.replace("seed1", "seed2"), NOW)
    bundle("1/a", (RESULT.replace("qa1", "qa2"), running()), (RESULT.replace("qa1/seed1", "qa2/seed2"), None))
    bundle("2/a", (CELL.path.replace("qb1", "qa1"), None), rule="evaluate")
    bundle("3/a", ("results/other/runs/x", running()))
    assert status.totals(look()).plain.splitlines() == [
        "1 of 12 cells done, 1 wait for 1 failed job (✗), 3 training ▷, 4 queued …, 3 waiting",
        "2 of 4 runs done, 1 training ▷, 1 queued …",
        "in flight: evaluate 1 queued; train 1 running, 1 queued",
    ]


def test_failures_for_the_same_reason_are_told_once_and_written_each() -> None:
    results = [f"results/tiny/runs/ner/tiny/full-ft/qa1/seed{seed}/run.json" for seed in (1, 2)]
    for result in results:
        failed(result, NOW)
    seen = look()
    [together] = status.failures(seen, together=True)
    assert together == (
        f"{results[0]} and 1 more (6 cells wait for them)\n  reason: out of memory\n  log: a.log\n"
        f"  again: snakemake --cores all --rerun-incomplete -- {results[0]} {results[1]}"
    )
    assert [one.splitlines()[0] for one in status.failures(seen, together=False)] == [
        f"{result} (3 cells wait for it)" for result in results
    ]


def test_a_command_for_very_many_failures_names_none_of_them() -> None:
    broken = {
        CELL._replace(seed=seed): overview.Failure(CELL._replace(seed=seed).path, "timeout", "a.log")
        for seed in range(11)
    }
    [together] = status.failures(overview.Overview("tiny", {}, {}, broken, Counter(), ""), together=True)
    assert together.endswith("again: snakemake --cores all --rerun-incomplete -- results/tiny/report.html")


# Time


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
            write(CELL._replace(target=target, seed=seed).path, when=time.time() - 20 * seed)
    assert not look().left
    bundle("1/a", (RESULT.replace("qa1", "qa2"), running()))
    assert look().left.startswith("about 1 min left")


# Commands


def ask(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments], catch_exceptions=False)


def test_status_shows_matrix_totals_and_failures_of_the_ledger_it_is_told() -> None:
    failed(RESULT, NOW)
    ledger.FOLDER.rename("elsewhere")
    done = ask("status", "studies/tiny.yaml", "--ledger", "elsewhere")
    assert done.exit_code == 0
    assert "0/2 ✗" in done.output and "3 wait for 1 failed job (✗)" in done.output
    assert "reason: out of memory\n" in done.output


def test_a_ledger_that_is_not_there_is_refused_when_it_is_named() -> None:
    done = ask("status", "studies/tiny.yaml", "--ledger", "nowhere")
    assert done.exit_code == 2 and "nowhere" in done.output


def test_watching_ends_when_all_is_done() -> None:
    for cell in load_plan("tiny").cells:
        write(cell.path)
    done = ask("status", "studies/tiny.yaml", "--watch")
    assert done.exit_code == 0 and "12 of 12 cells done" in done.output


def test_watching_looks_again_and_ends_quietly_on_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt
        write(CELL.path)

    monkeypatch.setattr(time, "sleep", sleep)
    done = ask("status", "studies/tiny.yaml", "--watch", "--every", "7")
    assert done.exit_code == 0 and slept == [7, 7]
    assert "1 of 12 cells done" in done.output and "Traceback" not in done.output


def test_partial_writes_the_ledgers_failures() -> None:
    failed(RESULT, NOW)
    assert ask("partial", "studies/tiny.yaml").exit_code == 0
    told = Path("results/tiny/partial/failed.txt").read_text()
    assert told.startswith(f"{RESULT} (3 cells wait for it)\n  reason: out of memory\n  log: a.log\n"), told


CLAIM = "claims: {chance: {says: It guesses., against: 50, expect: none, margin: 5}}\n"


def test_partial_judges_the_claims_from_what_exists() -> None:
    write("studies/tiny.yaml", STUDY + CLAIM)
    outcomes = [1, 0, 1, 1]
    told = {"metric": {"name": "accuracy"}, "scores": {"accuracy": 75.0}, "n": 4, "outcomes": pack(outcomes)}
    for cell in load_plan("tiny").cells:
        if cell.seed == 1:
            write(cell.path, json.dumps({**cell._asdict(), **told}))
    assert ask("partial", "studies/tiny.yaml").exit_code == 0
    found = Path("results/tiny/partial/claims.md").read_text()
    assert "+25.0" in found and "not enough runs (1 of 2 seeds, 6 of 12 cells)" in found, found


def test_claims_that_cannot_be_judged_are_told_and_keep_nothing_from_the_rest() -> None:
    write("studies/tiny.yaml", STUDY + CLAIM)
    for cell in load_plan("tiny").cells:
        write(cell.path, "{")
    done = ask("partial", "studies/tiny.yaml")
    assert (done.exit_code, Path("results/tiny/partial/failed.txt").exists()) == (0, True)
    assert "claims: results/tiny/cells/" in done.output, done.output


def test_runs_for_each_target_are_one_row_and_rest_on_both_stages_and_the_text() -> None:
    text = STUDY.replace(
        "ner: {kind: wikiann}", "ner: {kind: wikiann, start: first}, first: {kind: wikiann}, mlm: {kind: mlm}"
    )
    text = text.replace("full-ft: {}", "mlm: {base: full-ft}, full-ft: {start: {task: mlm, method: mlm, at: target}}")
    study = load_study(write("studies/tiny.yaml", text))
    planned = cells(study)
    cell = next(one for one in planned if (one.source, one.target) == ("qa1@qb1", "qb1"))
    rests = [target for target, _ in overview.jobs(study, cell)]
    folders = [
        f"results/tiny/runs/{place}/seed1/run.json" for place in ("mlm/tiny/mlm/qb1", "first/tiny/full-ft/qa1@qb1")
    ]
    assert [rests.index(one) for one in (*folders, f"{cell.run.folder}/run.json", cell.path)] == sorted(
        rests.index(one) for one in (*folders, f"{cell.run.folder}/run.json", cell.path)
    )
    assert not [
        one for one in rests if "@" in one and not one.startswith(("results/tiny/runs/", "results/tiny/cells/"))
    ]
    seen = overview.look(study, planned, ledger.FOLDER)
    assert {run.task for run in seen.runs} == {"mlm", "first", "ner"}
    [table] = [part for part in status.matrices(seen, 200) if isinstance(part, Table)]
    assert list(table.columns[0].cells) == ["qa1", "qa2"]


def test_imported_adapters_rest_on_no_text_and_no_tokens() -> None:
    study = load_study("studies/tiny.yaml")
    read = study.methods["full-ft"].model_copy(update={"imported": ImportedAdapters(path="{language}")})
    run = Run("tiny", "mlm", "tiny", "full-ft", "qb1", 1)
    study = study.model_copy(update={"methods": {"full-ft": read}, "encoders": {"tiny": EncoderEntry(path="x")}})
    assert [target for target, _ in overview.jobs(study, run)] == [
        "results/tiny/encoders/tiny/model.safetensors",
        f"{run.folder}/run.json",
    ]
