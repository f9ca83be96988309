"""Questions with long contexts, and choices: from data to tokens, batches, training and cells."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scratch_fixture import pretrain
from tokens_fixture import collate

from xlgrid.architectures.plain import Plain
from xlgrid.data import batches
from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import cell as evaluate
from xlgrid.heads import HEADS, metric
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import make
from xlgrid.methods.method import is_head
from xlgrid.models import prediction
from xlgrid.models.load import has_segments, load_model
from xlgrid.results import records
from xlgrid.tasks import task
from xlgrid.training import loop as training
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = {"vocab": 400, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
CODES = ("qa1", "qb1")
KINDS = ("xquad", "copa", "siqa")
OPTIONS = {"n": 40}
# Of questions; choices fit.
LENGTH, STRIDE = 64, 12
LENGTHS = {"xquad": LENGTH, "copa": 128, "siqa": 128}


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and the tokens of every kind, language and split."""
    folder = tmp_path_factory.mktemp("inputs")
    texts = {code: folder / f"{code}.parquet" for code in CODES}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind=request.param, languages=CODES, **TINY), texts, folder / "encoder")
    for kind in KINDS:
        make_meanings(kind, OPTIONS, folder / f"{kind}.parquet")
        for code in CODES:
            make_data(kind, OPTIONS, code, folder / f"{kind}.parquet", folder / kind / code)
            for split in ("train", "dev"):
                data, out = folder / kind / code / f"{split}.parquet", folder / f"{kind}-{code}-{split}.arrow"
                options = {"stride": STRIDE} if kind == "xquad" else {}
                tokenize([data], folder / "encoder", kind, LENGTHS[kind], out, options=options)
    return folder


def tokens(world: Path, kind: str, code: str = "qa1", split: str = "train") -> Tokens:
    return batches.read(world / f"{kind}-{code}-{split}.arrow", code)


def labels(dataset: Tokens) -> np.ndarray:
    return collate(dataset, np.arange(len(dataset)), False)["labels"].numpy()


def data(world: Path, kind: str, code: str = "qa1", split: str = "train") -> list[dict[str, Any]]:
    return read_table(world / kind / code / f"{split}.parquet").to_pylist()


def tokenizer(world: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(world / "encoder")


def model(world: Path, dataset: Tokens) -> Any:
    torch.manual_seed(3)
    network = load_model(world / "encoder", HEADS[dataset.head], len(dataset.label_names), 0.0)
    # Fresh heads are nearly the same for all inputs.
    for name, parameter in network.named_parameters():
        if is_head(name):
            torch.nn.init.normal_(parameter)
    return network


def test_windows_are_those_of_the_tokenizer_s_own_overflow(world: Path) -> None:
    dataset, rows = tokens(world, "xquad"), data(world, "xquad")
    theirs = tokenizer(world)(
        [row["question"] for row in rows],
        [row["context"] for row in rows],
        truncation="only_second",
        max_length=LENGTH,
        stride=STRIDE,
        return_overflowing_tokens=True,
    )
    ours = [dataset.values[a:b].tolist() for a, b in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True)]
    assert ours == theirs["input_ids"]
    assert dataset.example_of.tolist() == theirs["overflow_to_sample_mapping"]
    assert len(dataset) > dataset.examples == len(rows)


def test_the_first_segment_of_a_window_is_the_question(world: Path) -> None:
    dataset, rows, reader = tokens(world, "xquad"), data(world, "xquad"), tokenizer(world)
    for window, example in enumerate(dataset.example_of):
        start = dataset.offsets[window]
        question = dataset.values[start : start + dataset.contexts[window]].tolist()
        assert question == reader(rows[example]["question"])["input_ids"]


def test_the_label_of_a_window_reads_back_as_the_answer(world: Path) -> None:
    """In every language and script; and every question has a window with its answer."""
    for code in CODES:
        dataset, rows = tokens(world, "xquad", code), data(world, "xquad", code)
        answered = set()
        for window, example in enumerate(dataset.example_of.tolist()):
            start, end = labels(dataset)[window]
            if (start, end) != (0, 0):
                first, last = (dataset.token_columns[name][dataset.offsets[window] :] for name in ("first", "last"))
                text = dataset.columns["text"][window].as_py()
                # XLM-R's tokens begin with the space before them.
                assert text[first[start] : last[end]].strip() == rows[example]["answers"]["text"][0]
                answered.add(example)
        assert answered == set(range(len(rows)))


def test_right_logits_give_full_marks_and_wrong_ones_none(world: Path) -> None:
    """The way from a batch of logits to outcomes, over several windows."""

    class Oracle(torch.nn.Module):
        def __init__(self, dataset: Tokens, off: int) -> None:
            super().__init__()
            self.config, self.device = type("Config", (), {"type_vocab_size": 1}), torch.device("cpu")
            self.labels = {tuple(row(dataset, at)): labels(dataset)[at] + off for at in range(len(dataset))}

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
            logits = torch.zeros(2, *input_ids.shape)
            for at, (ids, real) in enumerate(zip(input_ids, attention_mask, strict=True)):
                start, end = self.labels[tuple(ids[: real.sum()].tolist())]
                logits[0, at, start] = logits[1, at, end] = 0.0 if start <= 1 else 9.0
            return type("Output", (dict,), {"__getattr__": dict.__getitem__})(
                start_logits=logits[0], end_logits=logits[1]
            )

    def row(dataset: Tokens, at: int) -> list[int]:
        return dataset.values[dataset.offsets[at] : dataset.offsets[at + 1]].tolist()

    dataset = tokens(world, "xquad")
    right = prediction.outcomes_on(Oracle(dataset, 0), make("full-ft", {}), dataset, 400)  # type: ignore[arg-type]
    assert right == [[1.0, 1.0]] * dataset.examples
    wrong = prediction.outcomes_on(Oracle(dataset, 1), make("full-ft", {}), dataset, 400)  # type: ignore[arg-type]
    assert metric("squad-em").score(wrong) < 20


@pytest.mark.parametrize("kind", ["copa", "siqa"])
def test_choices_are_the_notebook_s_inputs(world: Path, kind: str) -> None:
    dataset, rows, reader, definition = tokens(world, kind), data(world, kind), tokenizer(world), task(kind)
    assert len(dataset) == len(rows) and dataset.inputs_per_row == len(definition.choices)
    for at, row in enumerate(rows):
        for number, choice in enumerate(definition.choices):
            index = at * dataset.inputs_per_row + number
            ids = dataset.values[dataset.offsets[index] : dataset.offsets[index + 1]].tolist()
            prompt = f"{row['premise' if kind == 'copa' else 'context']} {row['question']}"
            assert ids == reader(prompt, row[choice])["input_ids"]
            assert ids[: dataset.contexts[index]] == reader(prompt)["input_ids"]
        assert definition.labels[dataset.columns["label"][at]] == str(row["label"])


def test_one_separator_is_one(world: Path, tmp_path: Path) -> None:
    reader = tokenizer(world)
    for kind in ("xquad", "copa"):
        source = world / kind / "qa1" / "dev.parquet"
        options = {"stride": STRIDE} if kind == "xquad" else {}
        tokenize([source], world / "encoder", kind, LENGTH, tmp_path / "t.arrow", one_separator=True, options=options)
        dataset = batches.read(tmp_path / "t.arrow")
        for start, end, context in zip(dataset.offsets[:-1], dataset.offsets[1:], dataset.contexts, strict=True):
            ids = dataset.values[start:end].tolist()
            assert ids.count(reader.sep_token_id) == 2
            assert ids[context - 1] == reader.sep_token_id != ids[context]
        if kind == "xquad":
            first, last = (dataset.token_columns[name] for name in ("first", "last"))
            assert all((first[start] < 0) for start in dataset.offsets[:-1])
            assert {len(first), len(last)} == {len(dataset.values)}


def test_no_room_for_a_context_names_the_stride(world: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"max_length 40 leaves \d+ tokens .*windows share 64.*lower the task's option `stride`"
    ):
        data = [world / "xquad" / "qa1" / "dev.parquet"]
        tokenize(data, world / "encoder", "xquad", 40, tmp_path / "t", options={"stride": 64})


def test_no_room_for_a_premise_names_the_choices(world: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"max_length 6 leaves no room .*choice1 and choice2"):
        tokenize([world / "copa" / "qa1" / "dev.parquet"], world / "encoder", "copa", 6, tmp_path / "t")


@pytest.mark.parametrize("kind", KINDS)
def test_each_example_of_a_mix_is_whole_and_of_one_part(world: Path, kind: str) -> None:
    parts = [tokens(world, kind, code) for code in CODES]
    mixed = batches.mix(parts, 65)
    assert mixed.examples == parts[0].examples and mixed.parts is not None
    assert mixed.example_of.tolist() == sorted(mixed.example_of.tolist())
    for example in range(mixed.examples):
        rows = np.flatnonzero(mixed.example_of == example)
        [part] = set(mixed.parts[rows].tolist())
        theirs = parts[part].take(np.flatnonzero(parts[part].example_of == example))
        ours = mixed.take(rows)
        assert np.array_equal(ours.values, theirs.values) and np.array_equal(labels(ours), labels(theirs))
        for name in ("text", "answers") if kind == "xquad" else ():
            assert ours.columns[name] == theirs.columns[name]
    assert np.bincount(mixed.parts[np.unique(mixed.example_of, return_index=True)[1]]).tolist() == [14, 14]


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_that_of_transformers(world: Path, kind: str) -> None:
    """Of inputs of one length, whose padding transformers would let answer, too."""
    dataset = tokens(world, kind)
    network = model(world, dataset)
    same = np.flatnonzero(dataset.lengths == np.bincount(dataset.lengths).argmax())
    batch = collate(dataset, same, has_segments(network))
    head, inputs = HEADS[dataset.head], {name: tensor for name, tensor in batch.items() if name != "labels"}
    if kind != "xquad":
        theirs = network(**batch).loss
    else:
        places = batch["labels"]
        theirs = network(**inputs, start_positions=places[:, 0], end_positions=places[:, 1]).loss
    torch.testing.assert_close(head.loss(network, batch) / head.terms(batch), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_score(world: Path, kind: str) -> None:
    dataset = tokens(world, kind)
    network = model(world, dataset).eval()
    order = np.argsort(dataset.lengths, kind="stable")
    short, both = order[:1], order[[0, -1]]
    with torch.inference_mode():
        alone, beside = (
            HEADS[dataset.head].scores(network, batch)[0]
            for batch in (collate(dataset, chosen, has_segments(network)) for chosen in (short, both))
        )
    torch.testing.assert_close(beside[:: 2 if kind == "xquad" else 3][:, : alone.shape[1]], alone, atol=1e-5, rtol=1e-4)


def recipe(kind: str, **settings: Any) -> Recipe:
    names = {"study": "s", "task": "t", "kind": kind, "encoder": "e", "method": "full-ft", "source": "qa1+qb1"}
    defaults = {"steps": 4, "batch_tokens": 1500, "lr": 1e-3, "evaluations": 2, "dropout": 0.0, "weight_decay": 0.0}
    return Recipe.model_validate({**names, "seed": 1, "base": "full-ft", "training": defaults | settings})


def files(world: Path, kind: str, split: str) -> list[Path]:
    return [world / f"{kind}-{code}-{split}.arrow" for code in CODES]


@pytest.mark.parametrize("kind", KINDS)
def test_micro_batches_have_the_gradients_of_their_batch(world: Path, kind: str, tmp_path: Path) -> None:
    gradients = []
    for limit in (None, 200):
        loop_recipe = recipe(kind, micro_batch_tokens=limit)
        paths = files(world, kind, "train"), files(world, kind, "dev")
        loop = training.Loop(loop_recipe, world / "encoder", *paths, tmp_path / str(limit))
        loop.differentiate(np.arange(8))
        gradients.append({name: p.grad for name, p in loop.weights.items() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() and gradients[0]
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_has_every_metric_of_its_task(world: Path, kind: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    training.train(recipe(kind), world / "encoder", files(world, kind, "train"), files(world, kind, "dev"), run)
    test = world / f"{kind}-qb1-dev.arrow"
    evaluate.evaluate(run, world / "encoder", test, {"target": "qb1"}, tmp_path / "cell.json")
    cell = records.read_cell(tmp_path / "cell.json")
    outcomes = records.outcomes("cell.json", cell)
    metrics = {each.name: each for each in task(kind).head.metrics(task(kind).labels)}
    assert [*cell["scores"]] == [name for name in metrics if ":" not in name]
    assert cell["metric"]["name"] == task(kind).metrics[0]
    assert cell["n"] == len(outcomes) == len(data(world, kind, "qb1", "dev"))
    assert cell["scores"] == {name: metrics[name].score(outcomes) for name in cell["scores"]}
    assert json.loads((run / "run.json").read_text())["n_train"] == 28
