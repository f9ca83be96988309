"""The real Snakemake on a study that extends the demo: what both have is made once; and on copies of a project."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import commands, dry_run, planned, project, shell, small, succeeds

# Three targets from one source, in one seed.
OWN = {
    "extends": "demo",
    "title": "One more method",
    "methods": {"slow": {"base": "bitfit"}},
    "grids": {"ner": {"method": ["full-ft", "bitfit", "slow"]}},
}
RENDERED = {"table": 3, "figure": 3, "report_notebook": 1, "report_html": 1}
REPORT = "results/own/report.html"
# Files of the small demo are so small that Snakemake compares their contents, which it does not with those of a real study.
LARGE = "--max-checksum-file-size 1"


def contents(folder: Path) -> dict[Path, bytes]:
    """The files of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, study: str = "own", **changes: Any) -> None:
    (folder / "studies" / f"{study}.yaml").write_text(yaml.safe_dump(OWN | changes))


@pytest.fixture
def own(finished: Path) -> Path:
    """The project in which the demo is complete, with the study that extends it."""
    write(finished)
    return finished


def test_with_nothing_there_what_both_have_is_planned_under_the_demo(tmp_path: Path) -> None:
    folder = project(tmp_path, small())
    write(folder)
    jobs, studies = dry_run(folder, REPORT)
    assert (jobs["pretrain"], jobs["train"], jobs["evaluate"]) == (2, 4 + 1, 14 + 3)
    kinds = {kind for study, kind in studies if study == "own"}
    assert kinds == {"runs", "cells", "exhibits", "summary.csv", "report.html"}
    shared = {"text", "data", "tokenizers", "encoders", "tokens", "runs", "cells"}
    assert {kind for study, kind in studies if study == "demo"} == shared


def test_a_study_with_one_more_method_trains_that_method_and_shows_all(own: Path) -> None:
    jobs, studies = dry_run(own, REPORT)
    assert jobs == {"train": 1, "evaluate": 3, **RENDERED}
    assert {study for study, _ in studies} == {"own"}
    succeeds(own, f"snakemake --profile laptop {REPORT}")
    results = own / "results" / "own"
    assert not [name for name in ("data", "text", "tokenizers", "encoders", "tokens") if (results / name).exists()]
    records = [json.loads(path.read_text()) for path in (results / "cells").rglob("*.json")]
    assert {(record["study"], record["method"]) for record in records} == {("own", "slow")} and len(records) == 3
    shared = "14 of 17 cells and 4 of 5 runs are those of demo"
    assert shared in (results / "report.html").read_text()
    summary = (results / "summary.csv").read_text()
    assert all(f",{method}," in summary for method in ("full-ft", "bitfit", "slow")) and ",0,1\n" not in summary
    curves = (results / "exhibits" / "learning-curves.csv").read_text()
    assert {*re.findall("bitfit|full-ft|slow", curves)} == {"bitfit", "full-ft", "slow"}
    assert planned(own, REPORT, "results/demo/report.html") == {}
    status = shell(own, "xlgrid status own").stdout
    assert "17 of 17 cells done" in status and shared in status
    assert f"Not counted, because another study makes them: {shared}." in shell(own, "xlgrid cost own").stdout


def test_a_target_language_of_its_own_is_evaluated_with_the_demo_s_runs(own: Path) -> None:
    """The cell says its study, not that of its run."""
    languages, of_task = [*small()["languages"], "qb2"], ["qa1", "qa2", "qb1", "qb2"]
    write(own, "wider", methods={}, languages=languages, grids={"ner": {"languages": of_task}})
    path = "results/wider/cells/ner/mini-xlmr/full-ft/qa1/qb2/seed1.json"
    assert planned(own, path) == {"data": 1, "tokens": 1, "evaluate": 1}
    succeeds(own, f"snakemake --profile laptop {path}")
    record = json.loads((own / path).read_text())
    assert record["study"] == "wider" and record["run"] == "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed1"


def test_a_copy_without_times_and_records_has_nothing_to_do_after_one_command(finished: Path, tmp_path: Path) -> None:
    """The command of docs/how-to/copying.md, of which no file changes but its time."""
    copy = tmp_path / "copy"
    assert shell(finished, f"cp -a . {copy}").returncode == 0
    # The own study uses the demo's encoder and tokens, but not all of the demo's runs.
    of_others = ("ner-full-ft", "ner-bitfit-minus-full-ft")
    write(copy, grids={"ner": {"method": ["slow"]}}, exhibits=dict.fromkeys(of_others))
    process = shell(copy, f"snakemake --profile laptop {REPORT} && rm -r .snakemake")
    assert process.returncode == 0, process.stderr[-4000:]
    cell = copy / "results/demo/cells/ner/mini-xlmr/full-ft/qa1/qb1/seed1.json"
    cell.unlink()
    # Inputs later than what was made from them, as a checkout may leave them.
    stages = "exhibits cells runs tokens encoders tokenizers data text"
    shell(copy, f"for stage in {stages}; do find results/*/$stage -type f | xargs touch; done")
    files = contents(copy / "results")
    before = planned(copy, LARGE)
    assert before["train"] == 4 and before["evaluate"] == 14
    [command] = commands("docs/how-to/copying.md")
    succeeds(copy, command)
    assert contents(copy / "results") == files
    assert planned(copy, LARGE, REPORT) == {}
    after = planned(copy, LARGE)
    assert (after.get("train"), after["evaluate"]) == (None, 1)
    study = small()
    study["training"][0]["set"]["lr"] = 0.5
    (copy / "studies" / "demo.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    assert planned(copy, LARGE)["train"] == 4, "the settings of the files are recorded"


@pytest.mark.slow
def test_a_study_extends_a_file_outside_of_studies_by_its_path(tmp_path: Path) -> None:
    folder = project(tmp_path, small())
    (folder / "shared").mkdir()
    (folder / "studies" / "demo.yaml").rename(folder / "shared" / "base.yaml")
    write(folder, extends="../shared/base.yaml")
    jobs, studies = dry_run(folder, REPORT)
    assert (jobs["pretrain"], jobs["train"], jobs["evaluate"]) == (2, 4 + 1, 14 + 3)
    assert {study for study, _ in studies} == {"own", "base"}
    # A file of the extended study may be asked for by its own path.
    assert "evaluate" in planned(folder, "results/base/cells/ner/mini-xlmr/full-ft/qa1/qa2/seed1.json")
