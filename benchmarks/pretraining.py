"""Memory of pre-training beside its model: `python benchmarks/pretraining.py [--gigabytes 2] [--length 512] [--steps 20]`.

The tokens of generated text, in inputs of equal length, are written for four languages of unequal sizes; a byte-pair token of
XLM-R has 4.5 bytes of text. Inputs of 512 tokens are packed documents, and inputs of 24 tokens are sentences. An encoder is
pre-trained on them for some steps with `alpha`, stopped and resumed.
Memory that a process holds beside mapped files (`RssAnon`) counts, less that of the same training on a thousandth of the text.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import TokensFile
from xlgrid.data.tokenizer import TrainedTokenizer, make_tokenizer, specials

BYTES = 4.5
# The inputs that are written at once, and again and again.
ROWS = 2000
# The share of the text of each language.
LANGUAGES = {"en": 0.5, "fr": 0.25, "de": 0.15, "ru": 0.1}
# In a process of its own, which reports the most memory that it has had after a step, in MB.
TRAINED = """
import sys
from pathlib import Path
from xlgrid.training import loop, pretraining
from xlgrid.training.recipe import Recipe
folder, steps, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
codes = ["en", "fr", "de", "ru"]
scratch = {"languages": codes, "max_length": 512, "hidden": 128, "layers": 2}
training = {"steps": steps, "batch_size": 32, "alpha": 0.7, "evaluations": 1, "checkpoint_seconds": 5, "micro_batch_tokens": 4096}
names = {"study": "s", "task": "t", "kind": "mlm", "encoder": "e", "method": "full-ft", "base": "full-ft", "source": "+".join(codes)}
recipe = Recipe.model_validate({**names, "seed": 1, "training": training, "scratch": scratch})
advance, most = loop.Loop.advance, 0.0
def measured(self, chosen):
    global most
    if self.step == stop:
        raise loop.Stopped
    losses = advance(self, chosen)
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    most = max(most, int(status["RssAnon"].split()[0]) / 1024)
    return losses
loop.Loop.advance = measured
files = [[folder / f"{code}-{split}.arrow" for code in codes] for split in ("train", "dev")]
try:
    pretraining.pretrain(recipe, folder / "tokenizer", *files, folder / "encoder")
finally:
    print(most)
"""


def write_tokens(path: Path, inputs: int, length: int, tokens: dict[str, int], size: int) -> None:
    """A tokens file of text, as random as words are: ids near 0 are frequent."""
    rng = np.random.default_rng(1)
    about = {"labels": [], "head": "mlm", "pad_id": tokens["pad"], "mask_id": tokens["mask"]}
    about |= {"special_ids": [*tokens.values()], "vocabulary": size}
    ids = (rng.beta(0.5, 3, (ROWS, length)) * (size - 10)).astype(np.int32) + 5
    ids[:, 0], ids[:, -1] = tokens["cls"], tokens["sep"]
    with TokensFile(path, [], about) as file:
        columns = [pa.array([*ids], pa.list_(pa.int32())), pa.array([length] * ROWS, pa.int32())]
        for start in range(0, inputs, ROWS):
            batch = pa.record_batch(columns, schema=file.schema)
            file.writer.write_batch(batch.slice(0, inputs - start))


def peak(arguments: list[str], status: int) -> float:
    """The memory that a training has reported, which has to end with a status."""
    ended = subprocess.run([sys.executable, "-c", TRAINED, *arguments], capture_output=True, text=True)
    if ended.returncode != status:
        raise SystemExit(f"a training ended with status {ended.returncode} instead of {status}:\n{ended.stderr}")
    return float(ended.stdout)


def measure(folder: Path, gigabytes: float, length: int, steps: int) -> tuple[float, float, float]:
    """The MB of a training and of its continuation after a stop, and the seconds until the continuation has begun and ended."""
    folder.mkdir()
    make_text("en", folder / "en.parquet", TextSettings(sentences=500))
    make_tokenizer(TrainedTokenizer(languages=("en",)), [folder / "en.parquet"], folder / "tokenizer")
    ids = json.loads((folder / "tokenizer" / "tokenizer.json").read_text())["model"]["vocab"]
    tokens = {role: ids[token] for role, token in specials("bert").items()}
    for code, share in LANGUAGES.items():
        inputs = int(share * gigabytes * 1e9 / BYTES / length)
        write_tokens(folder / f"{code}-train.arrow", inputs, length, tokens, len(ids))
        write_tokens(folder / f"{code}-dev.arrow", 20, length, tokens, len(ids))
    peaks = []
    for stop, status in ((steps // 2, os.EX_TEMPFAIL), (steps + 1, 0)):
        began = time.monotonic()
        peaks.append(peak([str(folder), str(steps), str(stop)], status))
    return peaks[0], peaks[1], time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of text")
    parser.add_argument("--length", type=int, default=512, help="tokens of an input")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small, large = (
            measure(Path(name) / str(size), size, arguments.length, arguments.steps)
            for size in (arguments.gigabytes / 1000, arguments.gigabytes)
        )
    for what, before, after in zip(("begun", "resumed"), small, large, strict=False):
        print(f"{what:8} {after:7.0f} MB, of which {after - before:5.0f} MB for {arguments.gigabytes:g} GB of text")
    print(f"the resumed half took {large[2]:.0f} s, {small[2]:.0f} s with little text")


if __name__ == "__main__":
    main()
