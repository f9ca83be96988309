"""Everything that a study makes: the kinds of products, each with its fields and the template of its path.

Encoders, runs, cells and contrasts are in `xlgrid.results.identity`. `xlgrid.plan.needs` says from what each product is made.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, get_args

from xlgrid.data.sources import SPLITS
from xlgrid.exhibits.exhibit import COMPARISON, FIGURE, TABLE
from xlgrid.languages.sources import Target, unaccompanied
from xlgrid.results.identity import Cell, Contrast, Encoder, Run, Templated

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


@dataclass(frozen=True)
class Meanings(Templated):
    """The meanings of a generated task, which every language expresses."""

    template = "results/{study}/data/{task}/meanings.parquet"
    study: str
    task: str


@dataclass(frozen=True)
class Data(Templated):
    """One split of a task's data in a language or pair."""

    template = "results/{study}/data/{task}/{language}/{split}.parquet"
    study: str
    task: str
    language: str
    split: str


@dataclass(frozen=True)
class Unlabelled(Templated):
    """The training data of a task in a language before a run of the study labels them."""

    template = "results/{study}/unlabelled/{task}/{language}.parquet"
    study: str
    task: str
    language: str


@dataclass(frozen=True)
class Text(Templated):
    """The text of a language."""

    template = "results/{study}/text/{language}.parquet"
    study: str
    language: str


@dataclass(frozen=True)
class Vocabulary(Templated):
    """A vocabulary, which several encoders may share."""

    template = "results/{study}/vocabularies/{vocabulary}/{file}"
    files = ("tokenizer.json", "tokenizer_config.json")
    study: str
    vocabulary: str


@dataclass(frozen=True)
class Tokens(Templated):
    """One split of a task's data in a language or pair, as the tokens of a vocabulary; those of `fr~en` also have the same examples
    in a second language, for methods that read both."""

    template = "results/{study}/tokens/{task}/{vocabulary}/{language}/{split}.arrow"
    study: str
    task: str
    vocabulary: str
    language: str
    split: str


@dataclass(frozen=True)
class Exhibit(Templated):
    """A table or figure."""

    template = "results/{study}/exhibits/{exhibit}{file}"
    files = tuple(dict.fromkeys((*TABLE, *FIGURE)))
    study: str
    exhibit: str


@dataclass(frozen=True)
class Comparison(Templated):
    """The comparison of an exhibit with published numbers."""

    template = "results/{study}/exhibits/{exhibit}{file}"
    files = COMPARISON
    study: str
    exhibit: str


@dataclass(frozen=True)
class Claims(Templated):
    """The verdicts of a study's claims."""

    template = "results/{study}/claims{file}"
    files = (".html", ".md", ".csv", ".svg")
    study: str


@dataclass(frozen=True)
class Summary(Templated):
    """The scores of all cells, which the command that runs the notebook of the report writes."""

    template = "results/{study}/summary.csv"
    study: str


@dataclass(frozen=True)
class Report(Templated):
    """The report as a page."""

    template = "results/{study}/report.html"
    study: str


@dataclass(frozen=True)
class Log(Templated):
    """The log of a job; `job` is the path of what the job makes, from the study's folder, without its suffix."""

    template = "results/{study}/logs/{job}.log"
    study: str
    job: str


@dataclass(frozen=True)
class Benchmark(Templated):
    """Snakemake's measurement of a job; `job` is as in `Log`, but begins with a folder, the stage."""

    template = "results/{study}/benchmarks/{stage}/{job}.tsv"
    study: str
    stage: str
    job: str


@dataclass(frozen=True)
class StudyCopy(Templated):
    """A copy of the study file, or of one that it extends, with which the results can be read where the project is not."""

    template = "results/{study}/study/{name}.yaml"
    study: str
    name: str


@dataclass(frozen=True)
class Partial(Templated):
    """The results of a command that failed: a list of the failures, and exhibits of the cells that exist."""

    template = "results/{study}/partial/failed.txt"
    study: str


# Logs, measurements, copies and partial exhibits are no products: nothing is made from them.
# A comparison is named as its exhibit with more behind, so it comes first.
Product = (
    Meanings
    | Data
    | Unlabelled
    | Text
    | Vocabulary
    | Encoder
    | Tokens
    | Run
    | Cell
    | Contrast
    | Comparison
    | Exhibit
    | Claims
    | Summary
    | Report
)


def product_of(path: str) -> Product | None:
    """The product, of whatever study, to which a file belongs; None if the file belongs to none."""
    return next((product for kind in get_args(Product) if (product := kind.parse(path))), None)


class UnknownName(NamedTuple):
    """A name in a product that its study does not have: of which kind it is, the name, and the names that the study has."""

    kind: str
    name: str
    known: list[str]


def unknown_name(study: "Study", product: Product) -> UnknownName | None:
    """The first name in a product that the study does not have; None if the study has them all.

    Runs, cells and contrasts depend on the grids, which are not asked.
    """
    known: dict[str, list[str]] = {
        "encoder": [*study.encoders],
        "vocabulary": [*study.all_vocabularies],
        "exhibit": [*study.exhibits],
        "language": study.languages,
    }
    match product:
        case Meanings():
            known["task"] = [name for name, entry in study.tasks.items() if entry.is_generated]
        case Data():
            known |= {"task": [name for name, entry in study.tasks.items() if not entry.from_text], "split": [*SPLITS]}
        case Unlabelled():
            known["task"] = [name for name, entry in study.tasks.items() if entry.data and entry.data.labelled]
            data = study.tasks[product.task].data if product.task in known["task"] else None
            known["language"] = (data and data.labelled and data.labelled.languages) or []
        case Tokens():
            known |= {"task": [*study.tasks], "split": [*SPLITS]}
    for kind, value in vars(product).items():
        # Data and tokens may be in a pair of languages; text never is. Tokens may have companions.
        language, companion = unaccompanied(value) if isinstance(product, Tokens) else (value, None)
        has_pairs = kind == "language" and not isinstance(product, Text | Unlabelled)
        names = [*Target(language).languages, *filter(None, [companion])] if has_pairs else [value]
        for name in names if kind in known else ():
            if name not in known[kind]:
                return UnknownName(kind, name, known[kind])
    return None
