"""Models with a head, with weights and without."""

from pathlib import Path
from typing import Any

import pytest
import surprisal
import torch
import transformers
from tokens_fixture import write
from transformers import BertConfig, DistilBertConfig, ElectraConfig, XLMRobertaConfig

from xlgrid.base.errors import Damaged
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.methods.method import is_head
from xlgrid.models import load

# Those whose models transformers has as one class for each family; encoder-decoders are in test_model.py of the head.
CLASSES = [name for name, head in HEADS.items() if not head.has_decoder]


@pytest.mark.parametrize("kind", [XLMRobertaConfig, ElectraConfig])
@pytest.mark.parametrize("head", CLASSES)
def test_shapes_are_those_of_the_model(kind: Any, head: str) -> None:
    """Of a family whose class is known by its name, and of one that is not."""
    config = kind(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    suffix = getattr(HEADS[head], "model_suffix", "")
    maker = getattr(transformers, f"AutoModelFor{suffix}" if suffix else "AutoModel")
    expected = {name: p.shape for name, p in maker.from_config(config).named_parameters()}
    found = dict(load.shapes(config, HEADS[head]).named_parameters())
    assert {name: p.shape for name, p in found.items()} == expected
    assert {p.device.type for p in found.values()} == {"meta"}


@pytest.mark.parametrize("kind", [BertConfig, DistilBertConfig, XLMRobertaConfig])
@pytest.mark.parametrize("head", [name for name in CLASSES if not HEADS[name].is_pretrained])
def test_the_modules_of_a_head_are_what_its_model_has_beside_the_encoder(kind: Any, head: str) -> None:
    config = kind(vocab_size=20)
    speaker, model = (load.shapes(config, HEADS[name]) for name in ("mlm", head))
    encoder = {f"{speaker.base_model_prefix}.{name}" for name, _ in speaker.base_model.named_parameters()}
    names = {name for name, _ in model.named_parameters()}
    assert {name for name in names if is_head(name)} == names - encoder
    assert all({*HEADS[head].modules} & {*name.split(".")} for name in names - encoder)


def test_a_head_names_modules_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    surprisal.register(monkeypatch)
    assert not is_head("decision.weight")
    monkeypatch.setattr(HEADS["surprisal"], "modules", ("decision",))
    assert is_head("decision.weight") and is_head("bert.pooler.dense.weight")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_named(name: str, tmp_path: Path) -> None:
    for there in {"config.json", "model.safetensors"} - {name}:
        (tmp_path / there).write_text("{}")
    with pytest.raises(Damaged, match=f"{name} does not exist: make or fetch the encoder again") as refused:
        load.load_model(tmp_path, HEADS["sequence"], 2)
    assert refused.value.paths == (tmp_path,), "nothing asks Snakemake for one missing file of an encoder"


@pytest.mark.parametrize(("kind", "most"), [(BertConfig, 20), (DistilBertConfig, 20), (XLMRobertaConfig, 18)])
def test_the_longest_input_has_a_position_for_every_token(kind: Any, most: int, tmp_path: Path) -> None:
    """As many as the model itself takes: the family of RoBERTa has two fewer than its table has rows."""
    model = load.model_class(kind.model_type, HEADS["sequence"])(kind(vocab_size=20, max_position_embeddings=20)).eval()
    fitting, longer = (batches.read(write(tmp_path / f"{n}.arrow", [[5] * 3, [5] * n])) for n in (most, most + 1))
    model(torch.full((1, most), 5))
    load.check_positions(model, fitting)
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, most + 1), 5))
    with pytest.raises(
        ValueError, match=rf"longest input has {most + 1} tokens, but the encoder takes at most {most}: lower"
    ):
        load.check_positions(model, longer)


def test_missing_and_unused_weights_are_reported(tmp_path: Path) -> None:
    """As transformers reports them: new weights begin at random."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.BertForMaskedLM(BertConfig(vocab_size=20, **sizes)).save_pretrained(tmp_path)
    lines: list[str] = []
    load.load_model(tmp_path, HEADS["sequence"], 2, log=lines.append)
    new = "bert.pooler.dense.bias, bert.pooler.dense.weight, classifier.bias, classifier.weight"
    assert lines[0] == f"{tmp_path} lacks weights of BertForSequenceClassification, which are new: {new}"
    assert lines[1].startswith(
        f"{tmp_path} has weights that BertForSequenceClassification does not take: cls.predictions.bias, "
    )
    lines.clear()
    load.load_model(tmp_path, HEADS["mlm"], 0, log=lines.append)
    assert lines == []


@pytest.mark.parametrize("head", ["mlm", "perplexity"])
def test_a_language_model_without_its_head_is_refused(head: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.BertModel(BertConfig(vocab_size=20, **sizes)).save_pretrained(tmp_path)
    load.load_model(tmp_path, HEADS["sequence"], 2)
    with pytest.raises(
        ValueError,
        match=r"has no language-modelling head: model\.safetensors lacks cls\.predictions\.bias, .*lm_head: ",
    ):
        load.load_model(tmp_path, HEADS[head], 0)
    load.load_model(tmp_path, HEADS[head], 0, new_lm_head=True)
