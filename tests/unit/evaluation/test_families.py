"""From a checkpoint of every family, as transformers saves it, to a cell: taken over, tokenised, trained and evaluated."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from published_fixture import PUBLISHED, publish, take_over

from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.cell import evaluate
from xlgrid.methods import ALL_METHODS
from xlgrid.results import records
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

# Each test takes a second, and all of them half a minute.
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

NAMES, OTHERS = ("anne", "bob", "dogs"), ("see", "is", "big", "the", "don't")
# Each task, and the columns by which a study describes it.
TASKS: dict[str, dict[str, Any]] = {
    "token": {"inputs": ["words"], "target": "tags", "labels": ["other", "name"]},
    "sequence": {"inputs": ["context", "question"], "target": "label", "labels": ["no", "yes"]},
    "mlm": {"inputs": ["text"]},
}
# A classifier that has learnt nothing is right about half of the questions, and about 62 % of the words, which are no names.
LEARNT = 70
WITHOUT_BIASES = ("modernbert", "mmbert", "eurobert")


def tables(rows: int, seed: int) -> dict[str, pa.Table]:
    """Sentences with the names tagged, questions that are true if they begin with a name, and text."""
    drawn = random.Random(seed)
    sentences = [[drawn.choice(NAMES + OTHERS) for _ in range(drawn.randint(2, 5))] for _ in range(rows)]
    texts = [" ".join(words) for words in sentences]
    labels = [drawn.choice(("no", "yes")) for _ in range(rows)]
    questions = [f"{'anne' if label == 'yes' else 'big'} {text}" for label, text in zip(labels, texts, strict=True)]
    tags = [[int(word in NAMES) for word in words] for words in sentences]
    return {
        "token": pa.table({"words": sentences, "tags": tags}),
        "sequence": pa.table({"context": texts, "question": questions, "label": labels}),
        "mlm": pa.table({"id": range(rows), "text": texts}),
    }


class World:
    """A checkpoint in bf16 that was taken over, and the tokens of three tasks in its tokenizer."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.encoder, tokenizer = take_over(publish(kind, folder / "hub", dtype=torch.bfloat16), folder)
        for split, rows, seed in (("train", 64, 1), ("test", 24, 2)):
            for task, table in tables(rows, seed).items():
                pq.write_table(table, folder / f"{task}-{split}.parquet")
                columns = None if task == "mlm" else TASKS[task]
                data = [folder / f"{task}-{split}.parquet"]
                tokenize(data, tokenizer, task, 32, self.tokens(task, split), columns=columns)

    def tokens(self, task: str, split: str) -> Path:
        return self.folder / f"{task}-{split}.arrow"

    def run(self, name: str, task: str, base: str, source: str, start: Path | None = None, **options: Any) -> Path:
        """Train a run on the task."""
        names = {"study": "s", "task": task, "kind": task, "encoder": "e", "method": "m", "base": base, "seed": 1}
        trains_all = base == "full-ft" or options.get("tune") == "full-ft"
        length = {"steps": 8 if task == "mlm" else 60, "batch_size": 16, "evaluations": 2}
        training = length | {"lr": 5e-3 if trains_all else 3e-2}
        fields = {"source": source, "options": options, "training": training}
        fields |= {"start": {"task": "mlm", "method": "text"}} if start else {}
        tokens = ([self.tokens(task, split)] for split in ("train", "test"))
        train(Recipe.model_validate(names | fields), self.encoder, *tokens, self.folder / name, start)
        return self.folder / name

    def cell(self, run: Path, task: str, target: str, mlm_run: Path | None = None) -> dict[str, Any]:
        """Evaluate a run on rows that it has not trained on."""
        path = run / f"{target}.json"
        evaluate(run, self.encoder, self.tokens(task, "test"), {"target": target}, path, mlm_run)
        return records.read_cell(path)


@pytest.fixture(scope="module", params=PUBLISHED)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, tmp_path_factory.mktemp("family"))


def test_full_fine_tuning_learns_words(world: World) -> None:
    cell = world.cell(world.run("full", "token", "full-ft", "en"), "token", "en")
    assert cell["n"] == 24 and cell["scores"]["accuracy"] > LEARNT


def test_bitfit_learns_words_or_says_that_there_are_no_biases(world: World) -> None:
    if world.kind in WITHOUT_BIASES:
        with pytest.raises(ValueError, match=r"bitfit trains biases, .* has none \(.*\): take full-ft or madx"):
            world.run("biases", "token", "bitfit", "en")
        assert not (world.folder / "biases" / "run.json").exists()
        return
    cell = world.cell(world.run("biases", "token", "bitfit", "en"), "token", "en")
    assert cell["scores"]["accuracy"] > LEARNT


@pytest.mark.skipif("madx" not in ALL_METHODS.names(), reason="the adapters are those of a paper")
def test_adapters_of_a_task_learn_words_above_those_of_a_language(world: World) -> None:
    """MAD-X: a run on the text of each language, a run of the task, and a cell with the adapters of another language."""
    if world.kind == "xmod":
        with pytest.raises(ValueError, match="without modules for languages, got one of type xmod"):
            world.run("text-en", "mlm", "madx", "en", tune="language")
        return
    texts = {code: world.run(f"text-{code}", "mlm", "madx", code, tune="language") for code in ("en", "fr")}
    run = world.run("adapters", "token", "madx", "en", texts["en"], task_reduction=2)
    assert world.cell(run, "token", "en", texts["en"])["scores"]["accuracy"] > LEARNT
    assert world.cell(run, "token", "fr", texts["fr"])["stack"] == ["invertible:fr", "language:fr", "task:token"]


@pytest.mark.skipif("qcross" not in ALL_METHODS.names(), reason="the attention is that of a paper")
@pytest.mark.parametrize("base", ["structured-dropout", "qcross"])
def test_structured_attention_learns_questions_in_another_language(world: World, base: str) -> None:
    refusals = {"deberta-v2": "which an encoder of type deberta-v2 does not use", "xmod": "for inputs in one language"}
    if world.kind in refusals:
        with pytest.raises(ValueError, match=refusals[world.kind]):
            world.run(base, "sequence", base, "en-fr", tune="full-ft")
        return
    cell = world.cell(world.run(base, "sequence", base, "en-fr", tune="full-ft"), "sequence", "en-fr")
    assert cell["n"] == 24 and cell["scores"]["accuracy"] > LEARNT
