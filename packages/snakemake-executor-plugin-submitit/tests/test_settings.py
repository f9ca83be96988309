"""The settings of a run, from the command line to the dispatcher."""

import os
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_common.exceptions import WorkflowError

from snakemake_executor_plugin_submitit import Executor, ExecutorSettings
from snakemake_executor_plugin_submitit.clusters.local import Local
from snakemake_executor_plugin_submitit.messages import Mail


class Begun(Executor):
    """An executor with settings and rules, but without a run of Snakemake."""

    def __init__(self, folder: Path, resources: dict[str, object], **settings: Any) -> None:
        self.executor_settings = replace(ExecutorSettings(cluster="local", folder=str(folder)), **settings)
        self.warnings: list[str] = []
        self.mail = Mail()
        self.logger = SimpleNamespace(warning=self.warnings.append, info=self.warnings.append)
        self.workflow = SimpleNamespace(
            rules=[
                SimpleNamespace(name="train", resources=resources),
                SimpleNamespace(name="here", resources={"gpuss": 1}),
            ],
            is_local=lambda rule: rule.name == "here",
            global_resources={"downloads": 3},
            execution_settings=SimpleNamespace(latency_wait=3),
            workdir_init="/origin",
            overwrite_workdir=None,
        )
        self.__post_init__()

    def envvars(self) -> dict[str, str]:
        return {"TOKEN": "secret"}


def begin(folder: Path, resources: dict[str, object] | None = None, **settings: Any) -> Begun:
    return Begun(folder, resources or {}, **settings)


@pytest.mark.parametrize("name", [field.name for field in fields(ExecutorSettings) if field.type is int])
def test_a_number_that_is_too_small_ends_the_run_at_once(tmp_path: Path, name: str) -> None:
    least = 0 if name == "max_requeues" else 1
    option = f"--submitit-{name.replace('_', '-')} must be at least {least}, got {least - 1}"
    with pytest.raises(WorkflowError, match=option):
        begin(tmp_path, **{name: least - 1})
    begin(tmp_path, **{name: least})


def test_other_plugins_are_told_where_the_ledger_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMITIT_LEDGER", "")
    begin(tmp_path)
    assert os.environ["SUBMITIT_LEDGER"] == str(tmp_path)


def test_every_job_shares_the_settings_of_the_run(tmp_path: Path) -> None:
    executor = begin(tmp_path, workers=2, scripts=" crash ,,", grace=45, max_requeues=5, bundle_size=7, array_size=9)
    assert executor.dispatcher
    settings = executor.dispatcher.settings
    assert (settings.array_size, settings.bundle_seconds, executor.defaults.bundle) == (9, 600, 7)
    bundle = settings.bundle
    assert (bundle.slots, bundle.scripts, bundle.grace, bundle.max_requeues) == (2, ("crash",), 45, 5)
    assert (bundle.directory, bundle.origin, bundle.latency_wait) == (os.getcwd(), "/origin", 3)
    assert bundle.environment == {"TOKEN": "secret"}


def test_the_cluster_is_the_one_of_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = begin(tmp_path / "local", setup="a\nb")
    assert executor.dispatcher and isinstance(executor.dispatcher.cluster, Local)
    assert executor.dispatcher.cluster.setup == ["a", "b"]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WorkflowError, match="there is no sbatch"):
        begin(tmp_path / "slurm", cluster="slurm")


@pytest.fixture
def on_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with Slurm's commands, where no variable speaks to them."""
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.touch(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    for name in list(os.environ):
        if name.startswith(("SBATCH_", "SLURM_")):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("on_slurm")
def test_variables_of_sbatch_that_overrule_the_rules_are_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBATCH_TIMELIMIT", "SBATCH_ARRAY_INX", "SBATCH_EXPORT", "SQUEUE_PARTITION"):
        monkeypatch.setenv(name, "1")
    [warning] = begin(tmp_path / "ledger", cluster="slurm").warnings
    assert "SBATCH_ARRAY_INX, SBATCH_TIMELIMIT" in warning
    assert not any(name in warning for name in ("SBATCH_EXPORT", "SQUEUE_PARTITION"))


@pytest.mark.usefixtures("on_slurm")
@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        *((f"SBATCH_{name.upper()}", "mine", name, "mine") for name in ("partition", "account", "qos", "constraint")),
        ("SBATCH_CLUSTERS", "one,two", "clusters", "one,two"),
        ("SLURM_CLUSTERS", "one", "clusters", "one"),
        ("SLURM_CLUSTERS", "all", "clusters", None),
    ],
)
def test_a_variable_of_sbatch_holds_where_no_setting_and_no_rule_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str, expected: str | None
) -> None:
    monkeypatch.setenv(variable, value)
    executor = begin(tmp_path / "ledger", cluster="slurm")
    assert executor.defaults.option(name) == expected
    assert [variable in warning for warning in executor.warnings] == [True]
    assert variable not in os.environ, "to sbatch it would overrule a rule"
    monkeypatch.setenv(variable, value)
    assert begin(tmp_path / "set", cluster="slurm", **{name: "other"}).defaults.option(name) == "other"


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    [warning] = begin(tmp_path, scripts="nowhere").warnings
    assert "no console script 'nowhere'" in warning and str(Path(sys.executable).parent) in warning


def test_a_misspelt_resource_ends_the_run_and_an_unknown_resource_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="did you mean 'runtime'"):
        begin(tmp_path / "misspelt", {"runtim": 5})
    assert ["'att' (train)" in warning for warning in begin(tmp_path, {"att": 5, "downloads": 1}).warnings] == [True]


def test_a_folder_that_cannot_be_used_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "ledger").touch()
    with pytest.raises(WorkflowError, match=r"submitit executor: .*File exists"):
        begin(tmp_path / "ledger")


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [(None, []), ("elsewhere", ["--directory", "/origin"]), (Path("it's"), ["--directory", "/origin"])],
)
def test_a_nested_snakemake_follows_the_directory_and_not_the_workdir(
    tmp_path: Path, folder: object, arguments: list[str]
) -> None:
    executor = begin(tmp_path)
    executor.workflow.overwrite_workdir = folder
    assert shlex.split(executor.additional_general_args())[2:] == arguments


def test_a_value_of_a_profile_that_is_not_what_is_written_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profile.yaml").write_text("executor: submitit\nsubmitit-account: 0123\n")
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["snakemake", "--profile", str(tmp_path), "-n"])
    with pytest.raises(WorkflowError, match='write submitit-account: "0123"'):
        begin(tmp_path / "ledger")


@pytest.mark.parametrize("folder", ["x%j/ledger", r"a\b"])
def test_a_ledger_that_submitit_or_slurm_would_look_for_elsewhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkflowError, match="name a folder in the working directory"):
        begin(Path(folder))
    (tmp_path / "5%j").mkdir()
    monkeypatch.chdir(tmp_path / "5%j")
    begin(Path("ledger"))
