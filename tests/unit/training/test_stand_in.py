"""Every head, method and architecture trains, resumes and is evaluated on a device that is not the CPU, with few waits."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, inputs, texts_of
from scratch_fixture import recipe as recipe_of_encoder
from stand_in import DEVICE, stand_in, waits
from test_loop import recipe

from xlgrid.architectures.scratch import ALL_ARCHITECTURES, architecture_of
from xlgrid.data import generated
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import cell
from xlgrid.heads import ALL_HEADS, Head
from xlgrid.heads.probe import head_problem
from xlgrid.methods import ALL_METHODS, make
from xlgrid.models.fit import misfit_of_method
from xlgrid.models.prediction import outcomes_on
from xlgrid.tasks import ALL_TASKS, task
from xlgrid.training.loop import Loop, Stopped
from xlgrid.training.pretraining import Pretraining
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

LANGUAGES, NATURAL = ("qa1", "qb1"), ("en", "fr")
STEPS, LENGTH = 4, 256
SCRATCH: dict[str, dict[str, Any]] = {"bert": {"kind": "bert", "nsp": True, "languages": NATURAL}}
SCRATCH |= {"xlm": {"kind": "xlmr", "objective": "mlm+tlm"}}
SCRATCH |= {name: {"kind": "xlmr", "architecture": name} for name in ALL_ARCHITECTURES.names()}
# A task of each head, whose data can be generated in artificial languages, or are text.
KINDS = {
    each.head.name: kind
    for kind in reversed(ALL_TASKS.names())
    if (each := task(kind)).generator is None or each.generator.speaks("qa1")
}
HEADS = [ALL_HEADS.find(name) for name in ALL_HEADS.names()]
# The head that a method is for, where it is for one, and options with which generation is short.
OF_METHOD = {"seq2seq": "seq2seq"}
OPTIONS = {"seq2seq": {"longest": 6, "beams": 2}, "plug-in": {"parallel": LANGUAGES[1]}}
TRAINED = [head for head in HEADS if head.is_trained]
METHODS = [name for name in ALL_METHODS.names() if ALL_METHODS.find(name).is_trained]


# A parser chooses the trees on the CPU, and then the relations.
MORE_OF_BATCH = {"parse": 2}
# Each token of a hypothesis waits for the one before.
GENERATING = {"seq2seq"}


def base_of(head: Head) -> str:
    return next((base for base, name in OF_METHOD.items() if name == head.name and base in METHODS), "full-ft")


class World:
    """Encoders of two artificial languages, and tokens of the data of each head, made on the CPU when a test needs them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.texts = folder, texts_of(folder / "texts", LANGUAGES)
        self.texts |= texts_of(folder / "natural", NATURAL, options={"statements": 2})
        self.files: dict[str, tuple[Path, list[list[Path]]]] = {}
        for name in SCRATCH:
            trained(lambda name=name: self.pretraining(name, folder / name))  # type: ignore[misc]

    def pretraining(self, name: str, folder: Path) -> Loop:
        """The pre-training of an encoder, before its first step."""
        fields = {"languages": LANGUAGES, **TINY, "layers": 2, "dropout": 0.0, **SCRATCH[name]}
        pairs = {} if name == "xmod" else {"bitext": [fields["languages"]]}
        scratch = architecture_of(fields | pairs)
        if name not in self.files:
            tokenizer, *files = inputs(
                scratch, {code: self.texts[code] for code in fields["languages"]}, self.folder / name
            )
            self.files[name] = tokenizer, files
        tokenizer, files = self.files[name]
        settings = {"steps": STEPS, "batch_size": 8, "evaluations": 2}
        return Pretraining(recipe_of_encoder(scratch, **settings), tokenizer, *files, folder)

    def tokens(self, head: str, split: str, name: str, language: str, parallel: str | None = None) -> Path:
        """Tokens of a split of the data of a head, for an encoder."""
        kind, described = KINDS[head], task(KINDS[head])
        out = self.folder / f"{name}-{kind}-{language}~{parallel}-{split}.arrow"
        if out.exists():
            return out
        if described.generator:
            data = [self.data(kind, language) / f"{each}.parquet" for each in described.head.splits(split)]
            data += [self.data(kind, parallel) / f"{split}.parquet"] if parallel else []
            tokenize(data, self.files[name][0], kind, LENGTH, out)
        else:
            tokenize([self.texts[language]], self.files[name][0], kind, LENGTH, out, split=split)
        return out

    def data(self, kind: str, language: str) -> Path:
        folder, meanings = self.folder / f"{kind}-{language}", self.folder / f"{kind}.parquet"
        if not folder.exists():
            folder.mkdir()
            generated.make_meanings(kind, {"n": 60}, meanings)
            generated.make_data(kind, {"n": 60}, language, meanings, folder)
        return folder

    def run(self, head: str, base: str, folder: Path) -> Loop:
        """A run before its first step, on the first encoder that fits."""
        name, language = self.encoder(head, base), self.language(head, base)
        parallel = make(base, OPTIONS.get(base, {})).parallel_language
        train, dev = ([self.tokens(head, split, name, language, parallel)] for split in ("train", "dev"))
        fields = recipe(base, steps=STEPS, evaluations=2, dropout=0.0, checkpoint_seconds=3600).model_dump()
        own = {"source": language, "options": OPTIONS.get(base, {})}
        return Loop(Recipe.model_validate(fields | own), self.folder / name, train, dev, folder)

    def encoder(self, head: str, base: str) -> str:
        """The first encoder that fits a head and a method."""
        found, method = ALL_HEADS.find(head), make(base, OPTIONS.get(base, {}))
        for name in SCRATCH:
            config = json.loads((self.folder / name / "config.json").read_text())
            if not head_problem(found.described(config), found) and not misfit_of_method(config, method, found):
                return name
        raise LookupError(f"no encoder fits {head} and {base}")

    def language(self, head: str, base: str) -> str:
        """A pair if the head and the method have pairs."""
        found = ALL_HEADS.find(head)
        has_pairs = found.second(task(KINDS[head])) and not make(base, OPTIONS.get(base, {})).parallel_language
        return "-".join(LANGUAGES) if has_pairs and self.encoder(head, base) != "xmod" else LANGUAGES[0]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


class Stop:
    """Asks a run to stop before a step."""

    def __init__(self, loop: Loop, at: int | None) -> None:
        self.loop, self.at = loop, at

    def __bool__(self) -> bool:
        return self.loop.step == self.at


def trained(begin: Callable[[], Loop], at: int | None = None) -> Loop:
    """Train to the end; before the step after step `at`, stop and resume."""
    loop = begin()
    try:
        loop.go(Stop(loop, at))  # type: ignore[arg-type]
    except Stopped:
        loop.save()
        return trained(begin)
    loop.finish()
    return loop


def curve(folder: Path) -> list[float]:
    """The losses and scores of a run."""
    lines = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return [line[name] for line in lines for name in ("loss", "score")]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / ("delta.safetensors" if (folder / "delta.safetensors").exists() else "model.safetensors"))


def check(begin: Callable[[Path], Loop], folder: Path) -> Loop:
    """Train on the CPU, and on the device, once through and once interrupted; returns the last part of the last one."""
    trained(lambda: begin(folder / "cpu"))
    with stand_in():
        loop = trained(lambda: begin(folder / "there"))
        assert {p.device for p in loop.model.parameters()} == {DEVICE}
        last = trained(lambda: begin(folder / "resumed"), at=STEPS - 1)
    # The CPU has another kernel of attention, whose sums are in another order.
    assert curve(folder / "there") == pytest.approx(curve(folder / "cpu"), rel=1e-4)
    whole, resumed = weights(folder / "there"), weights(folder / "resumed")
    assert whole.keys() == resumed.keys() == weights(folder / "cpu").keys()
    assert [name for name in whole if not torch.equal(whole[name], resumed[name])] == []
    assert json.loads((folder / "there" / "run.json").read_text())["device"].startswith(DEVICE.type)
    return last


@pytest.mark.parametrize("name", SCRATCH)
def test_an_encoder_of_each_architecture_is_pretrained_as_on_the_cpu(name: str, world: World, tmp_path: Path) -> None:
    check(lambda folder: world.pretraining(name, folder), tmp_path)


def cells(world: World, head: Head, base: str, run: Path | None, out: Path) -> list[dict[str, Any]]:
    """A cell, computed on the CPU and on the device."""
    name, language = world.encoder(head.name, base), world.language(head.name, base)
    tokens = world.tokens(head.name, "test", name, language)
    of_cell = {"study": "s", "task": "t", "encoder": "e", "method": "m", "seed": 1, "target": language}
    written = []
    for place in (nullcontext(), stand_in()):
        with place:
            if run:
                cell.evaluate(run, world.folder / name, tokens, of_cell, out)
            else:
                cell.evaluate_bare(of_cell | {"source": "none"}, world.folder / name, tokens, out)
        written.append(json.loads(out.read_text()))
    return written


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.name)
def test_each_head_trains_resumes_and_is_evaluated(head: Head, world: World, tmp_path: Path) -> None:
    base = base_of(head)
    if head.is_trained:
        check(lambda folder: world.run(head.name, base, folder), tmp_path)
    if head.has_cells:
        here, there = cells(world, head, base, tmp_path / "there" if head.is_trained else None, tmp_path / "cell.json")
        assert there["device"].startswith(DEVICE.type)
        assert here["scores"] == pytest.approx(there["scores"], rel=0.01)


@pytest.mark.parametrize("base", [base for base in METHODS if base not in OF_METHOD])
def test_each_method_trains_and_resumes(base: str, world: World, tmp_path: Path) -> None:
    check(lambda folder: world.run("sequence", base, folder), tmp_path)


def waits_of_step(begin: Callable[[], Loop]) -> tuple[Counter[str], Counter[str]]:
    """What the CPU waits for in a step of one part, and in the evaluation of one batch."""
    with stand_in():
        loop = begin()
        loop.model.train()
        loop.advance(np.arange(3))
        with waits() as of_step:
            loop.advance(np.arange(3))
        dev = loop.dev_sets[0].take(np.arange(2))
        with waits() as of_batch:
            outcomes_on(loop.model, loop.method, dev, 10**6, head=loop.head)
    return of_step, of_batch


@pytest.mark.parametrize("head", TRAINED, ids=lambda head: head.name)
def test_a_step_and_a_batch_wait_rarely(head: Head, world: World, tmp_path: Path) -> None:
    """The loss and the norm of the gradients are read, one step later, and the predictions."""
    of_step, of_batch = waits_of_step(lambda: world.run(head.name, base_of(head), tmp_path))
    assert of_step.total() == 1, of_step
    assert head.name in GENERATING or of_batch.total() == 1 + MORE_OF_BATCH.get(head.name, 0), of_batch


@pytest.mark.parametrize("base", [base for base in METHODS if base not in OF_METHOD])
def test_a_step_and_a_batch_of_each_method_wait_rarely(base: str, world: World, tmp_path: Path) -> None:
    of_step, of_batch = waits_of_step(lambda: world.run("sequence", base, tmp_path))
    assert of_step.total() == of_batch.total() == 1, (of_step, of_batch)


@pytest.mark.parametrize("name", SCRATCH)
def test_a_step_of_pretraining_waits_rarely(name: str, world: World, tmp_path: Path) -> None:
    """The losses are read together. An mBART makes the padding mask of its decoder itself, and asks for it."""
    of_step, of_batch = waits_of_step(lambda: world.pretraining(name, tmp_path))
    assert of_step.total() == of_batch.total() == (2 if name == "mbart" else 1), (of_step, of_batch)
