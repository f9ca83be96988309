"""Beam search on a test set: a cell's evaluation against transformers' `generate` on the same model, in batches in the order of the data.

An encoder-decoder is trained on sentences of an artificial language and their translations, so that its hypotheses end where
sentences do. Both ways then search with the same beams, turn hypotheses into text, and compute BLEU.

Run from the repository root: python benchmarks/generation.py [--hidden 256 --layers 6 --steps 1500 --examples 4000]
A run that takes a minute: python benchmarks/generation.py --hidden 64 --layers 2 --steps 800 --examples 1000 --rounds 2
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
import torch
from transformers import AutoTokenizer

from xlgrid.base.device import default_device
from xlgrid.data import batches
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.data.vocabulary import make_vocabulary
from xlgrid.evaluation import trained
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.models import prediction
from xlgrid.study.encoders import ScratchEncoder
from xlgrid.training.loop import train
from xlgrid.training.pretraining import pretrain
from xlgrid.training.recipe import Recipe

PAIR = "qa1-qb1"
HEAD = HEADS["seq2seq"]
NAMES = {"study": "benchmark", "encoder": "e", "seed": 1}


def prepare(folder: Path, sizes: argparse.Namespace) -> tuple[Any, Tokens]:
    """A trained model, and the tokens of its test set."""
    shape = {name: getattr(sizes, name) for name in ("hidden", "layers")}
    shape |= {"heads": max(2, sizes.hidden // 64), "intermediate": 4 * sizes.hidden, "vocab": 800}
    scratch = {"kind": "xlmr", "languages": PAIR.split("-"), **shape}
    entry = ScratchEncoder(scratch=scratch, training={"steps": 10, "batch_size": 8, "evaluations": 1})
    texts = {code: folder / f"{code}.parquet" for code in PAIR.split("-")}
    tokens: dict[str, list[Path]] = {"train": [], "dev": []}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=1000))
    make_vocabulary(entry.own_vocabulary, [*texts.values()], folder / "vocabulary")
    for split, files in tokens.items():
        for code, path in texts.items():
            files.append(folder / f"{code}-{split}.arrow")
            tokenize([path], folder / "vocabulary", "mlm", 128, files[-1], split=split)
    recipe = {**NAMES, "task": "pretraining", "kind": "mlm", "method": "full-ft", "base": "full-ft"}
    recipe |= {"source": entry.scratch.source, "training": entry.pretraining, "scratch": entry.scratch}
    pretrain(Recipe.model_validate(recipe), folder / "vocabulary", *tokens.values(), folder / "encoder")

    make_meanings("translation", {"n": sizes.examples}, folder / "meanings.parquet")
    make_data("translation", {"n": sizes.examples}, PAIR, folder / "meanings.parquet", folder / "data")
    for split in ("train", "dev", "test"):
        data, out = folder / f"data/{split}.parquet", folder / f"{split}.arrow"
        tokenize([data], folder / "encoder", "translation", 128, out)
    recipe = {**NAMES, "task": "mt", "kind": "translation", "method": "m", "base": "seq2seq", "source": PAIR}
    recipe["options"] = {"init": "self", "longest": sizes.longest}
    recipe["training"] = {"steps": sizes.steps, "batch_tokens": 2048, "lr": 1e-3, "evaluations": 1}
    dev = [folder / "dev.arrow"]
    train(Recipe.model_validate(recipe), folder / "encoder", [folder / "train.arrow"], dev, folder / "run")
    test = batches.read(folder / "test.arrow", PAIR)
    model = trained.model_of(trained.read(folder / "run"), folder / "encoder", test)
    return model.eval().to(default_device()), test


def ours(model: Any, test: Tokens, budget: int) -> float:
    """BLEU as a cell has it."""
    run = trained.make("seq2seq", {})
    return HEAD.all_metrics[0].score(prediction.outcomes_on(model, run, test, budget))


@torch.inference_mode()
def plain(model: Any, test: Tokens, budget: int) -> float:
    """BLEU by transformers and sacrebleu, of batches of about as many tokens in the order of the data."""
    tokenizer = AutoTokenizer.from_pretrained(model.tokenizer_file.parent)
    rows = max(1, budget // int(test.lengths.max()))
    hypotheses: list[str] = []
    for start in range(0, len(test), rows):
        chosen = np.arange(start, min(start + rows, len(test)))
        batch = HEAD.collate(test, chosen, False, model.device)
        sequences = model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_start_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        hypotheses += tokenizer.batch_decode(sequences, skip_special_tokens=True)
    return float(sacrebleu.corpus_bleu(hypotheses, [test.columns["reference"].to_pylist()]).score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("hidden", 256), ("layers", 6), ("steps", 1500), ("examples", 4000), ("longest", 60)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--budget", type=int, default=2048, help="tokens at once, padding and targets included")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of so many is reported")
    sizes = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model, test = prepare(Path(name), sizes)
        ways: dict[str, Callable[..., float]] = {"xlgrid": ours, "transformers": plain}
        seconds = dict.fromkeys(ways, float("inf"))
        scores = {}
        for _ in range(sizes.rounds):
            for way, score in ways.items():
                start = time.perf_counter()
                scores[way] = score(model, test, sizes.budget)
                seconds[way] = min(seconds[way], time.perf_counter() - start)
    beams = model.generation_config.num_beams
    print(f"{len(test):,} sentences, {beams} beams, {sum(p.numel() for p in model.parameters()):,} parameters")
    for way in ways:
        print(f"{way}: {seconds[way]:.2f} s, {len(test) / seconds[way]:.1f} sentences a second, BLEU {scores[way]:.2f}")
    print(f"xlgrid is {seconds['transformers'] / seconds['xlgrid']:.2f} times as fast")


if __name__ == "__main__":
    main()
