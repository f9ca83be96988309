"""The contract of every head: from columns of data to a score, on a task with the head. Heads of installed packages are tested, too."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import surprisal
import torch
from plugin_fixture import guessing as guessing
from scratch_fixture import pretrain
from sklearn.metrics import confusion_matrix
from transformers import AutoConfig

from xlgrid.architectures.plain import Plain
from xlgrid.base.plugins import Extensible
from xlgrid.data import batches
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.heads import ALL_HEADS, Head, metric
from xlgrid.heads.encoding import IGNORED
from xlgrid.heads.head import Evaluated
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method, is_head
from xlgrid.models import prediction
from xlgrid.models.load import has_segments, load_model, shapes
from xlgrid.tasks import ALL_TASKS

pytestmark = pytest.mark.usefixtures("one_thread")

HEADS, TASKS = ALL_HEADS.own, ALL_TASKS.own
LANGUAGES = ("en", "qa1")
TINY = {"vocab": 400, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
TEXT = ("mlm", "perplexity")
# The first task of each head that can be generated, and text.
FIRST = {task.head.name: kind for kind in reversed(ALL_TASKS.names()) if (task := ALL_TASKS.find(kind)).generator}
GENERATED = {kind: ALL_TASKS.find(kind) for kind in sorted(FIRST.values())}
KINDS = [*GENERATED, *TEXT]
TRAINED = [kind for kind in KINDS if ALL_TASKS.find(kind).head.is_trained]


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and the tokens of every task, and of text."""
    folder = tmp_path_factory.mktemp("heads")
    texts = {code: folder / f"{code}.parquet" for code in LANGUAGES}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind=request.param, languages=LANGUAGES, **TINY), texts, folder / "encoder")
    for kind, task in GENERATED.items():
        code = next(code for code in LANGUAGES if task.speaks(code))
        make_meanings(kind, {"n": 40}, folder / "meanings.parquet")
        make_data(kind, {"n": 40}, code, folder / "meanings.parquet", folder / kind)
        files = [folder / kind / f"{split}.parquet" for split in task.head.splits("train")]
        tokenize(files, folder / "encoder", kind, 512, folder / f"{kind}.arrow")
    for kind in TEXT:
        tokenize([texts["en"]], folder / "encoder", kind, 512, folder / f"{kind}.arrow", split="train")
    return folder


@pytest.fixture(params=KINDS)
def tokens(request: pytest.FixtureRequest, world: Path) -> Tokens:
    return batches.read(world / f"{request.param}.arrow", "en")


@pytest.fixture
def model(world: Path, tokens: Tokens) -> Iterator[Any]:
    torch.manual_seed(1)
    loaded: Any = load_model(world / "encoder", ALL_HEADS.find(tokens.head), len(tokens.label_names), 0.0)
    if loaded.can_generate():
        loaded.generation_config.max_new_tokens = 8
    yield loaded


def test_every_head_has_a_task() -> None:
    """Which the tests below need."""
    assert {task.head.name for task in TASKS.values()} == {*HEADS}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_has_its_name_and_known_metrics(name: str) -> None:
    assert HEADS[name].name == name
    for labels in ((), ("a", "b"), ("O", "B-X", "I-X")):
        measured = HEADS[name].metrics(labels)
        assert measured and len({each.name for each in measured}) == len(measured)
        for each in measured:
            known = metric(each.name)
            assert (known.name, known.unit, known.higher_is_better) == (each.name, each.unit, each.higher_is_better)


@pytest.mark.parametrize("tokens", TRAINED, indirect=True)
def test_a_batch_has_a_finite_loss_that_is_the_mean_over_its_terms(model: Any, tokens: Tokens) -> None:
    head, rows = ALL_HEADS.find(tokens.head), np.arange(8)
    torch.manual_seed(1)
    batch = head.collate(tokens, rows, has_segments(model))
    with torch.no_grad():
        loss = head.loss(model.eval(), batch)
        assert math.isfinite(loss) and loss > 0
        if type(head).loss is not Head.loss:
            # A package tests the loss of its head.
            return
        logits, labels = head.scores(model, batch)
    assert head.terms(batch) == (labels != IGNORED).sum() > 0
    expected = torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED)
    torch.testing.assert_close(loss / head.terms(batch), expected)


def test_a_batch_pads_and_says_what_is_padding(tokens: Tokens) -> None:
    head, rows = ALL_HEADS.find(tokens.head), np.array([3, 0])
    batch = head.collate(tokens, rows, True)
    inputs = tokens.inputs(rows)
    real = batch["attention_mask"].reshape(len(inputs), -1)
    assert real.sum(1).tolist() == tokens.sizes[inputs].tolist()
    assert not real.diff(dim=1).gt(0).any(), "padding is at the end"
    assert (batch["input_ids"].reshape(real.shape)[real == 0] == tokens.pad_id).all()
    second = batch["token_type_ids"].reshape(real.shape)
    assert second.sum(1).tolist() == (tokens.sizes - tokens.contexts)[inputs].tolist()


def test_predictions_become_an_outcome_of_each_example_and_a_score(model: Any, tokens: Tokens) -> None:
    outcomes = prediction.outcomes_on(model, Method(), tokens, 2000)
    expected = tokens.examples
    if tokens.head == "embed-mining":
        # Mining has an outcome for each sentence of the test set in the first language.
        expected = int(((tokens.columns["side"] == 0) & (tokens.columns["is_dev"] == 0)).sum())
    assert len(outcomes) == expected
    for measure in ALL_HEADS.find(tokens.head).metrics(tokens.label_names):
        assert math.isfinite(measure.score(outcomes))
        assert np.isfinite(measure.moves(outcomes)).all()
    in_small_batches = prediction.outcomes_on(model, Method(), tokens, 300)
    for small, large in zip(in_small_batches, outcomes, strict=True):
        assert [*flat(small)] == pytest.approx([*flat(large)], rel=1e-5, abs=1e-6)


# Kind of task -> the texts of the gold answers, from the data.
GOLD: dict[str, Any] = {
    "sequence": lambda table, task: table[task.target].to_pylist(),
    "choice": lambda table, task: [*map(str, table[task.target].to_pylist())],
    "token": lambda table, task: [" ".join(task.labels[at] for at in row) for row in table[task.target].to_pylist()],
    "span": lambda table, task: [" / ".join(dict.fromkeys(row["text"])) for row in table[task.target].to_pylist()],
    "embed": lambda table, task: table[task.inputs[0]].to_pylist(),
    "seq2seq": lambda table, task: table[task.target].to_pylist(),
}
# Metric -> the score that a model has whose right answers are these.
OF_RIGHT = ("accuracy", "squad-em", "mlqa-em")


@pytest.mark.parametrize("tokens", [kind for kind in GENERATED], indirect=True)
def test_examples_have_the_answers_of_the_data_and_those_of_the_model(world: Path, model: Any, tokens: Tokens) -> None:
    head = ALL_HEADS.find(tokens.head)
    [(kind, task)] = [(kind, task) for kind, task in GENERATED.items() if task.head is head]
    answers = head.answers(tokens, prediction.predictions_on(model, Method(), tokens, 2000))
    outcomes = head.outcomes(tokens, answers)
    kept = json.loads(json.dumps(answers)) if head.keeps_answers else []
    table = pq.read_table(world / kind / f"{head.splits('train')[0]}.parquet")
    examples = head.examples(Evaluated(table, task, tokens.label_names, tokens.options, outcomes, kept))
    assert len(examples) == len(outcomes) or not examples
    assert [example.row for example in examples] == sorted({example.row for example in examples})
    if head.name in GOLD:
        assert [example.gold for example in examples] == GOLD[head.name](table, task)
    for measure in head.metrics(tokens.label_names):
        if measure.name in OF_RIGHT and not head.reads_words:
            assert measure.score(outcomes) == pytest.approx(100 * np.mean([bool(each.is_right) for each in examples]))
    assert all((example.gold == example.predicted) <= (example.is_right is not False) for example in examples)


@pytest.mark.parametrize("name", ["sequence", "choice", "token"])
def test_a_confusion_matrix_is_that_of_scikit_learn(name: str) -> None:
    draw = np.random.default_rng(0)
    gold, predicted = draw.integers(4, size=(2, 60))
    outcomes = [[*pair] for pair in zip(gold.tolist(), predicted.tolist(), strict=True)]
    if name == "token":
        outcomes = [[gold[:50].tolist(), predicted[:50].tolist()], [gold[50:].tolist(), predicted[50:].tolist()]]
    matrix = HEADS[name].confusion("abcd", outcomes)
    assert matrix is not None and (matrix == confusion_matrix(gold, predicted, labels=range(4))).all()


def flat(outcome: Any) -> Iterator[float]:
    """The numbers of an outcome."""
    yield from (number for each in outcome for number in flat(each)) if isinstance(outcome, list) else [outcome]


@pytest.mark.parametrize("tokens", TRAINED, indirect=True)
def test_training_on_a_batch_lowers_its_loss(model: Any, tokens: Tokens) -> None:
    head, rows = ALL_HEADS.find(tokens.head), np.arange(4)
    torch.manual_seed(1)
    batch = head.collate(tokens, rows, has_segments(model))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(10):
        optimiser.zero_grad()
        loss = head.loss(model, batch) / head.terms(batch)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_a_model_without_numbers_has_the_shapes_of_the_loaded_one(world: Path, model: Any, tokens: Tokens) -> None:
    head, config = ALL_HEADS.find(tokens.head), AutoConfig.from_pretrained(world / "encoder")
    for name, value in head.settings(len(tokens.label_names)).items():
        setattr(config, name, value)
    expected = {name: parameter.shape for name, parameter in model.named_parameters()}
    assert {name: p.shape for name, p in shapes(config, head).named_parameters()} == expected


@pytest.mark.parametrize("name", HEADS)
def test_segments_are_in_the_languages_of_their_columns(name: str) -> None:
    """The segment of the column that a pair takes from its second language is in that language."""
    head = HEADS[name]
    for task in TASKS.values():
        if task.head is head and (second := head.second(task)):
            # The second language of a translation is that of its target.
            columns = task.inputs if second in task.inputs else (*task.inputs, second)
            languages = dict(zip(columns, head.segment_languages(("en", "fr")), strict=True))
            assert languages.pop(second) == "fr" and list(languages.values()) == ["en"]
    assert head.segment_languages(("en",)) == ("en", "en")


def test_another_head_is_one_entry(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    surprisal.register(monkeypatch)
    tokens = replace(batches.read(world / "ruletaker.arrow", "en"), head="surprisal")
    torch.manual_seed(1)
    model = load_model(world / "encoder", ALL_HEADS.find("surprisal"), len(tokens.label_names), 0.0)
    outcomes = prediction.outcomes_on(model, Method(), tokens, 2000)
    # A new classifier is nearly undecided between its two labels.
    assert metric("surprisal").score(outcomes) == pytest.approx(math.log(2), abs=0.2)


def test_the_metric_and_the_modules_of_a_package_are_known(guessing: None) -> None:
    assert metric("guess-rate").name == "guess-rate"
    with pytest.raises(ValueError, match=r"did you mean 'guess-rate'"):
        metric("guess-rte")
    assert is_head("bert.guesser.weight") and not is_head("bert.encoder.weight")


def test_a_metric_of_a_known_head_is_found_without_a_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look takes long, and a report asks for the metric of each cell and each run."""
    monkeypatch.setattr(Extensible, "_entry_points", lambda _: pytest.fail("it looks at packages"))
    names = [known.name for head in ALL_HEADS.known() for known in head.all_metrics]
    assert [metric(name).name for name in names] == names
