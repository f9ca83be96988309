"""Attention of bare encoders on two texts in one input: against the equations in numpy, and what is drawn and printed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.architectures.scratch import architecture_of
from xlgrid.papers.luo2021.pair_attention import PairAttention, attention_on
from xlgrid.products.encode import Encoder
from xlgrid.study.encoders import ScratchEncoder

HIDDEN, HEADS, LAYERS = 16, 2, 3
TEXTS = ("take a seat", "zuo xia xiu xi")
TOKENS = ["<s>", "take", "a", "seat", "</s>", "</s>", "zuo", "xia", "xiu", "xi", "</s>"]
TEXT_OF = [-1, 0, 0, 0, -1, -1, 1, 1, 1, 1, -1]

pytestmark = pytest.mark.usefixtures("one_thread")


def write_encoder(folder: Path, seed: int = 3) -> Path:
    """An encoder in the layout of XLM-R whose attention is far from uniform, with a tokenizer of the words of `TEXTS`."""
    sizes = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": 24}
    torch.manual_seed(seed)
    model = XLMRobertaForMaskedLM(
        XLMRobertaConfig(vocab_size=20, max_position_embeddings=32, type_vocab_size=1, **sizes)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    model.save_pretrained(folder)
    words = ["<s>", "<pad>", "</s>", "<unk>", *dict.fromkeys(" ".join(TEXTS).split())]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", special)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder")


def norm(states: Any, module: Any) -> Any:
    weight, bias = (module.weight.detach().double().numpy(), module.bias.detach().double().numpy())
    centred = states - states.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + module.eps) * weight + bias


def linear(states: Any, module: Any) -> Any:
    return states @ module.weight.detach().double().numpy().T + module.bias.detach().double().numpy()


def gelu(states: Any) -> Any:
    return torch.nn.functional.gelu(torch.from_numpy(states)).numpy()


def by_hand(folder: Path, layer: int) -> Any:
    """The mean over the heads of softmax(Q K' / sqrt(d)) in a layer, written out in numpy."""
    model = XLMRobertaForMaskedLM.from_pretrained(folder).roberta
    words = {word: number for number, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *" ".join(TEXTS).split()])}
    embeddings = model.embeddings
    rows = [words[token] for token in TOKENS]
    positions = np.arange(len(rows)) + 2
    tables = (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings)
    chosen = zip(tables, (rows, positions, [0] * len(rows)), strict=True)
    states = norm(sum(table.weight.detach().double().numpy()[each] for table, each in chosen), embeddings.LayerNorm)
    for number in range(layer):
        block = model.encoder.layer[number]
        query, key, value = (
            linear(states, getattr(block.attention.self, name)).reshape(len(rows), HEADS, -1).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(HIDDEN // HEADS))
        weights = scores / scores.sum(-1, keepdims=True)
        mixed = (weights @ value).swapaxes(0, 1).reshape(len(rows), HIDDEN)
        attended = norm(linear(mixed, block.attention.output.dense) + states, block.attention.output.LayerNorm)
        inner = gelu(linear(attended, block.intermediate.dense))
        states = norm(linear(inner, block.output.dense) + attended, block.output.LayerNorm)
    return weights.mean(0)


@pytest.mark.parametrize(("layer", "number"), [("middle", 1), (1, 1), (3, 3)])
def test_weights_are_those_of_the_equation(encoder: Path, layer: Any, number: int) -> None:
    weights = attention_on(encoder, TEXTS, layer)
    assert weights.tokens == TOKENS and weights.text_of.tolist() == TEXT_OF
    expected = by_hand(encoder, number)
    np.testing.assert_allclose(weights.matrix, expected, atol=1e-5)
    assert expected.std() > 0.05, "uniform attention would hide a wrong layer"


def test_shares_are_sums_over_the_keys_of_a_text(encoder: Path) -> None:
    weights = attention_on(encoder, TEXTS)
    shares = np.zeros((2, 3))
    for query, of in enumerate(TEXT_OF):
        for key, to in enumerate(TEXT_OF):
            if of >= 0:
                place = 2 if to < 0 else int(to != of)
                shares[of, place] += weights.matrix[query, key] / TEXT_OF.count(of)
    np.testing.assert_allclose(weights.shares, shares, atol=1e-12)
    np.testing.assert_allclose(weights.shares.sum(-1), 1, atol=1e-6)


def plan_of(folder: Path) -> Any:
    study = SimpleNamespace(name="s", encoders={}, facts={}, printed={})
    return SimpleNamespace(study=study, owned=lambda encoder: SimpleNamespace(folder=folder / encoder.encoder))


EXHIBIT = PairAttention(title="Pairs", encoders=("encoder", "later"), texts=TEXTS)


def test_an_exhibit_has_the_encoders_that_are_there(encoder: Path, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    EXHIBIT.render("x", plan, tmp_path / "out")
    numbers = pd.read_csv(tmp_path / "out" / "x.csv")
    known = numbers[numbers["encoder"] == "encoder"]["percent"].to_numpy().reshape(2, 3)
    np.testing.assert_allclose(known, 100 * attention_on(encoder, TEXTS).shares)
    assert numbers[numbers["encoder"] == "later"]["percent"].isna().all()
    table = (tmp_path / "out" / "x.md").read_text()
    [first, second] = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| encoder")]
    for line, text, shares in ((first, "first text", known[0]), (second, "second text", known[1])):
        assert [each.strip() for each in line] == ["encoder", text, *(f"{share:.1f}" for share in shares)]
    assert "'take a seat' and 'zuo xia xiu xi'" in table
    picture = (tmp_path / "out" / "x.svg").read_text()
    assert picture.count(">xiu</text>") == 2 and ">not there yet</text>" in picture
    EXHIBIT.render("x", plan, tmp_path / "again")
    for suffix in EXHIBIT.suffixes:
        assert (tmp_path / "again" / f"x{suffix}").read_bytes() == (tmp_path / "out" / f"x{suffix}").read_bytes()


def test_an_exhibit_needs_its_encoders_and_no_cells() -> None:
    study: Any = SimpleNamespace(name="s")
    assert EXHIBIT.encoders_read(study) == [Encoder("s", "encoder"), Encoder("s", "later")]
    assert EXHIBIT.cells([], {}) == [] == EXHIBIT.products([])


def test_bad_input_is_named(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has 3 layers, got layer 4: lower it, or write middle"):
        attention_on(encoder, TEXTS, 4)
    with pytest.raises(ValueError, match=r"the two texts have 84 tokens, too many for the encoder in .*: shorten"):
        attention_on(encoder, (" ".join(["seat"] * 40), " ".join(["xi"] * 40)))
    with pytest.raises(ValueError, match="`texts` needs two texts"):
        PairAttention(title="t", encoders=("e",), texts=("a", " "))
    (encoder / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"cannot be read .*: make or fetch it again"):
        attention_on(encoder, TEXTS)


def test_encoders_with_modules_for_languages_or_a_decoder_are_refused() -> None:
    scratch = {
        name: architecture_of({"architecture": name, "languages": ["en"], "layers": layers})
        for name, layers in (("xmod", 2), ("plain", 2), ("mbart", 3))
    }
    study: Any = SimpleNamespace(
        encoders={name: ScratchEncoder(scratch=described) for name, described in scratch.items()}
    )
    exhibit = PairAttention(title="t", encoders=("xmod", "plain", "plane", "mbart"), texts=TEXTS, layer=3)
    wrong = list(exhibit.problems(study, {}))
    assert [text.partition(":")[0] for text in wrong] == ["encoders", "encoders", "layer", "layer", "encoders"]
    assert "mbart is an encoder-decoder" in wrong[4]
    assert "did you mean 'plain'" in wrong[0] and "xmod has a module for each language" in wrong[1]
    assert "encoder plain has 2 layers, got 3" in wrong[3]
