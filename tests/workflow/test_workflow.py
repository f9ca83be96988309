"""The real Snakemake on a study of a minute: what is built, what is built again, and what is refused."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from project import cells, planned, project, shell, small, succeeds, write

CELL = "cells/ner/mini-xlmr/full-ft/qa1/qb1/seed1.json"


def test_everything_promised_is_there(finished: Path) -> None:
    results = finished / "results" / "demo"
    files = ["report.html", "report.ipynb", "summary.csv", "exhibits/ner-full-ft.svg", "exhibits/ner-transfer.tex"]
    assert [name for name in files if not (results / name).stat().st_size] == []
    assert len(cells(finished)) == 2 * 3 + 2 * 4


def test_a_second_run_has_nothing_to_do(finished: Path) -> None:
    assert planned(finished) == {}


@contextmanager
def without(path: Path) -> Iterator[None]:
    """The project as if `path` had been deleted."""
    aside = path.with_name(f"{path.name}-aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


@pytest.mark.parametrize(
    ("deleted", "target", "expected"),
    [
        (CELL, "report.html", {"evaluate", "figure", "table", "report_notebook", "report_html"}),
        ("exhibits/ner-full-ft.csv", "report.html", {"figure", "report_notebook", "report_html"}),
        ("encoders/mini-xlmr/model.safetensors", "report.html", set()),
    ],
)
def test_a_deleted_result_is_made_again_for_what_was_made_from_it(
    finished: Path, deleted: str, target: str, expected: set[str]
) -> None:
    """Snakemake by itself would have nothing to do. Encoders, which are large, may be deleted."""
    with without(finished / "results/demo" / deleted):
        assert {*planned(finished, f"results/demo/{target}")} == expected


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        ("exhibits/ner-full-ft.svg", {"figure"}),
        ("summary.csv", set()),
        ("runs/ner/mini-xlmr/full-ft/qa1/seed1/run.json", {"train", "evaluate", "table", "figure"}),
        ("encoders/mini-xlmr/config.json", {"pretrain", "train", "evaluate", "table", "figure"}),
    ],
)
def test_a_file_that_was_deleted_is_made_again_with_the_study(finished: Path, deleted: str, expected: set[str]) -> None:
    with without(finished / "results/demo" / deleted):
        assert {*planned(finished)} == {"all", "report_notebook", "report_html", *expected}


def test_encoders_tokens_and_data_may_be_deleted_to_save_disk(finished: Path) -> None:
    with ExitStack() as stack:
        for folder in ("encoders/mini-xlmr", "tokens", "data", "text", "tokenizers"):
            stack.enter_context(without(finished / "results/demo" / folder))
        assert planned(finished) == {}


def test_a_study_without_some_of_its_pages_is_whole_again(finished: Path) -> None:
    missing = [finished / "results/demo" / name for name in ("exhibits/ner-full-ft.tex", "summary.csv")]
    for path in missing:
        path.unlink()
    succeeds(finished, "snakemake --profile laptop")
    assert all(path.exists() for path in missing)
    assert planned(finished) == {}


def test_a_deleted_run_is_trained_again_and_its_cells_evaluated(finished: Path) -> None:
    with without(finished / "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed1"):
        jobs = planned(finished)
    assert (jobs.get("train"), jobs.get("evaluate")) == (1, 3)


def changed(finished: Path, study: dict[str, Any]) -> dict[str, int]:
    """Jobs that a changed study asks for."""
    write(finished, study)
    try:
        return planned(finished)
    finally:
        write(finished, small())


def test_claims_are_judged_beside_the_report(finished: Path) -> None:
    study = small()
    study["claims"] = {
        "chance": {"says": "It guesses.", "select": {"task": "ruletaker-d0"}, "against": 50, "expect": "less"}
    }
    write(finished, study)
    try:
        assert planned(finished) == {"all": 1, "claims": 1, "report_notebook": 1, "report_html": 1}
        succeeds(finished, "snakemake --cores 1 results/demo/claims.md")
    finally:
        write(finished, small())
    assert (
        "not enough runs (1 of 1 seeds, 8 of 8 cells, and a verdict needs 3 seeds)"
        in (finished / "results/demo/claims.md").read_text()
    )
    refused = shell(finished, "snakemake --dry-run results/demo/claims.md")
    assert "has no claims" in refused.stdout + refused.stderr


def test_a_method_s_learning_rate_concerns_that_method_only(finished: Path) -> None:
    study = small()
    study["training"].append({"when": {"method": "bitfit"}, "set": {"lr": 1e-3}})
    jobs = changed(finished, study)
    assert (jobs["train"], jobs["evaluate"]) == (1, 3)
    assert not jobs.keys() & {"data", "text", "pretrain", "tokens"}


def test_another_title_of_an_exhibit_renders_it_again(finished: Path) -> None:
    study = small()
    study["exhibits"]["ner-transfer"]["title"] = "Another"
    assert changed(finished, study).keys() == {"all", "table", "report_notebook", "report_html"}


def test_a_comparison_with_published_numbers_has_a_job_and_comes_with_the_report(tmp_path: Path) -> None:
    study = small()
    published = {"file": "paper/t1", "names": {"encoder": {"mini-xlmr": "big"}}}
    for name in ("ner-transfer", "ner-full-ft"):
        study["exhibits"][name]["published"] = published
    folder = project(tmp_path, study)
    missing = shell(folder, "snakemake --dry-run results/demo/exhibits/ner-transfer-published.csv")
    assert "reference/paper/t1.csv" in missing.stdout + missing.stderr
    (folder / "reference" / "paper").mkdir(parents=True)
    numbers = "exhibit,model,dataset,method,source,target,metric,value\nt1,big,ner,full-ft,qa1,qb1,f1,50.0\n"
    (folder / "reference" / "paper" / "t1.csv").write_text(numbers)
    files = [f"results/demo/exhibits/{name}-published.html" for name in ("ner-transfer", "ner-full-ft")]
    jobs = planned(folder, *files)
    assert (jobs["published"], jobs.get("table"), jobs.get("figure")) == (2, None, None)
    jobs = planned(folder, "results/demo/report.html")
    assert (jobs["published"], jobs["table"] + jobs["figure"]) == (2, len(study["exhibits"]))
    refused = shell(folder, "snakemake --dry-run results/demo/exhibits/ruletaker-transfer-published.csv")
    assert "The nearest file is results/demo/exhibits/ner-transfer-published.csv" in refused.stdout + refused.stderr
    # From whatever exists, which is nothing yet.
    succeeds(folder, "xlgrid exhibit demo ner-full-ft --published --output results/demo/exhibits")
    assert "| 50.0 |" in " ".join((folder / "results/demo/exhibits/ner-full-ft-published.md").read_text().split())


def test_a_job_that_is_killed_without_a_word_is_told(tmp_path: Path) -> None:
    """As the kernel kills a job that takes too much memory."""
    folder = project(tmp_path, small())
    rules = folder / "rules" / "data.smk"
    rules.write_text(
        rules.read_text().replace(
            "xlgrid text {wildcards.language:q}", "kill -9 $$; xlgrid text {wildcards.language:q}"
        )
    )
    assert shell(folder, "snakemake --cores all results/demo/text/en.parquet").returncode != 0
    content = (folder / "results/demo/partial/failed.txt").read_text()
    assert "results/demo/text/en.parquet (8 cells wait for it)" in content and "was it killed?" in content


def test_what_fails_is_told_and_the_rest_of_a_clean_run_is_the_same_as_ever(finished: Path, tmp_path: Path) -> None:
    broken = small()
    broken["training"].append({"when": {"method": "bitfit"}, "set": {"lr": 1e30}})
    # Other tests draw the figures, which take most of the time.
    broken["exhibits"] = {"ner-transfer": broken["exhibits"]["ner-transfer"]}
    folder = project(tmp_path, broken)
    process = shell(folder, "snakemake --profile laptop")
    assert process.returncode != 0

    run = "ner/mini-xlmr/bitfit/qa1/seed1"
    [failure] = (folder / "results/demo/partial/failed.txt").read_text().strip().split("\n\n")
    assert "the loss is" in failure and f"log: results/demo/logs/runs/{run}.log" in failure
    again = failure.partition("again: ")[2]
    assert again == f"snakemake --profile laptop -- results/demo/runs/{run}/run.json"
    scores = (folder / "results/demo/partial/exhibits/ner-transfer.csv").read_text().splitlines()
    assert any("full-ft" in line for line in scores), "the partial table has what is done"
    reported = shell(folder, "xlgrid partial studies/demo.yaml --report notebooks/report.ipynb")
    page = (folder / "results/demo/partial/report.html").read_text()
    assert reported.returncode == 0 and not reported.stderr, reported.stderr
    assert "11 of 14" in re.sub("<[^>]*>", "", page) and 'href="exhibits/ner-transfer.csv"' in page
    status = shell(folder, "xlgrid status studies/demo.yaml")
    assert "11 of 14 cells done, 3 wait for 1 failed job" in status.stdout, status.stdout

    expected = cells(finished)
    assert cells(folder) == {path: cell for path, cell in expected.items() if "/bitfit/" not in path}
    write(folder, small())
    assert shell(folder, again).returncode == 0
    assert planned(folder)["evaluate"] == 3, "only the cells that waited for the failed run are left"
    succeeds(folder, "snakemake --profile laptop -- " + " ".join(path for path in expected if "/bitfit/" in path))
    assert cells(folder) == expected
