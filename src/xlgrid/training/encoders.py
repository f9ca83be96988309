"""A study's encoder: where it comes from, and its configuration, whether or not the encoder is there."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt, StrictFloat, StrictInt, StrictStr, ValidationError, model_validator

from xlgrid.architectures import PRETRAINING
from xlgrid.architectures.scratch import Scratch
from xlgrid.base.errors import Damaged, first_sentence
from xlgrid.base.settings import LocalPath, Strict, plainly
from xlgrid.data.checkpoints import first_layers
from xlgrid.data.vocabulary import VocabularyEntry
from xlgrid.languages.sources import Source, Target
from xlgrid.models.parameters import HUB
from xlgrid.training.new_head import LmHead
from xlgrid.training.recipe import Recipe, Training

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


# The settings of `Training` of encoders from scratch, where a study says nothing else.
TRAINING: dict[str, Any] = {
    "steps": 1500,
    "lr": 1e-3,
    "batch_size": 32,
    "weight_decay": 0.01,
    "alpha": 0.7,
    "evaluations": 2,
    "keep": "last",
}

# Likewise of new language-modelling heads. Fewer weights take fewer steps, and a higher rate.
HEAD_TRAINING: dict[str, Any] = TRAINING | {"steps": 500, "lr": 3e-3}

Fact = StrictInt | StrictFloat | StrictStr


class EncoderEntry(Strict):
    """An encoder: from the Hugging Face Hub, from a folder in the Hub's layout, pre-trained here from scratch, a snapshot of
    the pre-training of another encoder, or another encoder with a language-modelling head that is trained here."""

    hub: str | None = Field(None, description="owner/name on the Hub")
    revision: str = Field(
        "main", description="branch, tag or commit of `hub`; the first fetch writes the commit into the lock file"
    )
    path: LocalPath | None = Field(None, description="a folder in the Hub's layout")
    layers: PositiveInt | None = Field(
        None,
        description="for an encoder from `hub` or `path`: the number of layers to keep, the first ones; absent: all",
    )
    scratch: Scratch | None = Field(None, description="an encoder that is pre-trained here, on texts of the study")
    training: dict[str, Any] = Field(
        {},
        description=f"settings of the pre-training from `scratch`; {', '.join(f'{k} {v}' for k, v in TRAINING.items())} where absent; "
        f"of the training of `lm_head`, likewise, but steps {HEAD_TRAINING['steps']} and lr {HEAD_TRAINING['lr']}",
    )
    of: str | None = Field(
        None,
        description="another encoder of the study: one from scratch, of which this one is a snapshot, or with `lm_head` one from `hub` or "
        "`path`, which lacks a language-modelling head",
    )
    lm_head: LmHead | None = Field(
        None,
        description="the language-modelling head that the encoder `of` gets, and that all runs on this encoder share",
    )
    step: PositiveInt | None = Field(None, description="step of the snapshot, one of the `snapshots` in its `training`")
    vocabulary: str | None = Field(
        None,
        description="a vocabulary of the study, or an encoder whose vocabulary this one shares; absent: a vocabulary of its "
        "own",
    )
    modules: dict[str, str] = Field(
        {},
        description="for an X-MOD from `hub` or `path`: language of the study: name of its module in the checkpoint, where "
        "the two differ, as in {en: en_XX}; modules that are not listed keep their names",
    )
    facts: dict[str, Fact] = Field(
        {},
        description="names and values of your own, which exhibits use as axes: {variant: xmod, languages: 60, updates: "
        "125000}; an encoder that is trained here has `languages`, their number, and `updates`, its steps, unless they are "
        "written",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        origins = [name for name in ("hub", "path", "scratch", "of") if getattr(self, name) is not None]
        if len(origins) != 1:
            raise ValueError(
                f"an encoder has exactly one of hub, path, scratch and of, got {' and '.join(origins) or 'none'}"
            )
        if self.layers and not (self.hub or self.path):
            raise ValueError("only an encoder from `hub` or `path` is cut to fewer `layers`: leave it out")
        if self.training and not self.is_trained:
            raise ValueError("only an encoder from `scratch`, or an `lm_head`, is trained: leave out `training`")
        if self.lm_head and (self.of is None or self.step is not None):
            raise ValueError(
                "an encoder with `lm_head` names the encoder that lacks a language-modelling head in `of`, and no `step`"
            )
        if self.modules and not (self.hub or self.path):
            raise ValueError(
                "only the modules of an encoder from `hub` or `path` have other names: leave out `modules`"
            )
        names = [*self.modules.values()]
        if doubles := sorted({name for name in names if names.count(name) > 1}):
            codes = [code for code, name in self.modules.items() if name == doubles[0]]
            raise ValueError(
                f"modules: {' and '.join(codes)} have the same module {doubles[0]}: name one for each language"
            )
        if (self.of is None) != (self.step is None and self.lm_head is None) or (self.of and self.vocabulary):
            raise ValueError(
                "an encoder `of` another has `step`, of which it is a snapshot, or `lm_head`, and the vocabulary of that encoder"
            )
        if self.vocabulary and self.scratch and "vocab" in self.scratch.model_fields_set:
            raise ValueError(
                "scratch.vocab is the size of a vocabulary of its own, but the encoder has `vocabulary`: leave out one of the two"
            )
        return self

    @model_validator(mode="after")
    def _training_exists(self) -> Self:
        try:
            conflict = self.pretraining.conflict
        except ValidationError as error:
            raise ValueError(f"training: {plainly(error)}") from None
        if "dev_targets" in self.training:
            raise ValueError(
                "training: pre-training is evaluated on the text of its languages: leave out `dev_targets`"
            )
        for given, default in (("batch_tokens", "batch_size"), ("epochs", "steps")):
            if given in self.training and default not in self.training and self.is_trained:
                raise ValueError(
                    f"training: `{default}` has a default for encoders, which wins over `{given}`: write `{default}: null` beside `{given}`, or "
                    f"`{default}` alone"
                )
        if self.scratch and "dropout" in self.training:
            raise ValueError(
                "training: an encoder from scratch has the dropout of `scratch`, also in later runs: state it there"
            )
        if conflict:
            raise ValueError(f"training: {conflict[1]}")
        if self.lm_head and self.pretraining.snapshots:
            raise ValueError("training: the training of a head has no snapshots: leave out `snapshots`")
        return self

    @property
    def is_trained(self) -> bool:
        """Whether weights of the encoder are trained here: all, those of cross-attention, or a language-modelling head."""
        return bool(self.scratch or self.lm_head)

    @property
    def parts(self) -> dict[Target, str]:
        """Language or pair -> the task whose tokens are read for it, of an encoder that is trained here; others have none."""
        if self.lm_head:
            return dict.fromkeys(map(Target, self.lm_head.languages), self.lm_head.task)
        return {part: self.scratch.task_of(part) for part in Source(self.scratch.source).parts} if self.scratch else {}

    @property
    def begin(self) -> str | None:
        """The encoder with whose weights the training of this one begins."""
        if self.lm_head:
            return self.of
        return self.scratch.begins_with if self.scratch else None

    @property
    def pretraining(self) -> Training:
        """The settings of the pre-training."""
        return Training.model_validate((HEAD_TRAINING if self.lm_head else TRAINING) | self.training)

    def recipe(self, study: str, encoder: str) -> Recipe:
        """The resolved recipe of the pre-training of an encoder from scratch, or of the training of a language-modelling head, by
        the names of the study and the encoder."""
        described = self.scratch or self.lm_head
        assert described
        names = {"study": study, "task": described.task, "kind": "mlm", "encoder": encoder}
        method = {"method": "full-ft", "base": "full-ft"}
        fields = {"source": "+".join(self.parts), "seed": described.seed, "training": self.pretraining}
        return Recipe.model_validate({**names, **method, **fields, "scratch": self.scratch, "lm_head": self.lm_head})

    @property
    def known_facts(self) -> dict[str, Fact]:
        """The facts that are written, and those that follow from the entry."""
        derived: dict[str, Fact] = {"updates": self.step} if self.step else {}
        if self.scratch:
            derived = {"languages": len(self.scratch.languages), "updates": self.pretraining.steps or 0}
        return derived | self.facts

    @property
    def own_vocabulary(self) -> VocabularyEntry:
        """The vocabulary of an encoder that names no other."""
        if self.scratch:
            scratch = self.scratch
            return VocabularyEntry(
                kind=scratch.kind, languages=scratch.languages, size=scratch.vocab, max_length=scratch.max_length
            )
        return VocabularyEntry(hub=self.hub, revision=self.revision, path=self.path)


def encoders_before(encoders: Mapping[str, EncoderEntry], name: str) -> list[str]:
    """The encoders from which another is made, the nearest first: the one whose snapshot it is, and the one with which its
    training begins (`EncoderEntry.begin`), and so on. The names of a circle end with the first that comes again."""
    chain = [name]
    while (entry := encoders.get(chain[-1])) and (before := entry.of or entry.begin):
        chain.append(before)
        if before in chain[:-1]:
            break
    return chain[1:]


def replicas(encoders: Mapping[str, EncoderEntry]) -> dict[str, str]:
    """Encoder -> the first of the encoders from scratch from which it differs by seeds alone: `Architecture.seed`, also of the encoder
    with which its pre-training begins, or whose snapshot it is; likewise `LmHead.seed`. Any other encoder -> itself."""
    first_replica: dict[str, str] = {}
    with_recipe: dict[str, str] = {}
    # An encoder comes after those from which it is made.
    for name in sorted(encoders, key=lambda name: len(encoders_before(encoders, name))):
        entry = encoders[name]
        if entry.scratch:
            seedless = entry.scratch.seedless(first_replica.get(entry.scratch.begins_with or ""))
            recipe = entry.model_copy(update={"scratch": seedless})
        else:
            head = entry.lm_head and entry.lm_head.model_copy(update={"seed": 0})
            recipe = entry.model_copy(update={"of": first_replica.get(entry.of or ""), "lm_head": head})
        key = json.dumps(recipe.model_dump(mode="json"), sort_keys=True)
        first_replica[name] = with_recipe.setdefault(key, name) if entry.scratch or entry.of else name
    return first_replica


def pretraining_task(encoders: Iterable[EncoderEntry]) -> dict[str, Any] | None:
    """The task whose tokens those encoders from scratch, and those language-modelling heads, read that name no other task; None if
    there are none."""
    described = [entry.scratch or entry.lm_head for entry in encoders]
    if not any(each and each.task == PRETRAINING for each in described):
        return None
    # It does not depend on the encoders: one more in a study would change the tokens of all.
    return {"kind": "mlm", "options": {"lines": "segments"}, "max_length": 512}


def vocabulary_size(vocabulary: VocabularyEntry) -> int | None:
    """The most entries of a vocabulary that is trained here or that is of an encoder in `HUB`; None for others, whose files
    alone show it."""
    if vocabulary.languages:
        return vocabulary.size
    size: int | None = HUB.get(vocabulary.hub or "", {}).get("vocab_size")
    return size


def configuration(origin: EncoderEntry, folder: str | Path, size: int | None = None) -> "PreTrainedConfig":
    """The configuration of an encoder: of one in `HUB` as written there, of others from their files, else as the origin says
    (`scratch`); with as many layers as it keeps.

    Args:
        origin: where the encoder comes from.
        folder: the folder in which the encoder is or will be.
        size: the most entries of the vocabulary that the encoder names, if they are known.

    Raises:
        ValueError: an encoder of the Hub has not been fetched, and is not in `xlgrid.models.parameters.HUB`; or an encoder from
            scratch has not been made, and its vocabulary is not trained here; or it, or its copy in the folder, has fewer layers than it
            should keep.
    """
    config = _whole_configuration(origin, folder, size)
    for entry, value in (first_layers(config.to_dict(), origin.layers) if origin.layers else {}).items():
        setattr(config, entry, value)
    return config


def _whole_configuration(origin: EncoderEntry, folder: str | Path, size: int | None) -> "PreTrainedConfig":
    """`configuration`, with all layers where the encoder is not cut yet."""
    from transformers import AutoConfig

    if origin.hub in HUB:
        return AutoConfig.for_model(**HUB[origin.hub])
    places = [Path(folder), *([Path(origin.path)] if origin.path else [])]
    about = Path(folder, "encoder.json")
    kept = json.loads(about.read_text(encoding="utf-8")).get("layers") if about.is_file() else None
    # The copy may have been cut to fewer layers than the study asks for now.
    for place in reversed(places) if origin.layers or kept else places:
        if (place / "config.json").is_file():
            if place == Path(folder) and kept and not (origin.layers and origin.layers <= kept):
                raise ValueError(
                    f"{folder} has the first {kept} layers alone, and the study asks for {origin.layers or 'all'}: delete {folder}, and "
                    "the encoder is fetched again"
                )
            try:
                return AutoConfig.from_pretrained(place, local_files_only=True)
            except Exception as error:  # Transformers raises errors of many types.
                raise Damaged(
                    f"{place}/config.json describes no encoder ({first_sentence(error)}): take the config.json that was saved with the weights",
                    place,
                ) from error
    if origin.scratch and (size or not origin.vocabulary):
        return origin.scratch.configuration(size or origin.scratch.vocab)
    raise ValueError(
        f"the size of the encoder {origin.hub or origin.path or Path(folder).name} is not known before the encoder is there: make it with "
        f"`snakemake --cores 1 {folder}/model.safetensors`"
    )
