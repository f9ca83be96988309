"""How long a step of a run takes in a group of runs that train together, against the same steps of runs that train alone.

The runs differ in their seeds. Encoders and data are drawn at random, with the sizes of the demo (named entities, 1,024
tokens a batch, no dropout), or as given. Steps of the group and of the runs alone take turns, so that other load on the
machine is shared by both. Evaluations are not timed: they are the same.

    python benchmarks/together.py [--method bitfit] [--runs 1 4 8 16] [--hidden 64] [--layers 2] [--steps 10] [--dropout 0]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.heads.encoding import IGNORED
from xlgrid.training import schedule
from xlgrid.training.loop import Loop
from xlgrid.training.recipe import Recipe
from xlgrid.training.together.group import Files, Group, Member

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def tokens(path: Path, vocabulary: int, rows: int = 2000) -> Path:
    """Write a tokens file of named entities, with lengths as in the demo."""
    rng = np.random.default_rng(1)
    ids = [[2, *rng.integers(5, vocabulary, length).tolist(), 3] for length in rng.integers(8, 19, rows)]
    labels = [[IGNORED, *rng.integers(0, len(LABELS), len(row) - 2).tolist(), IGNORED] for row in ids]
    facts = {
        "labels": LABELS,
        "head": "token",
        "pad_id": 1,
        "mask_id": 4,
        "special_ids": [1, 2, 3, 4],
        "vocabulary": vocabulary,
    }
    table = pa.table(
        {
            "input_ids": pa.array(ids, pa.list_(pa.int32())),
            "context_length": pa.array([len(row) for row in ids], pa.int32()),
            "labels": pa.array(labels, pa.list_(pa.int64())),
            "example": pa.array(range(rows), pa.int32()),
        }
    ).replace_schema_metadata({"xlgrid": json.dumps(facts)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def recipe(arguments: argparse.Namespace, seed: int, names: tuple[str, ...] = ()) -> Recipe:
    """The recipe of a run."""
    axes = {"study": "s", "task": "t", "kind": "token", "encoder": "e", "method": "m", "source": "en", "seed": seed}
    settings = {"steps": 10_000, "batch_tokens": 1024, "lr": 1e-3, "dropout": arguments.dropout}
    together = {"together": names}
    return Recipe.model_validate({**axes, **together, "base": arguments.method, "training": settings})


def steps(loops: list[Any], take: Callable[[dict[int, Any]], object]) -> Callable[[], None]:
    """A function that takes a step of each of some runs."""
    streams = [schedule.stream(each.train, each.settings, each.recipe.seed, each.plan) for each in loops]
    for loop in loops:
        loop.model.train()

    def step() -> None:
        take({number: next(stream) for number, stream in enumerate(streams)})

    return step


def seconds(take: Callable[[], None], count: int) -> float:
    """CPU-seconds of some steps."""
    before = time.process_time()
    for _ in range(count):
        take()
    return time.process_time() - before


def measure(arguments: argparse.Namespace, folder: Path, runs: int) -> tuple[float, float]:
    """Milliseconds of a step of a run alone and in a group, medians over the rounds, of a thread."""
    encoder, data = folder / "encoder", [folder / "tokens.arrow"]
    singles = [Loop(recipe(arguments, seed), encoder, data, data, folder / f"alone{seed}") for seed in range(runs)]
    names = tuple(f"m/en/{seed}" for seed in range(runs))
    members = [
        Member(recipe(arguments, seed, names), encoder, Files(data, data), folder / f"of{runs}-{seed}")
        for seed in range(runs)
    ]
    group = Group(members, folder / f"group{runs}")

    def one_by_one(chosen: dict[int, Any]) -> None:
        for number, rows in chosen.items():
            singles[number].advance(rows)

    ways = steps(singles, one_by_one), steps(members, group.advance)
    for way in ways:
        seconds(way, arguments.warm)
    times = [[seconds(way, arguments.steps) for way in ways] for _ in range(arguments.rounds)]
    alone, together = (
        1000 * statistics.median(row[at] for row in times) / arguments.steps / runs for at in range(len(ways))
    )
    return alone, together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="bitfit")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--warm", type=int, default=30, help="steps before, until memory of freed arrays serves new ones"
    )
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as name:
        folder, width, vocabulary = Path(name), arguments.hidden, 300
        torch.manual_seed(1)
        config = XLMRobertaConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            num_hidden_layers=arguments.layers,
            num_attention_heads=max(4, width // 64),
            intermediate_size=2 * width if width < 384 else 4 * width,
            max_position_embeddings=130,
            type_vocab_size=1,
        )
        XLMRobertaForMaskedLM(config).save_pretrained(folder / "encoder")
        tokens(folder / "tokens.arrow", vocabulary)
        print("runs  ms of a step of a run alone  together  ratio")
        for runs in arguments.runs:
            alone, together = measure(arguments, folder, runs)
            print(f"{runs:4}  {alone:28.2f}  {together:8.2f}  {together / alone:5.2f}", flush=True)


if __name__ == "__main__":
    main()
