"""Training steps of the loop beside those of transformers' Trainer: the same encoder, data, optimiser and examples a step.

    pip install accelerate          # which the Trainer needs
    python benchmarks/loop.py [--layers 6] [--hidden 384] [--vocabulary 21000] [--batch 16] [--steps 40] [--rounds 3]

The examples are as long as sentence pairs of XNLI: 8 to 128 tokens, 40 in the middle. The Trainer runs with random batches,
which is its default, and with `group_by_length`. The three take turns, and the median round of each counts. Each turn is a process
of its own, because the loop changes how its process allocates memory. Seconds are those of all threads of a CPU, and those
of a clock on a GPU. `benchmarks/gpu.py` measures with the functions of this file.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

from xlgrid.base.device import default_device
from xlgrid.data.tokenize import TokensFile
from xlgrid.heads import HEADS
from xlgrid.training import schedule
from xlgrid.training.compiled import Compile
from xlgrid.training.loop import Loop
from xlgrid.training.recipe import Recipe

# Ids of XLM-R's special tokens, and the first one of a word.
BEGIN, PAD, END, FIRST = 0, 1, 2, 5
LABELS = 3


class Measured(NamedTuple):
    """One way to train: seconds a step, tokens a step without padding, and the most memory of a GPU."""

    seconds: float
    tokens: float
    gibibytes: float


def write_encoder(folder: Path, layers: int, hidden: int, vocabulary: int) -> None:
    """An encoder with random weights in XLM-R's architecture."""
    config = XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64 or 1,
        intermediate_size=4 * hidden,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        num_labels=LABELS,
    )
    torch.manual_seed(1)
    XLMRobertaForSequenceClassification(config).save_pretrained(folder)


def xnli_lengths(number: int) -> list[int]:
    """The lengths of examples, in tokens."""
    drawn = np.random.default_rng(1).lognormal(np.log(40), 0.5, number)
    return drawn.round().astype(int).clip(8, 128).tolist()


def write_tokens(path: Path, lengths: list[int], vocabulary: int) -> list[dict[str, Any]]:
    """Write examples of these lengths as a tokens file, and return them as the Trainer takes them."""
    rng = np.random.default_rng(1)
    rows = [[BEGIN, *rng.integers(FIRST, vocabulary, length - 2).tolist(), END] for length in lengths]
    labels = rng.integers(LABELS, size=len(rows)).tolist()
    about = {"labels": ["a", "b", "c"], "head": "sequence", "pad_id": PAD, "mask_id": FIRST - 1}
    about |= {"special_ids": [BEGIN, PAD, END], "vocabulary": vocabulary}
    with TokensFile(path, HEADS["sequence"].fields(), about) as file:
        file.write({"input_ids": rows, "context_length": [len(row) // 2 for row in rows], "label": labels})
    return [{"input_ids": row, "labels": label} for row, label in zip(rows, labels, strict=True)]


def loop_of(folder: Path, batch: int, steps: int, base: str = "full-ft", **options: Any) -> Loop:
    """A run on `tokens.arrow` with the encoder in `folder`, before its first step."""
    names = {"study": "s", "task": "t", "kind": "xnli", "encoder": "e", "method": "m", "source": "en", "seed": 1}
    precision = "bf16" if torch.cuda.is_available() else "fp32"
    training = {"steps": steps, "batch_size": batch, "lr": 1e-5, "precision": precision}
    recipe = Recipe.model_validate({**names, "base": base, "options": options, "training": training})
    tokens = [folder / "tokens.arrow"]
    return Loop(recipe, folder / "encoder", tokens, tokens, folder / "run")


def steps_of_loop(
    folder: Path, batch: int, steps: int, warm: int = 3, compiled: bool = False, **method: Any
) -> Measured:
    """Train with the loop."""
    loop = loop_of(folder, batch, warm + steps, **method)
    loop.model.train()
    if compiled:
        Compile(True).complete(loop.model)
    ahead = list(islice(schedule.stream(loop.train, loop.settings, 1, loop.plan), warm + steps))
    for chosen in ahead[:warm]:
        loop.advance(chosen)
    with measuring(loop.device) as result:
        for chosen in ahead[warm:]:
            loop.advance(chosen)
    tokens = sum(int(loop.train.sizes[chosen].sum()) for chosen in ahead[warm:])
    return Measured(result["seconds"] / steps, tokens / steps, result["gibibytes"])


def steps_of_trainer(
    folder: Path,
    rows: list[dict[str, Any]],
    batch: int,
    steps: int,
    warm: int = 3,
    compiled: bool = False,
    sampling: str = "random",
) -> Measured:
    """Train with transformers' Trainer.

    Raises:
        ImportError: accelerate is not installed.
    """
    torch.manual_seed(1)
    model = XLMRobertaForSequenceClassification.from_pretrained(folder / "encoder")
    counted: list[int] = []
    marks: dict[str, Any] = {}

    def collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        lengths = [len(example["input_ids"]) for example in examples]
        counted.append(sum(lengths))
        ids = torch.full((len(examples), max(lengths)), PAD)
        for at, example in enumerate(examples):
            ids[at, : lengths[at]] = torch.tensor(example["input_ids"])
        labels = torch.tensor([example["labels"] for example in examples])
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == warm:
                marks["block"] = measuring(default_device())
                marks["result"] = marks["block"].__enter__()
            elif state.global_step == warm + steps:
                marks["block"].__exit__(None, None, None)

    settings = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=warm + steps,
        per_device_train_batch_size=batch,
        learning_rate=1e-5,
        warmup_steps=0.1,
        bf16=torch.cuda.is_available(),
        torch_compile=compiled,
        train_sampling_strategy=sampling,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1,
    )
    trainer = transformers.Trainer(model, settings, collate, rows, callbacks=[Clock()])
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    return Measured(marks["result"]["seconds"] / steps, statistics.mean(counted[warm:]), marks["result"]["gibibytes"])


@contextmanager
def measuring(device: torch.device) -> Iterator[dict[str, float]]:
    """Puts the seconds of a block, of a GPU's clock or of all threads of the CPU, and the peak memory of a GPU into a dictionary."""
    result: dict[str, float] = {}
    on_gpu = device.type == "cuda"
    clock: Callable[[], float] = time.perf_counter if on_gpu else time.process_time
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = clock()
    yield result
    if on_gpu:
        torch.cuda.synchronize()
    result["seconds"] = clock() - start
    result["gibibytes"] = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0


def in_new_process(act: Callable[[], Measured]) -> Measured:
    """Call a function in a process of its own, and return its result."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(act)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--vocabulary", type=int, default=21_000)
    parser.add_argument("--batch", type=int, default=16, help="examples of a step")
    parser.add_argument("--steps", type=int, default=40, help="of a round, beside three that do not count")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_encoder(folder / "encoder", arguments.layers, arguments.hidden, arguments.vocabulary)
        rows = write_tokens(folder / "tokens.arrow", xnli_lengths(64 * arguments.batch), arguments.vocabulary)
        trainer = partial(steps_of_trainer, folder, rows, arguments.batch, arguments.steps)
        work: dict[str, Callable[[], Measured]] = {
            "the loop": partial(steps_of_loop, folder, arguments.batch, arguments.steps),
            "Trainer": trainer,
            "Trainer, grouped by length": partial(trainer, sampling="group_by_length"),
        }
        rounds = [{label: in_new_process(act) for label, act in work.items()} for _ in range(arguments.rounds)]
    # An epoch's steps differ in their tokens, so rounds are compared by the seconds of a token.
    for label in work:
        each = [result[label].seconds / result[label].tokens for result in rounds]
        ratio = statistics.median(
            [
                result[label].seconds / result[label].tokens * result["the loop"].tokens / result["the loop"].seconds
                for result in rounds
            ]
        )
        print(f"{label:27} {1e6 * statistics.median(each):8.1f} µs a token  {ratio:5.2f} times the loop's", flush=True)


if __name__ == "__main__":
    main()
