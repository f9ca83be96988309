"""The cases with which Snakemake tests an executor."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from snakemake.common.tests import TestWorkflowsLocalStorageBase

from snakemake_executor_plugin_submitit import ExecutorSettings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*PuLP 4.0:DeprecationWarning")]


class Cases(TestWorkflowsLocalStorageBase):  # type: ignore[misc]
    """Each runs Snakemake in this process."""

    cluster: str

    @pytest.fixture(autouse=True)
    def in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def get_executor(self) -> str:
        return "submitit"

    def get_executor_settings(self) -> ExecutorSettings:
        return ExecutorSettings(cluster=self.cluster)


class TestOneMachine(Cases):
    __test__ = True
    cluster = "local"


class TestSlurm(Cases):
    __test__ = True
    cluster = "slurm"

    @pytest.fixture(autouse=True)
    def on_slurm(self, slurm: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        with slurm():
            yield
