"""Adapters of others become an MLM run like any other, which says where they are from."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import surprisal
import torch
from plan_fixture import begun
from safetensors.torch import load_file
from study_fixture import STARTED, write
from transformers import BertConfig, BertForMaskedLM

from xlgrid.data import lock
from xlgrid.heads import HEADS
from xlgrid.methods import make
from xlgrid.models import deltas
from xlgrid.models.load import load_model
from xlgrid.papers.pfeiffer2020.adapters import fetch, import_adapter
from xlgrid.papers.pfeiffer2020.imported import HubAdapters, ImportedAdapters
from xlgrid.plan.load import load_study
from xlgrid.plan.plan import Plan
from xlgrid.products.train import Run
from xlgrid.results import records
from xlgrid.study.methods import MethodEntry
from xlgrid.training.recipe import Recipe

DATA = Path(__file__).parent / "madx" / "adapters" / "bert"
FILES = ["adapter_config.json", "adapter.safetensors", "pytorch_adapter.bin"]
OPTIONS = {"tune": "language"}
RECIPE = Recipe.model_validate(
    {"study": "s", "task": "mlm", "kind": "mlm", "encoder": "e", "method": "adapter", "base": "madx"}
    | {"options": OPTIONS, "source": "qu", "seed": 1, "training": {}}
)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """An encoder of the shape that the adapters are for."""
    config = BertConfig(**json.loads((DATA / "config.json").read_text()))
    BertForMaskedLM(config).save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """One that the `adapters` library has saved."""
    return Path(shutil.copytree(DATA / "lang", tmp_path / "qu"))


def test_what_is_read_is_what_others_begin_with(encoder: Path, adapter: Path, tmp_path: Path) -> None:
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    method = make("madx", {})
    model = load_model(encoder, HEADS["sequence"], 2)
    method.install(model)
    deltas.load_mlm_run(tmp_path / "run", model, method)
    there = torch.load(adapter / "pytorch_adapter.bin", weights_only=True)
    ours = dict(model.named_parameters())["bert.encoder.layer.0.output.LayerNorm.language.up.weight"]
    assert torch.equal(ours, there["bert.encoder.layer.0.output.adapters.lang.adapter_up.weight"])
    assert records.read_curves([tmp_path / "run"]).empty


def test_the_record_says_where_it_is_from_and_what_it_holds(encoder: Path, adapter: Path, tmp_path: Path) -> None:
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    record = deltas.read_run(tmp_path / "run")
    assert record["imported"] == {"path": str(adapter)}
    stored = load_file(tmp_path / "run" / "delta.safetensors")
    assert (record["digest"], record["labels"]) == (RECIPE.digest(), [])
    model = BertForMaskedLM.from_pretrained(encoder)
    make("madx", OPTIONS).install(model)
    trained = sum(tensor.numel() for tensor in stored.values())
    assert record["parameters"] == {"trained": trained, "total": model.num_parameters()}
    (encoder / "model.safetensors").write_bytes(b"of which only a digest is kept")
    weights = torch.load(adapter / "pytorch_adapter.bin", weights_only=True)
    torch.save({name: tensor + 1 for name, tensor in weights.items()}, adapter / "pytorch_adapter.bin")
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    assert deltas.read_run(tmp_path / "run")["inputs"] != record["inputs"]


def test_the_record_has_the_metric_of_the_head(
    encoder: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    assert deltas.read_run(tmp_path / "run")["metric"] == "accuracy"
    monkeypatch.setattr(HEADS["mlm"], "all_metrics", (surprisal.SURPRISAL,))
    import_adapter(RECIPE, encoder, str(adapter), tmp_path / "run")
    assert deltas.read_run(tmp_path / "run")["metric"] == "surprisal"


def test_an_encoder_that_is_not_there_is_named(adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"encoder has no config\.json: make or fetch the encoder again"):
        import_adapter(RECIPE, tmp_path / "encoder", str(adapter), tmp_path / "run")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"no folder {tmp_path / 'xx'}: check `imported`"):
        fetch(str(tmp_path / "xx"))


def test_a_repository_is_fetched_at_the_locked_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, requests = "a" * 40, []

    def download(repo: str, revision: str, allow_patterns: list[str]) -> str:
        requests.append((repo, revision, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr(lock, "commit", lambda *arguments: commit)
    assert fetch("Hub/qu", "v1", tmp_path / "lock") == (
        tmp_path,
        {"hub": "Hub/qu", "revision": "v1", "commit": commit},
    )
    assert requests == [("Hub/qu", commit, FILES)]

    def fail(*_: Any, **__: Any) -> str:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(ValueError, match="cannot fetch Hub/qu at aaaaaaa: OSError: no network"):
        fetch("Hub/qu", "v1", tmp_path / "lock")


def test_an_mlm_run_is_imported_where_its_method_says_so() -> None:
    study = begun()
    imported = study.methods["mlm"].model_validate({"base": "madx", "imported": {"path": "x/{language}"}})
    plan = Plan(study.model_copy(update={"methods": study.methods | {"mlm": imported}}))
    run = Run("begun", "mlm", "mini", "mlm", "fr", 1)
    assert run.inputs(plan)["files"] == [f"x/fr/{name}" for name in ("adapter_config.json", "adapter.safetensors")]
    assert (run.settings(plan.study)["place"], run.repository(plan.study)) == ("x/fr", None)
    inputs_of_runs = {run: {*run.inputs(plan)} for run in plan.runs}
    assert {run.task for run, names in inputs_of_runs.items() if "files" in names} == {"mlm"}
    assert all(("files" in names) != ("train" in names) for names in inputs_of_runs.values())
    assert not any("files" in run.inputs(Plan(study)) for run in Plan(study).runs)


def test_weights_are_read_under_the_names_that_others_gave() -> None:
    names = {"xlmr": "xlm-roberta-base", "zhyue": "zh_yue"}
    adapters = HubAdapters(hub="Hub/{encoder}-{language}-wiki", names=names)
    assert adapters.named("zhyue", "xlmr") == "Hub/xlm-roberta-base-zh_yue-wiki"
    assert adapters.named("qu", "bert") == "Hub/bert-qu-wiki"
    imported = ImportedAdapters(adapters)
    run = Run("s", "mlm", "xlmr", "adapter", "qu", 1)
    assert imported.repository(run) == ("model", "Hub/xlm-roberta-base-qu-wiki", "main") and imported.inputs(
        run, Plan(begun())
    ) == {"files": []}


def test_an_entry_with_imported_adapters_comes_back_from_its_dump() -> None:
    entry = MethodEntry.model_validate(
        {"base": "madx", "options": {"tune": "language"}, "imported": {"path": "x/{language}"}}
    )
    assert MethodEntry.model_validate(entry.model_dump(mode="json")) == entry


@pytest.mark.usefixtures("queries")
@pytest.mark.parametrize(
    ("imported", "message"),
    [
        ({"path": "x/{language}"}, "only language adapters can be imported: .*base: madx"),
        ({"path": "x/{lang}"}, "'lang' in braces"),
        ({"path": "x", "hub": "y/z"}, "exactly one"),
        ({"path": "x"}, "'x' is the same for every language"),
    ],
)
def test_a_mistake_is_told_before_any_job(tmp_path: Path, imported: dict[str, str], message: str) -> None:
    text = STARTED.replace("full-ft: {}", f"full-ft: {{imported: {json.dumps(imported)}}}")
    with pytest.raises(ValueError, match=f"methods.full-ft.imported: .*{message}"):
        load_study(write(tmp_path, text))
