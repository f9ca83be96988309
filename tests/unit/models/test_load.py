"""Models with a head, with weights and without."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import surprisal
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokens_fixture import write
from transformers import (
    AlbertConfig,
    BertConfig,
    BertForTokenClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DistilBertConfig,
    ElectraConfig,
    EsmConfig,
    EuroBertConfig,
    ModernBertConfig,
    MPNetConfig,
    XLMRobertaConfig,
)

from xlgrid.base.errors import Damaged
from xlgrid.data import batches
from xlgrid.heads import HEADS
from xlgrid.heads.families import FAMILIES
from xlgrid.methods.method import Method, is_head
from xlgrid.models import load

# Those whose models transformers has as one class for each family; encoder-decoders are in test_model.py of the head, and parsers in
# test_biaffine.py.
CLASSES = [name for name in HEADS if name != "parse"]


@pytest.mark.parametrize("kind", [XLMRobertaConfig, DistilBertConfig, DebertaV2Config, ModernBertConfig, ElectraConfig])
@pytest.mark.parametrize("head", CLASSES)
def test_shapes_are_those_of_the_model(kind: Any, head: str) -> None:
    """Of a family whose class is known by its name, and of one that is not."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = kind(vocab_size=20, pad_token_id=1, **sizes)
    suffix = getattr(HEADS[head], "model_suffix", "")
    maker = getattr(transformers, f"AutoModelFor{suffix}" if suffix else "AutoModel")
    expected = {name: p.shape for name, p in maker.from_config(config).named_parameters()}
    parameters = dict(load.shapes(config, HEADS[head]).named_parameters())
    assert {name: p.shape for name, p in parameters.items()} == expected
    assert {p.device.type for p in parameters.values()} == {"meta"}


KINDS = [BertConfig, DistilBertConfig, XLMRobertaConfig, DebertaV2Config, ModernBertConfig, EuroBertConfig]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [name for name in HEADS if not HEADS[name].is_pretrained])
def test_the_modules_of_a_head_are_what_its_model_has_beside_the_encoder(kind: Any, head: str) -> None:
    config = kind(vocab_size=20, pad_token_id=1)
    if HEADS[head].model_suffix in FAMILIES[kind.model_type].lacks:
        with pytest.raises(
            ValueError, match=f"no class EuroBertFor.* have no head {head}: take an encoder of another family"
        ):
            load.shapes(config, HEADS[head])
        return
    speaker, model = (load.shapes(config, HEADS[name]) for name in ("mlm", head))
    encoder = {f"{speaker.base_model_prefix}.{name}" for name, _ in speaker.base_model.named_parameters()}
    names = {name for name, _ in model.named_parameters()}
    assert {name for name in names if is_head(name)} == names - encoder
    modules = {*HEADS[head].modules, *FAMILIES[kind.model_type].head}
    assert all(modules & {*name.split(".")} for name in names - encoder)


def test_a_head_names_modules_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    surprisal.register(monkeypatch)
    assert not is_head("decision.weight")
    monkeypatch.setattr(HEADS["surprisal"], "modules", ("decision",))
    assert is_head("decision.weight") and is_head("bert.pooler.dense.weight")


SMALL = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", ["token", "mlm"])
def test_weights_of_half_precision_are_loaded_as_fp32(kind: Any, head: str, dtype: torch.dtype, tmp_path: Path) -> None:
    """A run trains them and its optimiser's state in fp32; the values are those of the checkpoint, to the last bit."""
    torch.manual_seed(1)
    stored = load.model_class(kind.model_type, HEADS["mlm"])(kind(**SMALL)).to(dtype)
    stored.save_pretrained(tmp_path)
    assert str(dtype).removeprefix("torch.") in (tmp_path / "config.json").read_text()
    model = load.load_model(tmp_path, HEADS[head], 3)
    assert {p.dtype for p in model.parameters()} == {torch.float32} == {model.config.dtype}
    loaded = dict(model.base_model.named_parameters())
    for name, parameter in stored.base_model.named_parameters():
        assert torch.equal(loaded[name], parameter.float()), name
    ids = torch.arange(2, 8)[None]
    assert model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.dtype == torch.float32


@pytest.mark.parametrize("entries", [{"hidden_act": "gelu_xx"}, {"hidden_size": -4}, {"pad_token_id": 99_999}], ids=str)
def test_a_configuration_of_values_that_no_model_has_is_damaged(entries: dict[str, Any], tmp_path: Path) -> None:
    BertConfig(**SMALL).save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | entries))
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    with pytest.raises(Damaged, match=rf"{tmp_path}/config\.json describes no encoder"):
        load.shapes(config, HEADS["token"])


@pytest.mark.parametrize("head", ["token", "mlm"])
@pytest.mark.parametrize("kind", [XLMRobertaConfig, ElectraConfig])
def test_an_encoder_without_a_part_is_refused(kind: Any, head: str, tmp_path: Path) -> None:
    """Of a family whose names are known, and of one that is not: transformers would draw the weights that it does not find."""
    transformers.AutoModelForMaskedLM.from_config(kind(**SMALL)).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    whole = {name: tensor for name, tensor in tensors.items() if "layer.0.attention" not in name}
    save_file(whole, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(Damaged, match=r"lack .*layer\.0\.attention.* would be random numbers"):
        load.load_model(tmp_path, HEADS[head], 3)


@pytest.mark.parametrize("legacy", [False, True])
def test_deberta_v3_is_loaded_with_the_head_that_it_was_trained_with(legacy: bool, tmp_path: Path) -> None:
    """Its published weights have names that transformers reads with `legacy: false` only, which config.json does not say."""
    torch.manual_seed(1)
    config = DebertaV2Config(**SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], legacy=legacy)
    published = DebertaV2ForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in published.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    published.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    written.pop("legacy")
    (tmp_path / "config.json").write_text(json.dumps(written))
    model = load.load_model(tmp_path, HEADS["mlm"], 0).eval()
    ids = torch.arange(2, 8)[None]
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, published(input_ids=ids).logits, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_of_dropout_replaces_all_of_the_encoder(kind: Any, tmp_path: Path) -> None:
    load.model_class(kind.model_type, HEADS["mlm"])(kind(**SMALL)).save_pretrained(tmp_path)
    model = load.load_model(tmp_path, HEADS["token"], 3, dropout=0.25)
    rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates <= {0.25} and all(getattr(model.config, name) == 0.25 for name in FAMILIES[kind.model_type].dropout)


@pytest.mark.parametrize("kind", [AlbertConfig, MPNetConfig])
def test_a_rate_of_dropout_replaces_integers_of_a_type_that_is_not_known(kind: Any, tmp_path: Path) -> None:
    """A rate of 0 may be an integer, as in ALBERT's."""
    rates = [name for name in kind(**SMALL).to_dict() if "dropout" in name]
    transformers.AutoModelForMaskedLM.from_config(kind(**SMALL, **dict.fromkeys(rates, 0))).save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    assert all(type(stored[name]) is int for name in rates)
    model = load.load_model(tmp_path, HEADS["token"], 3, dropout=0.25)
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.25}
    assert all(getattr(model.config, name) == 0.25 for name in rates)


def test_what_is_true_or_false_is_no_rate_of_dropout() -> None:
    kind: Any = EsmConfig
    written = kind(**SMALL).to_dict()
    assert "token_dropout" not in load._dropout_rates("esm", written) and isinstance(written["token_dropout"], bool)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_named(name: str, tmp_path: Path) -> None:
    for there in {"config.json", "model.safetensors"} - {name}:
        (tmp_path / there).write_text("{}")
    with pytest.raises(Damaged, match=f"{name} does not exist: make or fetch the encoder again") as refused:
        load.load_model(tmp_path, HEADS["sequence"], 2)
    assert refused.value.paths == (tmp_path,), "nothing asks Snakemake for one missing file of an encoder"


@pytest.mark.parametrize("damaged", ["config.json", "model.safetensors"])
def test_a_damaged_folder_of_the_users_own_is_not_to_be_deleted(
    damaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    BertForTokenClassification(config).save_pretrained(tmp_path / "own")
    (tmp_path / "own" / damaged).write_text("{")
    shutil.copytree(tmp_path / "own", tmp_path / "results/s/encoders/e")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Damaged, match="is damaged") as refused:
        load.load_model("own", HEADS["token"], 2)
    assert "delete" not in str(refused.value)
    with pytest.raises(Damaged, match="delete results/s/encoders/e and run"):
        load.load_model("results/s/encoders/e", HEADS["token"], 2)


def test_a_head_without_a_class_is_no_damage(tmp_path: Path) -> None:
    config = {"model_type": "nomic_bert", "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_text("")
    with pytest.raises(ValueError, match="no class QuestionAnswering for encoders of type nomic_bert") as refused:
        load.load_model(tmp_path, HEADS["span"], 2)
    assert not isinstance(refused.value, Damaged)


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


def test_output_embeddings_of_their_own_take_no_other_tokenizer() -> None:
    """Their rows would stay in the order of the old tokens."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = transformers.AutoModelForMaskedLM.from_config(EuroBertConfig(vocab_size=20, pad_token_id=1, **sizes))
    with pytest.raises(ValueError, match=r"output embeddings are not tied .*: leave out the `tokenizer` of the task"):
        load.change_tokenizer(model, {"a": 2}, {"a": 2}, Method())
