"""A cell is what its run computes on its tokens, and a spoilt run says so."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokens_fixture import write
from transformers import BertConfig, BertForSequenceClassification, BertModel, XLMRobertaConfig, XLMRobertaModel

from xlgrid.base.errors import Damaged
from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.evaluation.cell import evaluate
from xlgrid.languages.sources import Target
from xlgrid.results import records
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

HEAVY = ("pandas", "datasets", "seqeval", "sklearn", "snakemake", "matplotlib")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=["sequence", "token"])
def cell_inputs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = XLMRobertaConfig(vocab_size=40, max_position_embeddings=40, pad_token_id=1, type_vocab_size=1, **size)
    XLMRobertaModel(config).save_pretrained(folder / "encoder")
    rng = np.random.default_rng(1)
    ids = [rng.integers(5, 40, rng.integers(3, 20)).tolist() for _ in range(40)]
    tokens = write(folder / "t.arrow", ids, request.param)
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}
    training = {"steps": 40, "batch_tokens": 128, "lr": 5e-3, "evaluations": 4}
    recipe = Recipe.model_validate({**names, "base": "full-ft", "training": training})
    train(recipe, folder / "encoder", [tokens], [tokens], folder / "run")
    return {"run": folder / "run", "encoder": folder / "encoder", "tokens": tokens, "identity": {"target": "fr"}}


def test_a_cell_on_the_dev_set_repeats_the_best_dev_score(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    evaluate(**cell_inputs, out=tmp_path / "cell.json")
    cell = records.read_cell(tmp_path / "cell.json")
    record = json.loads((cell_inputs["run"] / "run.json").read_text())
    assert cell["scores"]["accuracy"] == record["dev_score"]
    assert (cell["target"], cell["n"], cell["digest"]) == ("fr", 40, record["digest"])
    assert cell["cpu_seconds"] > 0 and cell["seconds"] > 0
    for made in (record, cell):
        assert made["versions"]["xlgrid"] == version("xlgrid") and made["command"] and "commit" in made


def test_a_cell_may_be_of_another_study_than_its_run(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    evaluate(**{**cell_inputs, "identity": {"study": "more", "target": "fr"}}, out=tmp_path / "cell.json")
    assert records.read_cell(tmp_path / "cell.json")["study"] == "more"


@pytest.mark.parametrize(("axis", "value"), [("task", "u"), ("method", "n"), ("source", "de"), ("seed", 2)])
def test_a_cell_of_another_run_is_refused(
    cell_inputs: dict[str, Any], tmp_path: Path, axis: str, value: object
) -> None:
    with pytest.raises(ValueError, match=f"the cell has {axis} {value}, and .* is a run of {axis}"):
        evaluate(**{**cell_inputs, "identity": {"target": "fr", axis: value}}, out=tmp_path / "cell.json")


def test_the_outcomes_give_the_score(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    evaluate(**cell_inputs, out=tmp_path / "cell.json")
    cell = records.read_cell(tmp_path / "cell.json")
    right = [np.equal(*outcome) for outcome in records.outcomes("cell.json", cell)]
    assert 100 * np.hstack(right).mean() == pytest.approx(cell["scores"]["accuracy"])
    without = {**cell, "scores": {}}
    assert {name: records.score("cell.json", without, name) for name in cell["scores"]} == cell["scores"]


@pytest.mark.parametrize("segments", [True, False])
def test_a_cell_tells_bert_the_second_segment_as_its_run_did(segments: bool, tmp_path: Path) -> None:
    torch.manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertModel(BertConfig(vocab_size=40, initializer_range=0.5, **size))
    model.save_pretrained(tmp_path / "encoder")
    rng = np.random.default_rng(1)
    rows = [rng.integers(5, 40, rng.integers(3, 20)).tolist() for _ in range(40)]
    tokens = write(tmp_path / "t.arrow", rows)
    names = {"study": "s", "task": "t", "kind": "xnli", "encoder": "e", "method": "m", "source": "en", "seed": 1}
    training = {"steps": 1, "segments": segments}
    recipe = Recipe.model_validate({**names, "base": "full-ft", "training": training})
    train(recipe, tmp_path / "encoder", [tokens], [tokens], tmp_path / "run")
    evaluate(tmp_path / "run", tmp_path / "encoder", tokens, {"target": "fr"}, tmp_path / "cell.json")
    trained_model = BertForSequenceClassification.from_pretrained(tmp_path / "encoder", num_labels=3).eval()
    trained_model.load_state_dict(load_file(tmp_path / "run" / "delta.safetensors"))

    def outcome(row: list[int], segments: bool) -> list[int]:
        types = [int(segments and at >= len(row) // 2) for at in range(len(row))]
        logits = trained_model(torch.tensor([row]), token_type_ids=torch.tensor([types])).logits
        return [row[0] % 2, int(logits.argmax())]

    expected = [outcome(row, segments) for row in rows]
    assert expected != [outcome(row, not segments) for row in rows], "the types must matter here"
    assert records.outcomes("cell.json", records.read_cell(tmp_path / "cell.json")) == expected


def spoil(run: Path, how: str) -> None:
    if how == "no delta":
        (run / "delta.safetensors").unlink()
    elif how == "no record":
        (run / "run.json").unlink()
    elif how == "truncated delta":
        (run / "delta.safetensors").write_bytes((run / "delta.safetensors").read_bytes()[:-10])
    elif how == "truncated record":
        (run / "run.json").write_text((run / "run.json").read_text()[:-10])
    elif how == "another recipe":
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**record, "digest": "0" * 12}))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no delta", r"delta\.safetensors does not exist: check the path, or rerun training"),
        ("no record", r"run\.json does not exist: check the path, or rerun training"),
        ("truncated delta", r"delta\.safetensors is truncated .* rerun training"),
        ("truncated record", r"run\.json is damaged .* rerun training"),
        ("another recipe", r"belongs to recipe .* rerun training"),
    ],
)
def test_a_spoilt_run_names_its_file_and_writes_no_cell(
    how: str, message: str, cell_inputs: dict[str, Any], tmp_path: Path
) -> None:
    shutil.copytree(cell_inputs["run"], tmp_path / "run")
    spoil(tmp_path / "run", how)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        evaluate(**{**cell_inputs, "run": tmp_path / "run"}, out=tmp_path / "cell.json")
    assert not (tmp_path / "cell.json").exists()


def test_labels_of_another_training_say_what_to_make_again(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(cell_inputs["run"], run)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "labels": ["other"]}))
    with pytest.raises(Damaged, match="was trained on other: tokenize again, then rerun training") as refused:
        evaluate(**{**cell_inputs, "run": run}, out=tmp_path / "cell.json")
    assert refused.value.paths == (cell_inputs["tokens"], run)


def test_another_encoder_is_noticed(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    XLMRobertaModel(XLMRobertaConfig(vocab_size=40, max_position_embeddings=40, **size)).save_pretrained(tmp_path / "e")
    with pytest.raises(ValueError, match="does not fit the encoder"):
        evaluate(**{**cell_inputs, "encoder": tmp_path / "e"}, out=tmp_path / "cell.json")


def test_a_damaged_encoder_is_named(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(cell_inputs["encoder"], tmp_path / "e")
    path = tmp_path / "e" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"damaged .* again"):
        evaluate(**{**cell_inputs, "encoder": tmp_path / "e"}, out=tmp_path / "cell.json")


@pytest.mark.slow
@pytest.mark.parametrize("cell_inputs", ["sequence"], indirect=True)
def test_evaluating_imports_nothing_heavy(cell_inputs: dict[str, Any], tmp_path: Path) -> None:
    code = f"""
import sys
from xlgrid.evaluation.cell import evaluate
from xlgrid.methods import make
run, encoder, tokens, target, out = sys.argv[1:]
evaluate(run, encoder, tokens, {{"target": target}}, out)
print([name for name in {HEAVY} if name in sys.modules])
"""
    files = [cell_inputs[name] for name in ("run", "encoder", "tokens")]
    arguments = [*map(str, files), "fr", str(tmp_path / "cell.json")]
    process = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "[]"


START = {"task": "mlm", "method": "text"}
QUERY = "roberta.encoder.layer.0.attention.self.query"


@pytest.fixture
def evaluated(
    cell_inputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: None
) -> dict[str, Any]:
    """A run whose queries are language-specific, and that begins with the text of en; en and fr have text runs with a checkpoint, each of one number all over."""
    monkeypatch.chdir(tmp_path)
    shape = {f"{QUERY}.weight": (16, 16), f"{QUERY}.bias": (16,)}
    for place, number in {"en/delta": 1, "fr/delta": 2, "fr/step10": 3, "en/step10": 4}.items():
        path = tmp_path / f"text/{place}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path.parent)
        save_file({name: torch.full(size, float(number)) for name, size in shape.items()}, path, {"digest": "d"})
    return cell_inputs | {"run": train_from_text("queries", cell_inputs, tmp_path / "run")}


def train_from_text(base: str, cell_inputs: dict[str, Any], folder: Path) -> Path:
    """Train a run of a method that begins with the MLM run of en, and return the folder of the run."""
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "source": "en", "seed": 1}
    training = {"steps": 2, "batch_tokens": 128, "evaluations": 1}
    recipe = Recipe.model_validate({**names, "base": base, "start": START, "training": training})
    tokens = [cell_inputs["tokens"]]
    train(recipe, cell_inputs["encoder"], tokens, tokens, folder, Path("text/en"))
    return folder


def write_record(folder: Path, digest: str = "d", start: str | None = None) -> None:
    """The run.json of an MLM run in the language that the folder is named by."""
    record = {"recipe": {"source": folder.name}, "digest": digest, "labels": [], "start": start}
    (folder / "run.json").write_text(json.dumps(record))


def query_of(evaluated: dict[str, Any], target: str) -> float:
    parsed = Target(target)
    tokens, mlm_run = batches.read(evaluated["tokens"]), Path(f"text/{parsed.data}")
    model = trained.model_of(trained.read(evaluated["run"]), evaluated["encoder"], tokens, mlm_run, parsed.step)
    return float(dict(model.named_parameters())[f"{QUERY}.weight"].detach().mean())


def test_a_cell_has_the_parameters_of_its_target_as_of_the_step_it_names(
    evaluated: dict[str, Any], tmp_path: Path
) -> None:
    assert query_of(evaluated, "en") == pytest.approx(1, abs=0.1), "the run's own, whether or not trained further"
    assert [query_of(evaluated, target) for target in ("fr", "fr@10", "en@10")] == [2, 3, 4]
    evaluate(**{**evaluated, "identity": {"target": "fr@10"}}, out=tmp_path / "cell.json", mlm_run=Path("text/fr"))
    cell = records.read_cell(tmp_path / "cell.json")
    assert (cell["target"], cell["speaks"]) == ("fr@10", ["text/fr/step10.safetensors"])


def test_a_checkpoint_that_is_missing_or_of_another_training_says_what_to_delete(evaluated: dict[str, Any]) -> None:
    folder = Path("text/fr")
    with pytest.raises(Damaged, match=f"checkpoints of the steps: 10.* delete {folder}") as missing:
        query_of(evaluated, "fr@20")
    assert missing.value.paths == (folder,)
    write_record(folder, digest="other")
    with pytest.raises(ValueError, match=f"of recipe d, the run.json beside it of other: delete {folder}"):
        query_of(evaluated, "fr@10")


def test_what_is_not_language_specific_stays_that_of_the_source(
    cell_inputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "roberta.encoder.layer.0.attention.self.value.weight"
    for number, code in enumerate(("en", "fr")):
        folder = tmp_path / "text" / code
        folder.mkdir(parents=True)
        write_record(folder)
        save_file({name: torch.full((16, 16), float(number))}, folder / "delta.safetensors", {"digest": "d"})
    run = trained.read(train_from_text("bitfit", cell_inputs, tmp_path / "run"))
    tokens = batches.read(cell_inputs["tokens"])
    model = trained.model_of(run, cell_inputs["encoder"], tokens, Path("text/fr"))
    assert (dict(model.named_parameters())[name] == 0).all()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"lm_head.bias": (40,)}, "of its 1 tensors, none is of an encoder"),
        ({f"{QUERY}.weight": (16, 16), "roberta.elsewhere": (2,)}, "'roberta.elsewhere' has no place of its shape"),
    ],
)
def test_mlm_runs_of_another_encoder_are_noticed_whatever_a_cell_takes_of_them(
    evaluated: dict[str, Any], tmp_path: Path, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    tensors = {name: torch.zeros(shape) for name, shape in shapes.items()}
    save_file(tensors, tmp_path / "text/fr/delta.safetensors", {"digest": "d"})
    with pytest.raises(ValueError, match=message) as refused:
        query_of(evaluated, "fr")
    assert not isinstance(refused.value, Damaged), "the options of the methods may be wrong, and the run may be whole"


def test_a_run_without_a_word_on_its_start_has_to_be_trained_again(evaluated: dict[str, Any], tmp_path: Path) -> None:
    record = json.loads((evaluated["run"] / "run.json").read_text())
    assert (record["start"], record["first"], record["encoder"]) == ("text/en", None, str(evaluated["encoder"]))
    del record["start"]
    (evaluated["run"] / "run.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"does not say with which MLM run the run began: delete it and rerun"):
        query_of(evaluated, "fr")
