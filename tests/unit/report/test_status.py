"""A study's matrices say what is done, under way, and why the rest is not."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table
from status_fixture import CELL, DONE, NOW, RESULT, RUN, RUN_LOG, STUDY, bundle, failed, look, running, text, write
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.evaluation.cell import pack
from xlgrid.plan.load import load_plan
from xlgrid.products.evaluate import Cell
from xlgrid.report import ledger, overview, status

pytestmark = pytest.mark.usefixtures("tiny_project")


def ask(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments], catch_exceptions=False)


CLAIM = "claims: {chance: {says: It guesses., against: 50, expect: none, margin: 5}}\n"


def test_a_box_counts_its_seeds_and_has_the_mark_of_what_needs_a_look_most() -> None:
    first, second = (f"results/tiny/cells/ner/tiny/full-ft/qa1/{target}/seed1.json" for target in ("qa1", "qa2"))
    for seed in (1, 2):
        write(f"results/tiny/runs/ner/tiny/full-ft/qa1/seed{seed}/run.json")
    write(first, DONE)
    bundle("1/a", (second, running()), (second.replace("seed1", "seed2"), None), (CELL.path, None), rule="evaluate")
    failed(CELL.path.replace("seed1", "seed2"), NOW)
    matrix = text(look())
    assert "qa1     1/2    0/2 ▶  0/2 ✗" in matrix, matrix


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
    matrix = text(overview.Overview("tiny", planned, {}, {}, Counter(), ""), width)
    words = matrix.split()
    assert words.count("10/10") == 2 * len(targets), matrix
    assert set(targets) <= set(words) and "…" not in matrix, matrix


def test_the_totals_name_the_marks_and_count_cells_runs_and_jobs() -> None:
    for seed in (1, 2):
        write(f"results/tiny/runs/ner/tiny/full-ft/qa1/seed{seed}/run.json")
    write(CELL.path, DONE)
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
    view = look()
    [together] = status.failures(view, together=True)
    assert together == (
        f"{results[0]} and 1 more (6 cells wait for them)\n  reason: out of memory\n  log: a.log\n"
        f"  again: snakemake --cores all --rerun-incomplete -- {results[0]} {results[1]}"
    )
    assert [failure.splitlines()[0] for failure in status.failures(view, together=False)] == [
        f"{result} (3 cells wait for it)" for result in results
    ]


def test_a_command_for_very_many_failures_names_none_of_them() -> None:
    broken = {
        CELL._replace(seed=seed): overview.Failure(CELL._replace(seed=seed).path, "timeout", "a.log")
        for seed in range(11)
    }
    [together] = status.failures(overview.Overview("tiny", {}, {}, broken, Counter(), ""), together=True)
    assert together.endswith("again: snakemake --cores all --rerun-incomplete -- results/tiny/report.html")


def test_status_shows_bars_totals_and_failures_of_the_ledger_of_its_snakemake(monkeypatch: pytest.MonkeyPatch) -> None:
    failed(RESULT, NOW)
    ledger.FOLDER.rename("elsewhere")
    monkeypatch.setenv(ledger.STATED, "elsewhere")
    result = ask("status", "studies/tiny.yaml")
    assert result.exit_code == 0
    [train] = [line for line in result.output.splitlines() if line.startswith("train ")]
    assert train.endswith("0/4  1 failed") and "3 wait for 1 failed job (✗)" in result.output
    assert "reason: out of memory\n" in result.output and "source" not in result.output


def test_status_shows_all_matrices_when_it_is_asked_to() -> None:
    failed(RESULT, NOW)
    result = ask("status", "tiny", "--matrix")
    assert "0/2 ✗" in result.output and "3 wait for 1 failed job (✗)" in result.output
    assert "reason: out of memory\n" in result.output


def test_a_study_that_has_not_begun_has_a_summary_and_the_commands_that_begin_it() -> None:
    output = ask("status", "tiny").output
    assert "0 of 12 cells done, 12 waiting" in output
    assert output.endswith("  xlgrid check tiny\n  snakemake --profile laptop results/tiny/report.html\n")


def test_a_study_that_lies_elsewhere_is_named_by_its_path_in_commands() -> None:
    Path("studies/tiny.yaml").rename("tiny.yaml")
    output = ask("status", "tiny.yaml").output
    command = "snakemake --profile laptop --config study=tiny.yaml -- results/tiny/report.html"
    assert output.endswith(f"  xlgrid check tiny.yaml\n  {command}\n")
    failed(RESULT, NOW)
    again = f"again: snakemake --cores all --rerun-incomplete --config study=tiny.yaml -- {RESULT}"
    assert again in " ".join(ask("status", "tiny.yaml").output.split())


def test_a_training_in_progress_shows_its_step_and_score() -> None:
    bundle("1/a", (RESULT, running()))
    write(RUN_LOG, "step 60/300  loss 0.4  dev 88.20  3 s\n")
    assert "▶ ner tiny full-ft qa1 seed1  step 60/300  dev 88.20" in ask("status", "tiny").output


def test_a_summary_tells_a_few_reasons_and_counts_the_others() -> None:
    for number, target in enumerate(("qa1", "qa2", "qb1")):
        failed(f"results/tiny/tokens/ner/tiny/{target}/test.arrow", NOW, message=f"reason {number}")
    failed(RESULT, NOW, message="reason 3")
    lines = "\n".join(line.plain for line in status.summary(look(), 200))
    assert lines.count("  reason: ") == status.REASONS
    assert lines.endswith("failures for 1 more reason: xlgrid status tiny --matrix")


@pytest.mark.parametrize("has_begun", [True, False])
def test_watching_fits_the_terminal(has_begun: bool) -> None:
    if has_begun:
        failed(RESULT, NOW)
        bundle("1/a", (RESULT.replace("qa1", "qa2"), running()))
    for height in (4, 12, 40):
        assert len(status.on_one_screen(look(), "title", 80, height)) <= height
    shown = "\n".join(line.plain for line in status.on_one_screen(look(), "title", 200, 40))
    assert shown.startswith("title\n") and "0 of 12 cells done" in shown
    assert ("out of memory" in shown, "▶ ner" in shown, "xlgrid check tiny" in shown) == (
        has_begun,
        has_begun,
        not has_begun,
    )


def test_a_failed_exhibit_is_a_failure_though_no_cell_waits_for_it() -> None:
    write("studies/tiny.yaml", f"{STUDY}exhibits: {{t: {{kind: table, title: T, rows: [source], columns: target}}}}\n")
    write("results/tiny/logs/exhibits/t.log", "error: no such column\n")
    view = look()
    assert (view.broken, [failure.reason for failure in view.others]) == ({}, ["no such column"])
    assert status.failures(view, together=True)[0].startswith("results/tiny/exhibits/t.csv\n  reason: no such column\n")


def test_results_of_the_study_that_is_extended_are_seen_and_status_says_whose_they_are() -> None:
    """A third target language, evaluated with runs that are there or fail there."""
    Path("studies/more.yaml").write_text("extends: tiny\nlanguages: [qa1, qa2, qb1, qa3]\n")
    plan = load_plan("more")
    for cell in load_plan("tiny").cells[:5]:
        write(cell.path, DONE)
    log = write("results/tiny/logs/runs/ner/tiny/full-ft/qa1/seed1.log", "error: no such thing\n")
    view = overview.look(plan, ledger.FOLDER)
    new = CELL._replace(study="more", target="qa3")
    assert (view.runs[RUN], view.cells[new]) == ("failed", "failed")
    assert view.broken[new].log == str(log) and view.broken[new].target == RESULT
    failed(RESULT, NOW)
    bundle("chunk/0", (RESULT, running(NOW + 9)), when=NOW + 9)
    view = overview.look(plan, ledger.FOLDER)
    assert (view.runs[RUN], view.cells[new]) == ("training", "training")
    assert view.flight == {("train", "running"): 1}
    output = ask("status", "studies/more.yaml").output
    assert "5 of 16 cells done" in output and "\n12 of 16 cells and 4 of 4 runs are those of tiny\n" in output


def test_watching_ends_when_all_is_done() -> None:
    for cell in load_plan("tiny").cells:
        write(cell.path, DONE)
    result = ask("status", "studies/tiny.yaml", "--watch")
    assert result.exit_code == 0 and "12 of 12 cells done" in result.output


def test_watching_looks_again_and_ends_quietly_on_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt
        write(CELL.path, DONE)

    monkeypatch.setattr(time, "sleep", sleep)
    result = ask("status", "studies/tiny.yaml", "--watch")
    assert result.exit_code == 0 and slept == [5, 5]
    assert "1 of 12 cells done" in result.output and "Traceback" not in result.output


def test_partial_names_no_failures_where_no_job_has_failed() -> None:
    """A signal has ended the run; an earlier run has failed."""
    report = Path("results/tiny/partial/failed.txt")
    write(report, "results/tiny/cells/x.json\n")
    output = ask("partial", "tiny").output
    assert "failed.txt" not in output and not report.exists()


def test_partial_prints_a_few_reasons_and_where_all_failures_are() -> None:
    for number in range(status.REASONS + 1):
        result = RESULT.replace("qa1", f"qa{1 + number // 2}").replace("seed1", f"seed{1 + number % 2}")
        failed(result, NOW, message=f"reason {number}")
    output = ask("partial", "tiny").output
    assert output.count("  reason: ") == status.REASONS
    assert "results/tiny/partial/failed.txt lists all failed jobs" in output
    assert Path("results/tiny/partial/failed.txt").read_text().count("  reason: ") == status.REASONS + 1


def test_partial_judges_the_claims_from_what_exists() -> None:
    write("studies/tiny.yaml", STUDY + CLAIM)
    outcomes = [[[1], [1]], [[1], [2]], [[1], [1]], [[1], [1]]]
    record = {
        "head": "token",
        "labels": ["O", "B-PER", "B-LOC"],
        "metric": {"name": "f1"},
        "scores": {"f1": 75.0},
        "n": 4,
        "outcomes": pack(outcomes),
    }
    for cell in load_plan("tiny").cells:
        if cell.seed == 1:
            write(cell.path, json.dumps({**cell._asdict(), **record}))
    assert ask("partial", "studies/tiny.yaml").exit_code == 0
    content = Path("results/tiny/partial/claims.md").read_text()
    assert (
        "+25.0" in content and "not enough runs (1 of 2 seeds, 6 of 12 cells, and a verdict needs 3 seeds)" in content
    ), content


def test_partial_renders_the_exhibits_and_their_comparisons_from_what_exists() -> None:
    numbers = "exhibit,model,dataset,method,source,target,metric,value\nt1,tiny,ner,full-ft,qa1,qb1,f1,50.0\n"
    write("reference/paper/t1.csv", numbers)
    exhibit = "{kind: table, title: Transfer, rows: [source], columns: [target], published: {file: paper/t1}}"
    write("studies/tiny.yaml", f"{STUDY}exhibits: {{transfer: {exhibit}}}\n")
    record = {
        "head": "token",
        "labels": [],
        "metric": {"name": "f1"},
        "scores": {"f1": 75.0},
        "n": 1,
        "outcomes": pack([[3, 1, 1]]),
    }
    write(CELL.path, json.dumps({**CELL._asdict(), **record}))
    result = ask("partial", "studies/tiny.yaml")
    assert result.exit_code == 0, result.output
    table, comparison = (
        Path(f"results/tiny/partial/exhibits/transfer{end}.csv").read_text() for end in ("", "-published")
    )
    assert "75.0" in table and "50.0" in comparison


def test_claims_that_cannot_be_judged_are_told_and_keep_nothing_from_the_rest() -> None:
    write("studies/tiny.yaml", STUDY + CLAIM)
    for cell in load_plan("tiny").cells:
        write(cell.path, "{")
    result = ask("partial", "studies/tiny.yaml")
    assert (result.exit_code, Path("results/tiny/partial/failed.txt").exists()) == (0, True)
    assert "claims: results/tiny/cells/" in result.output, result.output


def test_runs_for_each_target_are_one_row() -> None:
    text = STUDY.replace(
        "ner: {kind: wikiann}", "ner: {kind: wikiann, start: first}, first: {kind: wikiann}, mlm: {kind: mlm}"
    )
    text = text.replace("full-ft: {}", "mlm: {base: full-ft}, full-ft: {start: {task: mlm, method: mlm, at: target}}")
    write("studies/tiny.yaml", text)
    view = look()
    assert {run.task for run in view.runs} == {"mlm", "first", "ner"}
    [table] = [part for part in status.matrices(view, 200) if isinstance(part, Table)]
    assert list(table.columns[0].cells) == ["qa1", "qa2"]


def test_a_damaged_cell_is_not_done_and_the_command_deletes_it_first() -> None:
    for content, reason in (("", "truncated"), ('{"scores": {"f1": 1', "truncated"), ("{}", "it lacks encoder, ")):
        write(CELL.path, content)
        view = look()
        assert view.cells[CELL] == "failed" and reason in view.broken[CELL].reason
    [failure] = status.failures(view, together=True)
    assert failure.endswith(f"again: rm -r {CELL.path} && snakemake --cores all --rerun-incomplete -- {CELL.path}")
    write(CELL.path, DONE)
    assert look().cells[CELL] == "done"


def test_the_command_deletes_the_damaged_files_that_a_log_names() -> None:
    delta, other = write(f"{RUN.folder}/delta.safetensors"), write("results/tiny/a b")
    log = f"error: {delta} is damaged: make it again\ndelete: {delta} 'results/tiny/a b' results/tiny/gone\n"
    again = f"again: rm -r {delta} '{other}' && snakemake --cores all --rerun-incomplete -- {CELL.path}"
    write("results/tiny/logs/cells/ner/tiny/full-ft/qa1/qb1/seed1.log", log)
    assert status.failures(look(), together=True)[0].endswith(again), "without a ledger"
    failed(CELL.path, NOW, "exception", f"exit code 1\na.log:\n{log}")
    [failure] = status.failures(look(), together=True)
    assert failure.endswith(again)
    assert f"reason: exception: exit code 1: {delta} is damaged: make it again\n" in failure


def test_a_file_that_only_the_words_of_an_error_say_to_delete_is_kept() -> None:
    delta = write(f"{RUN.folder}/delta.safetensors")
    for before in ("", f"error: x\ndelete: {delta}\n"):
        write("results/tiny/logs/cells/ner/tiny/full-ft/qa1/qb1/seed1.log", f"{before}error: {delta}: or delete it\n")
        [failure] = status.failures(look(), together=True)
        assert failure.endswith(f"again: snakemake --cores all --rerun-incomplete -- {CELL.path}")


def evaluated(target: str, seed: int, f1: float) -> None:
    """A finished run from `qa1` and one of its cells."""
    run = RUN._replace(seed=seed)
    write(run.path, "{}")
    contents = {**json.loads(DONE), **run._asdict(), "target": target, "run": run.folder, "scores": {"f1": f1}}
    write(Cell(*run[:-1], target, seed).path, json.dumps(contents))


def test_runs_that_have_learnt_nothing_are_told_with_the_reason() -> None:
    evaluated("qa1", 1, 0.0)
    evaluated("qa1", 2, 55.0)
    evaluated("qb1", 2, 0.0)
    summary = "\n".join(line.plain for line in status.summary(look(), 200))
    assert "1 of 2 finished runs have learnt nothing" in summary
    assert "qa1 seed 1: F1 0.0, chance up to 1.0" in summary
    assert "1 of 2 finished runs have learnt nothing" in ask("status", "tiny", "--matrix").output
