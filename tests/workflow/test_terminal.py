"""What a run prints where there is no terminal, and the stages of which it speaks."""

import re
import shutil
from collections import Counter
from pathlib import Path

from project import planned, shell, small, write

from xlgrid.report.stages import stage_of_rule

RUN = "ner/mini-xlmr/bitfit/qa1/seed1"
# Most lines of a run without a terminal.
LINES = 60


def test_the_demo_is_a_few_lines_that_name_the_full_log_and_the_report(finished: Path) -> None:
    printed = (finished / "make-demo.log").read_text().splitlines()
    assert len(printed) < LINES, printed
    assert any(line.endswith("report: results/demo/report.html") for line in printed), printed
    log = next(line.partition("full log: ")[2] for line in printed if "full log: " in line)
    assert "Finished jobid" in (finished / log).read_text()


def test_a_failure_is_printed_with_its_reason_and_its_log(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "failing"
    shutil.copytree(finished, folder, symlinks=True)
    study = small()
    study["training"].append({"when": {"method": "bitfit"}, "set": {"lr": 1e30}})
    write(folder, study)
    process = shell(folder, "snakemake --profile laptop")
    printed = (process.stdout + process.stderr).splitlines()
    assert process.returncode != 0 and len(printed) < LINES, printed
    [failure] = [line for line in printed if "failed: results/" in line]
    assert f"results/demo/runs/{RUN}/" in failure and "the loss is" in failure
    assert failure.endswith(f"(log: results/demo/logs/runs/{RUN}.log)")
    assert f"again: snakemake --profile laptop -- results/demo/runs/{RUN}/run.json" in process.stdout


def test_the_summary_of_a_study_counts_the_jobs_that_snakemake_runs(finished: Path) -> None:
    jobs = planned(finished, "--forceall")
    stages: Counter[str] = Counter()
    for rule in jobs.keys() - {"all"}:
        stages[stage_of_rule(rule)] += jobs[rule]
    output = shell(finished, "xlgrid status demo").stdout
    bars = {name: int(total) for name, total in re.findall(r"^(\w+) +█+ +\d+/(\d+)$", output, re.MULTILINE)}
    assert bars == stages
