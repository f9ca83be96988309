"""What the plugin uses of Snakemake and submitit beside their documented interfaces is there, in the installed versions."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import snakemake.benchmark
import snakemake.cli
import snakemake.jobs
import snakemake.persistence
import snakemake.rules
import snakemake.scheduling.job_scheduler
import snakemake.workflow
import submitit
from snakemake.shell import shell
from submitit.core.utils import DelayedSubmission
from submitit.local.local import LocalExecutor, LocalJob
from submitit.slurm.slurm import SlurmExecutor

SOURCES = Path(__file__).parents[1] / "src"
SCHEDULER, WORKFLOW = snakemake.scheduling.job_scheduler.JobScheduler, snakemake.workflow.Workflow
# Functions, with names of parameters with which the plugin calls them or takes their place.
FUNCTIONS: list[tuple[Callable[..., Any], set[str]]] = [
    (SCHEDULER.exit_gracefully, set()),
    (SCHEDULER.executor_error_callback, {"exception"}),
    (WORKFLOW.is_local, {"rule"}),
    (snakemake.jobs.Job._path_to_source_file, set()),
    (snakemake.persistence.PersistenceBase._get_backup_path, {"path"}),
    (snakemake.persistence.PersistenceBase.backup_output, {"path"}),
    (snakemake.persistence.PersistenceBase.external_jobids, {"job"}),
    (snakemake.benchmark.benchmarked, {"pid"}),
    (snakemake.benchmark.write_benchmark_records, set()),
    (snakemake.cli.main, {"argv"}),
    (snakemake.cli.parse_args, {"argv"}),
    (SlurmExecutor._make_submission_file_text, {"command", "uid"}),
    (submitit.AutoExecutor.update_parameters, set()),
    (LocalExecutor.update_parameters, set()),
    (DelayedSubmission.dump, set()),
]
# Attributes of instances, by the text of the class that sets or defines them.
ATTRIBUTES: list[tuple[type, str]] = [
    (SCHEDULER, "running"),
    (WORKFLOW, "workdir_init"),
    (WORKFLOW, "overwrite_workdir"),
    (WORKFLOW, "global_resources"),
    (WORKFLOW, "scheduler"),
    (WORKFLOW, "dag_settings"),
    (WORKFLOW, "execution_settings"),
    (WORKFLOW, "remote_execution_settings"),
    (snakemake.rules.Rule, "restart_times"),
    (snakemake.rules.Rule, "run_func_src"),
    (snakemake.rules.Rule, "shellcmd"),
    (shell, "_process_prefix"),
    (shell, "_process_suffix"),
    (submitit.AutoExecutor, "_executor"),
    (LocalJob, "_process"),
    (SlurmExecutor, "_submitit_command_str"),
]


@pytest.mark.parametrize(("function", "parameters"), FUNCTIONS, ids=lambda value: getattr(value, "__qualname__", ""))
def test_a_function_has_the_parameters_that_the_plugin_passes(
    function: Callable[..., Any], parameters: set[str]
) -> None:
    assert parameters <= inspect.signature(inspect.unwrap(function)).parameters.keys()


@pytest.mark.parametrize(("owner", "name"), ATTRIBUTES, ids=str)
def test_an_attribute_is_there(owner: type, name: str) -> None:
    texts = [inspect.getsource(base) for base in owner.__mro__ if base is not object]
    assert any(re.search(rf"\b(self\.)?{name}\b", text) for text in texts)


def test_the_parser_of_the_command_line_tells_which_profiles_it_has_read() -> None:
    parser, _ = snakemake.cli.parse_args([])
    assert isinstance(parser._source_to_settings, dict)


def test_every_private_name_of_another_package_that_the_plugin_uses_is_listed_here() -> None:
    """Names of the plugin itself, of Python and of the kernel are left out."""
    listed = Path(__file__).read_text()
    own = {"self", "cls", "os", "sys", "threading", "atexit"}
    unlisted = {
        node.attr
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
        if not (isinstance(node.value, ast.Name) and node.value.id in own) and node.attr not in listed
    }
    assert unlisted == set()


@pytest.mark.thorough
def test_the_oldest_versions_that_are_allowed_have_all_of_it(tmp_path: Path) -> None:
    """With the newest ones, all other tests run. The index of packages must be there."""
    allowed = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest = [re.sub(r">=([\d.]+),.*", r"==\1", entry) for entry in allowed if re.match("snakemake>|submitit>", entry)]
    assert len(oldest) == 2
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), *oldest)
    subprocess.run([sys.executable, *pip], check=True, stdin=subprocess.DEVNULL)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    chosen = ("tests/test_leans_on.py", "tests/test_conformance.py", "-m", "not thorough", "-k", "not TestSlurm")
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen],
        cwd=SOURCES.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout[-4000:]
