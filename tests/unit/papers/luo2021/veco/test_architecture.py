"""Pre-training with cross-attention through the loop: both stages, kills, the baseline on pairs, and what a run makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from scratch_fixture import TINY, inputs, killed_twice, recipe, texts_of
from transformers import AutoModelForMaskedLM

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import cell
from xlgrid.models import deltas
from xlgrid.papers.luo2021.veco.names import is_cross_attention
from xlgrid.training import pretraining
from xlgrid.training.loop import train
from xlgrid.training.pretraining import Pretraining, take_checkpoint
from xlgrid.training.progress import Progress
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")
Files = tuple[Path, list[Path], list[Path]]


def scratch(**more: Any) -> Architecture:
    fields = {"kind": "xlmr", "architecture": "veco", "languages": ("en", "fr"), "bitext": (("en", "fr"),)}
    fields |= {"masked": {"mono": 0.15, "bitext": 0.25}, **TINY, "layers": 2, "max_length": 64}
    return architecture_of(fields | more)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("veco")
    tokenizer, train_files, dev_files = inputs(scratch(), texts_of(folder), folder / "e")
    return tokenizer, train_files, dev_files


def pretrained(described: Architecture, files: Files, out: Path, begin: Path | None = None, **settings: Any) -> Path:
    pretraining.pretrain(recipe(described, **settings), *files, out, begin)
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(folder / "model.safetensors"))


def test_the_folder_has_both_streams_and_transformers_reads_the_first(files: Files, tmp_path: Path) -> None:
    folder = pretrained(scratch(s_stream="cross"), files, tmp_path / "e")
    stored = weights(folder)
    assert sum(map(is_cross_attention, stored)) == 2 * 10
    config = json.loads((folder / "config.json").read_text())
    assert (config["s_stream"], config["model_type"]) == ("cross", "xlm-roberta")
    model, about = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not about["missing_keys"]
    assert deltas.named_parameters(model).keys() == {name for name in stored if not is_cross_attention(name)}


def test_killed_twice_it_has_the_same_bytes(files: Files, tmp_path: Path) -> None:
    encoder_recipe = recipe(scratch(dropout=0.1), steps=8, evaluations=2, checkpoints=(4,), checkpoint_seconds=1e-9)
    whole = killed_twice(encoder_recipe, files, tmp_path)
    take_checkpoint(whole, 4, tmp_path / "early")
    assert weights(tmp_path / "early").keys() == weights(whole).keys()


def test_all_losses_fall_and_the_log_has_them(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history: list[dict[str, float]] = []
    add = Progress.add

    def noted(progress: Progress, step: int, losses: dict[str, float], *more: Any) -> None:
        history.append(losses)
        add(progress, step, losses, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "add", noted)
        pretrained(scratch(), files, tmp_path / "e", steps=60, batch_size=16, lr=0.01)
    log = capsys.readouterr().err
    for name in ("MLM", "CA-MLM", "TLM"):
        assert f" {name} " in log
        first, last = (sum(losses[name] for losses in part) / 10 for part in (history[:10], history[-10:]))
        assert last < first - 0.3, name


def test_the_first_stage_trains_cross_attention_alone_and_the_second_goes_on(files: Files, tmp_path: Path) -> None:
    plain = pretrained(scratch(architecture="plain"), files, tmp_path / "plain")
    first = pretrained(scratch(begin="plain", trains="cross-attention"), files, tmp_path / "first", plain, lr=0.05)
    before, after = weights(plain), weights(first)
    assert {name for name in after if name not in before} == {name for name in after if is_cross_attention(name)}
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items()), "XLM-R is frozen, byte by byte"
    untrained = Pretraining(recipe(scratch(begin="plain")), *files, tmp_path / "untrained", plain).trained()
    moved = [not torch.equal(after[name], untrained[name]) for name in after if is_cross_attention(name)]
    # A constant that is added to all keys changes no softmax, so that the biases of keys have no gradient.
    assert sum(moved) >= 2 * 9
    second = Pretraining(recipe(scratch(begin="first")), *files, tmp_path / "second", first)
    assert all(torch.equal(after[name], tensor) for name, tensor in second.trained().items())
    record = json.loads((first / "run.json").read_text())
    assert record["begin"] == str(plain)
    assert record["parameters"]["trained"] == sum(t.numel() for name, t in after.items() if is_cross_attention(name))


def test_another_beginning_begins_the_training_anew(files: Files, tmp_path: Path) -> None:
    plain = pretrained(scratch(architecture="plain"), files, tmp_path / "plain")
    encoder_recipe = recipe(scratch(begin="plain"))
    before = Pretraining(encoder_recipe, *files, tmp_path / "e", plain).inputs
    changed = weights(plain) | {"lm_head.bias": weights(plain)["lm_head.bias"] + 1}
    save_file(changed, plain / "model.safetensors", {"format": "pt"})
    assert Pretraining(encoder_recipe, *files, tmp_path / "other", plain).inputs != before


def test_an_encoder_of_other_sizes_is_no_beginning(files: Files, tmp_path: Path) -> None:
    other = pretrained(scratch(architecture="plain", hidden=8), files, tmp_path / "other")
    message = "`begin`: the encoder .*other has hidden_size 8, and this one 16: give both the same `hidden`"
    with pytest.raises(ValueError, match=message):
        pretrained(scratch(begin="other"), files, tmp_path / "e", other)


def test_the_call_names_the_encoder_that_the_recipe_begins_with(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"encoder plain.*add --begin"):
        pretrained(scratch(begin="plain"), files, tmp_path / "e")
    with pytest.raises(ValueError, match=r"begins with new weights, but the call names .*: leave out --begin"):
        pretrained(scratch(), files, tmp_path / "e", tmp_path)


def test_a_longer_pre_training_of_xlm_r_can_begin_with_it(files: Files, tmp_path: Path) -> None:
    plain = pretrained(scratch(architecture="plain"), files, tmp_path / "plain")
    longer = Pretraining(recipe(scratch(architecture="plain", begin="plain")), *files, tmp_path / "longer", plain)
    assert all(torch.equal(longer.trained()[name], tensor) for name, tensor in weights(plain).items())


@pytest.mark.parametrize("kind", ["xlmr", "bert"])
def test_the_baseline_has_the_objective_without_cross_attention(kind: str, tmp_path: Path) -> None:
    described = scratch(architecture="plain", kind=kind, objective="mlm+tlm")
    of_kind = inputs(described, texts_of(tmp_path), tmp_path / "v")
    folder = pretrained(described, of_kind, tmp_path / "e")
    assert not any(map(is_cross_attention, weights(folder)))
    training = Pretraining(recipe(described), *of_kind, tmp_path / "other")
    assert training.objective.loss_names == ("MLM", "TLM")


def test_shares_of_masked_tokens_change_what_is_trained(files: Files, tmp_path: Path) -> None:
    written = {"mono": 0.15, "bitext": 0.15}
    plain, same, other = (
        weights(pretrained(scratch(architecture="plain", masked=masked), files, tmp_path / name))["lm_head.bias"]
        for name, masked in (("plain", {}), ("same", written), ("other", written | {"bitext": 0.25}))
    )
    assert torch.equal(plain, same) and not torch.equal(plain, other)


def test_full_fine_tuning_leaves_the_cross_attention_out(files: Files, tmp_path: Path) -> None:
    """Plug-out: the run is that of the same encoder without these weights, byte by byte."""
    folder = pretrained(scratch(), files, tmp_path / "e")
    stripped = tmp_path / "stripped"
    stripped.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (stripped / name).write_bytes((folder / name).read_bytes())
    kept = {name: tensor for name, tensor in weights(folder).items() if not is_cross_attention(name)}
    save_file(kept, stripped / "model.safetensors", {"format": "pt"})
    rows = [{"tokens": ["Bob", "is", "kind"], "ner_tags": [1, 0, 0]}, {"tokens": ["Anne"], "ner_tags": [1]}] * 4
    (tmp_path / "task.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokenize([tmp_path / "task.jsonl"], files[0], "wikiann", 64, tmp_path / "task.arrow")
    names = {"study": "s", "task": "t", "kind": "wikiann", "encoder": "e", "method": "full-ft", "base": "full-ft"}
    run_recipe = Recipe.model_validate({**names, "source": "en", "seed": 1, "training": {"steps": 3, "evaluations": 1}})
    for encoder in (folder, stripped):
        train(
            run_recipe, encoder, [tmp_path / "task.arrow"], [tmp_path / "task.arrow"], tmp_path / f"run-{encoder.name}"
        )
    runs = [(tmp_path / f"run-{name}" / deltas.DELTA).read_bytes() for name in ("e", "stripped")]
    assert runs[0] == runs[1]


def test_a_run_with_parallel_examples_is_trained_and_evaluated_with_both_streams(files: Files, tmp_path: Path) -> None:
    """The label is that of the parallel example: which of two words it has. The inputs tell nothing."""
    folder = pretrained(scratch(), files, tmp_path / "e", steps=30, lr=0.003, batch_size=16)
    words = {"entailment": "Bob is kind", "neutral": "Anne likes dogs"}
    labels = [*words] * 40
    for name, texts in (("fr", ["Bob"] * len(labels)), ("en", [words[label] for label in labels])):
        rows = [
            {"premise": text, "hypothesis": "Bob", "label": label} for text, label in zip(texts, labels, strict=True)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tokens = tmp_path / "fr~en.arrow"
    tokenize([tmp_path / "fr.jsonl", tmp_path / "en.jsonl"], files[0], "xnli", 64, tokens)
    names = {"study": "s", "task": "t", "kind": "xnli", "encoder": "e", "method": "m", "source": "fr", "seed": 1}
    settings = {"steps": 60, "batch_size": 16, "lr": 0.01, "evaluations": 2}
    scores = {}
    for base, options in (("plug-in", {}), ("plug-in", {"shuffled": 1.0}), ("full-ft", {})):
        out = tmp_path / f"{base}{len(options)}"
        run_recipe = Recipe.model_validate({**names, "base": base, "options": options, "training": settings})
        train(run_recipe, folder, [tokens], [tokens], out)
        cell.evaluate(out, folder, tokens, {"target": "fr"}, out / "cell.json")
        scores[base, len(options)] = json.loads((out / "cell.json").read_text())
    accuracy = {name: result["scores"]["accuracy"] for name, result in scores.items()}
    assert accuracy["plug-in", 0] > 95 and accuracy["full-ft", 0] <= 51
    assert accuracy["plug-in", 1] < 75, (
        "parallel examples of other rows tell nothing, but for rows that are learnt by heart"
    )
    assert scores["plug-in", 0]["stack"] == ["parallel:en"]
    record = json.loads((tmp_path / "plug-in0" / "run.json").read_text())
    assert record["dev_score"] == pytest.approx(accuracy["plug-in", 0])
