"""Every type of transformers with every head and method: it works, or is refused when the study is read."""

import importlib.util
import math
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from tokenizers_fixture import tokenizer_of
from types_fixture import ALL, METHODS, TEXT_METHODS, TRAINED, problem, tiny, types

from xlgrid.data import batches
from xlgrid.data.encoders import copy_encoder, copy_tokenizer
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.trained import bare_model
from xlgrid.heads import ALL_HEADS, HEADS
from xlgrid.heads.families import FAMILIES, known_type
from xlgrid.heads.probe import type_problem
from xlgrid.methods import ALL_METHODS, Method, is_head, make
from xlgrid.models.fit import mistake_of_package
from xlgrid.models.prediction import outcomes_on
from xlgrid.training import loop
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

TYPES = types("mlm")
# Types that cannot be trained on masked tokens.
OTHERS = [kind for kind in types(*TRAINED) if kind not in TYPES]
CHOSEN = {
    head: TEXT_METHODS if head == "mlm" else METHODS if HEADS[head].is_trained else {"as-is": ("as-is", {})}
    for head in ALL
}
PAIRS = [(head, name) for head, methods in CHOSEN.items() for name in methods]
EVERY = [(kind, head, name) for kind in TYPES for head, name in PAIRS]
# A type that xlgrid does not know meets two pairs of a head and a method, and so each pair meets several types.
COVERED = [
    (kind, *PAIRS[(3 * number + shift) % len(PAIRS)])
    for number, kind in enumerate(kind for kind in TYPES if kind not in FAMILIES)
    for shift in (0, 13)
]

WORDS = ["anne", "is", "big", "the", "dogs", "see", "anne"]
TEXTS = [" ".join(WORDS[number % 3 : 3 + number % 5]) for number in range(8)]
TABLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sequence": (
        {"a": TEXTS, "b": TEXTS[::-1], "label": ["no", "yes"] * 4},
        {"inputs": ["a", "b"], "target": "label", "labels": ["no", "yes"]},
    ),
    "token": (
        {"words": [text.split() for text in TEXTS], "tags": [[0] * len(text.split()) for text in TEXTS]},
        {"inputs": ["words"], "target": "tags", "labels": ["no", "yes"]},
    ),
    "span": (
        {"q": TEXTS, "c": TEXTS, "answers": [{"text": [text[:4]], "answer_start": [0]} for text in TEXTS]},
        {"inputs": ["q", "c"], "target": "answers"},
    ),
    "choice": (
        {"a": TEXTS, "b": TEXTS[::-1], "c": TEXTS, "label": [0, 1] * 4},
        {"inputs": ["a"], "choices": ["b", "c"], "target": "label", "labels": ["0", "1"]},
    ),
    "mlm": ({"id": range(8), "text": TEXTS}, {}),
    "embed": ({"a": TEXTS, "b": TEXTS[::-1]}, {"inputs": ["a", "b"]}),
}


class World:
    """A tokenizer, the tokens of a task of every head, and a folder for encoders."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tokenizer = folder, folder / "tokenizer"
        tokenizer = tokenizer_of("unigram")
        self.size = len(tokenizer)
        tokenizer.save_pretrained(folder / "tokenizer")
        copy_tokenizer(folder / "tokenizer", self.tokenizer)
        for head, (table, columns) in TABLES.items():
            pq.write_table(pa.table(table), folder / f"{head}.parquet")
            tokenize([folder / f"{head}.parquet"], self.tokenizer, head, 48, self.tokens(head), columns=columns)

    def tokens(self, head: str) -> Path:
        return self.folder / f"{head}.arrow"

    def encoder(self, kind: str) -> Path:
        """An encoder of a type with a language-modelling head, taken over from a folder as transformers saves it."""
        folder = self.folder / kind
        if not (folder / "copy").is_dir():
            config = tiny(kind, self.size)
            torch.manual_seed(1)
            maker = transformers.AutoModelForMaskedLM
            maker.from_config(transformers.CONFIG_MAPPING[kind].from_dict(config)).save_pretrained(folder)
            copy_encoder(folder, self.tokenizer, folder / "copy")
        return folder / "copy"

    def run(self, kind: str, head: str, name: str) -> None:
        """A step of training, and the prediction of a test set."""
        base, options = CHOSEN[head][name]
        names = {"study": "s", "task": "t", "kind": head, "encoder": kind, "method": name, "base": base, "seed": 1}
        training = {"steps": 1, "batch_size": 8, "evaluations": 1, "lr": 1e-3, "warmup": 0, "dropout": 0.1}
        # A module of an X-MOD is for inputs in one language.
        is_pair = head == "sequence" and base in ("structured-dropout", "qcross") and kind != "xmod"
        # An MLM run adds a language, of which an X-MOD has no module.
        source = "en-fr" if is_pair else "de" if (kind, head, base) == ("xmod", "mlm", "xmod") else "en"
        recipe = Recipe.model_validate(names | {"source": source, "options": options, "training": training})
        tokens, folder = [self.tokens(head)], self.folder / kind / f"{head}-{name}"
        encoder = self.encoder(kind)
        if not ALL_METHODS.find(base).is_trained:
            read = batches.read(tokens[0], "en-fr")
            model = bare_model(encoder, read)
            assert len(outcomes_on(model, make(base, {}), read, 4000)) == 8
            return
        training_run = loop.Loop(recipe, encoder, tokens, tokens, folder)
        own = {key for key, _ in transformers.AutoModel.from_pretrained(encoder).named_parameters()}
        before = {key: p.detach().clone() for key, p in training_run.weights.items()}
        loop.run(training_run)
        [line] = training_run.curve
        assert math.isfinite(line["loss"]) and math.isfinite(line["score"])
        prefix = training_run.model.base_model_prefix
        added = [key for key in before if key.startswith(f"{prefix}.") and key.removeprefix(f"{prefix}.") not in own]
        still = [key for key, p in training_run.weights.items() if p.grad is None]
        assert len(still) < len(before) / 2, f"no gradients of {still}"
        assert not {*added} & {*still}, "weights that the method adds have no gradients"
        assert any(not torch.equal(before[key], p) for key, p in training_run.weights.items())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("types"))


def check(world: World, kind: str, head: str, name: str) -> None:
    config = tiny(kind, world.size)
    refusal = problem(kind, head, *CHOSEN[head][name], config)
    if refusal is None:
        world.run(kind, head, name)
        return
    assert any(way in refusal for way in ("take ", "use ", "set ", "leave ")), f"what to do instead of: {refusal}"
    if type_problem(config) is None:
        # A run refuses with the same sentence what nobody read as a study.
        with pytest.raises(ValueError) as refused:
            world.run(kind, head, name)
        assert str(refused.value) == refusal


@pytest.mark.parametrize(("kind", "head", "name"), COVERED)
def test_a_type_works_or_is_refused_with_a_sentence(world: World, kind: str, head: str, name: str) -> None:
    check(world, kind, head, name)


def test_the_design_meets_each_head_and_each_method_with_several_types() -> None:
    for place in (1, 2):
        values = {pair[place - 1] for pair in PAIRS}
        assert all(len({case[0] for case in COVERED if case[place] == value}) > 1 for value in values)


@pytest.mark.parametrize("kind", OTHERS)
def test_a_type_without_masked_tokens_is_no_encoder(kind: str) -> None:
    refusal = type_problem(tiny(kind))
    assert refusal and f"has the model_type {kind}" in refusal and "take an encoder of another type" in refusal


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "head", "name"), EVERY)
def test_each_type_works_with_each_head_and_method_or_is_refused(world: World, kind: str, head: str, name: str) -> None:
    check(world, kind, head, name)


@pytest.mark.thorough
def test_the_page_has_what_fits_in_this_version_of_transformers() -> None:
    path = Path(__file__).parents[3] / "docs" / "encoder_types.py"
    spec = importlib.util.spec_from_file_location("encoder_types", path)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = script.PAGE.read_text()
    if f"transformers {transformers.__version__} " not in written:
        pytest.skip("the page is of another version of transformers")
    assert script.page() == written, "run `python docs/encoder_types.py`"


class Scale(Method):
    """A method of a package, with a mistake."""

    mistake: Literal["install", "trains", "forward"] | None = None

    def install(self, model: Any) -> None:
        layer = model.base_model.encoder.layer[0].output
        layer.scale = torch.nn.Parameter(torch.ones(layer.dense.out_features))
        if self.mistake == "install":
            model.base_model.encoder.layers[0]
        if self.mistake != "forward":
            layer.dense.register_forward_hook(lambda module, inputs, output: output * layer.scale)

    def trains(self, name: str) -> bool:
        return is_head(name) or name.endswith("scale" if self.mistake != "trains" else "scales")


@pytest.mark.parametrize(
    ("mistake", "problem"),
    [
        (None, None),
        ("install", "cannot be installed in an encoder of type bert (AttributeError: "),
        ("trains", "adds parameters, such as bert.encoder.layer.0.output.scale, and trains only the head"),
        ("forward", "changes nothing in what an encoder of type bert computes"),
    ],
)
def test_a_method_of_a_package_is_tried_before_anything_trains(mistake: Any, problem: str | None) -> None:
    message = mistake_of_package({"model_type": "bert"}, Scale(mistake=mistake), HEADS["token"])
    assert (problem in message) if message and problem else message == problem


@pytest.mark.parametrize(("kind", "head"), [("xmod", "token"), ("bert", "seq2seq")])
def test_a_method_is_not_tried_where_transformers_has_no_such_model(kind: str, head: str) -> None:
    if head not in ALL_HEADS.names() or known_type(kind) is None:
        pytest.skip("no paper brings this head or this family")
    assert mistake_of_package({"model_type": kind}, Scale(), ALL_HEADS.find(head)) is None


class Classifier(Method):
    """A method of a package that has a classifier of its own."""

    def install(self, model: Any) -> None:
        model.classifier = torch.nn.Linear(model.classifier.in_features, model.classifier.out_features)

    def trains(self, name: str) -> bool:
        return is_head(name)


def test_a_method_may_train_a_head_of_its_own_alone() -> None:
    assert mistake_of_package({"model_type": "bert"}, Classifier(), HEADS["token"]) is None
