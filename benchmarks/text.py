"""Memory and time of text from a file to batches, by size: `python benchmarks/text.py [--megabytes 10 40]`.

A text of random words, in lines as long as Wikipedia's articles and one of 2 MB, is read, cut into inputs of
256 tokens without a loss, tokenised without the long line as if it were two parallel texts, and trained on for 100 steps
(without an encoder).
Each step runs in a process of its own, whose peak of memory should not depend on the size of the text; of batches, memory
that is not the mapped file counts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ARTICLE = 2500
# In a process of its own too, because a process starts with the peak of the one that it comes from.
VOCABULARY = """
from xlgrid.data.vocabulary import TrainedVocabulary, make_vocabulary
from xlgrid.data.text import TextSettings, make_text
make_text("en", "en.parquet", TextSettings(sentences=500))
make_vocabulary(TrainedVocabulary(languages=("en",)), ["en.parquet"], "vocabulary")
"""
STEPS = {
    "text": """
from xlgrid.data.text import TextSettings, make_text
make_text("qa1", "text.parquet", TextSettings(files={"qa1": "text.txt"}))
""",
    "tokens": """
from xlgrid.data.tokenize import tokenize
tokenize(["text.parquet"], "vocabulary", "mlm", 256, "train.arrow", split="train", documents="split")
""",
    "pairs": """
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
make_text("qa1", "pair.parquet", TextSettings(files={"qa1": "pair.txt"}))
tokenize(["pair.parquet", "pair.parquet"], "vocabulary", "mlm", 256, "pairs.arrow", split="train")
""",
    "batches": """
from itertools import islice
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.training import schedule
from xlgrid.training.recipe import Training
import numpy as np, torch
def held():
    return int(open("/proc/self/status").read().partition("RssAnon:")[2].split()[0])
before = held()
tokens = batches.read("train.arrow")
settings = Training.model_validate({"steps": 100})
for chosen in islice(schedule.stream(tokens, settings, 1, schedule.plan(tokens, settings, 1)), 100):
    HEADS["mlm"].collate(tokens, chosen, False)
print(f"{len(tokens):,} inputs, {len(tokens.values):,} tokens, {(held() - before) / 1024:.0f} MB beside the libraries")
""",
}


def write_text(path: Path, megabytes: int) -> None:
    """Words whose frequencies are as Zipf has them, of a vocabulary of 50,000."""
    rng = np.random.default_rng(megabytes)
    letters = rng.choice(list("abcdefghijklmnopqrstuvwxyzåäöéß"), (50_000, 12))
    words = ["".join(row[:length]) for row, length in zip(letters, rng.integers(2, 12, 50_000), strict=True)]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 10**6:
            drawn = rng.zipf(1.3, 200_000) % len(words)
            said = " ".join([words[at] for at in drawn])
            cuts = range(0, len(said), ARTICLE)
            file.writelines(said[cut : cut + ARTICLE] + "\n" for cut in cuts)
        file.write(" ".join(words[:ARTICLE]) * 100 + "\n")


def measured(code: str, folder: Path) -> tuple[float, int]:
    """Seconds and the most memory, in MB, of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a step failed with status {process.returncode}:\n{code}")
    return time.perf_counter() - start, used.ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[10, 40])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured(VOCABULARY, folder)
        for megabytes in arguments.megabytes:
            write_text(folder / "text.txt", megabytes)
            *lines, _ = (folder / "text.txt").read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / "pair.txt").write_text("".join(lines), encoding="utf-8")
            for step, code in STEPS.items():
                seconds, most = measured(code, folder)
                print(f"{megabytes:5} MB  {step:8} {seconds:7.1f} s {most:6} MB at most", flush=True)


if __name__ == "__main__":
    main()
