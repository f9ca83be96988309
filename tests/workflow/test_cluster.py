"""xlgrid on a real Slurm: `snakemake --profile slurm` as typed, and a training that its time limit sends back into the queue."""

import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from project import cells, project, shell, small, succeeds

RUN = "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed1"


@pytest.fixture
def short(slurm: Callable[[], AbstractContextManager[None]]) -> Iterator[str]:
    """A partition whose tasks end after a minute."""
    name = f"short{os.getpid()}"
    with slurm():
        subprocess.run(["scontrol", "create", f"PartitionName={name}", "Nodes=ALL", "MaxTime=1"], check=True)
        yield name
        subprocess.run(["scontrol", "delete", f"PartitionName={name}"], check=False)


def request_no_gpus(folder: Path) -> None:
    """The GPUs of this Slurm are pretended ones."""
    profile = folder / "slurm" / "profile.v9+.yaml"
    assert "gpus: 1" in profile.read_text()
    profile.write_text(profile.read_text().replace("gpus: 1", "gpus: 0"))


def test_the_profile_makes_the_same_cells_as_a_laptop(
    slurm: Callable[[], AbstractContextManager[None]], finished: Path, tmp_path: Path
) -> None:
    """Only the cells of one encoder are made, because a second encoder would need as many workers again."""
    folder = project(tmp_path, small())
    request_no_gpus(folder)
    expected = {path: cell for path, cell in cells(finished).items() if "/ner/" in path}
    with slurm():
        succeeds(folder, f"snakemake --profile slurm -- {' '.join(expected)}")
    assert expected and cells(folder) == expected
    assert not list((folder / ".snakemake" / "submitit").glob("*/")), "bundles are left in the ledger"


@pytest.mark.thorough
def test_a_training_longer_than_its_time_limit_ends_the_same_to_the_byte(short: str, tmp_path: Path) -> None:
    """Slow: Slurm's shortest limit is a minute, of which a grace of 45 s leaves 15 s to train until the job is requeued."""
    study = small()
    study["training"] = [{"set": {"steps": 7000, "batch_tokens": 256, "evaluations": 3}}]
    (tmp_path / "calm").mkdir()
    calm, rough = project(tmp_path / "calm", study), tmp_path / "rough"
    weights = f"{RUN}/delta.safetensors"
    prepared = shell(calm, f"snakemake --cores 2 --omit-from train -- {weights}")
    assert prepared.returncode == 0, prepared.stderr[-4000:]
    subprocess.run(["cp", "-a", str(calm), str(rough)], check=True)
    request_no_gpus(rough)
    limited = (
        f"--set-resources train:runtime=1 train:slurm_partition={short} --submitit-grace 45 --submitit-max-requeues 30"
    )
    with ThreadPoolExecutor() as pool:
        trainings = [
            pool.submit(shell, folder, f"snakemake {options} -- {weights}")
            for folder, options in ((calm, "--cores 1"), (rough, f"--profile slurm {limited}"))
        ]
    for training in trainings:
        assert training.result().returncode == 0, training.result().stderr[-4000:]
    log = (rough / f"{RUN.replace('demo/', 'demo/logs/', 1)}.log").read_text()
    assert "resumes after step" in log, f"the limit never came: more steps?\n{log}"
    assert (rough / weights).read_bytes() == (calm / weights).read_bytes()
