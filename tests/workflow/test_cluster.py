"""xlgrid on a real Slurm: `snakemake --profile slurm` as typed, and a training that its time limit sends back into the queue."""

import subprocess
from pathlib import Path

from project import cells, project, shell, small

RUN = "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed1"


def test_the_profile_makes_the_same_cells_as_a_laptop(slurm: None, finished: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, small())
    done = shell(folder, "snakemake --profile slurm")
    assert done.returncode == 0, done.stderr[-4000:]
    assert cells(folder) == cells(finished)
    assert not list((folder / ".snakemake" / "submitit").glob("*/")), "bundles are left in the ledger"


def test_a_training_longer_than_its_time_limit_ends_the_same_to_the_byte(slurm: None, tmp_path: Path) -> None:
    """Slow: Slurm's shortest limit is a minute, which the training has to exceed on a fast machine too."""
    study = small()
    study["training"] = [{"set": {"steps": 18000, "batch_tokens": 256, "evaluations": 3}}]
    (tmp_path / "calm").mkdir()
    calm = project(tmp_path / "calm", study)
    assert shell(calm, f"snakemake --cores 2 {RUN}/delta.safetensors").returncode == 0
    folder = tmp_path / "rough"
    subprocess.run(["cp", "-a", str(calm), str(folder)], check=True)
    log = folder / f"{RUN.replace('demo/', 'demo/logs/', 1)}.log"
    for path in (log, *(folder / RUN).iterdir()):
        path.unlink()
    limited = "--set-resources train:runtime=1 --submitit-grace 45 --submitit-max-requeues 30"
    done = shell(folder, f"snakemake --profile slurm {limited} -- {RUN}/delta.safetensors")
    assert done.returncode == 0, done.stderr[-4000:]
    assert "resumes after step" in log.read_text(), f"the limit never came: more steps?\n{log.read_text()}"
    assert (folder / RUN / "delta.safetensors").read_bytes() == (calm / RUN / "delta.safetensors").read_bytes()
