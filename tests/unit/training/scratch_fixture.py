"""A tiny encoder for tests, pre-trained for a few steps, and the recipe and tokens of its pre-training."""

import json
import os
import signal

import forked

from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.data.tokenizer import make_tokenizer
from xlgrid.study.encoders import ScratchEncoder
from xlgrid.training.pretraining import pretrain as pretrain_on_tokens
from xlgrid.training.recipe import Recipe

TINY = {"vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
RESULTS = ("config.json", "model.safetensors", "tokenizer.json", "curve.jsonl", "step4.safetensors")
# Pre-trains in a process that kills itself at an optimiser step, as a node that dies would.
KILLED = """
import os, signal, sys
from pathlib import Path
from xlgrid.training import loop, pretraining
from xlgrid.training.recipe import Recipe
recipe, tokenizer, train, dev, folder, at, number, *begin = sys.argv[1:]
advance = loop.Loop.advance
def doomed(self, chosen):
    if self.step == int(at):
        os.kill(os.getpid(), int(number))
    return advance(self, chosen)
loop.Loop.advance = doomed
files = [[Path(path) for path in paths.split(",")] for paths in (train, dev)]
pretraining.pretrain(Recipe.model_validate_json(recipe), Path(tokenizer), *files, Path(folder), *map(Path, begin))
"""
NAMES = {"study": "s", "task": "pretraining", "kind": "mlm", "encoder": "e", "method": "full-ft", "base": "full-ft"}


def recipe(scratch, **training):
    entry = ScratchEncoder(scratch=scratch, training={"steps": 3, "batch_size": 4, "evaluations": 1} | training)
    fields = {"source": scratch.source, "seed": scratch.seed, "training": entry.pretraining, "scratch": scratch}
    return Recipe.model_validate(NAMES | fields)


def inputs(scratch, texts, out):
    """A tokenizer, and the tokens of train and dev for each part, beside the folder `out` of an encoder."""
    tokenizer = out.with_name(f"{out.name}-tokenizer")
    make_tokenizer(ScratchEncoder(scratch=scratch).own_tokenizer, [*texts.values()], tokenizer)
    files = []
    for split in ("train", "dev"):
        parts = scratch.source.split("+")
        files.append([out.with_name(f"{out.name}-{part}-{split}.arrow") for part in parts])
        for part, path in zip(parts, files[-1], strict=True):
            of_part = [texts[code] for code in part.split("-")]
            tokenize(of_part, tokenizer, "mlm", scratch.max_length, path, split=split, lines="segments")
    return tokenizer, *files


def pretrain(scratch, texts, out, **training):
    """An encoder and, beside it, its own tokenizer and tokens."""
    pretrain_on_tokens(recipe(scratch, **training), *inputs(scratch, texts, out), out)


def texts_of(folder, languages=("en", "fr"), **settings):
    """Texts of the languages, by language."""
    folder.mkdir(exist_ok=True)
    texts = {language: folder / f"{language}.parquet" for language in languages}
    for language, path in texts.items():
        make_text(language, path, TextSettings(**{"sentences": 60, "seed": 0, **settings}))
    return texts


def encoder_of(folder, kind, **more):
    """A tiny encoder of English and French in a folder, whose name is its kind."""
    scratch = ScratchEncoder(
        scratch={"kind": kind, "languages": ("en", "fr"), "bitext": (("en", "fr"),), **TINY, **more}
    ).scratch
    pretrain(scratch, texts_of(folder), folder / kind)
    return folder / kind


def killed(encoder_recipe, files, folder, at, number, *begin):
    """The end of a process that pre-trains in a folder, and that gets a signal before the optimiser step after step `at`.

    `begin` may have the encoder with which it begins.
    """
    tokenizer, *splits = files
    train, dev = (",".join(map(str, paths)) for paths in splits)
    return forked.python(
        KILLED, encoder_recipe.model_dump_json(), tokenizer, train, dev, folder, at, int(number), *begin
    )


def contents(folder):
    """The results of a pre-training by name, without the seconds that it took."""
    results = {name: (folder / name).read_bytes() for name in RESULTS}
    lines = [json.loads(line) for line in results["curve.jsonl"].splitlines()]
    return results | {"curve.jsonl": repr([line | {"seconds": 0} for line in lines]).encode()}


def killed_twice(encoder_recipe, files, folder):
    """The folder of an encoder whose pre-training is not interrupted. One that is killed twice leaves the same bytes."""
    whole, resumed = folder / "whole", folder / "resumed"
    pretrain_on_tokens(encoder_recipe, *files, whole)
    for at, number, status in ((3, signal.SIGKILL, -signal.SIGKILL), (6, signal.SIGTERM, os.EX_TEMPFAIL)):
        ended = killed(encoder_recipe, files, resumed, at, number)
        assert ended.returncode == status, ended.stderr
        assert not (resumed / "model.safetensors").exists()
    pretrain_on_tokens(encoder_recipe, *files, resumed)
    assert contents(resumed) == contents(whole)
    assert not (resumed / "state.pt").exists()
    return whole
