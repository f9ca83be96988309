"""Measurements of this library on a GPU, in at most nine minutes, from a bare checkout without a network.

    PYTHONPATH=src python benchmarks/gpu.py [--out gpu.md]      # on a GPU: torch, transformers, accelerate, pydantic, pyarrow
    python benchmarks/gpu.py --small                            # on a CPU: the same program with a tiny encoder

On an encoder of XLM-R base's shape with random weights, in bf16, it measures and writes as Markdown tables, line by line:

- training steps a second of the loop and of transformers' Trainer (with random batches, and with batches grouped by length),
  on batches of one length and on lengths as in XNLI, with the share of the device's peak (MFU: floating-point operations of
  `xlgrid cost` a second, over those of the data sheet, or of a large matrix product where the device is not known) and the
  most memory;
- the operations a second and the seconds of a step that `xlgrid cost` assumes, fitted to the loop's steps;
- lengths as they are: steps and an evaluation with shapes that are new to the device, and with the same shapes again; how
  often a step lets the host wait;
- whether two runs of one recipe end with the same bytes;
- evaluation cells, each in a process of its own (start, CUDA, model, computation), in forks of a warm process, and one after
  another in a process that keeps the model;
- runs that train together beside runs one after another, and in processes at the same time, without and with MPS;
- structured attention and adapters against full fine-tuning, training and evaluation, at three lengths;
- how many of 2,000 steps in bf16 are not finite;
- training with the setting `compile` (`torch.compile`).

Parts that would begin after the time is up are left out, and said to be. A part that fails is said to have failed.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
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
from xlgrid.training import schedule
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


# Seconds until the time is up.
Left = Callable[[], float]


class Sizes:
    """The shape of the encoder and the sizes of everything that is measured."""

    def __init__(self, small: bool) -> None:
        self.layers, self.hidden, self.tokenizer = (2, 64, 500) if small else (12, 768, 250_002)
        self.shapes = [(4, 16), (4, 32), (8, 32)] if small else [(16, 64), (16, 128), (32, 128)]
        # The batch size with lengths as in XNLI.
        self.batch = 8 if small else 32
        self.lengths = [16, 32, 64] if small else [128, 256, 512]
        self.steps = 4 if small else 30
        self.long = 20 if small else 2000
        self.examples = 64 if small else 2048
        self.rows = 150 if small else 5010
        self.cells = 2 if small else 10
        self.runs = [1, 2] if small else [1, 8, 32]
        self.processes = 2 if small else 8


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


HEADER = (
    "| batch | program | steps a second | tokens a second | TFLOP/s | MFU | memory |",
    "|---|---|---|---|---|---|---|",
)


def speed(label: str, name: str, result: Measured, per_token: float, most: float) -> str:
    """A row of the table of steps."""
    tflops = per_token * result.tokens / result.seconds / 1e12
    return (
        f"| {label} | {name} | {1 / result.seconds:.2f} | {result.tokens / result.seconds:,.0f} "
        f"| {tflops:.2f} | {100 * tflops / most:.1f} % | {result.gibibytes:.1f} GiB |"
    )


def speeds(folder: Path, sizes: Sizes, left: Left, fit: list[tuple[float, float]]) -> Iterator[str]:
    """The loop and the Trainer on each shape; `fit` receives operations and seconds of the loop's steps."""
    most, source = peak(default_device())
    per_token = operations(folder)
    yield f"Peak: {most:.2f} TFLOP/s ({source})."
    yield ""
    yield from HEADER
    batches = [(f"{batch} x {length}", batch, [length]) for batch, length in sizes.shapes]
    batches.append((f"{sizes.batch} x XNLI", sizes.batch, loops.xnli_lengths(sizes.batch * (sizes.steps + 8))))
    for label, batch, lengths in batches:
        number = batch * (sizes.steps + 8)
        rows = loops.write_tokens(folder / "tokens.arrow", (lengths * number)[:number], sizes.tokenizer)
        trainer = partial(loops.steps_of_trainer, folder, rows, batch, sizes.steps)
        programs: dict[str, Callable[[], Measured]] = {
            "loop": partial(loops.steps_of_loop, folder, batch, sizes.steps),
            "Trainer": trainer,
        }
        if len(lengths) > 1:
            programs["Trainer, grouped"] = partial(trainer, sampling="group_by_length")
        for name, act in programs.items():
            try:
                result = act()
            except ImportError as error:
                yield f"| {label} | {name} | {str(error).splitlines()[0]} | | | | |"
                continue
            if name == "loop":
                fit.append((per_token * result.tokens, result.seconds))
            yield speed(label, name, result, per_token, most)


def compiled(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """The loop with `torch.compile`, in processes that end when the time is up, because a compilation cannot be cut."""
    most, _ = peak(default_device())
    per_token = operations(folder)
    yield from HEADER
    for batch, length in sizes.shapes:
        equal_lengths(folder, sizes, length, batch * (sizes.steps + 8))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            act = partial(loops.steps_of_loop, folder, batch, sizes.steps, compiled=True)
            try:
                result = pool.apply_async(act).get(timeout=max(1.0, left()))
            except multiprocessing.TimeoutError:
                yield f"| {batch} x {length} | loop, compiled | the time was up | | | | |"
                return
        yield speed(f"{batch} x {length}", "loop, compiled", result, per_token, most)


def as_they_are(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """Steps and an evaluation on inputs of many lengths: shapes that are new to the device, and the same shapes again."""
    loops.write_tokens(folder / "tokens.arrow", loops.xnli_lengths(sizes.rows), sizes.tokenizer)
    loop = loops.loop_of(folder, sizes.batch, 2 * sizes.steps)
    loop.model.train()
    steps = list(islice(schedule.stream(loop.train, loop.settings, 1, loop.plan), loop.steps - 1))
    yield f"| lengths as in XNLI | ms a step of {sizes.batch} inputs | evaluation of {sizes.rows:,} inputs, s |"
    yield "|---|---|---|"
    for name in ("shapes that are new", "the same shapes again"):
        loop.step = 0
        with loops.measuring(loop.device) as trained:
            for chosen in steps:
                loop.advance(chosen)
            loop.settle()
        with loops.measuring(loop.device) as evaluated:
            prediction.outcomes_on(loop.model, loop.method, loop.dev_sets[0], 4096, loop.bf16)
        yield f"| {name} | {1e3 * trained['seconds'] / len(steps):.2f} | {evaluated['seconds']:.2f} |"
    yield ""
    if loop.device.type != "cuda":
        yield "How often a step lets the host wait is known on a GPU only."
        return
    loop.step = 0
    loop.advance(steps[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        loop.advance(steps[1])
        torch.cuda.set_sync_debug_mode("default")
    waits = [f"{Path(each.filename).name}:{each.lineno}" for each in caught if "synchroniz" in str(each.message)]
    yield f"A step lets the host wait {len(waits)} times{': ' if waits else ''}{', '.join(waits)}."


def not_finite(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """Steps in bf16 that are not finite, and are taken again in fp32."""
    batch, length = sizes.shapes[0]
    equal_lengths(folder, sizes, length, batch * 64)
    loop = loops.loop_of(folder, batch, sizes.long)
    loop.model.train()
    ahead = schedule.stream(loop.train, loop.settings, 1, loop.plan)
    began = time.monotonic()
    while loop.step < loop.steps and left() > 0:
        loop.advance(next(ahead))
    loop.settle()
    seconds = time.monotonic() - began
    kind = "bf16" if loop.bf16 else "fp32"
    yield (
        f"{loop.steps_in_fp32} of {loop.step:,} steps of {batch} x {length} in {kind} were not finite ({seconds:.0f} s; "
        f"loss {loop.first_loss:.3f} at first, {sum(loop.losses.values()) / max(1, loop.step):.3f} on average)."
    )


def methods(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
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


def repeats(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """Whether two runs of one recipe end with the same bytes."""
    sums = [
        hashlib.sha256((a_run(folder, sizes, name) / "delta.safetensors").read_bytes()).hexdigest()[:12]
        for name in ("first", "second")
    ]
    yield f"Two runs of 12 steps: {'the same bytes' if sums[0] == sums[1] else 'DIFFERENT bytes'} ({' and '.join(sums)})."


def cell(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
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


# Evaluates cells one after another, in forks or in this process, and prints the seconds of each.
CELLS = """
import json, os, sys, time
from xlgrid import warm
from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate
way, number, run, encoder, tokens = sys.argv[1:]
warm.warm_up(["evaluate", run, "--encoder", encoder, "--tokens", tokens])
if way == "kept":
    trained.keep()
def cell(at):
    evaluate(run, encoder, tokens, {"target": "en"}, f"{run}-{way}-{at}.json")
seconds = []
for at in range(int(number)):
    began = time.perf_counter()
    if way == "kept":
        cell(at)
    elif (child := os.fork()) == 0:
        cell(at)
        os._exit(0)
    else:
        assert os.waitpid(child, 0)[1] == 0
    seconds.append(time.perf_counter() - began)
print(json.dumps(seconds))
"""


def cells(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """Cells in forks of a process that has imported the libraries, and in one process that keeps the model."""
    run = folder / "first"
    if not (run / "run.json").exists():
        run = a_run(folder, sizes, "first")
    loops.write_tokens(folder / "test.arrow", [sizes.lengths[0]] * sizes.examples, sizes.tokenizer)
    words = [run, folder / "encoder", folder / "test.arrow"]
    yield f"| cells of {sizes.examples} examples of {sizes.lengths[0]} tokens | first, s | others, s a cell |"
    yield "|---|---|---|"
    for name, way in {"each in a fork": "forks", "one after another in a process": "kept"}.items():
        command = [sys.executable, "-c", CELLS, way, str(sizes.cells), *map(str, words)]
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=max(1.0, left()))
        if process.returncode:
            yield f"| {name} | {process.stderr.strip().splitlines()[-1]} | |"
            continue
        first, *others = json.loads(process.stdout.splitlines()[-1])
        yield f"| {name} | {first:.2f} | {sum(others) / len(others):.3f} |"


def together(folder: Path, sizes: Sizes, left: Left) -> Iterator[str]:
    """Runs of BitFit that train together, one after another, and in processes at the same time."""
    batch, length = sizes.shapes[0]
    equal_lengths(folder, sizes, length, batch * (sizes.steps + 8))
    alone = loops.steps_of_loop(folder, batch, sizes.steps, base="bitfit").seconds
    yield f"| runs of BitFit, {batch} x {length} | ms a step of a run | runs an hour, of those one after another |"
    yield "|---|---|---|"
    yield f"| one after another | {1e3 * alone:.2f} | 1.00 |"
    for runs in sizes.runs:
        try:
            each = seconds_together(folder, batch, sizes.steps, runs)
        except ImportError as error:
            yield f"| {runs} together | {error} | |"
            continue
        yield f"| {runs} together | {1e3 * each:.2f} | {alone / each:.2f} |"
    for name, start in {"at the same time": no_daemon, "at the same time, with MPS": mps}.items():
        with start(folder) as problem:
            if problem:
                yield f"| {sizes.processes} processes {name} | {problem} | |"
                continue
            each = seconds_at_once(folder, batch, sizes.steps, sizes.processes, left())
        yield f"| {sizes.processes} processes {name} | {1e3 * each:.2f} | {alone / each:.2f} |"


def seconds_together(folder: Path, batch: int, steps: int, runs: int, warm: int = 3) -> float:
    """Seconds of a step of one of some runs of BitFit that train together; of all threads where there is no GPU."""
    from xlgrid.training.together.group import Files, Group, Member

    loop = loops.loop_of(folder, batch, warm + steps, base="bitfit")
    data = [folder / "tokens.arrow"]
    names = tuple(f"m/en/{seed}" for seed in range(runs))
    members = [
        Member(
            loop.recipe.model_copy(update={"seed": seed, "together": names}),
            folder / "encoder",
            Files(data, data),
            folder / f"member{seed}",
        )
        for seed in range(runs)
    ]
    group = Group(members, folder / "group")
    ahead = [schedule.stream(each.train, each.settings, each.recipe.seed, each.plan) for each in members]
    for member in members:
        member.model.train()

    def advance(count: int) -> None:
        for _ in range(count):
            group.advance({number: next(stream) for number, stream in enumerate(ahead)})

    advance(warm)
    with loops.measuring(loop.device) as result:
        advance(steps)
    return result["seconds"] / steps / runs


def seconds_at_once(folder: Path, batch: int, steps: int, count: int, timeout: float) -> float:
    """Seconds of a step of one of some processes that train at the same time: of the clock, over the number of processes, on
    a GPU; of a process's threads elsewhere."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        ready = manager.Barrier(count)
        with context.Pool(count) as pool:
            ended = pool.starmap_async(_at_once, [(folder, batch, steps, ready)] * count)
            seconds = max(ended.get(timeout=max(1.0, timeout))) / steps
    return seconds / count if torch.cuda.is_available() else seconds


def _at_once(folder: Path, batch: int, steps: int, ready: Any, warm: int = 3) -> float:
    """Seconds that a process takes for its steps after all have warmed up."""
    loop = loops.loop_of(folder, batch, warm + steps, base="bitfit")
    loop.model.train()
    ahead = schedule.stream(loop.train, loop.settings, 1, loop.plan)
    for _ in range(warm):
        loop.advance(next(ahead))
    loop.settle()
    ready.wait()
    with loops.measuring(loop.device) as result:
        for _ in range(steps):
            loop.advance(next(ahead))
    return result["seconds"]


@contextmanager
def no_daemon(folder: Path) -> Iterator[str]:
    """Nothing more: the processes take turns on a GPU."""
    yield ""


@contextmanager
def mps(folder: Path) -> Iterator[str]:
    """NVIDIA's daemon through which processes compute on a GPU at the same time; yields the reason if it cannot run."""
    if not torch.cuda.is_available() or not shutil.which("nvidia-cuda-mps-control"):
        yield "there is no MPS here"
        return
    places = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "mps-log")}
    for place in places.values():
        Path(place).mkdir()
    started = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=os.environ | places, capture_output=True, text=True)
    if started.returncode:
        yield (started.stderr or started.stdout).strip().splitlines()[-1]
        return
    os.environ.update(places)
    try:
        yield ""
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, capture_output=True)
        for name in places:
            del os.environ[name]


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
    parser.add_argument("--minutes", type=float, default=8.5, help="what would begin later is left out")
    parser.add_argument("--out", type=Path, help="write the tables there, too, line by line")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    sizes, device, fit = Sizes(arguments.small), default_device(), []
    started = time.monotonic()
    if arguments.out:
        arguments.out.write_text("")

    def left() -> float:
        return 60 * arguments.minutes - (time.monotonic() - started)

    def say(line: str) -> None:
        print(line, flush=True)
        if arguments.out:
            with arguments.out.open("a") as file:
                file.write(line + "\n")

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    say(f"{name}; torch {torch.__version__}, transformers {transformers.__version__}")
    say(f"Encoder: {sizes.layers} layers of {sizes.hidden}, {sizes.tokenizer:,} entries.")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        loops.write_encoder(folder / "encoder", sizes.layers, sizes.hidden, sizes.tokenizer)
        # What is asked for most comes first; the compiled programs come last, because they take the longest.
        parts: dict[str, Callable[[], Iterator[str]]] = {
            "Training": lambda: speeds(folder, sizes, left, fit),
            "Constants of the cost estimate": lambda: constants(fit),
            "Lengths as they are": lambda: as_they_are(folder, sizes, left),
            "Repeating": lambda: repeats(folder, sizes, left),
            "An evaluation cell": lambda: cell(folder, sizes, left),
            "Cells one after another": lambda: cells(folder, sizes, left),
            "Runs together": lambda: together(folder, sizes, left),
            "Methods": lambda: methods(folder, sizes, left),
            "Steps that are not finite": lambda: not_finite(folder, sizes, left),
            "Training, compiled": lambda: compiled(folder, sizes, left),
        }
        for title, part in parts.items():
            say(f"\n## {title}\n")
            if left() < 0:
                say("Left out: the time was up.")
                continue
            try:
                for line in part():
                    say(line)
                    if left() < 0:
                        say("The rest is left out: the time was up.")
                        break
            except (subprocess.TimeoutExpired, multiprocessing.TimeoutError):
                say("The rest is left out: the time was up.")
            except Exception as error:
                # The other parts can still be measured, and the machine may be lent for minutes only.
                say(f"FAILED: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
    say(f"\n{(time.monotonic() - started) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
