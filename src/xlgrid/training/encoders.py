"""A study's encoder: where it comes from, and its configuration, whether or not the encoder is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from xlgrid.base.settings import Strict
from xlgrid.data.vocabulary import VocabularyEntry
from xlgrid.models.parameters import HUB
from xlgrid.training.mini import MiniEncoder, mini_configuration

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


Fact = StrictInt | StrictFloat | StrictStr


class EncoderEntry(Strict):
    """An encoder: from the Hugging Face Hub, from a folder in the Hub's layout, or a tiny encoder pre-trained here."""

    hub: str | None = Field(None, description="owner/name")
    revision: str = Field("main", description="of `hub`; resolved to a commit at first fetch and kept in the lock file")
    path: str | None = None
    mini: MiniEncoder | None = None
    vocabulary: str | None = Field(
        None,
        description="vocabulary of the study, or an encoder with whose vocabulary this one shares tokens; absent: its own",
    )
    facts: dict[str, Fact] = Field(
        {},
        description="names and values of your own, which exhibits use as axes: {variant: xmod, languages: 60, updates: "
        "125000}; an encoder that is trained here has `languages`, their number, and `updates`, its steps, unless they are "
        "written",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        origins = [name for name in ("hub", "path", "mini") if getattr(self, name) is not None]
        if len(origins) != 1:
            raise ValueError(f"an encoder has exactly one of hub, path and mini, got {' and '.join(origins) or 'none'}")
        if self.vocabulary and self.mini and "vocab" in self.mini.model_fields_set:
            raise ValueError(
                "mini.vocab is the size of a vocabulary of its own, but the encoder has `vocabulary`: leave out one of the two"
            )
        return self

    @property
    def known_facts(self) -> dict[str, Fact]:
        """The facts that are written, and those that follow from the entry."""
        derived = {"languages": len(self.mini.languages), "updates": self.mini.steps} if self.mini else {}
        return derived | self.facts

    @property
    def own_vocabulary(self) -> VocabularyEntry:
        """The vocabulary of an encoder that names no other."""
        if self.mini:
            mini = self.mini
            return VocabularyEntry(
                kind=mini.kind, languages=mini.languages, size=mini.vocab, max_length=mini.max_length
            )
        return VocabularyEntry(hub=self.hub, revision=self.revision, path=self.path)


def configuration(origin: EncoderEntry, folder: str | Path, size: int | None = None) -> "PreTrainedConfig":
    """The configuration of an encoder: of one in `HUB` as written there, of others from their files, else as the origin says.

    Args:
        origin: where the encoder comes from.
        folder: the folder in which the encoder is or will be.
        size: the most entries of the vocabulary that the encoder names, if they are known.

    Raises:
        ValueError: an encoder of the Hub has not been fetched, and is not in `xlgrid.models.parameters.HUB`; or a mini encoder
            has not been made, and its vocabulary is not trained here.
    """
    from transformers import AutoConfig

    if origin.hub in HUB:
        return AutoConfig.for_model(**HUB[origin.hub])
    for place in (Path(folder), *([Path(origin.path)] if origin.path else [])):
        if (place / "config.json").is_file():
            return AutoConfig.from_pretrained(place, local_files_only=True)
    if origin.mini and (size or not origin.vocabulary):
        return mini_configuration(origin.mini, size or origin.mini.vocab)
    raise ValueError(
        f"the size of the encoder {origin.hub or origin.path or Path(folder).name} is not known before the encoder is there: make it with "
        f"`snakemake --cores 1 {folder}/model.safetensors`"
    )
