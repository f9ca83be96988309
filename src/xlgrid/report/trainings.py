"""Trainings in progress: the step and the score of each training, from the log of its job."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from xlgrid.products.encode import Encoder
from xlgrid.products.together import RunGroup
from xlgrid.products.train import Run

# Lines of `xlgrid.training.progress` and of the loop: "step 120/300 loss 0.5 dev 88.20", "resumes after step 100 of
# 300".
_STEP = re.compile(r"^(?:.*resumes after )?step (\d+)(?:/| of )(\d+)", re.MULTILINE)
_SCORE = re.compile(r"^step (\d+)/\d+ .*  dev (-?\d+\.\d+)", re.MULTILINE)
_LOSS = re.compile(r"^step (\d+)/\d+  \S+ (-?\d+\.\d+)", re.MULTILINE)
# The number of bytes that are read at the end of a log. A line has about 100.
TAIL = 8192


class Training(NamedTuple):
    """A training in progress.

    Attributes:
        name: the task, encoder, method, source and seed of a run, or of the first of several that train together; or the name
            of an encoder.
        step, steps: the number of finished steps and of all steps; both are 0 before the first line of the log.
        score: the score on the dev set at the last evaluation, of any of the runs; None before the first one.
        log: the log of the job.
    """

    name: str
    step: int = 0
    steps: int = 0
    score: float | None = None
    log: str = ""

    @property
    def share(self) -> float:
        """The share of finished steps, from 0 to 1."""
        return self.step / self.steps if self.steps else 0.0


def training(output: str, log: str) -> Training:
    """The training that makes a file, at the last line of its log, which may not exist yet."""
    text = _end(log)
    steps = _STEP.findall(text)
    scores = _SCORE.findall(text)
    step, total = map(int, steps[-1]) if steps else (0, 0)
    return Training(name_of(output), step, total, float(scores[-1][1]) if scores else None, log)


def curves(log: str) -> dict[str, dict[int, float]]:
    """The scores on the dev set (`dev`) and the first loss (`loss`) of a training, by step, from its log.

    The learning curve itself is written when the training ends. A step that a resumed training repeats counts once.
    """
    text = ""
    with suppress(OSError):
        text = Path(log).read_text(encoding="utf-8", errors="replace")
    return {
        name: {int(step): float(value) for step, value in values.findall(text)}
        for name, values in (("dev", _SCORE), ("loss", _LOSS))
    }


def name_of(output: str) -> str:
    """The name of the run, group of runs or encoder to which a file belongs; the path of the file if it belongs to none."""
    for kind, words in ((Run, ""), (RunGroup, " and others, together")):
        if run := kind.parse(output):
            return f"{run.task} {run.encoder} {run.method} {run.source} seed{run.seed}{words}"
    if encoder := Encoder.parse(output):
        return f"encoder {encoder.encoder}"
    return output


def _end(path: str) -> str:
    """The end of a text file; empty if the file does not exist."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
