"""The files that a study makes, by what tells one from another; the fields are the wildcards of the rule that makes it.

Encoders, runs, cells and contrasts are in `xlgrid.results.identity`. `xlgrid.plan.needs` says from what each is made.
"""

from dataclasses import dataclass

from xlgrid.results import identity
from xlgrid.results.identity import Cell, Contrast, Encoder, Run


@dataclass(frozen=True)
class Meanings:
    """The meanings of a generated task, which every language expresses."""

    study: str
    task: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/data/{self.task}/meanings.parquet"


@dataclass(frozen=True)
class Data:
    """One split of a task's data in a language or pair."""

    study: str
    task: str
    language: str
    split: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/data/{self.task}/{self.language}/{self.split}.parquet"


@dataclass(frozen=True)
class Text:
    """The text of a language."""

    study: str
    language: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/text/{self.language}.parquet"


@dataclass(frozen=True)
class Tokens:
    """One split of a task's data in a language or pair, as the tokens of an encoder."""

    study: str
    task: str
    encoder: str
    language: str
    split: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/tokens/{self.task}/{self.encoder}/{self.language}/{self.split}.arrow"


@dataclass(frozen=True)
class Exhibit:
    """A table or figure."""

    study: str
    exhibit: str

    def file(self, suffix: str) -> str:
        """One of its files, such as that of the suffix `.csv`."""
        return f"results/{self.study}/exhibits/{self.exhibit}{suffix}"

    @property
    def path(self) -> str:
        return self.file(".csv")


@dataclass(frozen=True)
class Claims:
    """The verdicts of a study's claims."""

    study: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/claims.html"


@dataclass(frozen=True)
class Summary:
    """The scores of all cells, which the command that runs the notebook of the report writes."""

    study: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/summary.csv"


@dataclass(frozen=True)
class Report:
    """The report as a page."""

    study: str

    @property
    def path(self) -> str:
        return f"results/{self.study}/report.html"


Product = Meanings | Data | Text | Encoder | Tokens | Run | Cell | Contrast | Exhibit | Claims | Summary | Report

ENCODER_FILES = ("config.json", "model.safetensors", "tokenizer.json")
RUN_FILES = ("delta.safetensors", "run.json", "curve.jsonl")
CLAIMS_FILES = tuple(f"claims.{suffix}" for suffix in ("html", "md", "csv", "svg"))


def delta(run: Run) -> str:
    """The weights that a run has changed."""
    return f"{run.folder}/{RUN_FILES[0]}"


def main_file(product: Product) -> str:
    """The file whose presence says that a product is made."""
    return f"{product.folder}/run.json" if isinstance(product, Run) else product.path


def product_of(path: str) -> Product | None:
    """The product, of whatever study, that a file belongs to; None if it cannot belong to any."""
    match path.split("/"):
        case ["results", study, "data", task, "meanings.parquet"]:
            return Meanings(study, task)
        case ["results", study, "data", task, language, file] if file.endswith(".parquet"):
            return Data(study, task, language, file.removesuffix(".parquet"))
        case ["results", study, "text", file] if file.endswith(".parquet"):
            return Text(study, file.removesuffix(".parquet"))
        case ["results", study, "encoders", encoder, file] if file in ENCODER_FILES:
            return Encoder(study, encoder)
        case ["results", study, "tokens", task, encoder, language, file] if file.endswith(".arrow"):
            return Tokens(study, task, encoder, language, file.removesuffix(".arrow"))
        case ["results", study, "exhibits", file] if "." in file:
            return Exhibit(study, file.rpartition(".")[0].removesuffix("-published"))
        case ["results", study, file] if file in CLAIMS_FILES:
            return Claims(study)
        case ["results", study, "summary.csv"]:
            return Summary(study)
        case ["results", study, "report.html"]:
            return Report(study)
        case ["results", _, "runs", *_, file] if file not in RUN_FILES:
            return None
    try:
        return identity.parse(path)
    except ValueError:
        return None
