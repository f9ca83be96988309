"""All of XTREME is planned, as docs/papers/xtreme.md has it."""

import shutil
from pathlib import Path

from project import planned, project, small
from shipped import STUDIES

from xlgrid.plan.load import load_plan


def test_every_exhibit_is_planned(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", small())
    shutil.copy(STUDIES["xtreme"], folder / "studies")
    jobs = planned(folder, "results/xtreme/report.html")
    plan = load_plan(STUDIES["xtreme"])
    assert (jobs["train"], jobs["evaluate"]) == (len(plan.runs), len(plan.cells))
    assert jobs["table"] == len(plan.study.exhibits)
    # The sample and the training set of four languages, each with two pools and the gold pairs.
    assert (jobs["download_archive"], jobs["unpack"]) == (8, 24)
