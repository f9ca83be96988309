"""All of XTREME is planned, as docs/papers/xtreme.md has it."""

import re
import shutil
from pathlib import Path

from project import ROOT, planned, project, small
from shipped import STUDIES

from xlgrid.plan.load import load_study


def test_every_exhibit_is_planned(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", small())
    shutil.copy(STUDIES["xtreme"], folder / "studies")
    jobs = planned(folder, "results/xtreme/report.html")
    [whole] = re.findall(
        r"^whole study +(\S+) +\d+ +(\S+) ", (ROOT / "docs" / "papers" / "xtreme.md").read_text(), re.MULTILINE
    )
    runs, cells = (int(number.replace(",", "")) for number in whole)
    assert (jobs["train"], jobs["evaluate"]) == (runs, cells)
    assert jobs["table"] == len(load_study(STUDIES["xtreme"]).exhibits)
    # The sample and the training set of four languages, each with two pools and the gold pairs.
    assert (jobs["download_archive"], jobs["unpack"]) == (8, 24)
