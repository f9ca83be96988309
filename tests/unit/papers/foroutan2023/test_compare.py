"""The divergence of attention against its definition, the file of a run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokens_fixture import write
from transformers import BertConfig, BertModel

from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads.sequence import SequenceHead
from xlgrid.methods import make
from xlgrid.papers.foroutan2023 import compare as attention
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

LAYERS, HEADS = 2, 2
# Contexts of 4 to 9 tokens; questions of two languages have lengths of their own.
CONTEXTS = [4 + i % 6 for i in range(12)]
METHODS = {"full-ft": "full-ft", "bitfit+drop": "structured-dropout", "qcross": "qcross"}


def rows(target: str) -> list[list[int]]:
    common, own = np.random.default_rng(1), np.random.default_rng([*map(ord, target)])
    return [[*common.integers(5, 40, n).tolist(), *own.integers(5, 40, own.integers(2, 6)).tolist()] for n in CONTEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, tokens of two pairs, and a run of each method."""
    root = tmp_path_factory.mktemp("attention")
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 16}
    model = BertModel(BertConfig(vocab_size=40, max_position_embeddings=40, **size))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(root / "encoder")
    words = {f"w{i}": i for i in range(40)}
    (root / "tokenizer").mkdir()
    Tokenizer(WordLevel(words, unk_token="w0")).save(str(root / "tokenizer" / "tokenizer.json"))
    for target in ("en-fr", "en-ar"):
        write(root / f"{target}.arrow", rows(target), contexts=CONTEXTS)
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "source": "en-fr", "seed": 1}
    for method, base in METHODS.items():
        recipe = Recipe.model_validate({**names, "method": method, "base": base, "training": {"steps": 2, "lr": 1e-3}})
        tokens = root / "en-fr.arrow"
        train(recipe, root / "encoder", [tokens], [tokens], root / method)
    return root


def compare(folder: Path, out: Path, method: str = "qcross", **tokens: Path) -> dict[str, Any]:
    files = {target: folder / f"{target}.arrow" for target in ("en-fr", "en-ar")} | tokens
    attention.compare(folder / method, folder / "encoder", folder / "tokenizer", files, out)
    return attention.read(out)


def test_a_comparison_may_be_of_another_study_than_its_run(folder: Path, tmp_path: Path) -> None:
    assert compare(folder, tmp_path / "a.json")["study"] == "s"
    files = {target: folder / f"{target}.arrow" for target in ("en-fr", "en-ar")}
    attention.compare(
        folder / "qcross", folder / "encoder", folder / "tokenizer", files, tmp_path / "b.json", study="more"
    )
    assert attention.read(tmp_path / "b.json")["study"] == "more"


weights = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)


@given(weights, weights)
def test_the_divergence_is_a_symmetric_number_of_bits(first: list[int], second: list[int]) -> None:
    p, q = (torch.tensor(each, dtype=torch.float64) / sum(each) for each in (first, second))
    divergence = float(attention.divergence(p, q))
    assert 0 <= divergence <= 1
    assert divergence == pytest.approx(float(attention.divergence(q, p)), abs=1e-12)
    assert (divergence < 1e-9) == bool(torch.allclose(p, q))


def test_the_divergence_of_a_certain_and_an_even_choice() -> None:
    """H(3/4, 1/4) - (H(1, 0) + H(1/2, 1/2)) / 2, written out."""
    entropy = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    divergence = attention.divergence(torch.tensor([1.0, 0.0]).double(), torch.tensor([0.5, 0.5]).double())
    assert float(divergence) == pytest.approx(entropy - 0.5)


def test_the_question_is_one_outcome() -> None:
    whole = torch.rand(HEADS, 6, 6).softmax(-1)
    outcomes = attention.outcomes(whole, 4)
    assert outcomes.shape == (HEADS, 4, 5)
    torch.testing.assert_close(outcomes[..., 4], (whole[:, :4, 4] + whole[:, :4, 5]).double())


@pytest.mark.parametrize("method", METHODS)
def test_the_file_holds_the_mean_over_examples_heads_and_rows(folder: Path, method: str, tmp_path: Path) -> None:
    comparison = compare(folder, tmp_path / "a.json", method)
    by_hand: dict[str, list[float]] = {"context": [], "first": []}
    for row, context in enumerate(CONTEXTS):
        first, second = (of_example(folder, method, target, row) for target in ("en-fr", "en-ar"))
        for head in range(HEADS):
            by_row = [js(first[head, i], second[head, i], context) for i in range(context)]
            by_hand["context"].append(float(np.mean(by_row)))
            by_hand["first"].append(by_row[0])
    # Every example has as many heads, so their mean is that over examples of the mean over heads.
    expected = {name: float(np.mean(values)) for name, values in by_hand.items()}
    assert comparison["divergence"] == pytest.approx(expected, rel=1e-4)
    assert expected["context"] > 1e-6, "the two targets must differ for the test to mean anything"
    assert (comparison["n"], comparison["left_out"]) == (len(CONTEXTS), 0)
    assert {name: np.mean(values) for name, values in comparison["by_head"].items()} == pytest.approx(
        comparison["divergence"]
    )


def of_example(folder: Path, method: str, target: str, row: int) -> np.ndarray:
    """Attention weights of the last layer on one example alone, H × L × L."""
    base = make(METHODS[method], {})
    data = batches.read(folder / f"{target}.arrow", target)
    model = trained.model_of(trained.read(folder / method), folder / "encoder", data).eval()
    return attention.last_layer(model, base, data, np.array([row]), True)[0].numpy().astype(float)


def js(first: np.ndarray, second: np.ndarray, context: int) -> float:
    p, q = (np.append(row[:context], row[context:].sum()) for row in (first, second))
    middle = (p + q) / 2
    return float(((p * np.log2(p / middle)) + (q * np.log2(q / middle))).sum() / 2)


def test_the_last_layer_is_what_the_model_itself_tells(folder: Path) -> None:
    data = batches.read(folder / "en-fr.arrow", "en-fr")
    model: Any = trained.model_of(trained.read(folder / "full-ft"), folder / "encoder", data).eval()
    chosen = np.arange(len(data))
    attention_weights = attention.last_layer(model, make("full-ft", {}), data, chosen, True)
    model.set_attn_implementation("eager")
    inputs = SequenceHead().collate(data, chosen, True)
    inputs.pop("labels")
    with torch.no_grad():
        expected = model(**inputs, output_attentions=True).attentions[-1]
    torch.testing.assert_close(attention_weights, expected, atol=1e-6, rtol=0)


def test_the_same_question_has_no_divergence(folder: Path, tmp_path: Path) -> None:
    comparison = compare(folder, tmp_path / "a.json", **{"en-ar": folder / "en-fr.arrow"})
    assert comparison["divergence"] == {"context": pytest.approx(0, abs=1e-9), "first": pytest.approx(0, abs=1e-9)}


def test_the_shortest_example_is_there_to_be_drawn(folder: Path, tmp_path: Path) -> None:
    comparison = compare(folder, tmp_path / "a.json")
    ids = [rows(target)[comparison["row"]] for target in comparison["targets"]]
    assert max(map(len, ids)) == min(max(map(len, pair)) for pair in zip(rows("en-fr"), rows("en-ar"), strict=True))
    for drawing, row in zip(comparison["drawn"], ids, strict=True):
        assert drawing["tokens"] == [f"w{number}" for number in row]
        assert drawing["context"] == CONTEXTS[comparison["row"]]
        assert drawing["weights"].shape == (HEADS, len(row), len(row))
        np.testing.assert_allclose(drawing["weights"].sum(-1), 1, atol=1e-2)


def test_an_example_whose_context_was_cut_is_left_out_and_counted(folder: Path, tmp_path: Path) -> None:
    ids = rows("en-ar")
    ids[3][1] += 1
    comparison = compare(folder, tmp_path / "a.json", **{"en-ar": write(tmp_path / "t", ids, contexts=CONTEXTS)})
    assert (comparison["n"], comparison["left_out"]) == (len(CONTEXTS) - 1, 1)


def test_only_the_first_samples_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "SAMPLES", 5)
    first, second = (batches.read(folder / f"{target}.arrow", target) for target in ("en-fr", "en-ar"))
    chosen, left_out = attention.same_contexts(first, second)
    assert (chosen.tolist(), left_out) == ([0, 1, 2, 3, 4], 0)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (lambda ids: ids[:5], "12 and 5 examples"),
        (lambda ids: [[1, *row[1:]] for row in ids], "none of 12 examples has the same"),
    ],
)
def test_targets_without_a_context_in_common_are_refused(folder: Path, tmp_path: Path, ids: Any, message: str) -> None:
    other = ids(rows("en-ar"))
    with pytest.raises(ValueError, match=message):
        compare(folder, tmp_path / "a", **{"en-ar": write(tmp_path / "t", other, contexts=CONTEXTS[: len(other)])})


@pytest.mark.parametrize("spoil", [lambda text: text[:-30], lambda text: text.replace("by_head", "by_hat"), str.upper])
def test_a_damaged_file_is_named(folder: Path, tmp_path: Path, spoil: Any) -> None:
    compare(folder, tmp_path / "a.json")
    (tmp_path / "a.json").write_text(spoil((tmp_path / "a.json").read_text()))
    with pytest.raises(ValueError, match=r"a\.json is truncated or is not a comparison of attention .* delete it"):
        attention.read(tmp_path / "a.json")


def test_attention_is_not_compared_over_several_inputs() -> None:
    tokens = SimpleNamespace(inputs_per_row=2, head="choice")
    with pytest.raises(
        ValueError, match=r"one input per example, but an example can have several with the head 'choice'"
    ):
        attention.same_contexts(tokens, tokens)  # type: ignore[arg-type]
