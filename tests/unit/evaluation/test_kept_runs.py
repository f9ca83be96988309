"""Cells of runs that share an encoder in unlike ways, in turn in one process, are those of `xlgrid evaluate` alone."""

import json
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import forked
import pytest
from test_stand_in import LANGUAGES, World

from xlgrid.products.evaluate import Cell
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

# The order of the cells, several of each run.
ROUNDS = 2
# Runs `xlgrid evaluate` in a process that serves the executor, once for each line of words.
SERVE = """
import json, sys
from xlgrid import cli
for words in map(json.loads, sys.argv[1:]):
    status = cli.serve(words)
    assert not status, (status, words)
"""
ALONE = """
import json, sys
from xlgrid import cli
[words] = map(json.loads, sys.argv[1:])
sys.argv[1:] = words
cli.main()
"""
TIMES = re.compile(r'"(?:cpu_)?seconds": [^,\n]+|"command": "[^\n]+')


class Evaluated(NamedTuple):
    """A run, and a target on which it is evaluated, with the target's MLM run; without a run, an encoder as it is."""

    encoder: str
    head: str
    run: str | None
    target: str
    mlm_run: str | None = None
    parallel: str | None = None


class Runs:
    """Runs on encoders of each architecture: adapters and added languages with MLM runs, both streams of VECO, decoders."""

    def __init__(self, world: World) -> None:
        self.world, self.folder = world, world.folder
        # The languages that X-MOD adds have no modules in the encoder.
        for text in ("en", "fr"):
            self.run(f"xmod-{text}", "xmod", "mlm", "xmod", text, tune="language")
        for text in LANGUAGES:
            self.run(f"madx-{text}", "bert", "mlm", "madx", text, tune="language")
            self.run(f"veco-madx-{text}", "veco", "mlm", "madx", text, tune="language")
        first, second = LANGUAGES
        self.run("madx", "bert", "sequence", "madx", first, start=f"madx-{first}")
        self.run("veco-madx", "veco", "sequence", "madx", first, start=f"veco-madx-{first}")
        for encoder in ("bert", "xmod", "veco", "mbart"):
            self.run(f"{encoder}-full", encoder, "sequence", "full-ft", first)
        self.run("xmod", "xmod", "sequence", "xmod", first)
        self.run("plug-in", "veco", "sequence", "plug-in", first, parallel=second)
        pair = "-".join(LANGUAGES)
        self.run("translation", "mbart", "seq2seq", "full-ft", pair)
        self.run("decoder", "bert", "seq2seq", "seq2seq", pair, longest=6, beams=2)

    def run(
        self, name: str, encoder: str, head: str, base: str, source: str, start: str | None = None, **options: Any
    ) -> None:
        parallel = options.get("parallel")
        train_on, dev = ([self.tokens(encoder, head, split, source, parallel)] for split in ("train", "dev"))
        names = {"study": "s", "task": head, "kind": "ruletaker", "encoder": encoder, "method": name, "base": base}
        training = {"steps": 3, "batch_size": 8, "lr": 0.02, "evaluations": 1, "keep": "last"}
        fields = names | {"source": source, "seed": 1, "options": options, "training": training}
        fields |= {"start": {"task": "mlm", "method": "text"}} if start else {}
        first = self.folder / start if start else None
        train(Recipe.model_validate(fields), self.folder / encoder, train_on, dev, self.folder / name, first)

    def tokens(self, encoder: str, head: str, split: str, language: str, parallel: str | None = None) -> Path:
        # Data of a task are in artificial languages; the module of X-MOD follows from the name of the target.
        is_text = head in ("mlm", "perplexity")
        language = language if is_text or language in self.world.files["xmod"] or "-" in language else LANGUAGES[0]
        return self.world.tokens(head, split, encoder, language, parallel)

    def words(self, cell: Evaluated, out: Path) -> list[str]:
        """The command line of a cell with a file in a folder, without the name of the program."""
        tokens = self.tokens(cell.encoder, cell.head, "test", cell.target, cell.parallel)
        source = (
            json.loads((self.folder / cell.run / "run.json").read_text())["recipe"]["source"] if cell.run else "none"
        )
        path = Cell("s", cell.head, cell.encoder, cell.run or "as-is", source, cell.target, 1).path
        words = ["evaluate", f"--encoder={self.folder / cell.encoder}", f"--tokens={tokens}"]
        places = [str(self.folder / name) for name in (cell.run, cell.mlm_run) if name]
        return [*words, f"--output={out / path}", *places]


FIRST, SECOND = LANGUAGES
CELLS = [
    *(Evaluated("bert", "sequence", "madx", code, f"madx-{code}") for code in LANGUAGES),
    Evaluated("bert", "sequence", "bert-full", SECOND),
    Evaluated("bert", "seq2seq", "decoder", f"{FIRST}-{SECOND}"),
    Evaluated("bert", "perplexity", None, FIRST),
    *(Evaluated("xmod", "sequence", "xmod", code, f"xmod-{code}") for code in ("en", "fr")),
    Evaluated("xmod", "sequence", "xmod", SECOND),
    Evaluated("xmod", "sequence", "xmod-full", FIRST),
    Evaluated("xmod", "perplexity", None, SECOND),
    *(Evaluated("veco", "sequence", "veco-madx", code, f"veco-madx-{code}") for code in LANGUAGES),
    Evaluated("veco", "sequence", "plug-in", FIRST, parallel=SECOND),
    Evaluated("veco", "sequence", "veco-full", FIRST),
    Evaluated("mbart", "sequence", "mbart-full", FIRST),
    Evaluated("mbart", "seq2seq", "translation", f"{FIRST}-{SECOND}"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(World(tmp_path_factory.mktemp("world")))


def contents(folder: Path) -> str:
    """The contents of the only cell in a folder, without its times."""
    [file] = folder.rglob("*.json")
    return TIMES.sub("", file.read_text())


def served(runs: Runs, cells: list[Evaluated], folder: Path) -> list[str]:
    """The files that one process writes for cells, one after another."""
    folders = [folder / f"served-{number}" for number in range(len(cells))]
    ended = forked.python(
        SERVE, *(json.dumps(runs.words(*each)) for each in zip(cells, folders, strict=True)), timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    return [*map(contents, folders)]


def test_cells_of_each_way_of_sharing_in_turn_are_those_of_commands_alone(runs: Runs, tmp_path: Path) -> None:
    alone = {}
    for number, cell in enumerate(CELLS):
        folder = tmp_path / f"alone-{number}"
        ended = forked.python(ALONE, json.dumps(runs.words(cell, folder)))
        assert ended.returncode == 0, ended.stderr
        alone[cell] = contents(folder)
    drawn = random.Random(1)
    # The cells of an encoder together, as the executor gives them, and of all encoders in turn.
    order = [*CELLS, *(cell for _ in range(ROUNDS) for cell in drawn.sample(CELLS, len(CELLS)))]
    written = served(runs, order, tmp_path)
    unlike = [cell for cell, contents in zip(order, written, strict=True) if contents != alone[cell]]
    assert unlike == []
