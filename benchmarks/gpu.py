"""Measurements of this library on a GPU, in at most nine minutes, from a bare checkout without a network.

    PYTHONPATH=src python benchmarks/gpu.py [--out gpu.md]      # on a GPU: torch, transformers, accelerate, pydantic, pyarrow
    python benchmarks/gpu.py --small                            # on a CPU: the same program with a tiny encoder

On an encoder of XLM-R base's shape with random weights, in bf16, it measures and writes as Markdown tables:

- training steps a second of the loop and of transformers' Trainer, with and without `torch.compile`, with the share of the
  device's peak (MFU: floating-point operations of `xlgrid cost` a second, over those of the data sheet, or of a large matrix
  product where the device is not known) and the most memory;
- structured attention and adapters against full fine-tuning, training and evaluation, at three lengths;
- an evaluation cell in a process of its own: start, CUDA, model, computation;
- whether two runs of one recipe end with the same bytes;
- the operations a second and the seconds of a step that `xlgrid cost` assumes, fitted to the loop's steps.

Parts that would begin after the time is up are left out, and said to be.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import loop as loops
import numpy as np
import torch
import transformers
from loop import Measured

from xlgrid.base.device import default_device
from xlgrid.heads import HEADS
from xlgrid.models import prediction
from xlgrid.models.parameters import count
from xlgrid.training.loop import train

# Dense bf16 TFLOP/s of the data sheets.
PEAKS = {"H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0, "L4": 121.0, "V100": 125.0}
METHODS: dict[str, dict[str, Any]] = {
    "full fine-tuning": {"base": "full-ft"},
    "attention dropout": {"base": "structured-dropout"},
    "cross-lingual query": {"base": "qcross"},
    "task adapters": {"base": "madx", "language": False, "invertible": False},
}
# Prints the seconds from the start of the process to the end of each stage.
CELL = """
import json, sys, time
began = float(sys.argv[1])
marks = {}
def mark(name): marks[name] = time.time() - began
import torch, transformers
from xlgrid.base.device import default_device
from xlgrid.evaluation import cell
from xlgrid.evaluation.cell import evaluate
from xlgrid.models import prediction
mark("start of Python, imports")
device = default_device()
torch.zeros(1, device=device)
mark("CUDA" if device.type == "cuda" else "device")
outcomes_on = prediction.outcomes_on
def measured(*args, **kwargs):
    mark("model: read, made, moved")
    result = outcomes_on(*args, **kwargs)
    mark("computation")
    return result
prediction.outcomes_on = measured
run, encoder, tokens, target, out = sys.argv[2:7]
evaluate(run, encoder, tokens, {"target": target}, out)
mark("outcomes, file")
print(json.dumps(marks))
"""


class Sizes:
    """The shape of the encoder and the sizes of everything that is measured."""

    def __init__(self, small: bool) -> None:
        self.layers, self.hidden, self.tokenizer = (2, 64, 500) if small else (12, 768, 250_002)
        self.shapes = [(4, 16), (4, 32), (8, 32)] if small else [(16, 64), (16, 128), (32, 128)]
        # A CPU takes longer to compile than to train.
        self.compiled = self.shapes[:1] if small else self.shapes
        self.lengths = [16, 32, 64] if small else [128, 256, 512]
        self.steps = 4 if small else 40
        self.examples = 64 if small else 2048


def peak(device: torch.device) -> tuple[float, str]:
    """TFLOP/s that a device can reach at most, and where the number is from."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        for key, tflops in PEAKS.items():
            if key in name:
                return tflops, "data sheet"
    size, kind = (8192, torch.bfloat16) if device.type == "cuda" else (1024, torch.float32)
    matrix = torch.randn(size, size, device=device, dtype=kind)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        product = matrix @ matrix
        float(product[0, 0])
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds) / 1e12, f"product of matrices of {size} x {size}"


def operations(folder: Path, **method: Any) -> float:
    """Floating-point operations of training on a token."""
    config = transformers.AutoConfig.from_pretrained(folder / "encoder")
    base = method.pop("base", "full-ft")
    return count(config, HEADS["sequence"], loops.LABELS, base, method).training


def equal_lengths(folder: Path, sizes: Sizes, length: int, number: int) -> list[dict[str, Any]]:
    """The tokens file of `number` examples of one length."""
    return loops.write_tokens(folder / "tokens.arrow", [length] * number, sizes.tokenizer)


def speeds(folder: Path, sizes: Sizes, compiled: bool, fit: list[tuple[float, float]]) -> Iterator[str]:
    """The loop and the Trainer on each shape; `fit` receives operations and seconds of the loop's steps."""
    device = default_device()
    most, source = peak(device)
    yield f"Peak: {most:.0f} TFLOP/s ({source})."
    yield ""
    yield "| shape | program | steps a second | tokens a second | TFLOP/s | MFU | memory |"
    yield "|---|---|---|---|---|---|---|"
    per_token = operations(folder)
    for batch, length in sizes.compiled if compiled else sizes.shapes:
        torch.compiler.reset()
        rows = equal_lengths(folder, sizes, length, batch * (sizes.steps + 8))
        programs: dict[str, Callable[[], Measured]] = {
            "loop": lambda batch=batch: loops.steps_of_loop(folder, batch, sizes.steps, compiled=compiled),
            "Trainer": lambda batch=batch, rows=rows: loops.steps_of_trainer(
                folder, rows, batch, sizes.steps, compiled=compiled
            ),
        }
        for name, act in programs.items():
            try:
                result = act()
            except ImportError as error:
                yield f"| {batch} x {length} | {name} | {str(error).splitlines()[0]} | | | | |"
                continue
            work = per_token * result.tokens
            if name == "loop" and not compiled:
                fit.append((work, result.seconds))
            tflops = work / result.seconds / 1e12
            label = f"{name}, compiled" if compiled else name
            yield (
                f"| {batch} x {length} | {label} | {1 / result.seconds:.2f} | {result.tokens / result.seconds:,.0f} "
                f"| {tflops:.2f} | {100 * tflops / most:.1f} % | {result.gibibytes:.1f} GiB |"
            )


def methods(folder: Path, sizes: Sizes) -> Iterator[str]:
    """Methods beside full fine-tuning, at equal numbers of tokens a step."""
    yield "| length | method | training, ms a step | against full | evaluation, ms a batch | against full | memory |"
    yield "|---|---|---|---|---|---|---|"
    for length in sizes.lengths:
        batch = max(1, sizes.lengths[-1] * 8 // length)
        equal_lengths(folder, sizes, length, batch * (sizes.steps + 8))
        plain: tuple[float, float] | None = None
        for name, method in METHODS.items():
            trained = loops.steps_of_loop(folder, batch, sizes.steps, **method)
            loop = loops.loop_of(folder, batch, sizes.steps, **method)
            scored = seconds_of_batch(loop, batch, sizes.steps)
            plain = plain or (trained.seconds, scored)
            yield (
                f"| {length} | {name} | {1e3 * trained.seconds:.1f} | {trained.seconds / plain[0]:.2f} "
                f"| {1e3 * scored:.1f} | {scored / plain[1]:.2f} | {trained.gibibytes:.1f} GiB |"
            )
            del loop


def seconds_of_batch(loop: Any, batch: int, number: int) -> float:
    """Seconds that evaluating one batch takes, beside batches that do not count."""
    [dev] = loop.dev_sets
    budget = batch * int(dev.lengths.max())
    rows = dev.take(np.arange(min(len(dev), batch * number)))
    for _ in range(2):
        with loops.measuring(loop.device) as result:
            prediction.outcomes_on(loop.model, loop.method, rows, budget, loop.bf16)
    return result["seconds"] / (len(rows) / batch)


def a_run(folder: Path, sizes: Sizes, name: str) -> Path:
    """A finished run of a few steps with dropout."""
    equal_lengths(folder, sizes, sizes.lengths[0], 256)
    loop = loops.loop_of(folder, 16, 12)
    tokens = [folder / "tokens.arrow"]
    train(loop.recipe, folder / "encoder", tokens, tokens, folder / name)
    return folder / name


def repeats(folder: Path, sizes: Sizes) -> Iterator[str]:
    """Whether two runs of one recipe end with the same bytes."""
    sums = [
        hashlib.sha256((a_run(folder, sizes, name) / "delta.safetensors").read_bytes()).hexdigest()[:12]
        for name in ("first", "second")
    ]
    yield f"Two runs of 12 steps: {'the same bytes' if sums[0] == sums[1] else 'DIFFERENT bytes'} ({' and '.join(sums)})."


def cell(folder: Path, sizes: Sizes) -> Iterator[str]:
    """The stages of an evaluation in a process of its own."""
    run = folder / "first"
    if not (run / "run.json").exists():
        run = a_run(folder, sizes, "first")
    loops.write_tokens(folder / "test.arrow", [sizes.lengths[0]] * sizes.examples, sizes.tokenizer)
    arguments = [run, folder / "encoder", folder / "test.arrow", "en", folder / "cell.json"]
    # The first process fills the cache of the disk.
    for _ in range(2):
        command = [sys.executable, "-c", CELL, str(time.time()), *map(str, arguments)]
        process = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
        if process.returncode:
            yield f"The cell failed: {process.stderr.strip().splitlines()[-1]}"
            return
    marks = json.loads(process.stdout.splitlines()[-1])
    yield f"| stage of a cell of {sizes.examples} examples of {sizes.lengths[0]} tokens | seconds |"
    yield "|---|---|"
    before = 0.0
    for name, at in marks.items():
        yield f"| {name} | {at - before:.2f} |"
        before = at


def constants(fit: list[tuple[float, float]]) -> Iterator[str]:
    """The two numbers that `xlgrid cost` assumes of a GPU, by least squares over the loop's steps."""
    work, seconds = map(np.array, zip(*fit, strict=True))
    (slope, intercept), *_ = np.linalg.lstsq(np.stack([work, np.ones_like(work)], 1), seconds, rcond=None)
    if slope <= 0:
        yield "The steps do not grow with their operations: measure longer ones."
        return
    yield f"{1e-12 / slope:.3g} TFLOP/s, and {max(0.0, 1e3 * intercept):.3g} ms a step"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tiny encoder, for a CPU")
    parser.add_argument("--minutes", type=float, default=8.5, help="parts that would begin later are left out")
    parser.add_argument("--out", type=Path, help="write the tables there, too")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    sizes, device, fit = Sizes(arguments.small), default_device(), []
    started = time.monotonic()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say(f"{name}; torch {torch.__version__}, transformers {transformers.__version__}")
    say(f"Encoder: {sizes.layers} layers of {sizes.hidden}, {sizes.tokenizer:,} entries.")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        loops.write_encoder(folder / "encoder", sizes.layers, sizes.hidden, sizes.tokenizer)
        # The compiled programs come last, because they take the longest.
        parts: dict[str, Callable[[], Iterator[str]]] = {
            "Training": lambda: speeds(folder, sizes, False, fit),
            "Constants of the cost estimate": lambda: constants(fit),
            "Repeating": lambda: repeats(folder, sizes),
            "An evaluation cell": lambda: cell(folder, sizes),
            "Methods": lambda: methods(folder, sizes),
            "Training, compiled": lambda: speeds(folder, sizes, True, fit),
        }
        for title, part in parts.items():
            say(f"\n## {title}\n")
            if time.monotonic() - started > 60 * arguments.minutes:
                say("Left out: the time was up.")
                continue
            for line in part():
                say(line)
                if time.monotonic() - started > 60 * arguments.minutes:
                    say("The rest is left out: the time was up.")
                    break
    say(f"\n{(time.monotonic() - started) / 60:.1f} minutes")
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
