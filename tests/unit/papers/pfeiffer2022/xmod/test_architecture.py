"""Pre-training, fine-tuning and extending encoders with modules for languages (Pfeiffer et al. 2022)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scratch_fixture import TINY, inputs, pretrain, recipe, texts_of
from transformers import XmodForMaskedLM

from xlgrid.architectures import Architecture
from xlgrid.architectures.scratch import architecture_of
from xlgrid.data import batches
from xlgrid.data.encoders import token_ids
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.data.tokenizer import TrainedTokenizer, make_tokenizer
from xlgrid.evaluation import cell, trained
from xlgrid.heads.families import module_of
from xlgrid.models import deltas, load
from xlgrid.training import schedule
from xlgrid.training.loop import Loop, train
from xlgrid.training.pretraining import Pretraining
from xlgrid.training.processes import join
from xlgrid.training.recipe import Recipe, Training

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = {
    "study": "s",
    "encoder": "e",
    "seed": 1,
    "training": {"steps": 3, "batch_size": 4, "lr": 0.05, "evaluations": 1, "weight_decay": 0.1},
}
ADD = {"base": "xmod", "options": {"tune": "language"}}
ARCHITECTURES = ("xmod", "shared", "plain")


def scratch(architecture: str, **more: Any) -> Architecture:
    fields = {"kind": "xlmr", "architecture": architecture, "languages": ("en", "fr"), **TINY, "max_length": 64, **more}
    return architecture_of(fields)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Encoders of English and French of each architecture, a tokenizer of another language, and its text and a task in it."""
    folder: Path = tmp_path_factory.mktemp("modular")
    texts = texts_of(folder)
    for architecture in ARCHITECTURES:
        pretrain(scratch(architecture), texts, folder / architecture, micro_batches="language")
    make_text("qa1", folder / "qa1.parquet", TextSettings(sentences=60, seed=0))
    spec = TrainedTokenizer(kind="xlmr", languages=("qa1",), size=250)
    make_tokenizer(spec, [folder / "qa1.parquet"], folder / "added")
    tokenize([folder / "qa1.parquet"], folder / "added", "mlm", 64, folder / "qa1.arrow", split="train")
    (folder / "task.jsonl").write_text(
        "".join(
            json.dumps({"tokens": ["Bob", "is", "kind"][: 1 + i % 3], "ner_tags": [1, 0, 0][: 1 + i % 3]}) + "\n"
            for i in range(8)
        )
    )
    for tokenizer in (*ARCHITECTURES, "added"):
        tokenize([folder / "task.jsonl"], folder / tokenizer, "wikiann", 64, folder / f"task-{tokenizer}.arrow")
        tokenize(
            [folder / "en.parquet"],
            folder / tokenizer,
            "perplexity",
            64,
            folder / f"text-{tokenizer}.arrow",
            split="dev",
        )
    return folder


def add(world: Path, out: Path, encoder: str = "xmod", code: str = "qa1", **options: Any) -> Path:
    """An MLM run that adds a language in its own tokenizer."""
    keys = {"task": "mlm", "kind": "mlm", "method": "add", "source": code, "base": "xmod"}
    keys |= {"options": ADD["options"] | options}
    tokens = [world / "qa1.arrow"]
    train(Recipe.model_validate(NAMES | keys), world / encoder, tokens, tokens, out, tokenizer=world / "added")
    return out


def tune(
    world: Path, out: Path, encoder: str = "xmod", source: str = "en", start: Path | None = None, **more: Any
) -> Path:
    """A run on the task, which begins with a run that adds qa1 if there is one."""
    keys: dict[str, Any] = {"task": "t", "kind": "wikiann", "method": "m", "base": "xmod", "source": source}
    keys["start"] = {"task": "mlm", "method": "add", "source": "qa1"} if start else None
    tokens = [world / f"task-{'added' if start else encoder}.arrow"]
    train(Recipe.model_validate(NAMES | keys | more), world / encoder, tokens, tokens, out, start)
    return out


def evaluated(world: Path, run: Path, target: str, text: Path | None = None, encoder: str = "xmod") -> dict[str, Any]:
    tokens, out = world / f"task-{'added' if text else encoder}.arrow", run / f"{target}.json"
    cell.evaluate(run, world / encoder, tokens, {"target": target}, out, text)
    return dict(json.loads(out.read_text()))


def changed(before: dict[str, torch.Tensor], after: Any) -> set[str]:
    return {name for name, tensor in before.items() if not torch.equal(tensor, dict(after)[name])}


@pytest.mark.parametrize("architecture", ["xmod", "shared"])
def test_transformers_reads_all_weights_of_an_encoder(world: Path, architecture: str) -> None:
    model, about = XmodForMaskedLM.from_pretrained(world / architecture, output_loading_info=True)
    assert not about["missing_keys"] and not about["unexpected_keys"] and not about["mismatched_keys"]
    assert model.config.languages == (["en", "fr"] if architecture == "xmod" else ["shared"])
    assert model.config.architectures == ["XmodForMaskedLM"]


def test_pretraining_moves_all_modules(world: Path) -> None:
    weights = load_file(world / "xmod" / "model.safetensors")
    biases = {
        module_of(name): p.abs().max()
        for name, p in weights.items()
        if name.endswith("dense1.bias") and module_of(name)
    }
    assert biases.keys() == {"en", "fr"} and min(biases.values()) > 0, "biases begin with zero"


@pytest.mark.parametrize(("absent", "moves"), [("skip", False), ("zero", True)])
def test_check_2_a_module_of_an_absent_language_moves_only_where_its_gradient_is_zero(
    absent: str, moves: bool, tmp_path: Path
) -> None:
    described = scratch("xmod", absent=absent)
    files = inputs(described, texts_of(tmp_path), tmp_path / "e")
    training = Pretraining(recipe(described, steps=3, weight_decay=0.1), *files, tmp_path / "e")
    before = {name: p.detach().clone() for name, p in training.weights.items()}
    assert training.train.parts is not None
    english = np.flatnonzero(training.train.parts == 0)
    for step in range(3):
        training.advance(english[4 * step : 4 * step + 4])
    modules = {module_of(name) for name in changed(before, training.weights)}
    assert modules == ({None, "en", "fr"} if moves else {None, "en"})


def test_a_training_that_stops_before_a_language_has_come_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    """The optimiser has no state yet of the module of that language."""
    described = scratch("xmod")
    files = inputs(described, texts_of(tmp_path), tmp_path / "e")
    encoder_recipe = recipe(described, steps=4, weight_decay=0.1)

    def training(folder: str) -> Pretraining:
        return Pretraining(encoder_recipe, *files, tmp_path / folder)

    whole, cut = training("whole"), training("cut")
    assert whole.train.parts is not None
    english, french = (np.flatnonzero(whole.train.parts == part)[:4] for part in (0, 1))
    for chosen in (english, english):
        whole.advance(chosen)
        cut.advance(chosen)
    cut.save()
    resumed = training("cut")
    assert resumed.step == 2
    for chosen in (french, english):
        whole.advance(chosen)
        resumed.advance(chosen)
    assert not changed({name: p.detach() for name, p in whole.weights.items()}, resumed.weights)


def test_check_6_a_step_has_several_languages_whose_shares_follow_alpha_and_a_part_of_it_has_one(
    tmp_path: Path,
) -> None:
    from tokens_fixture import write

    sizes = {"aa": 1000, "bb": 200, "cc": 40}
    files = [write(tmp_path / code, [[5, 6, 7]] * size, "mlm") for code, size in sizes.items()]
    tokens = batches.mix([batches.read(path, code) for path, code in zip(files, sizes, strict=True)], 1)
    settings = Training(steps=400, batch_size=64, alpha=0.7, micro_batches="language")
    assert tokens.parts is not None
    drawn = np.zeros(3)
    loop = Loop.__new__(Loop)
    loop.train, loop.settings, loop.limit, loop.processes = tokens, settings, None, join(torch.device("cpu"))
    for chosen in schedule.stream(tokens, settings, 1, schedule.plan(tokens, settings, 1)):
        assert len(np.unique(tokens.parts[chosen])) >= 2
        assert all(len(np.unique(tokens.parts[part])) == 1 for part in loop.cut(chosen))
        drawn += np.bincount(tokens.parts[chosen], minlength=3)
    weights = np.array([*sizes.values()]) ** 0.7
    assert np.abs(drawn / drawn.sum() - weights / weights.sum()).max() < 0.01


def test_fine_tuning_trains_the_shared_weights_only(world: Path, tmp_path: Path) -> None:
    for encoder in ARCHITECTURES:
        stored = load_file(tune(world, tmp_path / encoder, encoder) / deltas.DELTA)
        assert not any("embeddings" in name or module_of(name) for name in stored), encoder
        assert any(".attention." in name for name in stored) and any("classifier" in name for name in stored)
    full = load_file(tune(world, tmp_path / "full", base="full-ft", start=None) / deltas.DELTA)
    assert any("word_embeddings" in name for name in full)
    assert not any(module_of(name) for name in full), "of the modules none has trained"


def test_check_1_the_stack_of_a_cell_names_the_module_that_computed(world: Path, tmp_path: Path) -> None:
    run = tune(world, tmp_path / "run")
    english, french = evaluated(world, run, "en"), evaluated(world, run, "fr")
    assert (english["stack"], french["stack"]) == (["module:en"], ["module:fr"])
    data = batches.read(world / "task-xmod.arrow", "fr")
    model = trained.model_of(trained.read(run), world / "xmod", data)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if module_of(name) == "en":
                parameter.fill_(float("nan"))
    logits = _logits(model, run, data)
    assert not logits.isnan().any(), "the module of English has no part in French"
    assert _logits(model, run, batches.read(world / "task-xmod.arrow", "en")).isnan().any()


def _logits(model: Any, run: Path, data: Any) -> torch.Tensor:
    from xlgrid.heads import HEADS
    from xlgrid.models import prediction

    head, rows = HEADS[data.head], np.arange(len(data))
    batch = head.collate(data, rows, False)
    batch |= prediction.extras(model, trained.read(run).method, data, rows, training=False)
    with torch.no_grad():
        return head.scores(model.eval(), batch)[0]


@pytest.mark.parametrize("encoder", ARCHITECTURES)
def test_check_7_an_added_language_has_what_it_needs_and_no_more(world: Path, tmp_path: Path, encoder: str) -> None:
    stored = load_file(add(world, tmp_path / "add", encoder) / deltas.DELTA)
    parts = {name.partition(".embeddings.")[2] for name in stored if "embeddings" in name}
    assert parts == {"word_embeddings.weight", "position_embeddings.weight"}
    modules = {module_of(name) for name in stored if "embeddings" not in name}
    assert modules == ({"added"} if encoder == "xmod" else set())
    rows = stored["roberta.embeddings.word_embeddings.weight"]
    assert len(rows) == len(token_ids(world / "added"))
    before = load_file(world / encoder / "model.safetensors")
    assert not torch.equal(
        stored["roberta.embeddings.position_embeddings.weight"], before["roberta.embeddings.position_embeddings.weight"]
    )


@pytest.mark.parametrize("encoder", ARCHITECTURES)
def test_check_7_pretrained_languages_are_byte_equal_with_an_added_language(
    world: Path, tmp_path: Path, encoder: str
) -> None:
    text = add(world, tmp_path / "add", encoder)
    with_added = tune(world, tmp_path / "with", encoder)
    without = tune(world, tmp_path / "without", encoder, **{"start": None})
    weights = [load_file(run / deltas.DELTA) for run in (with_added, without)]
    assert weights[0].keys() == weights[1].keys() and not changed(*weights)
    for target in ("en", "fr"):
        first, second = (evaluated(world, run, target, encoder=encoder) for run in (with_added, without))
        assert (first["outcomes"], first["stack"]) == (second["outcomes"], second["stack"])
    added = evaluated(world, with_added, "qa1", text, encoder)
    modules = {"xmod": ["module:qa1"], "shared": ["module:shared"], "plain": []}[encoder]
    assert added["stack"] == ["embeddings:qa1", *modules]
    data = batches.read(world / "task-added.arrow", "qa1")
    model = trained.model_of(trained.read(with_added), world / encoder, data, text)
    expected = load_file(text / deltas.DELTA)
    assert not changed(expected, deltas.named_parameters(model).items()), (
        "module, embeddings and positions of the added language"
    )


def test_a_run_whose_source_is_added_leaves_pretrained_targets_their_embeddings(world: Path, tmp_path: Path) -> None:
    """The second of the two models of figure 5 has English added."""
    text = add(world, tmp_path / "add")
    run = tune(world, tmp_path / "run", source="qa1", start=text)
    model = trained.model_of(trained.read(run), world / "xmod", batches.read(world / "task-xmod.arrow", "fr"))
    encoder = load_file(world / "xmod" / "model.safetensors")
    for name in ("word_embeddings", "position_embeddings"):
        table = f"roberta.embeddings.{name}.weight"
        assert torch.equal(deltas.named_parameters(model)[table], encoder[table])
    assert evaluated(world, run, "fr")["stack"] == ["module:fr"]
    assert evaluated(world, run, "qa1", text)["stack"] == ["embeddings:qa1", "module:qa1"]


@pytest.mark.parametrize("overlap", ["copy", "random"])
def test_new_embeddings_begin_with_those_of_tokens_that_both_tokenizers_have(
    world: Path, tmp_path: Path, overlap: str
) -> None:
    keys = {"task": "mlm", "kind": "mlm", "method": "add", "source": "qa1", "base": "xmod"}
    run_recipe = Recipe.model_validate(NAMES | keys | {"options": {"tune": "language", "overlap": overlap}})
    tokens = [world / "qa1.arrow"]
    model = Loop(run_recipe, world / "xmod", tokens, tokens, tmp_path / "run", tokenizer=world / "added").model
    before, after = token_ids(world / "xmod"), token_ids(world / "added")
    old = load_file(world / "xmod" / "model.safetensors")["roberta.embeddings.word_embeddings.weight"]
    same = [torch.equal(model.get_input_embeddings().weight[after[t]], old[before[t]]) for t in after if t in before]
    assert len(same) > 5 and set(same) == {overlap == "copy"}


def test_a_language_without_a_module_is_refused_before_the_first_step(world: Path, tmp_path: Path) -> None:
    message = "the encoder has no module of unknown language 'de'"
    with pytest.raises(ValueError, match=message):
        tune(world, tmp_path / "run", source="de")
    run = tune(world, tmp_path / "fine")
    with pytest.raises(ValueError, match="has no module of unknown language 'qa1'"):
        evaluated(world, run, "qa1")
    with pytest.raises(ValueError, match="has a pre-trained module for fr, which is not replaced"):
        add(world, tmp_path / "add", code="fr")


def test_perplexity_is_that_of_the_language_s_module(world: Path, tmp_path: Path) -> None:
    cells = {}
    for encoder in ("xmod", "shared"):
        for target in ("en", "fr"):
            identity = {
                "study": "s",
                "task": "ppl",
                "encoder": encoder,
                "method": "as-is",
                "source": "none",
                "target": target,
            }
            out = tmp_path / f"{encoder}-{target}.json"
            cell.evaluate_bare(identity | {"seed": 1}, world / encoder, world / f"text-{encoder}.arrow", out)
            cells[encoder, target] = json.loads(out.read_text())
    assert [cells["xmod", code]["stack"] for code in ("en", "fr")] == [["module:en"], ["module:fr"]]
    assert cells["xmod", "en"]["outcomes"] != cells["xmod", "fr"]["outcomes"], "the same text for both"
    assert cells["shared", "en"]["outcomes"] == cells["shared", "fr"]["outcomes"]
    with pytest.raises(ValueError, match="no module of unknown language 'de'"):
        cell.evaluate_bare({"target": "de", "task": "ppl"}, world / "xmod", world / "text-xmod.arrow", tmp_path / "c")


def test_check_4_positions_of_66_have_room_for_64_tokens(world: Path, tmp_path: Path) -> None:
    from tokens_fixture import write

    from xlgrid.heads import HEADS

    model = load.load_model(world / "xmod", HEADS["mlm"], 0)
    assert model.config.max_position_embeddings == 66
    for length in (64, 65):
        data = batches.read(write(tmp_path / f"{length}.arrow", [[5] * length], "mlm"), "en")
        if length == 64:
            load.check_positions(model, data)
        else:
            with pytest.raises(ValueError, match="has 65 tokens, but the encoder takes at most 64"):
                load.check_positions(model, data)


def test_a_module_that_the_files_lack_is_not_drawn_at_random(world: Path, tmp_path: Path) -> None:
    import shutil

    from xlgrid.heads import HEADS

    shutil.copytree(world / "xmod", tmp_path / "e")
    config = json.loads((tmp_path / "e" / "config.json").read_text())
    (tmp_path / "e" / "config.json").write_text(json.dumps(config | {"languages": ["en", "fr", "de"]}))
    with pytest.raises(ValueError, match=r"it has no roberta.*adapter_modules\.de\.dense1\.bias"):
        load.load_model(tmp_path / "e", HEADS["mlm"], 0)
