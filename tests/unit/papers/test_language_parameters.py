"""A method with language-specific parameters computes something else for each target with an MLM run of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import HEADS
from xlgrid.methods import ALL_METHODS, Method, make
from xlgrid.models import prediction
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

# Every method with language-specific parameters, with the options of the method, and those of the method of its MLM runs.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "qcross": ({}, {"tune": "query", "p_mask": 1}),
    "qcross with its bias": ({"swap": "weight+bias"}, {"tune": "query", "p_mask": 1}),
    "madx": ({}, {"tune": "language"}),
    "xmod": ({}, {"tune": "language"}),
    "madx by the equations": ({"wiring": "paper"}, {"tune": "language"}),
    "madx without the invertible": ({"invertible": False}, {"tune": "language", "invertible": False}),
    "madx of the encoder": ({"tune": "encoder", "invertible": False}, {"tune": "language", "invertible": False}),
    "madx without the last layer": ({"leave_out_last": True}, {"tune": "language"}),
}
OWN = [base for base, kind in ALL_METHODS.own.items() if kind.is_language_specific is not Method.is_language_specific]
SPECIFIC = {base: OPTIONS.get(base, ({}, {})) for base in (*OWN, *OPTIONS) if base.split()[0] in OWN}
RUN, TEXT = "run", "text/%s"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(params=SPECIFIC)
def method(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Method:
    """In a folder with MLM runs of two pairs, and a task's run that begins with one of them."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    # Large weights, by which tokens differ in whom they attend to.
    config = BertConfig(vocab_size=50, max_position_embeddings=40, initializer_range=0.5, **size)
    BertForMaskedLM(config).save_pretrained("encoder")
    base, (options, text) = request.param.split()[0], SPECIFIC[request.param]
    names = {"study": "s", "encoder": "e", "base": base, "seed": 1}
    names |= {"training": {"steps": 4, "batch_tokens": 128, "lr": 0.05, "evaluations": 1, "keep": "last"}}
    rng = np.random.default_rng(1)
    for pair in ("en-fr", "en-de"):
        tokens = [write(Path(f"{pair}.arrow"), [rng.integers(5, 50, 12).tolist() for _ in range(40)], "mlm")]
        fields = names | {"task": "mlm", "kind": "mlm", "method": "text", "source": pair, "options": text}
        train(Recipe.model_validate(fields), "encoder", tokens, tokens, TEXT % pair)
    tokens = [write(Path("task.arrow"), [rng.integers(5, 50, 12).tolist() for _ in range(40)], "token")]
    fields = names | {"task": "t", "kind": "wikiann", "method": "m", "source": "en-fr", "options": options}
    started = Recipe.model_validate(fields | {"start": {"task": "mlm", "method": "text"}})
    train(started, "encoder", tokens, tokens, RUN, Path(TEXT % "en-fr"))
    return make(base, options)


def scores_of(method: Method, target: str) -> torch.Tensor:
    """Scores with the language-specific parameters of `target`; the data are the same for all."""
    data = batches.read("task.arrow", target)
    model = trained.model_of(trained.read(RUN), "encoder", data, Path(TEXT % target)).eval()
    chosen = np.arange(len(data))
    head = HEADS[data.head]
    batch = head.collate(data, chosen, True)
    batch |= prediction.extras(model, method, data, chosen, training=False)
    with torch.no_grad():
        return head.scores(model, batch)[0]


def test_another_language_computes_something_else_and_the_first_again_the_same(method: Method) -> None:
    first, other, again = (scores_of(method, target) for target in ("en-fr", "en-de", "en-fr"))
    assert (first - other).abs().max() > 1e-3
    assert torch.equal(first, again)
