"""The key `imported` of a method: adapters in AdapterHub's layout, which replace the training of MAD-X's MLM runs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, RootModel, model_validator

from xlgrid.base.settings import LocalPath
from xlgrid.base.unions import by_key
from xlgrid.data.published import InFolder, Obtained, OnHub, Repository
from xlgrid.papers.pfeiffer2020.madx import MadX, adapterhub
from xlgrid.training.derived import DerivedRuns

if TYPE_CHECKING:
    from xlgrid.plan.plan import Plan
    from xlgrid.products.train import Run
    from xlgrid.study.schema import Study

_BRACES = "where {language} and {encoder} are replaced by the language and the encoder of the run"


class Adapters(Obtained):
    """Adapters that others have trained. Each subclass describes one place to read them from."""

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


class HubAdapters(OnHub, Adapters):
    """Adapters from the Hugging Face Hub."""

    hub: str = Field(description=f"owner/name on the Hub, {_BRACES}")

    def of(self, language: str, encoder: str) -> Obtained:
        return OnHub(hub=self.named(language, encoder), revision=self.revision)


class FolderAdapters(InFolder, Adapters):
    """Adapters from folders."""

    path: LocalPath = Field(description=f"a folder, {_BRACES}")

    def of(self, language: str, encoder: str) -> Obtained:
        return InFolder(path=self.named(language, encoder))


# Key -> the class of the adapters whose entries have this key.
MEMBERS: dict[str, type[Adapters]] = {"hub": HubAdapters, "path": FolderAdapters}
AnyAdapters = Annotated[HubAdapters | FolderAdapters, by_key("`imported`", MEMBERS)]


class ImportedAdapters(DerivedRuns, RootModel[AnyAdapters]):
    """Language adapters that others have trained, which serve as MLM runs."""

    about = "adapters that are read instead of training MLM runs"
    rule = "import_adapter"

    def inputs(self, run: "Run", plan: "Plan") -> dict[str, str | list[str]]:
        folder = self._of(run).folder
        return {"files": adapterhub.files(folder) if folder else []}

    def settings(self, run: "Run") -> dict[str, Any]:
        return self._of(run).origin

    def repository(self, run: "Run") -> Repository | None:
        return self._of(run).repository

    def problems(self, study: "Study", name: str) -> Iterator[str]:
        method = study.methods[name].method
        if not isinstance(method, MadX) or method.tune != "language":
            yield (
                "imported: only language adapters can be imported: set `base: madx` and `options: {tune: language}`, "
                "or leave out `imported`"
            )

    def _of(self, run: "Run") -> Obtained:
        return self.root.of(run.source, run.encoder)
