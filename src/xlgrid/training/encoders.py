"""The configuration of a study's encoder, whether or not the encoder is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from xlgrid.models.parameters import HUB
from xlgrid.training import mini

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class Origin(Protocol):
    """Where an encoder comes from, as in a study: the Hub, a folder, or pre-training here."""

    @property
    def hub(self) -> str | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def mini(self) -> mini.MiniEncoder | None: ...


def configuration(origin: Origin, folder: str | Path) -> "PreTrainedConfig":
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
        return mini.configuration(origin.mini, origin.mini.vocab)
    raise ValueError(
        f"the size of the encoder {origin.hub or origin.path} is not known before the encoder is there: make it with "
        f"`snakemake --cores 1 {folder}/model.safetensors`"
    )
