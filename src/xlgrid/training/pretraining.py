"""Pre-training an encoder: the training loop, from new weights or another encoder's, and the encoder's folder.

The training changes all weights, only the weights of cross-attention, or only a new language-modelling head.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.architectures import Architecture
from xlgrid.base.arrays import Ints
from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole, write_text
from xlgrid.data.encoders import add_tokenizer, token_ids, write_json
from xlgrid.data.tokenizer import specials
from xlgrid.heads.language_modelling.nsp import MODULE
from xlgrid.models import deltas, lm_head, load
from xlgrid.training import loop
from xlgrid.training.recipe import Recipe
from xlgrid.training.results import write_record
from xlgrid.training.state import say

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def pretrain(
    recipe: Recipe,
    tokenizer: str | Path,
    train: Sequence[Path],
    dev: Sequence[Path],
    folder: str | Path,
    begin: Path | None = None,
) -> None:
    """Pre-train the encoder that `recipe.scratch` describes, or train the language-modelling head of `recipe.lm_head`.

    Write config.json, model.safetensors, the files of the tokenizer, encoder.json, run.json and curve.jsonl to `folder`, and
    during training `step{n}.safetensors` for each of the recipe's checkpoints. An interrupted training continues from
    `state.pt`.

    Args:
        tokenizer: the folder of the encoder's tokenizer, of the same kind.
        train, dev: the tokens files of texts, one for each part of the recipe's source, in the same order.
        begin: the folder of the encoder that `begin` of the recipe's `scratch` names, or of the encoder that gets a head.

    Raises:
        FileNotFoundError, ValueError, FloatingPointError, SystemExit: for the same reasons as in
            `xlgrid.training.loop.train`.
    """
    if recipe.lm_head:
        if begin is None:
            raise ValueError("the recipe trains the head of an encoder, but the call names no encoder: add --begin")
        loop.run(HeadTraining(recipe, begin, train, dev, Path(folder)))
    else:
        loop.run(Pretraining(recipe, Path(tokenizer), train, dev, Path(folder), begin))


class Pretraining(loop.Loop):
    """A pre-training in progress. The attribute `encoder` is the folder of the tokenizer."""

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: Path,
        train: Sequence[Path],
        dev: Sequence[Path],
        folder: Path,
        begin: Path | None = None,
    ) -> None:
        first_encoder = recipe.scratch and recipe.scratch.begins_with
        if bool(first_encoder) != bool(begin):
            raise ValueError(
                f"the recipe begins with the encoder {first_encoder}, but the call names none: add --begin"
                if first_encoder
                else f"the recipe begins with new weights, but the call names {begin}: leave out --begin"
            )
        self.begin = begin
        super().__init__(recipe, tokenizer, train, dev, folder)

    @property
    def scratch(self) -> Architecture:
        """The description of the encoder."""
        assert self.recipe.scratch
        return self.recipe.scratch

    def beginnings(self) -> list[Path]:
        return [self.encoder / "tokenizer.json", *([self.begin / "model.safetensors"] if self.begin else [])]

    def load_model(self) -> "PreTrainedModel":
        scratch, entries = self.scratch, token_ids(self.encoder)
        if missing := [token for token in specials(scratch.kind).values() if token not in entries]:
            raise ValueError(
                f"the tokenizer {self.encoder} has no token {missing[0]}: an encoder of kind {scratch.kind} needs a "
                f"tokenizer of kind {scratch.kind}"
            )
        model = scratch.new_model(1 + max(entries.values()))
        if self.begin:
            scratch.take_weights(model, self.begin, say)
        self.objective, self.head = scratch.objectives(model, self.train)
        return model

    def trains(self, name: str) -> bool:
        return self.scratch.trains_weight(name)

    def differentiate(self, chosen: Ints) -> "dict[str, torch.Tensor]":
        losses = super().differentiate(chosen)
        self.scratch.complete_gradients(self.weights)
        return losses

    def kept(self) -> dict[str, "torch.nn.Parameter"]:
        """The weights of the encoder with its language-modelling head, without weights that only the objective uses."""
        prefix = f"{self.model.base_model_prefix}."
        named = [*self.model.named_parameters(remove_duplicate=False)]
        # A weight that the encoder shares with the head is stored under its name in the encoder.
        named.sort(key=lambda entry: not entry[0].startswith(prefix))
        names: dict[int, str] = {}
        for name, parameter in named:
            names.setdefault(id(parameter), name)
        return {
            name: parameter
            for name, parameter in named
            if names[id(parameter)] == name and not name.startswith(f"{MODULE}.")
        }

    def write(self, details: dict[str, Any]) -> None:
        details["tokenizer"] = details.pop("encoder")
        if self.begin:
            details["begin"] = str(self.begin)
        write_record(self.folder, self.recipe, details, self.curve)
        add_tokenizer(self.encoder, self.folder)
        # The tokenizer may allow longer inputs than the encoder does.
        path = self.folder / "tokenizer_config.json"
        config = json.loads(path.read_text(encoding="utf-8")) | {"model_max_length": self.scratch.max_length}
        write_json(path, config)
        self.model.config.architectures = [type(self.model).__name__]
        origin = {"source": "scratch", "recipe": json.loads(self.recipe.identity())}
        write_encoder(self.folder, self.model.config.to_json_string(), origin, self.best)


class HeadTraining(loop.Loop):
    """The training of a language-modelling head in progress.

    Unless all weights train, the encoder is frozen, and so are the output embeddings, which the head shares with the
    encoder. The state and the stored weights are the weights that train.
    """

    def load_model(self) -> "PreTrainedModel":
        model = load.load_model(self.encoder, self.head, 0, self.settings.dropout, say, new_lm_head=True)
        lm_head.begin_at_identity(model)
        return model

    def trains(self, name: str) -> bool:
        assert self.recipe.lm_head
        return self.recipe.lm_head.trains == "all" or lm_head.is_of_head(self.model, name)

    def kept(self) -> dict[str, "torch.nn.Parameter"]:
        return self.weights

    def write(self, details: dict[str, Any]) -> None:
        details["begin"] = details.pop("encoder")
        write_record(self.folder, self.recipe, details, self.curve)
        add_tokenizer(self.encoder, self.folder)
        config = json.loads((self.encoder / "config.json").read_text(encoding="utf-8"))
        config |= {"architectures": [type(self.model).__name__]}
        path = self.encoder / "encoder.json"
        origin = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        origin |= {"source": "lm_head", "of": str(self.encoder), "recipe": json.loads(self.recipe.identity())}
        tensors = lm_head.with_trained(self.encoder, self.model.base_model_prefix, self.best)
        write_encoder(self.folder, json.dumps(config, ensure_ascii=False, indent=2) + "\n", origin, tensors)


def write_encoder(folder: Path, config: str, origin: dict[str, Any], tensors: dict[str, "torch.Tensor"]) -> None:
    """Write config.json, encoder.json and, in one step at the end, model.safetensors."""
    from safetensors.torch import save

    write_text(folder / "config.json", config)
    write_text(folder / "encoder.json", json.dumps(origin, ensure_ascii=False, indent=2) + "\n")
    with whole(folder / "model.safetensors") as aside:
        aside.write_bytes(save(tensors, metadata={"format": "pt"}))


def take_checkpoint(encoder: str | Path, step: int, folder: str | Path) -> None:
    """Make an encoder of the checkpoint that a pre-training has written after a step.

    Args:
        encoder: the folder of the pre-trained encoder, with the checkpoints.
        step: the number of the step.
        folder: the folder to write.

    Raises:
        ValueError: there is no such checkpoint, or it is damaged.
    """
    encoder, folder = Path(encoder), Path(folder)
    path = deltas.checkpoint_path(encoder, step)
    if not path.is_file():
        raise Damaged(
            f"{path} does not exist: only the pre-training can write it, so delete {encoder}, and run again", encoder
        )
    tensors, _, _ = deltas.read_delta(path)
    folder.mkdir(parents=True, exist_ok=True)
    add_tokenizer(encoder, folder)
    config, origin = ((encoder / name).read_text(encoding="utf-8") for name in ("config.json", "encoder.json"))
    write_encoder(folder, config, json.loads(origin) | {"step": step}, tensors)
