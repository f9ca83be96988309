"""The base class of all products of a study.

A product is the files that one rule makes together. Its class defines the paths of the files, the inputs and settings
from which they are made, and the error if a study does not have the product. The rules of Snakemake, `xlgrid status`
and `xlgrid check` all use these definitions.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xlgrid.base.names import unknown
from xlgrid.data.published import Repository

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.data.origins.origin import Origin
    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

# The inputs of a rule by name: one file, or several.
Inputs = dict[str, str | list[str]]
# The settings of a command by name.
Settings = dict[str, str | int | list[str]]
# A part of a template in braces: a field, or `{file}`.
_FIELD = re.compile(r"{(\w+)}")


class Templated:
    """The files that one rule makes together. The fields of a subclass are the wildcards of the rule.

    Attributes:
        template: the path of the files, with each field in braces. If there are several files, `{file}` is the part of
            the path in which they differ.
        files: the values of `{file}`. The first file exists if and only if the product is complete.
    """

    __slots__ = ()
    template: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ("",)
    _format: ClassVar[str]
    _pattern: ClassVar[re.Pattern[str]]

    def __init_subclass__(cls) -> None:
        if "template" not in vars(cls):
            return
        # Studies have hundreds of thousands of cells, so a path is formatted without a dictionary of the fields.
        cls._format = _FIELD.sub(r"{0.\1}", cls.template).replace("{0.file}", "{1}")
        patterns = {
            "seed": "(?P<seed>0|[1-9][0-9]*)",
            "job": "(?P<job>.+)",
            "file": f"(?:{'|'.join(map(re.escape, cls.files))})",
        }
        pieces = enumerate(_FIELD.split(cls.template))
        # Every second piece is a field.
        regular = (patterns.get(text, f"(?P<{text}>[^/]+?)") if i % 2 else re.escape(text) for i, text in pieces)
        cls._pattern = re.compile("".join(regular))

    def file(self, name: str) -> str:
        """The path of the file, where `name` replaces `{file}`."""
        return self._format.format(self, name)

    @property
    def path(self) -> str:
        """The path of the first file."""
        return self._format.format(self, self.files[0])

    @property
    def folder(self) -> str:
        """The folder of the files."""
        return self.path.rpartition("/")[0]

    @classmethod
    def parse(cls, path: str) -> Self | None:
        """The product to which a file belongs; None if this kind of product has no such file."""
        match = cls._pattern.fullmatch(path)
        try:
            return cls(**match.groupdict()) if match else None
        except ValueError:  # one of the languages cannot be a language, pair or mix
            return None


class Product(Templated):
    """A kind of product: the template of its path, and methods that describe how it is made.

    Attributes:
        stage: the stage of a study that makes the product: the name of the file with its rules.
        rules: the rules that make products of this kind.
        shows_results: whether the product shows results to people, as exhibits and the report do. A study never takes
            such a product from a study that it extends. If a result in it was deleted, the product is made again.
    """

    __slots__ = ()
    stage: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]
    shows_results: ClassVar[bool] = False
    study: str

    def inputs(self, plan: "Plan") -> Inputs:
        """The input files of the product. Each path names the study that makes the file.

        Raises:
            ValueError: a claim compares cells that are not in any grid.
        """
        return {}

    def settings(self, study: "Study") -> Settings:
        """The settings of the command that makes the product. Together with the inputs, they determine its contents;
        settings that cannot change the contents are left out."""
        return {}

    @classmethod
    def makers(cls, study: "Study") -> Mapping[str, Iterable[str]]:
        """Rule -> the beginnings of the paths that the rule makes, for a kind of product with several `rules`.

        A beginning, such as `data/xnli`, is a path after the folder of the study. It ends at the end of a name, and `*`
        matches any one name. If beginnings of two rules match a path, the rule with the longer beginning makes it.
        """
        return {}

    def names(self, study: "Study") -> Mapping[str, Iterable[str]]:
        """Field -> the names that the study has for it, for each field that names a part of the study."""
        return {}

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages in the field `language`."""
        return (vars(self)["language"],)

    def _unknown(self, study: "Study") -> tuple[str, str, Iterable[str]] | None:
        """The first field whose name is not in the study: the field, its name, and the names that the study has."""
        for field, known in self.names(study).items():
            for name in self.languages if field == "language" else (vars(self)[field],):
                if name not in known:
                    return field, name, known
        return None

    def is_in(self, plan: "Plan") -> bool:
        """Whether the study of a plan has this product. The product's field `study` must be the name of that study,
        even if another study makes the files."""
        return self._unknown(plan.study) is None

    def problem(self, plan: "Plan") -> str | None:
        """Why the study of a plan does not have this product; None if it does."""
        absent = self._unknown(plan.study)
        return absent and unknown(*absent)

    def mistakes(self, plan: "Plan") -> Iterator[str]:
        """Why a product that the study has could not be made, each as `place: what is wrong`, where a place is a key of the study."""
        yield from ()

    def under(self, study: str) -> Self:
        """The same product, with another study in its path."""
        if self.study == study:
            return self
        # Data classes and named tuples name their fields in `__match_args__`.
        others = [getattr(self, field) for field in type(self).__match_args__[1:]]  # type: ignore[attr-defined]
        return type(self)(study, *others)  # type: ignore[call-arg]

    def alike(self, plan: "Plan") -> Hashable:
        """A key for comparing products with the products of a study that this study extends. If two products have the
        same key, either both have the inputs and settings of the other study's products, or both do not."""
        return self

    def has_own_input(self, plan: "Plan") -> bool:
        """Whether the study of a plan itself makes an input, so that no study that it extends has an equal product."""
        folder = f"results/{plan.study.name}/"
        return any(file.startswith(folder) for file in flat(self.inputs(plan)))

    def outputs(self, study: "Study") -> list[str]:
        """The paths of all files of the product."""
        return [self.file(name) for name in self.files]

    def of_job(self, study: "Study") -> Self:
        """The product that represents all products that one job makes with this one."""
        return self

    def repository(self, study: "Study") -> Repository | None:
        """The Hub repository from which the product is fetched; None if it is not fetched from the Hub."""
        origin = self.origin(study)
        return origin.repository if origin else None

    @property
    def thing(self) -> str:
        """The name of the part of the study to which the product belongs, such as `data ner`, for `xlgrid check`."""
        return self.folder

    def origin(self, study: "Study") -> "Origin | None":
        """The origin whose rows a job reads; None for generated data, for the `files` of texts, and for other products."""
        return None

    def problem_there(self, study: "Study", files: list[str], answer: Any) -> str | None:
        """Why the product cannot be made from its `repository`; None if the repository has what the product needs.

        Args:
            files: the names of the repository's files, at least one.
            answer: the Hub's description of the repository, see `xlgrid.data.lock.ask`.
        """
        return None

    def rows(self, study: "Study") -> "pa.Table | None":
        """The rows that a job reads from local files of the study; None for data from elsewhere and for other products.

        Raises:
            ValueError: the files are damaged, or do not fit the task.
        """
        return None

    def job(self, study: "Study") -> str:
        """The name of the job: the path below the study's folder without its suffix, or the folder if the job makes
        several files in it."""
        stem = self.folder if self.template.endswith("/{file}") else self.path.rpartition(".")[0]
        return stem.split("/", 2)[2]

    def log(self, study: "Study") -> str:
        """The log of the job."""
        return Log(self.study, self.job(study)).path

    def benchmark(self, study: "Study") -> "Benchmark":
        """Snakemake's benchmark of the job: its running time and memory."""
        stage, job = self.job(study).split("/", 1)
        return Benchmark(self.study, stage, job)


def flat(files: Inputs) -> list[str]:
    """All files among the inputs of a rule."""
    return [path for value in files.values() for path in ([value] if isinstance(value, str) else value)]


@dataclass(frozen=True)
class Log(Templated):
    """The log of a job. Its field `job` is the job's name, see `Product.job`."""

    template = "results/{study}/logs/{job}.log"
    study: str
    job: str


@dataclass(frozen=True)
class Benchmark(Templated):
    """Snakemake's benchmark of a job. Its field `job` is the job's name, with the stage as a folder before it."""

    template = "results/{study}/benchmarks/{stage}/{job}.tsv"
    study: str
    stage: str
    job: str
