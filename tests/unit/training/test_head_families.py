"""A language-modelling head for a headless checkpoint of every family: the encoder stays as it is, and adapters share the head."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from published_fixture import PUBLISHED, publish, take_over
from safetensors.torch import load_file
from transformers import AutoModel

from xlgrid.data.tokenize import tokenize
from xlgrid.heads import HEADS
from xlgrid.heads.families import FAMILIES
from xlgrid.methods import ALL_METHODS
from xlgrid.models.load import load_model
from xlgrid.study.encoders import EncoderWithHead
from xlgrid.training import loop, pretraining
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

LANGUAGES = ("en", "fr")
# Text of which a head can learn at least which tokens are frequent.
TEXTS = {"en": ["the dogs see anne", "bob is big"], "fr": ["enna ees sgod eht", "gib si bob"]}
OF_BERT = {
    "cls.predictions.bias",
    *(f"cls.predictions.transform.{name}" for name in ("dense.weight", "dense.bias")),
    *(f"cls.predictions.transform.LayerNorm.{name}" for name in ("weight", "bias")),
}
OF_XLMR = {
    "lm_head.bias",
    *(f"lm_head.{module}.{name}" for module in ("dense", "layer_norm") for name in ("weight", "bias")),
}
OF_MODERNBERT = {"head.dense.weight", "head.norm.weight", "decoder.bias"}
# The weights of each head, without the output embeddings where they are those of the input.
WEIGHTS = {
    "bert": OF_BERT,
    "deberta-v2": OF_BERT,
    "xlm-roberta": OF_XLMR,
    "roberta": OF_XLMR,
    "xmod": OF_XLMR,
    "distilbert": {
        "vocab_projector.bias",
        *(f"vocab_{module}.{name}" for module in ("transform", "layer_norm") for name in ("weight", "bias")),
    },
    "modernbert": OF_MODERNBERT,
    "mmbert": OF_MODERNBERT,
    "eurobert": {"lm_head.weight"},
}


class World:
    """A checkpoint in fp16 without a head, the tokens of text in its tokenizer, and the encoder with a head that was trained on them."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.bare, tokenizer = take_over(publish(kind, folder / "hub", False, torch.float16), folder)
        self.files: dict[str, list[Path]] = {"train": [], "dev": []}
        for code in LANGUAGES:
            text = pa.table({"id": range(200), "text": [TEXTS[code][row // 3 % 2] for row in range(200)]})
            pq.write_table(text, folder / f"{code}.parquet")
            for split, paths in self.files.items():
                paths.append(folder / f"{code}-{split}.arrow")
                tokenize([folder / f"{code}.parquet"], tokenizer, "mlm", 32, paths[-1], split=split)
        self.tokenizer = tokenizer
        self.headed = self.train("head", steps=60)
        self.stored = load_file(self.headed / "model.safetensors")

    def train(self, trains: str, steps: int) -> Path:
        """Train a head, or all weights with a head, for the encoder without one."""
        training = {"steps": steps, "batch_size": 16, "evaluations": 3, "lr": 0.02}
        lm_head = {"languages": LANGUAGES, "seed": 3, "trains": trains}
        recipe = EncoderWithHead.model_validate({"of": "bare", "lm_head": lm_head, "training": training})
        folder = self.folder / f"trained-{trains}"
        pretraining.pretrain(recipe.recipe("s", "headed"), self.tokenizer, *self.files.values(), folder, self.bare)
        return folder

    def mlm_run(self, encoder: Path, language: str, base: str = "full-ft", **options: str) -> loop.Loop:
        """A run on the text of a language, before its first step."""
        names = {"study": "s", "task": "text", "kind": "mlm", "encoder": "e", "method": "m", "base": base}
        training = {"steps": 4, "batch_size": 8, "lr": 0.01, "evaluations": 1}
        recipe = Recipe.model_validate(
            names | {"options": options, "source": language, "seed": 1, "training": training}
        )
        parts = [[paths[LANGUAGES.index(language)]] for paths in self.files.values()]
        return loop.Loop(recipe, encoder, *parts, self.folder / "-".join([base, language, *options.values()]))


@pytest.fixture(scope="module", params=PUBLISHED)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, tmp_path_factory.mktemp("family"))


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    """The weights of a language model by the names of checkpoints: a decoder behind the inverse of an adapter is one level deeper."""
    return {name.replace("decoder.decoder.", "decoder."): tensor.clone() for name, tensor in model.state_dict().items()}


def test_every_family_of_the_table_is_here() -> None:
    types = {maker.model_type for maker, _, _ in PUBLISHED.values()}
    assert types == {*FAMILIES}, "write the layout of the new family into published_fixture.py, and its head here"
    assert WEIGHTS.keys() >= PUBLISHED.keys()


def test_the_encoder_stays_as_it_is_to_the_bit(world: World) -> None:
    prefix = AutoModel.from_pretrained(world.bare).base_model_prefix
    bare = {f"{prefix}.{name}": tensor for name, tensor in load_file(world.bare / "model.safetensors").items()}
    assert world.stored.keys() - WEIGHTS[world.kind] == bare.keys()
    changed = [name for name, tensor in bare.items() if not torch.equal(world.stored[name], tensor)]
    assert changed == [] and {world.stored[name].dtype for name in bare} == {torch.float16}


def test_each_weight_of_the_head_learns(world: World) -> None:
    for name in WEIGHTS[world.kind]:
        tensor = world.stored[name]
        if name == "lm_head.weight":
            first = world.stored["model.embed_tokens.weight"].float()
        elif tensor.ndim == 2:
            first = torch.eye(len(tensor))
        else:
            first = (torch.ones if "weight" in name else torch.zeros)(len(tensor))
        assert not torch.equal(tensor, first), f"{name} did not train"
        assert (tensor - first).abs().max() < 1, f"{name} did not begin as a comparison of states with embeddings"


def test_the_loss_falls(world: World) -> None:
    lines = (world.headed / "curve.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    assert losses[-1] < losses[0] - 0.2


def test_with_all_weights_the_encoder_trains_too(world: World) -> None:
    trained = load_file(world.train("all", steps=3) / "model.safetensors")
    assert trained.keys() == world.stored.keys()
    encoder = {name for name in trained if name.endswith("weight")} - WEIGHTS[world.kind]
    same = {name for name in encoder if torch.equal(trained[name].half(), world.stored[name])}
    assert same == {name for name in encoder if ".pooler." in name}, "a language model reads all but the pooler"


def test_fine_tuning_begins_as_without_the_head(world: World) -> None:
    weights = []
    for encoder in (world.bare, world.headed):
        torch.manual_seed(5)
        weights.append(load_model(encoder, HEADS["sequence"], 2).state_dict())
    assert weights[0].keys() == weights[1].keys()
    unlike = {name for name in weights[0] if not torch.equal(weights[0][name], weights[1][name])}
    # The classifier of ModernBERT begins with the first module of its language-modelling head, so that fewer weights are drawn.
    shares = "head.dense.weight" in WEIGHTS[world.kind]
    assert unlike == ({"head.dense.weight", "head.norm.weight", "classifier.weight"} if shares else set())


def test_an_mlm_run_without_the_head_is_refused(world: World) -> None:
    with pytest.raises(
        ValueError, match=r"encoder has no language-modelling head: .* Train one head that all runs share"
    ):
        world.mlm_run(world.bare, LANGUAGES[0])


@pytest.mark.skipif("madx" not in ALL_METHODS.names(), reason="the adapters are those of a paper")
@pytest.mark.parametrize("lm_head", ["frozen", "trained"])
def test_adapters_of_two_languages_begin_with_one_head(world: World, lm_head: str) -> None:
    """A frozen head, and the encoder, are the same to the bit when the adapters of both have trained."""
    if world.kind == "xmod":
        pytest.skip("an X-MOD has modules where adapters would be; test_misfits.py has the error")
    shared, adapters = {name for name in world.stored if ".pooler." not in name}, []
    for language in LANGUAGES:
        run = world.mlm_run(world.headed, language, "madx", tune="language", lm_head=lm_head)
        before = weights_of(run.model)
        loop.run(run)
        after = weights_of(run.model)
        unlike = [name for name in shared if not torch.equal(before[name], world.stored[name].float())]
        assert unlike == [], f"the run on {language} begins with the stored weights"
        changed = {name for name in shared if not torch.equal(after[name], before[name])}
        # The output embeddings stay as they are even where they are the head's alone.
        assert changed == (WEIGHTS[world.kind] - {"lm_head.weight"} if lm_head == "trained" else set())
        adapters.append(load_file(run.folder / "delta.safetensors"))
    names = [name for name in adapters[0] if name.endswith("up.weight")]
    assert names and not any(torch.equal(adapters[0][name], adapters[1][name]) for name in names)


@pytest.mark.parametrize("base", ["lora", "ia3", "prefix-tuning"])
def test_parameters_of_peft_train_on_text_and_the_encoder_stays_as_it_is(world: World, base: str) -> None:
    if base == "prefix-tuning" and world.kind == "deberta-v2":
        pytest.skip("an attention of its own has no place for prefixes; methods/test_method.py has the error")
    run = world.mlm_run(world.headed, LANGUAGES[0], base)
    before = weights_of(run.model)
    loop.run(run)
    after = weights_of(run.model)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    stored = load_file(run.folder / "delta.safetensors")
    # Classifiers of ModernBERT have a part of its language-modelling head, which trains as theirs and is not stored.
    assert changed - {*stored} <= {"head.dense.weight", "head.norm.weight"}
    assert stored.keys() <= changed and all(run.method.mark in name for name in stored)
    assert all(torch.equal(before[name], tensor.float()) for name, tensor in world.stored.items() if name in before)
