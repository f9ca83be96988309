"""A study's encoder: where it comes from, and its configuration, whether or not the encoder is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from xlgrid.base.settings import Strict
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
    facts: dict[str, Fact] = Field(
        {},
        description="names and values of your own, which exhibits use as axes: {variant: xmod, languages: 60, updates: "
        "125000}; an encoder that is trained here has `languages`, their number, and `updates`, its steps, unless they are "
        "written",
    )

    @property
    def known_facts(self) -> dict[str, Fact]:
        """The facts that are written, and those that follow from the entry."""
        derived = {"languages": len(self.mini.languages), "updates": self.mini.steps} if self.mini else {}
        return derived | self.facts

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        origins = [name for name in ("hub", "path", "mini") if getattr(self, name) is not None]
        if len(origins) != 1:
            raise ValueError(f"an encoder has exactly one of hub, path and mini, got {' and '.join(origins) or 'none'}")
        return self


def configuration(origin: EncoderEntry, folder: str | Path) -> "PreTrainedConfig":
    """The configuration of an encoder: of one in `HUB` as written there, of others from their files, else as the origin says.

    The vocabulary of a mini encoder that is not made has as many entries as its specification allows.

    Args:
        origin: where the encoder comes from.
        folder: the folder in which the encoder is or will be.

    Raises:
        ValueError: an encoder of the Hub has not been fetched, and is not in `xlgrid.models.parameters.HUB`.
    """
    from transformers import AutoConfig

    if origin.hub in HUB:
        return AutoConfig.for_model(**HUB[origin.hub])
    for place in (Path(folder), *([Path(origin.path)] if origin.path else [])):
        if (place / "config.json").is_file():
            return AutoConfig.from_pretrained(place, local_files_only=True)
    if origin.mini:
        return mini_configuration(origin.mini, origin.mini.vocab)
    raise ValueError(
        f"the size of the encoder {origin.hub or origin.path} is not known before the encoder is there: make it with "
        f"`snakemake --cores 1 {folder}/model.safetensors`"
    )
