"""A project in which the demo, cut down to a minute, has run: the commands of README.md and docs/ run in it as they stand."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest
import yaml
from project import FEW, SIZES, project, shell, shown, small
from shipped import STUDIES


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which `make demo` has run, once for all processes of pytest-xdist: each of them has a copy."""
    base = tmp_path_factory.getbasetemp()
    together = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    first, folder = together / "demo", base / "finished"
    with (together / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            first.mkdir()
            process = shell(project(first, small()), "make demo")
            assert process.returncode == 0, process.stderr[-4000:]
            assert process.stdout.splitlines()[-1] == "Open results/demo/report.html"
            (first / "make-demo.log").write_text(process.stderr)
    assert (first / "results/demo/report.html").exists(), "the demo has failed in another process"
    shutil.copytree(first, folder, symlinks=True)
    for name in ("first", "foroutan2023"):
        shutil.copy(STUDIES[name], folder / "studies")
    return folder


@pytest.fixture
def mine(tmp_path: Path, finished: Path) -> Path:
    """In a copy of the project, the study of docs/how-to/language-adapter.md, and the one that it extends, cut down as well."""
    folder = tmp_path / "project"
    shutil.copytree(finished, folder, symlinks=True)
    shutil.copy(STUDIES["pfeiffer2020"], folder / "studies")
    mini = yaml.safe_load((STUDIES["pfeiffer2020-mini"]).read_text())
    mini["text"]["sentences"] = 200
    mini["encoders"]["mini-xlmr"]["scratch"] |= SIZES
    mini["encoders"]["mini-xlmr"]["training"] |= FEW
    mini["tasks"]["wikiann"]["options"]["n"] = 100
    steps = {"steps": 4, "batch_tokens": 256, "evaluations": 2}
    mini["training"] = [{"set": steps}, {"when": {"task": "mlm"}, "set": {"snapshots": [2]}}]
    mini["grids"]["ner-snapshots"]["snapshots"] = [2]
    (folder / "studies" / "pfeiffer2020-mini.yaml").write_text(yaml.safe_dump(mini, sort_keys=False))
    study = yaml.safe_load(shown("docs/how-to/language-adapter.md"))
    study["grids"] = {"ner": {"source": ["qa1", "qa9"], "target": ["qa1", "qa9"], "seed": [1]}}
    (folder / "studies" / "added-language.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return folder
