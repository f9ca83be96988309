"""The family of X-MOD's encoders: XLM-R with a dictionary of modules for languages in each layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.family import Family

if TYPE_CHECKING:
    from xlgrid.heads import Head


@dataclass(frozen=True)
class WithModules(Family):
    """A family whose models have modules for languages."""

    def problem(self, head: "Head") -> str | None:
        if head.described({}).get("is_encoder_decoder"):
            return "a decoder has no modules for languages: name an encoder without them for this task"
        return super().problem(head)

    def model_class(self, head: "Head") -> Any:
        from xlgrid.papers.pfeiffer2022.xmod.modules import with_modules

        return with_modules(super().model_class(head))

    def name_modules(self, folder: Path, names: Mapping[str, str]) -> None:
        from xlgrid.papers.pfeiffer2022.xmod import checkpoints

        if names:
            checkpoints.rename_modules(folder, names)
        checkpoints.check_modules(folder)


XMOD = WithModules("XLMRoberta", lm_head=("lm_head",), decoder="lm_head.decoder", modules="adapter_modules")
