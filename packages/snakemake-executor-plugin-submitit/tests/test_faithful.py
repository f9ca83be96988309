"""Whatever a rule uses, this executor leaves behind what Snakemake's own does.

`features/Snakefile` has a rule or two per feature; it runs once with each executor, and the tests compare, feature by
feature. The ways to fail are those of `test_failing.py`.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from matrix import HERE, Ran, files, of_old, ran, records
from workflow import LOCAL, SLURM, STOCK, run

from snakemake_executor_plugin_submitit.bundles import read_json, read_statuses

pytestmark = pytest.mark.slow
NOTEBOOKS = find_spec("ipykernel") is not None and (find_spec("papermill") or find_spec("nbconvert")) is not None
FEATURES = [
    pytest.param(
        feature,
        marks=pytest.mark.skipif(
            feature == "notebook" and not NOTEBOOKS, reason="neither papermill nor nbconvert with an ipykernel here"
        ),
    )
    for feature in sorted(set(re.findall(r'"out/(\w+)/', (HERE / "Snakefile").read_text())))
]
BENCHMARKS = ["deep/quick.tsv", "big.tsv", "json.jsonl", "repeated.tsv", "run.tsv"]
# No single quotes: Snakemake's own executor would break them.
SECRET = 'two  words, "quotes" and $HOME'
# Values that Snakemake's head cannot know when another process has run the job. Every executor for clusters lacks them,
# and they are no reason for Snakemake to run the job again.
UNKNOWN = {
    ("tmpdir_default", "shellcmd"): "the node's folder for temporary files is <TBD>",
    ("group", "input_checksums"): "what was temporary within a group is gone at its end",
    ("service", "input_checksums"): "the same",
}


# Rules that are no plain shell commands, and why.
NESTED = {
    "benchmark_json": "number of the benchmark's iteration",
    "benchmark_repeated": "repeated or extended benchmark",
    "benchmark_run": "no shell command",
    "cached": "between-workflow cache",
    "config_nested": "shell_exec",
    "environment_nested": "shell_exec",
    "environment_script": "no shell command",
    "envvars_nested": "shell_exec",
    "group_first+group_last": "group",
    "groups_option_first": "group",
    "long_nested": "shell_exec",
    "pipe_in+pipe_out": "group",
    "retries_nested": "shell_exec",
    "run": "no shell command",
    "script": "no shell command",
    "service+service_used": "group",
    "shadow_minimal": "shadow",
    "shadow_shallow": "shadow",
    "tmpdir_default": "resources to be computed on the node",
    "tmpdir_function": "tmpdir to be computed on the node",
    "unicode_used": "shell_exec",
    "updated": "flags",
    "used_nested": "shell_exec",
}


def prepare(folder: Path) -> None:
    (folder / "cache").mkdir()
    of_old(folder, "out/directory/made/stale.txt", "out/update/text.txt", "out/symlink/link")
    os.utime(folder / "out" / "directory" / "made", (1e9, 1e9))
    (folder / "out" / "symlink" / "link").unlink()
    (folder / "out" / "symlink" / "link").symlink_to("nowhere")


OPTIONS = [
    *("--config", f"notebook={NOTEBOOKS}", "greeting=hello", "--cache", "cached"),
    *("--groups", "groups_option_first=in-twos", "--group-components", "in-twos=2"),
]


def features(folder: Path, *options: str, timeout: float = 300) -> Ran:
    """Run all features."""
    process = ran(
        folder,
        *options,
        *OPTIONS,
        prepare=prepare,
        timeout=timeout,
        FAITHFUL=SECRET,
        SNAKEMAKE_OUTPUT_CACHE=str(folder / "cache"),
        # A terminal that does not know the letters of some files.
        PYTHONIOENCODING="ascii",
    )
    assert process.status == 0, f"{process.out[-2000:]}\n{process.err[-6000:]}"
    return process


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All features with Snakemake's own executor."""
    return features(tmp_path_factory.mktemp("stock") / "project", *STOCK)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All features with this one, on this machine."""
    return features(tmp_path_factory.mktemp("local") / "project", *LOCAL, "--snakefile", "noted.smk", "all")


@pytest.fixture(scope="module")
def on_slurm(slurm: Callable[[], AbstractContextManager[None]], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All features on Slurm."""
    with slurm():
        return features(tmp_path_factory.mktemp("slurm") / "project", *SLURM, timeout=400)


def of_feature(ran: Ran, feature: str) -> dict[str, tuple[str, str]]:
    """Outputs and logs."""
    return files(ran.folder, [ran.folder / kind / feature for kind in ("out", "log")])


# Features.


@pytest.mark.parametrize("feature", FEATURES)
def test_feature_leaves_the_same_files(stock: Ran, local: Ran, feature: str) -> None:
    expected = of_feature(stock, feature)
    assert expected
    assert of_feature(local, feature) == expected


@pytest.mark.parametrize("feature", FEATURES)
def test_feature_leaves_the_same_records(stock: Ran, local: Ran, feature: str) -> None:
    def known(ran: Ran) -> dict[str, dict[str, Any]]:
        """Records without times, and without what differs from one Python process to the next."""
        return {
            path: {
                name: value
                for name, value in record.items()
                if name not in ("starttime", "endtime", "job_hash") and (feature, name) not in UNKNOWN
            }
            for path, record in records(ran.folder).items()
            if path.startswith(f"out/{feature}/")
        }

    expected = known(stock)
    assert expected
    assert known(local) == expected


def test_environments_were_compared(local: Ran) -> None:
    """... and have in them what Snakemake promises: threads for the libraries, and a folder for temporary files."""
    for name, threads in (("plain", 1), ("threads", 2), ("nested", 2), ("script", 1)):
        pairs = (local.folder / "out" / "environment" / name).read_text().rstrip("\0").split("\0")
        variables = dict(pair.split("=", 1) for pair in pairs)
        libraries = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
        assert {variables[f"{library}_NUM_THREADS"] for library in libraries} == {str(threads)}, name
        assert Path(variables["TMPDIR"]).is_dir(), name


def test_outputs_are_as_old_as_they_should_be(local: Ran) -> None:
    """Between the start and the end of the run, so that neither today's clock nor a later touch makes them run again."""
    ages = {path: path.lstat().st_mtime for path in (local.folder / "out").rglob("*") if not path.is_dir()}
    assert {path for path, time in ages.items() if not local.began - 1 < time < local.ended + 1} == set()


def test_recorded_times_are_those_of_the_jobs(local: Ran) -> None:
    """Snakemake notes the start in its own time, which on a busy machine may be seconds after a short job has written."""
    times = {path: (record["starttime"], record["endtime"]) for path, record in records(local.folder).items()}
    wrong = {
        path: (began - local.began, ended - local.began)
        for path, (began, ended) in times.items()
        if not (local.began - 1 < min(began, ended) and max(began, ended) < local.ended + 1 and began <= ended + 10)
    }
    assert wrong == {}


def test_nothing_else_is_left(stock: Ran, local: Ran) -> None:
    """No marks of incomplete outputs, scripts, shadows, locks, backups or bundles."""

    def rest(ran: Ran) -> set[str]:
        paths = (path.relative_to(ran.folder) for path in (ran.folder / ".snakemake").rglob("*"))
        others = ("metadata", "log", "iocache", "backups", "submitit")
        return {str(path) for path in paths if path.parts[1] not in others}

    assert rest(local) - rest(stock) == set()
    assert not any(path.is_file() for path in (local.folder / ".snakemake" / "backups").rglob("*"))


def test_only_bundles_with_failures_are_left(local: Ran) -> None:
    """Those of the two rules with retries, and the first ones of their workers, which have the workers' logs."""
    ledger = local.folder / ".snakemake" / "submitit"
    failed = (ledger / "failures.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["rule"] for line in failed) == ["retries_nested", "retries_plain"]
    left = {path.parent for path in ledger.glob("*/*/bundle.json")}
    with_failures = {
        folder for folder in left if any(status.state == "failed" for _, status, _ in read_statuses(folder))
    }
    arrays = [read_json(folder.parent / "array.json") for folder in with_failures]
    assert left == with_failures | {ledger / array["home"] for array in arrays if "home" in array}


def test_files_lie_only_where_the_rules_put_them(stock: Ran, local: Ran) -> None:
    names = {path.name for path in local.folder.iterdir()} - {"obstacles.txt"}
    assert names == {path.name for path in stock.folder.iterdir()}


def test_only_what_needs_snakemake_gets_a_nested_one(local: Ran) -> None:
    rules = re.findall(
        r"^(?:rule|checkpoint|use rule \w+ as) (\w+)(?::| with:)", (HERE / "Snakefile").read_text(), re.M
    )
    grouped = {rule for names in NESTED for rule in names.split("+") if "+" in names}
    plain = {rule: "" for rule in rules if rule not in grouped | {"all", "local", "groups_option_first", "notebook"}}
    lines = (local.folder / "obstacles.txt").read_text().splitlines()
    reasons = {rule: why for rule, _, why in (line.partition(": ") for line in lines) if rule != "notebook"}
    assert reasons == plain | NESTED


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
@pytest.mark.parametrize("made_by", ["stock", "local"])
def test_nothing_is_left_to_do(request: pytest.FixtureRequest, made_by: str, options: list[str]) -> None:
    """Either executor goes on where the other one has stopped."""
    project = request.getfixturevalue(made_by)
    variables = {"FAITHFUL": SECRET, "SNAKEMAKE_OUTPUT_CACHE": str(project.folder / "cache")}
    process = run(project.folder, "--dry-run", *options, *OPTIONS, env=variables)
    assert "Nothing to be done" in process.stdout + process.stderr, process.stdout + process.stderr


# Benchmarks.


def table(path: Path) -> list[dict[str, Any]]:
    """The rows of a benchmark, in order."""
    lines = path.read_text().splitlines()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    return [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_has_the_same_columns_and_rows(stock: Ran, local: Ran, name: str) -> None:
    expected, rows = (table(ran.folder / "bench" / "benchmark" / name) for ran in (stock, local))
    assert len(rows) == len(expected) == (3 if name == "repeated.tsv" else 1)
    assert [list(row) for row in rows] == [list(row) for row in expected]


def test_benchmark_is_of_the_command_alone(local: Ran) -> None:
    """Of 0.8 s and a few MB in one case, of 0.9 s and 200 MB in the other; the worker itself has some 100 MB."""
    quick, big = (table(local.folder / "bench" / "benchmark" / name)[0] for name in ("deep/quick.tsv", "big.tsv"))
    assert float(quick["s"]) >= 0.2
    assert float(big["s"]) >= 0.9
    assert 0.5 < float(quick["max_rss"]) < 20
    assert 195 < float(big["max_rss"]) < 230


# Software from elsewhere, and shells that are not Snakemake's.


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
def test_software_is_deployed(tmp_path: Path, options: list[str]) -> None:
    more = ("--snakefile", "deployed.smk", "--software-deployment-method", "conda", "apptainer", "env-modules")
    process = ran(
        tmp_path / "project",
        *more,
        *options,
        prepare=lambda folder: of_old(folder, "image.sif"),
        PATH=f"{HERE / 'bin'}{os.pathsep}{Path(shutil.which('python') or '/').parent}{os.pathsep}{os.environ['PATH']}",
        BASH_ENV=str(HERE / "bin" / "modules.bash"),
    )
    assert process.status == 0, process.err
    texts = {path.parent.name: path.read_text().strip() for path in process.folder.glob("out/*/text.txt")}
    assert texts == {
        "conda": f"conda {process.folder}",
        "container": "container image.sif",
        "modules": "module load cuda/12",
        "none": "nothing",
    }


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
def test_prefix_and_suffix_of_the_shell(tmp_path: Path, options: list[str]) -> None:
    process = ran(tmp_path / "project", "--snakefile", "customised.smk", *options, prepare=lambda folder: None)
    assert process.status == 0, process.err
    assert (process.folder / "out" / "text.txt").read_text() == "hello\npipefail       \toff\n"


@pytest.mark.parametrize("options", [STOCK, LOCAL], ids=["stock", "local"])
def test_working_directory_of_the_workflow(tmp_path: Path, options: list[str]) -> None:
    process = ran(tmp_path / "project", "--snakefile", "workdir.smk", *options, prepare=lambda folder: None)
    assert process.status == 0, process.err
    texts = {
        path.name: path.read_text() for path in process.folder.rglob("*.txt") if path.parent.name in ("out", "log")
    }
    here = f"{process.folder / 'elsewhere'}\n"
    assert texts == {"plain.txt": here, "nested.txt": here, "undeclared.txt": here * 2, "all.txt": "done\n"}


def test_another_directory_takes_the_place_of_the_workflow_s(tmp_path: Path) -> None:
    """Also for jobs that a nested Snakemake runs."""
    options = ["--snakefile", "workdir.smk", "--directory", "it's here", *LOCAL]
    process = ran(tmp_path / "project", *options, prepare=lambda folder: None)
    assert process.status == 0, process.err
    outputs = {path.parent.parent for path in process.folder.rglob("*.txt") if path.parent.name == "out"}
    assert outputs == {process.folder / "it's here"}


# On Slurm.


def test_all_features_on_slurm(stock: Ran, on_slurm: Ran) -> None:
    """A node's limits and Slurm's variables are its own."""

    def known(ran: Ran) -> dict[str, tuple[str, str]]:
        listing = files(ran.folder, [ran.folder / "out", ran.folder / "log"])
        return {
            path: content
            for path, content in listing.items()
            if not path.startswith(("out/environment/", "out/bash/state"))
        }

    assert known(on_slurm) == known(stock)


def test_one_bundle_on_slurm_has_all_that_need_snakemake(on_slurm: Ran) -> None:
    """... but groups, which are jobs of another size, and what asks for two cores or has to wait for another job.

    The bundle is still there because one of its jobs has failed, and had another try.
    """
    bundles = [json.loads(path.read_text()) for path in on_slurm.folder.glob(".snakemake/submitit/*/*/bundle.json")]
    nested = [{job["rule"] for job in bundle["jobs"]} for bundle in bundles if bundle["jobs"][0]["kind"] == "snakemake"]
    others = {"environment_nested", "run", "script", "unicode_used"}
    expected = {rule for rule, why in NESTED.items() if why != "group"} - others
    assert [rules - {"notebook"} for rules in nested] == [expected]
