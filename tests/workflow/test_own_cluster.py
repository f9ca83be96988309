"""The package of docs/how-to/cluster-of-your-own.md, installed as the page says: jobs run on a small LSF, which is this machine."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from project import blocks

from xlgrid.base.profiles import profiles

pytestmark = pytest.mark.slow

PAGE = "docs/how-to/cluster-of-your-own.md"
SNAKEFILE = '''
rule good:
    output: "good.txt"
    shell: "echo $LSB_JOBID > {output}"

rule bad:
    output: "bad.txt"
    shell: "echo a mistake >&2; exit 3"

rule big:
    output: "big.txt"
    resources: mem_mb=lambda wildcards, attempt: 400 * attempt
    shell: "echo {resources.mem_mb} >> big.log; {PYTHON} -c 'import time; x = b\\"x\\" * (450 << 20); time.sleep(3)'; touch {output}"

rule saving:
    output: "saving.txt"
    resources: runtime=60
    shell:
        """
        echo begins >> saving.log
        trap 'touch saved; exit 75' USR2
        while [ ! -e saved ]; do sleep 0.1; done
        touch {output}
        """

rule long:
    output: "long.txt"
    shell: "echo $$ >> long.log; sleep 12; touch {output}"

rule refused:
    output: "refused.txt"
    resources: lsf_queue="closed"
    shell: "touch {output}"
'''


class Site:
    """A project on a machine with the commands of LSF."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        options = shlex.split("--nocolor --profile lsf --submitit-grace 1")
        return subprocess.Popen(
            # A minute of the fake LSF takes a tenth of a second.
            [sys.executable, "-m", "snakemake", *options, *arguments, "--default-resources", "runtime=600"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit status of Snakemake, and what it prints."""
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=240)
        return process.returncode, said

    def states(self) -> list[str]:
        """The state of each job of LSF."""
        return [json.loads(path.read_text())["state"] for path in Path(self.env["FAKE_LSF"]).glob("*.json")]

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package of the page."""
    folder = tmp_path_factory.mktemp("package")
    [code], [about] = blocks(PAGE, "python"), blocks(PAGE, "toml")
    [module] = tomllib.loads(about)["tool"]["setuptools"]["py-modules"]
    (folder / "pyproject.toml").write_text(about)
    (folder / f"{module}.py").write_text(code)
    # The executor and setuptools are in the environment of the tests, so nothing is downloaded.
    options = shlex.split("--quiet --no-deps --no-build-isolation --target installed")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "."], cwd=folder, check=True)
    return folder / "installed"


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Iterator[Site]:
    [profile] = blocks(PAGE, "yaml")
    for command in ("bsub", "bjobs", "bkill", "bqueues"):
        script = tmp_path / "bin" / command
        script.parent.mkdir(exist_ok=True)
        fake = Path(__file__).with_name("fake_lsf.py")
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} {command} "$@"\n')
        script.chmod(0o755)
    folder = tmp_path / "project"
    (folder / "lsf").mkdir(parents=True)
    (folder / "lsf" / "profile.v9+.yaml").write_text(profile)
    (folder / "Snakefile").write_text(f"PYTHON = {sys.executable!r}\n{SNAKEFILE}")
    (tmp_path / "jobs").mkdir()
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE_", "MAKE"))}
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    lsf = {"FAKE_LSF": str(tmp_path / "jobs"), "FAKE_LSF_MINUTE": "0.1"}
    site = Site(folder, {**rest, "PATH": path, "PYTHONPATH": sources, **lsf})
    yield site
    for path in Path(site.env["FAKE_LSF"]).glob("*.json"):
        path.with_suffix(".kill").touch()


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_a_job_runs_on_the_cluster(site: Site) -> None:
    code, said = site.run("good.txt")
    assert code == 0, said
    assert site.lines("good.txt") == ["1"]


def test_a_job_that_fails_says_why(site: Site) -> None:
    code, said = site.run("bad.txt", "--retries", "0")
    assert code != 0
    assert "exit code 3" in said and "a mistake" in said, said


def test_a_job_that_takes_too_much_memory_runs_again_with_more(site: Site) -> None:
    code, said = site.run("big.txt")
    assert code == 0, said
    assert "out of memory" in said and "TERM_MEMLIMIT" in said
    assert site.lines("big.log") == ["400", "800"]


def test_a_job_that_saves_its_state_before_its_time_limit_goes_on(site: Site) -> None:
    code, said = site.run("saving.txt", "--submitit-grace", "600", "--retries", "0")
    assert code == 0, said
    assert site.lines("saving.log") == ["begins", "begins"]
    assert site.states() == ["DONE"], "the task was not queued again"


def test_ctrl_c_cancels_the_jobs(site: Site) -> None:
    process = site.start("long.txt")
    wait_for(lambda: site.lines("long.log"), "the job does not begin")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode != 0, said
    wait_for(lambda: site.states() == ["EXIT"], "the job is not cancelled")
    assert not (site.folder / "long.txt").exists()


def test_a_snakemake_that_is_started_again_finds_its_jobs(site: Site) -> None:
    process = site.start("long.txt")
    wait_for(lambda: site.lines("long.log"), "the job does not begin")
    process.kill()
    process.communicate()
    assert site.run("--unlock")[0] == 0
    code, said = site.run("long.txt")
    assert code == 0, said
    assert "an earlier run left 1 tasks in the queue" in said
    assert len(site.lines("long.log")) == 1, "the job ran twice"


def test_a_queue_that_is_closed_refuses_the_job_with_the_words_of_lsf(site: Site) -> None:
    code, said = site.run("refused.txt", "--retries", "0")
    assert code != 0
    assert "refused by the cluster" in said and "User cannot use the queue" in said, said


def test_doctor_asks_the_cluster_of_the_profile(site: Site) -> None:
    doctor = subprocess.run(["xlgrid", "doctor"], cwd=site.folder, env=site.env, capture_output=True, text=True)
    assert "cluster lsf: answers: its queues are normal, closed" in doctor.stdout, doctor.stdout


def test_status_names_the_profile_for_a_job_that_failed_on_the_cluster(site: Site) -> None:
    assert profiles(site.folder) == {"lsf": "lsf"}
    site.run("bad.txt", "--retries", "0")
    [failure] = (site.folder / ".snakemake/submitit/failures.jsonl").read_text().splitlines()
    assert json.loads(failure)["cluster"] == "lsf"
