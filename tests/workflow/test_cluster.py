"""xlgrid on a real Slurm: `snakemake --profile slurm` as typed, and a training that is sent back into the queue."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from project import project, shell, small
from test_workflow import cells

RUN = "results/demo/runs/ner/mini-xlmr/full-ft/qa1/seed1"


def test_the_profile_makes_the_same_cells_as_a_laptop(slurm: None, finished: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, small())
    done = shell(folder, "snakemake --profile slurm")
    assert done.returncode == 0, done.stderr[-4000:]
    assert cells(folder) == cells(finished)
    assert not list((folder / ".snakemake" / "submitit").glob("*/")), "bundles are left in the ledger"


def wait_for(text: str, log: Path, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not (log.exists() and text in log.read_text()):
        assert time.monotonic() < deadline, f"{log} does not say {text!r} within {seconds} s"
        time.sleep(0.1)


def test_a_training_that_slurm_interrupts_goes_on_and_ends_the_same_to_the_byte(slurm: None, tmp_path: Path) -> None:
    study = small()
    study["training"] = [{"set": {"steps": 1500, "batch_tokens": 256, "evaluations": 3}}]
    (tmp_path / "calm").mkdir()
    calm = project(tmp_path / "calm", study)
    assert shell(calm, f"snakemake --cores 2 {RUN}/delta.safetensors").returncode == 0
    folder = tmp_path / "rough"
    subprocess.run(["cp", "-a", str(calm), str(folder)], check=True)
    log = folder / f"{RUN.replace('demo/', 'demo/logs/', 1)}.log"
    for path in (log, *(folder / RUN).iterdir()):
        path.unlink()
    head = subprocess.Popen(
        ["bash", "-c", f"exec snakemake --profile slurm {RUN}/delta.safetensors > head.log 2>&1"],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}/.venv/bin{os.pathsep}{os.environ['PATH']}"},
    )
    try:
        wait_for("step 500/1500", log)
        [about] = [json.loads(path.read_text()) for path in (folder / ".snakemake/submitit").glob("*/job.json")]
        # As Slurm does before the time limit.
        subprocess.run(["scancel", "--batch", "--signal=USR2", about["jobs"][0]], check=True)
        assert head.wait(timeout=200) == 0, (folder / "head.log").read_text()[-3000:]
    finally:
        if head.poll() is None:
            head.send_signal(signal.SIGINT)
            head.wait(timeout=60)
    assert "resumes after step" in log.read_text(), log.read_text()
    assert (folder / RUN / "delta.safetensors").read_bytes() == (calm / RUN / "delta.safetensors").read_bytes()
