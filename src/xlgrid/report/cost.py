"""Prints the cost of a study and the parameters of its methods as tables; `xlgrid.plan.estimate` computes them."""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xlgrid.base.files import write_text
from xlgrid.data.sources import SPLITS
from xlgrid.models.parameters import Count
from xlgrid.plan.estimate import STEP_MS, TFLOPS, Assumed, Cost, Estimate
from xlgrid.plan.lengths import ROWS
from xlgrid.plan.plan import Plan
from xlgrid.plan.pretraining import BYTES
from xlgrid.report.status import console
from xlgrid.study.schema import Study

if TYPE_CHECKING:
    from rich.table import Table

# Units of time, and how many of them an hour has.
TIMES = (("hours", 1), ("minutes", 60), ("seconds", 3600))


def assumptions(
    examples: Iterable[str],
    tokens: Iterable[str],
    tflops: float = TFLOPS,
    evaluation: float | None = None,
    step_ms: float = STEP_MS,
) -> Assumed:
    """The assumptions in the options of `xlgrid cost`, such as `xnli=392702,2490,5010`, `wikiann:jv=100,100,100` and `xnli=60`.

    Raises:
        ValueError: an option cannot be read.
    """
    other = tflops if evaluation is None else evaluation
    if min(tflops, other) <= 0:
        raise ValueError(f"TFLOP/s are a positive number, got {min(tflops, other):g}")
    if step_ms < 0:
        raise ValueError(f"--step-ms is no negative number, got {step_ms:g}")
    lengths = {name: numbers[0] for name, numbers in (_numbers("--tokens", text, 1) for text in tokens)}
    return Assumed(dict(_numbers("--examples", text) for text in examples), lengths, tflops, other, step_ms)


def _numbers(option: str, text: str, most: int = 3) -> tuple[str, tuple[int, ...]]:
    name, _, value = text.partition("=")
    numbers = value.split(",")
    if not name or len(numbers) > most or not all(number.isdecimal() and int(number) for number in numbers):
        form = "TASK=NUMBER" if most == 1 else "TASK=TRAIN,DEV,TEST"
        raise ValueError(f"{option} {text}: expected {form} of positive whole numbers without separators")
    return name, tuple(map(int, numbers))


def show(
    plan: Plan,
    assumed: Assumed,
    measured: str | Path | None = None,
    path: str | Path | None = None,
    gpus: int = 1,
) -> None:
    """Print the tables of exhibits, pre-trainings, methods and local data, and what they assume.

    Args:
        measured: a run.json whose speed counts instead of the assumed speed.
        path: a file to which the table of exhibits is written, too.
        gpus: the number of GPUs that share a pre-training.

    Raises:
        FileNotFoundError, ValueError: as `Estimate` and `Estimate.measured`.
    """
    estimate = Estimate(plan, assumed)
    if measured:
        estimate = Estimate(plan, estimate.measured(measured))
    costs = list(estimate.exhibits())
    terminal = console()
    terminal.print(exhibit_table(costs))
    if estimate.pretrainings:
        terminal.print(pretraining_table(estimate, gpus))
    terminal.print(method_table(estimate))
    if any(itertools.starmap(estimate.measured_lengths.is_local, estimate.measured_lengths.places)):
        terminal.print(data_table(estimate))
    for line in notes(estimate, "measured" if measured else "assumed"):
        terminal.print(line, soft_wrap=True, markup=False)
    if path:
        write_csv(costs, path)


def exhibit_table(costs: Sequence[tuple[str, Cost]]) -> "Table":
    """A row for each exhibit, in units in which the largest number is at least 1."""
    most = max((cost.hours for _, cost in costs), default=0.0)
    unit, per_hour = next((each for each in TIMES if most * each[1] >= 1), TIMES[-1])
    short, gigabytes = unit[: 1 if unit == "hours" else 3], max((cost.gigabytes for _, cost in costs), default=0.0)
    size, per_gigabyte = ("GB", 1) if gigabytes >= 1 else ("MB", 1000)
    head = ["exhibit", "runs", "on text", "cells", "steps", "examples evaluated"]
    table = _table([*head, f"{short} training", f"{short} evaluation", f"GPU-{unit}", f"{size} stored"], 1)
    for name, cost in costs:
        counts = (cost.runs, cost.text_runs, cost.cells, cost.steps, cost.evaluated)
        times = (per_hour * hours for hours in (cost.training_hours, cost.evaluation_hours, cost.hours))
        numbers = (*times, per_gigabyte * cost.gigabytes)
        table.add_row(name, *(f"{count:,}" for count in counts), *(f"{number:,.1f}" for number in numbers))
    return table


def pretraining_table(estimate: Estimate, gpus: int) -> "Table":
    """A row for each encoder that is pre-trained: time, text and disk; a text of unknown size is a question mark."""
    days = f"days on {gpus} GPU{'s' if gpus > 1 else ''}"
    head = ["pre-training of", "updates", "tokens/update", "G tokens", "GB text", "GPU-hours", days]
    table = _table([*head, "GB tokens", "GB state", "GB stored"], 1)
    for name, each in estimate.pretrainings.items():
        sizes = each.tokens_gigabytes, each.state_gigabytes, each.stored_gigabytes
        numbers = each.read_tokens / 1e9, each.text_gigabytes, each.hours, each.hours / gpus / 24, *sizes
        table.add_row(name, f"{each.updates:,}", f"{each.update_tokens:,}", *map(_rounded, numbers))
    return table


def _rounded(number: float | None) -> str:
    """Two digits at least."""
    return "?" if number is None else f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def method_table(estimate: Estimate) -> "Table":
    """A row for each method on each encoder and kind of head: parameters, and work per token of training."""
    table = _table(["encoder", "method", "task", "trained", "stored", "all", "% trained", "MFLOP/token"], 3)
    study = estimate.study
    kinds_of: dict[tuple[str, str, Count], list[str]] = {}
    for run in estimate.plan.runs:
        kind = _kind(study, run.task)
        kinds = kinds_of.setdefault((run.encoder, run.method, estimate.count(run)), [])
        kinds += [] if kind in kinds else [kind]
    encoders, methods = list(study.encoders), list(study.methods)
    rows = sorted(kinds_of.items(), key=lambda row: (encoders.index(row[0][0]), methods.index(row[0][1])))
    for (encoder, method, counted), kinds in rows:
        share = 100 * counted.trained / counted.total
        numbers = (counted.trained, counted.stored, counted.total)
        table.add_row(
            encoder,
            method,
            ", ".join(kinds),
            *(f"{n:,}" for n in numbers),
            f"{share:.2f}",
            f"{counted.training / 1e6:,.0f}" if counted.training >= 1e7 else f"{counted.training / 1e6:.2g}",
        )
    return table


def data_table(estimate: Estimate) -> "Table":
    """A row for each task and language, or pair, with data in local files, and for each vocabulary: the rows of the splits, tokens
    per example, pieces per word and the share of unknown pieces.

    Without the vocabulary on this machine, and of words without spaces between them, the numbers are question marks.
    """
    table = _table(["data", "language", "vocabulary", *SPLITS, "tokens/example", "pieces/word", "% unknown"], 3)
    measured = estimate.measured_lengths
    for name, part in measured.places:
        if not measured.is_local(name, part):
            continue
        counts = ["?" if count is None else f"{count:,}" for count in estimate.sizes.of(name, part)]
        for vocabulary in measured.vocabularies.get(name, ()):
            lengths = measured.all.get((name, part, vocabulary))
            numbers = (
                [
                    f"{lengths.tokens:.1f}",
                    f"{lengths.fertility:.2f}" if lengths.fertility else "?",
                    f"{100 * lengths.unknown:.1f}",
                ]
                if lengths
                else ["?"] * 3
            )
            table.add_row(name, part, vocabulary, *counts, *numbers)
    return table


def _kind(study: Study, name: str) -> str:
    """The name under which tasks of one kind are shown together; a task that the study describes stands for itself."""
    entry = study.tasks[name]
    return name if entry.columns else entry.kind


def _table(columns: list[str], words: int) -> "Table":
    """An empty table, its columns after the first `words` right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=True, justify="left" if number < words else "right")
    return table


def notes(estimate: Estimate, speed: str) -> Iterator[str]:
    """Sentences on the assumptions behind the numbers.

    Args:
        speed: `assumed` or `measured`.
    """
    assumed = estimate.assumed
    yield (
        f"GPU-hours: {assumed.training:,.4g} TFLOP/s in training, {assumed.evaluation:,.4g} in evaluation, and "
        f"{assumed.step_ms:g} ms a step, {speed}. "
        "Data, tokens and the start of processes are not in them."
    )
    if estimate.pretrainings:
        yield (
            f"Pre-training: {BYTES} bytes of text a token, without compression, tokens files of all texts, the state while it trains; "
            "several GPUs share each step and are taken to be as many times as fast."
        )
    if estimate.plan.shared:
        yield f"Not counted, because another study makes them: {estimate.plan.shared}."
    measured = {name for name, *_ in estimate.measured_lengths.all}
    if measured:
        yield (
            f"Local data: tokens and pieces of the first {ROWS} rows of a file. Most vocabularies cut words of a language that they know "
            "well to fewer than two pieces. Words are what spaces separate, or those of the data; ? is not known."
        )
    kinds = {
        name: _kind(estimate.study, name)
        for name in dict.fromkeys(run.task for run in estimate.plan.runs)
        if name not in measured or estimate.stated_tokens(name)
    }
    tokens: dict[tuple[str, int], None] = {(kind, estimate.tokens(name)): None for name, kind in kinds.items()}
    if tokens:
        yield f"Tokens per example, assumed: {', '.join(f'{kind} {number}' for kind, number in tokens)}."
    for name, sizes in assumed.examples.items():
        yield f"Examples of {name}, as given: {', '.join(f'{n:,}' for n in sizes)}."


def write_csv(costs: Iterable[tuple[str, Cost]], path: str | Path) -> None:
    """Write a line for each exhibit: its name, the fields of `Cost`, `hours`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["exhibit", *Cost._fields, "hours"])
    for name, cost in costs:
        writer.writerow([name, *(round(value, 3) for value in (*cost, cost.hours))])
    write_text(path, text.getvalue())
