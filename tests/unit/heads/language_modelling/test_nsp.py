"""The objective of BERT: which inputs get the second segment of another, what the labels say, and its two losses."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.data import batches
from xlgrid.heads.language_modelling.nsp import KEPT, MODULE, NextSentenceHead, exchange
from xlgrid.heads.tokens import Tokens

LENGTH = 12


def row(number: int, first: int, second: int) -> list[int]:
    """An input of two segments, whose tokens all are the number."""
    return [2, *[number] * first, 4, *[number] * second, 4]


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    """A mix of 30 inputs in each of two languages, the last ten of one segment, and of ten pairs."""
    rng = np.random.default_rng(1)
    parts = []
    for code, start in (("en", 5), ("fr", 20), ("en-fr", 35)):
        count = 10 if "-" in code else 30
        sizes = [(int(a), int(b)) for a, b in rng.integers(1, 5, (count, 2))]
        ids = [row(start + at % 15, *size) for at, size in enumerate(sizes)]
        contexts = [first + 2 for first, _ in sizes]
        if count == 30:
            ids[20:] = [[2, start, 4]] * 10
            contexts[20:] = [3] * 10
        parts.append(batches.read(write(tmp_path / f"{code}.arrow", ids, "mlm", contexts=contexts), code))
    return batches.mix(parts, 1)


def test_half_of_the_inputs_of_two_segments_get_that_of_another_input_of_their_language(tokens: Tokens) -> None:
    head, drawn = NextSentenceHead(LENGTH), []
    every = np.arange(len(tokens))
    for seed in range(40):
        torch.manual_seed(seed)
        batch = head.collate(tokens, every, token_types=True)
        kept = batch[KEPT].numpy()
        one_segment = [*range(20, 30), *range(50, 60), *range(60, 70)]
        assert (kept[one_segment] == -100).all(), "inputs of one segment, and pairs"
        drawn += kept[kept >= 0].tolist()
    # An input whose other input has one segment has no label.
    assert 0.45 < np.mean(drawn) < 0.55 and 40 * 40 * 0.6 < len(drawn) < 40 * 40 * 0.75


def test_an_exchanged_input_begins_with_its_own_segment_and_ends_with_the_other(tokens: Tokens) -> None:
    rows, others = np.arange(20), np.roll(np.arange(20), 7)
    exchanged = np.arange(20) % 2 == 0
    changed = exchange(tokens, rows, exchanged, others, LENGTH)
    for at, other in enumerate(others.tolist()):
        whole = tokens.values[tokens.offsets[at] : tokens.offsets[at + 1]].tolist()
        ids = changed.values[changed.offsets[at] : changed.offsets[at + 1]].tolist()
        if not exchanged[at]:
            assert ids == whole
            continue
        second = tokens.values[tokens.offsets[other] + tokens.contexts[other] : tokens.offsets[other + 1]].tolist()
        context = int(changed.contexts[at])
        assert ids[context:] == second and ids[:context] == [*whole[: context - 1], 4] and len(ids) <= LENGTH
        assert context == min(int(tokens.contexts[at]), LENGTH - len(second))


def test_an_input_gets_a_segment_of_another_input_of_its_part(tokens: Tokens) -> None:
    torch.manual_seed(1)
    rows = np.repeat([3, 33], 2000)
    others = NextSentenceHead._others(tokens, rows)
    assert set(others[:2000].tolist()) == {*range(30)} - {3}
    assert set(others[2000:].tolist()) == {*range(30, 60)} - {33}


def test_an_input_that_is_alone_in_its_language_has_no_label(tokens: Tokens) -> None:
    alone = tokens.take(np.array([3, 33, 34]))
    for seed in range(20):
        torch.manual_seed(seed)
        batch = NextSentenceHead(LENGTH).collate(alone, np.arange(3), token_types=True)
        assert batch[KEPT][0] == -100 and (batch[KEPT][1:] >= 0).all()


@pytest.mark.parametrize("kind", ["bert", "xlmr"])
def test_both_losses_are_those_of_their_labels(tokens: Tokens, kind: str) -> None:
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 40, "pad_token_id": 0}
    torch.manual_seed(1)
    maker = {"bert": (BertForMaskedLM, BertConfig), "xlmr": (XLMRobertaForMaskedLM, XLMRobertaConfig)}[kind]
    model = maker[0](maker[1](**sizes)).eval()
    head = NextSentenceHead(LENGTH)
    head.attach(model)
    batch = head.collate(tokens, np.arange(40), token_types=kind == "bert")
    losses, terms = head.losses(model, batch), head.terms_of_losses(batch)
    inputs = {name: tensor for name, tensor in batch.items() if name not in ("labels", KEPT)}
    output = model(**inputs, labels=batch["labels"], output_hidden_states=True)
    torch.testing.assert_close(losses["MLM"] / terms["MLM"], output.loss)
    modules = [*model.get_submodule(MODULE).children()]
    pooler = model.base_model.pooler if kind == "bert" else modules[1]
    answers = modules[0](torch.tanh(pooler.dense(output.hidden_states[-1][:, 0])))
    expected = torch.nn.functional.cross_entropy(answers, batch[KEPT], ignore_index=-100)
    torch.testing.assert_close(losses["NSP"] / terms["NSP"], expected)
    assert tuple(losses) == tuple(terms) == head.loss_names
