"""What a training's log says about how far it is."""

import time
from pathlib import Path

import pytest

from xlgrid.report.trainings import TAIL, Training, name_of, training
from xlgrid.training import progress
from xlgrid.training.progress import Progress

RUN = "results/tiny/runs/ner/mini/full-ft/qa1/seed1/delta.safetensors"
NAME = "ner mini full-ft qa1 seed1"
EVALUATED = "step 60/300  loss 0.4123  dev 88.20  (best 88.20 at 60)  3 s\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def test_a_training_without_a_log_has_not_begun(log: Path) -> None:
    assert training(RUN, str(log)) == Training(NAME, log=str(log))


def test_the_last_evaluation_says_step_and_score(log: Path) -> None:
    log.write_text(EVALUATED + EVALUATED.replace("60", "120").replace("88.20", "90.50"))
    assert training(RUN, str(log)) == Training(NAME, 120, 300, 90.5, str(log))


def test_the_lines_of_progress_are_read(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    meter = Progress(0, 300)
    time.sleep(0.01)
    meter.add(90, {"loss": 0.3}, 1000, 1e-3)
    log.write_text(EVALUATED + capsys.readouterr().err)
    assert training(RUN, str(log)) == Training(NAME, 90, 300, 88.2, str(log))


def test_a_training_that_resumes_is_where_it_was(log: Path) -> None:
    log.write_text("resumes after step 200 of 300\n")
    assert training(RUN, str(log)) == Training(NAME, 200, 300, log=str(log))


def test_only_the_end_of_a_long_log_is_read(log: Path) -> None:
    log.write_text(EVALUATED + "x" * TAIL + "\nstep 90/300  loss 0.3000  100 tokens/s  lr 0.001  1 s left\n")
    assert training(RUN, str(log)) == Training(NAME, 90, 300, log=str(log))


def test_a_score_below_zero_is_a_score(log: Path) -> None:
    log.write_text("step 5/10  loss 0.4  dev -1.50  2 s\n")
    assert training(RUN, str(log)).score == -1.5


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (RUN, NAME),
        ("results/tiny/together/ner/mini/full-ft/qa1/seed1.tar", f"{NAME} and others, together"),
        ("results/tiny/encoders/mini/model.safetensors", "encoder mini"),
        ("results/tiny/text/qa1.parquet", "results/tiny/text/qa1.parquet"),
    ],
)
def test_a_file_has_the_name_of_its_run_or_encoder(path: str, name: str) -> None:
    assert name_of(path) == name
