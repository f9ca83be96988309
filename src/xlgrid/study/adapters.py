"""Adapters in the layout of AdapterHub that are read instead of training a method's MLM runs."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from xlgrid.base.settings import LocalPath
from xlgrid.base.unions import by_key
from xlgrid.data.published import InFolder, Obtained, OnHub

_BRACES = "where {language} and {encoder} are replaced by the language and the encoder of the run"


class ImportedAdapters(Obtained):
    """Adapters that are read instead of training MLM runs. Each subclass describes one place that they come from."""

    names: dict[str, str] = Field(
        {},
        description="language or encoder of the study: its name in the repository or folder, if the two differ; the "
        "name may contain {language}",
    )

    @property
    def place(self) -> str:
        """The repository or folder."""
        return str(self.origin["place"])

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        encoders = [name for name, outside in self.names.items() if "{language}" in outside] or [""]
        try:
            places = [[self.named("first", name), self.named("second", name)] for name in encoders]
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"{self.place!r} has {error} in braces: use only {{language}} and {{encoder}}") from None
        if any(first == second for first, second in places):
            raise ValueError(f"{self.place!r} is the same for every language: put {{language}} in it")
        return self

    def named(self, language: str, encoder: str) -> str:
        """The name of the repository or folder with the weights of a language."""
        names = {"language": self.names.get(language, language)}
        names["encoder"] = self.names.get(encoder, encoder).format_map(names)
        return self.place.format_map(names)

    def of(self, language: str, encoder: str) -> Obtained:
        """The place of the weights of a language."""
        raise NotImplementedError


class HubAdapters(OnHub, ImportedAdapters):
    """Adapters from the Hugging Face Hub."""

    hub: str = Field(description=f"owner/name on the Hub, {_BRACES}")

    def of(self, language: str, encoder: str) -> Obtained:
        return OnHub(hub=self.named(language, encoder), revision=self.revision)


class FolderAdapters(InFolder, ImportedAdapters):
    """Adapters from folders."""

    path: LocalPath = Field(description=f"a folder, {_BRACES}")

    def of(self, language: str, encoder: str) -> Obtained:
        return InFolder(path=self.named(language, encoder))


# Key -> the class of the adapters whose entries have this key.
MEMBERS: dict[str, type[ImportedAdapters]] = {"hub": HubAdapters, "path": FolderAdapters}
AnyAdapters = Annotated[HubAdapters | FolderAdapters, by_key("`imported`", MEMBERS)]
