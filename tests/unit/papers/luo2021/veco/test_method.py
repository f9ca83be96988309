"""Plug-in: what the head reads, where gradients go, and which encoders and tasks it is for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models_fixture import model_of as other_model
from safetensors.torch import load_file, save_file
from tokens_fixture import write
from veco_fixture import first_stream, model_of, pairs

from xlgrid.base.arrays import Ints
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import make
from xlgrid.models.deltas import kept, named_parameters
from xlgrid.models.first_token import read_first_token
from xlgrid.models.load import load_model, shapes
from xlgrid.models.parameters import count
from xlgrid.papers.luo2021.veco import PlugIn, modules
from xlgrid.papers.luo2021.veco.names import is_cross_attention

pytestmark = pytest.mark.usefixtures("one_thread")
KINDS = {"sequence": 3, "token": 3, "span": 0}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    model_of().save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


def installed(encoder: Path, kind: str, **options: Any) -> Any:
    torch.manual_seed(2)
    model = load_model(encoder, HEADS[kind], KINDS[kind]).eval()
    make("plug-in", options).install(model)
    return model


def given() -> dict[str, torch.Tensor]:
    first, second = pairs()
    return {**first, "parallel_ids": second["input_ids"], "parallel_mask": second["attention_mask"]}


def answers(output: Any) -> torch.Tensor:
    """Logits, [rows, ..., classes]."""
    if "logits" in output:
        return output.logits
    return torch.stack([output.start_logits, output.end_logits], -1)


def test_the_head_reads_both_streams_side_by_side(encoder: Path, kind: str) -> None:
    """Both streams are those of the pre-trained encoder, and the layer of the head is a product in numpy."""
    model, pretrained = installed(encoder, kind), model_of()
    first, second = pairs()
    with torch.no_grad():
        states, partners = (first_stream(pretrained, inputs) for inputs in (first, second))
        both = torch.cat(
            [states, modules.second_stream(pretrained, first, partners, second["attention_mask"])], -1
        ).numpy()
        logits = answers(model(**given())).numpy()
    weights = {name: p.detach().numpy() for name, p in model.named_parameters() if not name.startswith("roberta.")}

    def linear(states: np.ndarray, name: str) -> np.ndarray:
        return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    if kind == "sequence":
        expected = linear(np.tanh(linear(both[:, 0], "classifier.dense")), "classifier.out_proj")
    else:
        expected = linear(both, {"token": "classifier", "span": "qa_outputs"}[kind])
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_weights_of_the_head_for_h_stay_as_they_are(encoder: Path, kind: str) -> None:
    torch.manual_seed(2)
    before = named_parameters(load_model(encoder, HEADS[kind], KINDS[kind]))
    after = named_parameters(installed(encoder, kind))
    [wider] = [name for name, p in before.items() if p.shape != after[name].shape]
    size = before[wider].shape[1]
    assert after[wider].shape == (len(before[wider]), 2 * size) and torch.equal(after[wider][:, :size], before[wider])
    assert 0.01 < float(after[wider][:, size:].detach().std()) < 0.03
    assert all(torch.equal(before[name], after[name]) for name in before if name != wider)
    assert {*after} - {*before} == {name for name in after if is_cross_attention(name)}


@pytest.mark.parametrize("detach", [False, True])
def test_gradients_go_to_all_weights_and_to_the_parallel_example_unless_detached(
    encoder: Path, kind: str, detach: bool
) -> None:
    model = installed(encoder, kind, detach=detach)
    words = model.get_input_embeddings()
    inputs = given()
    # A token that only the parallel examples have.
    inputs["parallel_ids"] = inputs["parallel_ids"].masked_fill(inputs["parallel_mask"] == 1, 49)
    inputs["input_ids"] = inputs["input_ids"].masked_fill(inputs["input_ids"] == 49, 48)
    answers(model(**inputs)).square().sum().backward()
    assert (float(words.weight.grad[49].abs().max()) == 0) == detach
    assert all(p.grad is not None for p in model.parameters())
    assert all(PlugIn().trains(name) for name in named_parameters(model))


def test_a_saved_delta_gives_the_same_logits(encoder: Path, kind: str, tmp_path: Path) -> None:
    model, method = installed(encoder, kind), PlugIn()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_file({name: p.detach() for name, p in kept(model, method, HEADS[kind]).items()}, tmp_path / "d.safetensors")
    again = installed(encoder, kind)
    again.load_state_dict(load_file(tmp_path / "d.safetensors"), strict=False)
    with torch.no_grad():
        assert torch.equal(answers(again(**given())), answers(model(**given())))


def test_padding_changes_nothing(encoder: Path, kind: str) -> None:
    model, inputs = installed(encoder, kind), given()
    longer = {
        name: torch.nn.functional.pad(tensor, (0, 4), value=int(name.endswith("ids")))
        for name, tensor in inputs.items()
    }
    with torch.no_grad():
        short, long = (answers(model(**each)) for each in (inputs, longer))
    long = long if kind == "sequence" else long[:, : short.shape[1]]
    real = (slice(None),) if kind == "sequence" else inputs["attention_mask"].bool()
    torch.testing.assert_close(long[real], short[real], atol=1e-5, rtol=0)


def tokens(path: Path) -> Tokens:
    """Four rows, of 2 to 5 tokens, whose parallel examples have one token more."""
    import pyarrow as pa

    rows = [[5 + at] * (2 + at) for at in range(4)]
    read = batches.read(write(path / "t.arrow", rows), "fr")
    parallel = pa.array([[*row, 9] for row in rows], pa.list_(pa.int32()))
    return read.__class__(**{**vars(read), "columns": {**read.columns, "parallel_ids": parallel}})


def parallel(method: PlugIn, read: Tokens, rows: Ints) -> list[list[int]]:
    batch = method.forward_arguments(read, rows, torch.device("cpu"), False)
    pairs_of_rows = zip(batch["parallel_ids"], batch["parallel_mask"], strict=True)
    return [ids[mask == 1].tolist() for ids, mask in pairs_of_rows]


def test_each_row_has_its_parallel_example_or_that_of_another_row_as_a_control(tmp_path: Path) -> None:
    read = tokens(tmp_path)
    written = read.columns["parallel_ids"].to_pylist()
    assert parallel(PlugIn(), read, np.array([2, 0])) == [written[2], written[0]]
    shuffled = parallel(PlugIn(shuffled=1.0), read, np.arange(4))
    assert sorted(shuffled) == sorted(written) and not any(map(list.__eq__, shuffled, written))
    assert parallel(PlugIn(shuffled=1.0), read, np.array([2])) == [shuffled[2]], "whatever else is in the batch"
    assert (
        PlugIn().forward_arguments(read, np.array([0, 1]), torch.device("cpu"), False)["parallel_ids"][0, -1]
        == read.pad_id
    )
    assert [PlugIn(shuffled=each).stack("t", None) for each in (0, 0.25, 1)] == [
        ("parallel:en",),
        ("parallel:shuffled-0.25-en",),
        ("parallel:shuffled-en",),
    ]


def test_a_share_of_the_rows_have_the_parallel_examples_of_others_among_them(tmp_path: Path) -> None:
    read = tokens(tmp_path)
    written = read.columns["parallel_ids"].to_pylist()
    half = parallel(PlugIn(shuffled=0.5), read, np.arange(4))
    assert sorted(half) == sorted(written)
    assert sum(map(list.__ne__, half, written)) == 2


def test_tokens_without_parallel_examples_are_refused(tmp_path: Path, encoder: Path) -> None:
    read = batches.read(write(tmp_path / "t.arrow", [[5, 6]]), "fr")
    with pytest.raises(ValueError, match="the tokens have no parallel examples"):
        PlugIn().forward_arguments(read, np.array([0]), torch.device("cpu"), False)
    with pytest.raises(ValueError, match="needs a parallel example for each input"):
        installed(encoder, "sequence")(**pairs()[0])


def test_encoders_without_cross_attention_and_other_heads_are_refused(encoder: Path) -> None:
    for kind in ("xlmr-sequence", "bert-sequence"):
        with pytest.raises(ValueError, match="needs an encoder with cross-attention, which this one lacks"):
            PlugIn().install(other_model(kind))
    for head in ("choice", "mlm"):
        with pytest.raises(ValueError, match="plug-in supports the heads of sequences, tokens and spans"):
            PlugIn().install(load_model(encoder, HEADS[head], 0))
    with pytest.raises(ValueError, match="leave out `start`"):
        PlugIn().check_start(make("full-ft", {}))


def test_the_last_layer_is_computed_for_all_tokens(encoder: Path) -> None:
    assert not read_first_token(installed(encoder, "sequence"), HEADS["sequence"])


def test_parameters_and_work_are_those_of_both_streams(encoder: Path) -> None:
    """Three passes of the encoder: H of the input, H of its parallel example, and S."""
    config = model_of().config
    plain, both = (count(config, HEADS["token"], 3, base, {}) for base in ("full-ft", "plug-in"))
    h, layers = 16, 2
    cross = layers * (4 * (h * h + h) + 2 * h)
    assert both.trained == both.total == plain.total + cross + 3 * h
    assert both.passed == 3 * plain.passed + cross, (
        "H of both inputs and S pass the layers, and S alone cross-attention"
    )
    assert shapes(config, HEADS["token"]).device.type == "meta"
