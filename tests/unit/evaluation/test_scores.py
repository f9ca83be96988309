"""The scores of cells equal those of benchmarks/scorer.py, which reads the files of data by itself and calls a model of transformers."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from module_fixture import load_module
from safetensors.torch import load_file
from scratch_fixture import pretrain

from xlgrid.architectures.plain import Plain
from xlgrid.data import batches
from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.cell import evaluate
from xlgrid.models import deltas
from xlgrid.results import records
from xlgrid.tasks import task
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

ROOT = Path(__file__).parents[3]
TINY = {"vocab": 400, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
CODE = "qa1"
STEMS = {"xlmr": "XLMRoberta", "bert": "Bert"}
# MasakhaNER 2's labels, among them those of dates, which the library's WikiANN lacks.
ENTITIES = ["O", *(f"{place}-{kind}" for kind in ("PER", "ORG", "LOC", "DATE") for place in "BI")]
# A word that both tokenizers drop.
DROPPED = "\u0001"


def masakhaner(rows: list[dict[str, Any]]) -> bytes:
    """A word and its label on each line. Every third entity is a date."""
    lines, entities = [], 0
    for row in rows:
        for word, number in zip(row["tokens"], row["ner_tags"], strict=True):
            tag = task("wikiann").labels[number]
            entities += tag.startswith("B-")
            lines.append(f"{word} {tag[:2]}DATE" if tag != "O" and entities % 3 == 0 else f"{word} {tag}")
        lines += [f"{DROPPED} O", ""]
    return gzip.compress("\n".join(lines).encode())


def treebank(rows: list[dict[str, Any]]) -> bytes:
    """CoNLL-U with ranges of words and empty nodes, which are no words."""
    lines = []
    for number, row in enumerate(rows):
        lines += [f"# sent_id = {number}", f"# text = {' '.join(row['tokens'])}"]
        words = [*zip(row["tokens"], row["pos_tags"], strict=True), (DROPPED, task("udpos").labels.index("X"))]
        for place, (word, tag) in enumerate(words, start=1):
            if place == 1:
                lines.append("\t".join(["1-2", "both", *"________"]))
            lines.append("\t".join([str(place), word, "_", task("udpos").labels[tag], *"______"]))
            if place == 2:
                lines.append("\t".join(["2.1", "gap", "_", "VERB", *"______"]))
        lines.append("")
    return lzma.compress("\n".join(lines).encode())


def squad(rows: list[dict[str, Any]]) -> bytes:
    paragraphs = []
    for number, row in enumerate(rows):
        starts, texts = row["answers"]["answer_start"], row["answers"]["text"]
        answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
        question = {"id": str(number), "question": row["question"], "answers": answers}
        paragraphs.append({"context": row["context"], "qas": [question]})
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}).encode()


def lines(rows: list[dict[str, Any]]) -> bytes:
    return gzip.compress("\n".join(map(json.dumps, rows)).encode())


class Case(NamedTuple):
    """A kind, its file, the settings of its tokens, and the class of transformers with its head."""

    kind: str
    file: str
    write: Callable[[list[dict[str, Any]]], bytes]
    max_length: int
    suffix: str
    columns: dict[str, Any] = {}
    training: dict[str, Any] = {}
    code: str = CODE


CASES = {
    "entities": Case("wikiann", "test.txt.gz", masakhaner, 10, "TokenClassification", {"labels": ENTITIES}),
    "parts of speech": Case("udpos", "test.conllu.xz", treebank, 10, "TokenClassification"),
    "answers": Case("xquad", "test.json", squad, 40, "QuestionAnswering", training={"steps": 150}),
    "classes": Case("xnli", "test.jsonl.gz", lines, 60, "SequenceClassification", code="en"),
    "choices": Case("copa", "test.jsonl.gz", lines, 32, "MultipleChoice", training={"steps": 15, "lr": 1e-3}),
}
STRIDE = 8


class Trained(NamedTuple):
    """A cell, and what it is scored from without the library."""

    cell: dict[str, Any]
    file: Path
    rows: int
    folder: Path
    model: torch.nn.Module


@pytest.fixture(scope="module", params=STEMS)
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    make_text(CODE, folder / "text.parquet", TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind=request.param, languages=[CODE], **TINY), {CODE: folder / "text.parquet"}, folder / "encoder")
    return folder / "encoder"


@pytest.fixture(scope="module", params=CASES)
def trained_case(
    request: pytest.FixtureRequest, encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Case, Trained]:
    case, folder = CASES[request.param], tmp_path_factory.mktemp("case")
    make_meanings(case.kind, {"n": 60}, folder / "meanings.parquet")
    make_data(case.kind, {"n": 60}, case.code, folder / "meanings.parquet", folder / "generated")
    rows = read_table(folder / "generated" / "train.parquet").to_pylist()
    (folder / case.file).write_bytes(case.write(rows))
    source = {"local": str(folder / case.file)}
    fetch_data(case.kind, source, case.code, "test", folder / "test.parquet", folder / "lock.yaml", case.columns)
    options = {"stride": STRIDE} if "stride" in task(case.kind, case.columns).Options.model_fields else {}
    settings = {"options": options, "columns": case.columns}
    tokenize([folder / "test.parquet"], encoder, case.kind, case.max_length, folder / "test.arrow", **settings)
    names = {"study": "s", "task": "t", "kind": case.kind, "encoder": "e", "method": "full-ft", "source": case.code}
    training = {"steps": 60, "batch_tokens": 256, "evaluations": 1, "lr": 5e-3, **case.training}
    recipe = Recipe.model_validate({**names, "seed": 1, "base": "full-ft", "training": training})
    tokens = folder / "test.arrow"
    train(recipe, encoder, [tokens], [tokens], folder / "run")
    evaluate(folder / "run", encoder, tokens, {"target": case.code}, folder / "cell.json")
    stem = STEMS[json.loads((encoder / "config.json").read_text())["model_type"].replace("xlm-roberta", "xlmr")]
    described = task(case.kind, case.columns)
    options = {"num_labels": len(described.labels)} if case.suffix[0] in "TS" else {}
    model = getattr(transformers, f"{stem}For{case.suffix}").from_pretrained(encoder, **options).eval()
    unfit = model.load_state_dict(load_file(folder / "run" / deltas.DELTA), strict=False)
    assert not unfit.unexpected_keys
    return case, Trained(records.read_cell(folder / "cell.json"), folder / case.file, len(rows), encoder, model)


def own_scores(case: Case, parts: Trained) -> dict[str, float]:
    own, described = load_module(ROOT / "benchmarks" / "scorer.py"), task(case.kind, case.columns)
    settings = {"choices": len(described.choices), "stride": STRIDE, "types": parts.model.config.type_vocab_size > 1}
    columns = described.inputs, described.target, described.labels
    of_task = own.Task(described.head.name, *columns, case.max_length, **settings)
    rows = own.read_rows(parts.file, of_task)
    assert len(rows) == parts.rows
    tokenizer = transformers.AutoTokenizer.from_pretrained(parts.folder)
    return own.scores(rows, tokenizer, lambda tensors, contexts: parts.model(**tensors), of_task)


def test_the_scores_of_a_cell_are_those_of_an_independent_scorer(trained_case: tuple[Case, Trained]) -> None:
    case, parts = trained_case
    own = own_scores(case, parts)
    # The scorer has the metrics of the papers; test_classification.py has the others.
    assert own == pytest.approx({name: parts.cell["scores"][name] for name in own}, abs=1e-6)
    assert all(0 < score < 100 for score in own.values()), "a score that many models have shows little"


def test_inputs_are_cut_or_have_windows(trained_case: tuple[Case, Trained]) -> None:
    """Otherwise the test above would show less than it says."""
    case, parts = trained_case
    tokens = batches.read(parts.file.with_name("test.arrow"), case.code)
    assert int(tokens.sizes.max()) == case.max_length
    if "example" in tokens.columns:
        assert len(tokens) > tokens.examples == parts.rows
