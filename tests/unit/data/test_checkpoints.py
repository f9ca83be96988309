"""Published checkpoints, tiny and random: pickled or not, in several files, cut to their first layers."""

import json
import pickle
import re
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from scratch_fixture import TINY, encoder_of
from tokenizers import Tokenizer
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    AutoModelForMaskedLM,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    EuroBertConfig,
    MBartConfig,
    ModernBertConfig,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XmodConfig,
)
from xmod_fixture import batch, moved, save

from xlgrid.base.errors import Damaged
from xlgrid.data import checkpoints
from xlgrid.data.encoders import copy_encoder, encoder_files, fetch_encoder
from xlgrid.data.tokenizer import specials
from xlgrid.heads import HEADS
from xlgrid.models.load import load_model

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder_of(tmp_path_factory.mktemp("tokenizer"), "xlmr")


@pytest.fixture
def published(tokenizer: Path) -> Any:
    """A model of transformers with an embedding for each token of the tokenizer."""
    entries = Tokenizer.from_file(str(tokenizer / "tokenizer.json")).get_vocab_size()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    torch.manual_seed(2)
    config = XLMRobertaConfig(**sizes, vocab_size=entries, max_position_embeddings=66, type_vocab_size=1)
    return moved(XLMRobertaForMaskedLM(config))


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    """The logits of a model, or of the encoder in a folder."""
    model = load_model(model, HEADS["mlm"], 0).eval() if isinstance(model, Path) else model
    answered: torch.Tensor = model(**batch(3)).logits
    return answered


def halves(source: Path, kind: str) -> Path:
    """Write the weights in a folder to two files and an index, of this type, in place of the file that it has."""
    weights = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    stem, names = kind.partition(".")[0], sorted(weights)
    parts = {f"{stem}-0000{i}-of-00002.{kind.partition('.')[2]}": names[i - 1 :: 2] for i in (1, 2)}
    for file, of_file in parts.items():
        tensors = {name: weights[name] for name in of_file}
        (save_file if kind.endswith("safetensors") else torch.save)(tensors, source / file)
    index = {"metadata": {}, "weight_map": {name: file for file, of_file in parts.items() for name in of_file}}
    (source / f"{kind}.index.json").write_text(json.dumps(index))
    return source


def published_as(layout: str, published: Any, folder: Path) -> Path:
    """A checkpoint whose weights are in one of the layouts of the Hub."""
    source = save(published, folder, pickled="pickle" in layout)
    if layout == "pickle before torch 1.6":
        weights = torch.load(source / checkpoints.PICKLED)
        torch.save(weights, source / checkpoints.PICKLED, _use_new_zipfile_serialization=False)
    return halves(source, layout) if layout in SHARDED else source


SHARDED = ("model.safetensors", "pytorch_model.bin")
WHOLE = ("one file", "pickle", "pickle before torch 1.6")


@pytest.mark.parametrize("layout", [*WHOLE, *SHARDED])
def test_a_published_checkpoint_gives_the_logits_of_transformers(
    published: Any, tokenizer: Path, tmp_path: Path, layout: str
) -> None:
    source = published_as(layout, published, tmp_path / "published")
    needed = {Path(file).name for file in encoder_files(source)}
    assert needed == {file.name for file in source.iterdir()}
    copy_encoder(source, tokenizer, tmp_path / "taken")
    written = {file.name for file in (tmp_path / "taken").iterdir()}
    assert not written & needed - {"config.json", "model.safetensors"} and "model.safetensors" in written
    names = load_file(tmp_path / "taken" / "model.safetensors").keys()
    assert len([name for name in names if "embeddings.word" in name or "decoder.weight" in name]) == 1, (
        "tied, so stored once"
    )
    assert torch.equal(logits(tmp_path / "taken"), logits(published))
    read, about = XLMRobertaForMaskedLM.from_pretrained(tmp_path / "taken", output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"]
    assert torch.equal(logits(read.eval()), logits(published))


def test_a_tokenizer_with_another_padding_is_refused(published: Any, tmp_path: Path) -> None:
    other = encoder_of(tmp_path, "bert")
    assert specials("bert")["pad"] == "[PAD]" and TINY["vocab"] >= 300
    with pytest.raises(ValueError, match="its padding has the id 0, and the padding of the encoder has the id 1"):
        copy_encoder(save(published, tmp_path / "published"), other, tmp_path / "taken")


class Code:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("ran"),)


def test_no_code_in_a_checkpoint_is_run(
    published: Any, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = save(published, tmp_path / "published", pickled=True)
    torch.save({"w": Code()}, source / checkpoints.PICKLED)
    with pytest.raises(Damaged, match="is damaged, or contains objects that are not tensors"):
        copy_encoder(source, tokenizer, tmp_path / "taken")
    (source / checkpoints.PICKLED).write_bytes(pickle.dumps({"w": 1})[:-3])
    with pytest.raises(Damaged, match="is damaged"):
        copy_encoder(source, tokenizer, tmp_path / "taken")
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"roberta.embeddings.position_ids": torch.arange(66)}, r"pytorch_model\.bin has no floating-point numbers"),
        ({}, r"pytorch_model\.bin has no floating-point numbers"),
        ({"conv1.weight": torch.ones(3, 3)}, "weights of .*published lack embeddings"),
    ],
    ids=["integers", "nothing", "another model"],
)
def test_weights_of_no_encoder_are_refused(
    published: Any, tokenizer: Path, tmp_path: Path, tensors: dict[str, torch.Tensor], problem: str
) -> None:
    source = save(published, tmp_path / "published", pickled=True)
    torch.save(tensors, source / checkpoints.PICKLED)
    with pytest.raises(Damaged, match=problem):
        copy_encoder(source, tokenizer, tmp_path / "taken")
    assert not (tmp_path / "taken").exists()


def test_a_ref_is_a_revision_and_pickled_weights_are_fetched_only_where_there_are_no_others(
    published: Any, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    folders = {
        "refs/pr/1": save(published, tmp_path / "converted"),
        "main": save(published, tmp_path / "published", pickled=True),
    }
    commits = {"refs/pr/1": "a" * 40, "main": "b" * 40}
    downloads: list[tuple[str, list[str]]] = []

    class Hub:
        def repo_info(self, repo: str, revision: str, repo_type: str, timeout: float) -> Any:
            if revision not in commits:
                raise huggingface_hub.errors.OfflineModeIsEnabled(f"Revision Not Found: {revision}")
            return type("Info", (), {"sha": commits[revision]})

    def download(hub: str, revision: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        downloads.append((revision, allow_patterns))
        return str(next(folders[ref] for ref, commit in commits.items() if commit == revision))

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    lock = tmp_path / "lock.yaml"
    for revision in folders:
        fetch_encoder("some/encoder", revision, tokenizer, tmp_path / revision, lock)
        assert torch.equal(logits(tmp_path / revision), logits(tmp_path / "refs/pr/1"))
    pickled = [commit for commit, patterns in downloads if checkpoints.PICKLED in patterns]
    assert pickled == [commits["main"]]
    assert f"model/some/encoder@refs/pr/1: {'a' * 40}" in lock.read_text()
    with pytest.raises(ValueError, match=r"cannot get the commit of model some/encoder at refs/pr/9"):
        fetch_encoder("some/encoder", "refs/pr/9", tokenizer, tmp_path / "other", lock)


@pytest.mark.parametrize("kind", SHARDED)
def test_a_shard_that_is_missing_or_damaged_is_named(
    published: Any, tokenizer: Path, tmp_path: Path, kind: str
) -> None:
    source = published_as(kind, published, tmp_path / "published")
    [first, last] = sorted(file for file in source.iterdir() if "-of-" in file.name)
    whole = last.read_bytes()

    def refused(match: str) -> None:
        with pytest.raises(Damaged, match=match):
            copy_encoder(source, tokenizer, tmp_path / "taken")
        assert not (tmp_path / "taken").exists()

    last.write_bytes(whole[:-200])
    refused(rf"{last.name} is damaged")
    last.unlink()
    refused(rf"has no {last.name}, one of the 2 files with its weights: copy or download it again")
    last.write_bytes(first.read_bytes())
    refused(rf"{last.name} has no .*, which {kind}.index.json lists")
    (source / f"{kind}.index.json").write_text('{"weight_map": {}}')
    refused(rf"{kind}.index.json is damaged, or is not an index")
    (source / f"{kind}.index.json").write_text("version https://git-lfs.github.com/spec/v1\n")
    refused(rf"{kind}.index.json is a pointer of Git LFS")
    (source / f"{kind}.index.json").unlink()
    refused(rf"weights in several files, such as {first.name}, without {kind}.index.json: add this file")


@pytest.mark.parametrize("layout", [*WHOLE, *SHARDED])
def test_no_more_is_fetched_than_the_weights_once(
    published: Any, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    import huggingface_hub

    source, cache = published_as(layout, published, tmp_path / "published"), tmp_path / "models--some--encoder"
    expected = {file.name for file in source.iterdir()}
    (source / "flax_model.msgpack").write_bytes(b"the same again")
    if layout in ("one file", "model.safetensors"):
        (source / checkpoints.PICKLED).write_bytes(b"the same again")

    def download(hub: str, revision: str, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        cache.mkdir(exist_ok=True)
        for file in source.iterdir():
            if any(file.match(pattern) for pattern in allow_patterns):
                shutil.copy(file, cache)
        return str(cache)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    fetch_encoder("some/encoder", "a" * 40, tokenizer, tmp_path / "taken", tmp_path / "lock.yaml")
    assert {file.name for file in cache.iterdir()} == expected
    assert torch.equal(logits(tmp_path / "taken"), logits(published))


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["model.safetensors", "model-00001-of-00002.safetensors"], None),
        (["pytorch_model.bin.index.json", "pytorch_model.bin"], None),
        (["model.safetensors.index.json", "model-00001-of-00001.safetensors"], None),
        (["model.safetensors.index.json", "model-00001-of-00002.safetensors"], "lacks model-00002-of-00002.safetensors:"),
        (["model.safetensors.index.json", "pytorch_model-00001-of-00001.bin"], "has none of the files that model.safetensors.index.json names"),
        (["model.safetensors.index.json", "model-001-of-003.safetensors", "model-003-of-003.safetensors"], "lacks model-002-of-003.safetensors:"),
        (["model.safetensors.index.json", "layers.safetensors"], None),
        (["model-00001-of-00002.safetensors"], "without model.safetensors.index.json"),
        (["flax_model.msgpack"], "but flax_model.msgpack, weights for Flax: .* as the `path` of the encoder"),
        (["tf_model.h5"], "but tf_model.h5, weights for TensorFlow"),
        (["onnx/model.onnx"], "but onnx/model.onnx, weights for ONNX"),
        (["adapter_model.safetensors"], "for an adapter only"),
        (["README.md"], "neither model.safetensors nor pytorch_model.bin: name"),
    ],
)  # fmt: skip
def test_names_of_files_say_whether_weights_are_there(names: list[str], problem: str | None) -> None:
    told = checkpoints.weights_problem("it", names)
    assert told is None if problem is None else told and re.search(problem, told), told


# Sizes for types whose defaults are those of large models.
SMALL = {
    "hidden_size": 16, "dim": 16, "num_hidden_layers": 1, "n_layers": 1, "num_attention_heads": 2, "n_heads": 2,
    "intermediate_size": 16, "hidden_dim": 16, "vocab_size": 30, "embedding_size": 16,
    "entity_vocab_size": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        "albert", "bert", "big_bird", "camembert", "data2vec-text", "deberta-v2", "distilbert", "electra", "esm", "ibert",
        "longformer", "luke", "markuplm", "modernbert", "nomic_bert", "rembert", "roberta", "roberta-prelayernorm",
        "xlm", "xlm-roberta", "xlm-roberta-xl",
    ],
)  # fmt: skip
def test_the_types_that_count_positions_by_padding_are_those_whose_outputs_depend_on_its_id(kind: str) -> None:
    """Two models with the same weights, and with other ids of padding, encode tokens that have both of these ids."""
    defaults = CONFIG_MAPPING[kind]()
    sizes = {name: size for name, size in SMALL.items() if hasattr(defaults, name)}
    first, second = (AutoModel.from_config(CONFIG_MAPPING[kind](**sizes, pad_token_id=i)).eval() for i in (0, 1))
    second.load_state_dict(first.state_dict())
    ids, mask = torch.tensor([[5, 6, 0, 1, 8, 9, 1, 1]]), torch.tensor([[1] * 6 + [0, 0]])
    with torch.no_grad():
        states = [model(ids, attention_mask=mask).last_hidden_state[:, :6] for model in (first, second)]
    assert checkpoints.counts_padding(first.config.to_dict(), 1) is not torch.allclose(*states, atol=1e-6)


def test_mpnet_counts_positions_by_padding_of_one_id_alone() -> None:
    assert checkpoints.counts_padding({"model_type": "mpnet", **SMALL}, 0)


SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 8}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
DEEP = {
    "bert": BertConfig(**SIZES),
    "xlm-roberta": XLMRobertaConfig(**SIZES),
    "xmod": XmodConfig(**SIZES, languages=["en_XX"], default_language="en_XX"),
    "distilbert": DistilBertConfig(vocab_size=30, dim=8, n_layers=3, n_heads=2, hidden_dim=8),
    "modernbert": ModernBertConfig(**SIZES, **IDS, global_attn_every_n_layers=2),
    "eurobert": EuroBertConfig(**SIZES, **IDS, num_key_value_heads=2),
    "deberta-v2": DebertaV2Config(**SIZES),
}


@pytest.mark.parametrize("maker", [AutoModel, AutoModelForMaskedLM])
@pytest.mark.parametrize("kind", [*DEEP])
def test_the_first_layers_compute_what_they_compute_in_the_whole_encoder(kind: str, maker: Any, tmp_path: Path) -> None:
    torch.manual_seed(4)
    whole = maker.from_config(deepcopy(DEEP[kind])).eval()
    whole.save_pretrained(tmp_path)
    checkpoints.keep_layers(tmp_path, 2)
    shorter, about = maker.from_pretrained(tmp_path, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"], "later layers are not kept, and all others are"
    assert shorter.config.num_hidden_layers == 2
    ids = torch.tensor([[3, 4, 5, 6]])
    lists = [each for each in whole.base_model.modules() if isinstance(each, torch.nn.ModuleList)]
    [layers] = [each for each in lists if len(each) == 3]
    del layers[2]
    with torch.no_grad():
        expected, states = (model.base_model.eval()(ids).last_hidden_state for model in (whole, shorter))
    assert torch.equal(expected, states)


def test_more_layers_than_there_are_are_refused(tokenizer: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`layers` keeps the first 2 layers, but the encoder has 1: lower it"):
        copy_encoder(tokenizer, tokenizer, tmp_path / "copy", layers=2)
    assert not (tmp_path / "copy").exists(), "nothing is left behind"
    with pytest.raises(ValueError, match=r"`layers` needs an encoder with .* got one of type mbart"):
        checkpoints.first_layers(MBartConfig().to_dict(), 1)
    with pytest.raises(ValueError, match=r"config\.json is not a mapping of names to values: check the folder"):
        checkpoints.first_layers([], 1)  # type: ignore[arg-type]


def test_weights_without_the_names_of_layers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "num_hidden_layers": 2}')
    save_file({"h.0.weight": torch.ones(1), "h.1.weight": torch.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"first 1 of 2 layers, but the names of the weights .* of type gpt2"):
        checkpoints.keep_layers(tmp_path, 1)
    checkpoints.keep_layers(tmp_path, 2)


def test_a_copy_with_fewer_layers_says_so(tmp_path: Path) -> None:
    origin = encoder_of(tmp_path, "bert", layers=2)
    copy_encoder(origin, origin, tmp_path / "copy", layers=1)
    assert json.loads((tmp_path / "copy" / "encoder.json").read_text())["layers"] == 1
    names = load_file(tmp_path / "copy" / "model.safetensors").keys()
    assert any(".layer.0." in name for name in names) and not any(".layer.1." in name for name in names)
    assert {name for name in load_file(origin / "model.safetensors") if ".layer.1." not in name} == names
