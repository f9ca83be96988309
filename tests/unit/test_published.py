"""Published weights become a run on text like any other, which says where they are from."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from xlgrid import evaluate, lock, records
from xlgrid.methods import Method
from xlgrid.published import Text, fetch, import_adapter
from xlgrid.recipe import Recipe

WEIGHT = "bert.encoder.layer.0.output.dense.weight"


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An encoder; what reads adapters is a stand-in that takes tensors as they are."""
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertForMaskedLM(BertConfig(vocab_size=40, **size)).save_pretrained(tmp_path / "encoder")
    reader: Any = ModuleType("xlgrid.adapterhub")
    reader.CONFIG, reader.WEIGHTS = "adapter_config.json", ("adapter.safetensors",)

    def read(folder: Path, model: Any, method: Method) -> dict[str, torch.Tensor]:
        assert WEIGHT in dict(model.named_parameters()) and isinstance(method, Method)
        return load_file(folder / "adapter.safetensors")

    reader.read = read
    monkeypatch.setitem(sys.modules, "xlgrid.adapterhub", reader)
    monkeypatch.setattr("xlgrid.adapterhub", reader, raising=False)
    return tmp_path / "encoder"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    (tmp_path / "qu").mkdir()
    save_file({WEIGHT: torch.full((16, 16), 0.5)}, tmp_path / "qu/adapter.safetensors")
    return tmp_path / "qu"


RECIPE = Recipe.model_validate(
    {"study": "s", "task": "mlm", "kind": "mlm", "encoder": "e", "method": "adapter", "base": "full-ft"}
    | {"source": "qu", "seed": 1, "training": {}}
)


def test_what_is_read_is_what_others_begin_with(encoder: Path, adapter: Path, tmp_path: Path) -> None:
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    model = evaluate.load_model(encoder, Text("sequence", ("a", "b")))
    evaluate.load_start([tmp_path / "run"], model)
    assert (dict(model.named_parameters())[WEIGHT] == 0.5).all()
    assert records.read_curves([tmp_path / "run"]).empty


def test_the_record_says_where_it_is_from_and_what_it_holds(encoder: Path, adapter: Path, tmp_path: Path) -> None:
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    record = evaluate.read_run(tmp_path / "run")
    assert record["published"] == {"path": str(adapter)}
    assert (record["digest"], record["labels"], record["parameters"]["trained"]) == (RECIPE.digest(), [], 256)
    before = record["inputs"]
    save_file({WEIGHT: torch.full((16, 16), 0.6)}, adapter / "adapter.safetensors")
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    assert json.loads((tmp_path / "run/run.json").read_text())["inputs"] != before


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"no folder {tmp_path / 'xx'}: check `published`"):
        fetch(str(tmp_path / "xx"))


@pytest.mark.usefixtures("encoder")
def test_a_repository_is_fetched_at_the_locked_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, asked = "a" * 40, []

    def download(repo: str, revision: str, allow_patterns: list[str]) -> str:
        asked.append((repo, revision, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr(lock, "commit", lambda *told: commit)
    assert fetch("Hub/qu", "v1", tmp_path / "lock") == (tmp_path, {"hub": "Hub/qu", "revision": "v1", "commit": commit})
    assert asked == [("Hub/qu", commit, ["adapter_config.json", "adapter.safetensors"])]

    def fail(*_: Any, **__: Any) -> str:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(ValueError, match="cannot fetch Hub/qu at aaaaaaa: OSError: no network"):
        fetch("Hub/qu", "v1", tmp_path / "lock")
