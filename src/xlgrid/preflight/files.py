"""The data, text, tokenizers and encoders that a study takes from outside, and checks of the user's own files."""

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from xlgrid.data import checkpoints
from xlgrid.data.downloads import MatchedEntry, find
from xlgrid.data.encoders import check_encoder, check_fits
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.published import Obtained, Repository
from xlgrid.data.text import fetched_text
from xlgrid.data.tokenize import check_tokenizer, load_tokenizer
from xlgrid.plan.plan import Plan
from xlgrid.preflight import Line, State
from xlgrid.products.data import Data, Text
from xlgrid.products.encode import Encoder, Tokenizer, Tokens
from xlgrid.products.product import Product

if TYPE_CHECKING:
    import pyarrow as pa

    from xlgrid.tasks import Task

# Bytes. Only the jobs read larger files of data, so that the checks take seconds.
MOST = 50_000_000
# The number of rows of a text that the checks read.
ROWS = 300
# The most files that a line names.
SHOWN = 3
# The share of rows of a split from which on a line reports that they are in another split, too.
SHARED = 0.1


class Material(NamedTuple):
    """A product that is not computed from other products: it is fetched from the Hub, or read from the user's files.

    Attributes:
        product: the product, with the study that makes it.
        named: the same product, with the study that is checked.
        repository: the repository that it is fetched from; None if it is read from files.
        files: the user's files that it is read from.
    """

    product: Product
    named: Product
    repository: Repository | None
    files: tuple[str, ...]

    @property
    def is_there(self) -> bool:
        """Whether the product has been made."""
        return Path(self.product.path).exists()

    @property
    def missing(self) -> list[str]:
        """The files that do not exist, or are folders."""
        return [file for file in self.files if not Path(file).is_file()]


class Rows(NamedTuple):
    """The rows of a split in a language or pair.

    Attributes:
        files: the files from which they were read.
        described: the number of rows and their labels, in words.
        inputs: for each row, the hash of the columns that the encoder reads.
    """

    language: str
    split: str
    files: Sequence[str]
    described: str
    inputs: Sequence[int]


def materials(plan: Plan) -> list[Material]:
    """The products of a study that are fetched or read."""
    taken = []
    for product in plan.needed:
        named = product.under(plan.study.name)
        repository, inputs = named.repository(plan.study), named.inputs(plan)
        files = tuple(inputs.get("files", ()))
        if repository or files:
            taken.append(Material(product, named, repository, files))
    return taken


def downloads_of(plan: Plan, materials: Iterable[Material]) -> dict[str, MatchedEntry]:
    """The files among the materials of a study that have an entry in its `downloads`."""
    files = dict.fromkeys(file for material in materials for file in material.files)
    found = {file: find(plan.study.downloads, file) for file in files}
    return {file: entry for file, entry in found.items() if entry}


def file_lines(plan: Plan, materials: Sequence[Material]) -> Iterator[Line]:
    """Lines about the files of each task, of text, and of each tokenizer and encoder from a folder.

    For files that a person has to get, there is a line for each entry of `downloads`.
    """
    yield from by_hand_lines(plan, materials)
    downloads = downloads_of(plan, materials)
    groups: dict[str, list[Material]] = {}
    for material in materials:
        if material.files:
            groups.setdefault(material.named.thing, []).append(material)
    for thing, members in groups.items():
        missing = dict.fromkeys(file for material in members for file in material.missing)
        yield from missing_lines(thing, [*missing], downloads)
        if present := [material for material in members if not material.missing]:
            yield from _checked(plan, thing, present)


def by_hand_lines(plan: Plan, materials: Sequence[Material]) -> Iterator[Line]:
    """A line for each entry of `downloads` whose files a person has to get, if one of them is missing."""
    missing = {file for material in materials for file in material.missing}
    entries: dict[tuple[str, str], list[str]] = {}
    for file, found in downloads_of(plan, materials).items():
        if found.entry.url is None and file in missing:
            entries.setdefault((found.path, str(found.entry.by_hand)), []).append(file)
    for (path, advice), files in entries.items():
        yield Line(State.PROBLEM, path, f"{_absent(files)}, and only you can get what is missing: {advice}")


def missing_lines(thing: str, files: Sequence[str], downloads: Mapping[str, MatchedEntry]) -> Iterator[Line]:
    """Lines about files that are missing."""
    hosts: dict[str, list[str]] = {}
    for file in files:
        if file in downloads and (urls := downloads[file].urls):
            hosts.setdefault(urlsplit(urls[0]).netloc or "this machine", []).append(file)
    # A study may read files that Snakemake makes: the data of another task, or of another study.
    of_tasks = [file for file in files if Data.parse(file)]
    if of_tasks:
        yield Line(State.GOOD, thing, f"Snakemake makes {_listed(of_tasks)}")
    for host, downloaded in hosts.items():
        yield Line(State.GOOD, thing, f"Snakemake downloads {_listed(downloaded)} from {host}")
    for problem in dict.fromkeys(filter(None, (downloads[file].problem for file in files if file in downloads))):
        yield Line(State.PROBLEM, thing, problem)
    if others := [file for file in files if file not in downloads and file not in of_tasks]:
        put = "put it there" if len(others) == 1 else "put them there"
        advice = f"{put}, correct the path in the study, or say under `downloads` where to get what is missing"
        yield Line(State.PROBLEM, thing, f"{_absent(others)}: {advice}")


def _listed(files: Sequence[str]) -> str:
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return ", ".join(files[:SHOWN]) + more


def _absent(files: Sequence[str]) -> str:
    return f"there is no file {files[0]}" if len(files) == 1 else f"{len(files)} files are missing ({_listed(files)})"


def _checked(plan: Plan, thing: str, members: Sequence[Material]) -> Iterator[Line]:
    """Lines about the products of one thing, such as a task. All of their files exist."""
    read: list[Rows] = []
    large: list[str] = []
    texts: list[str] = []
    # Several products may be read from the same file, so the same line may come twice.
    lines: dict[Line, None] = {}
    for material in members:
        log = io.StringIO()
        try:
            with contextlib.redirect_stderr(log):
                match material.named:
                    case Text(_, language):
                        _read_text(plan, language)
                        texts.append(language)
                    case named if not named.origin(plan.study):
                        pass
                    case _ if max(Path(file).stat().st_size for file in material.files) > MOST:
                        large += material.files
                    case named:
                        read += _rows(plan, named, material.files)
        except (ValueError, OSError) as error:
            lines[Line(State.PROBLEM, thing, str(error))] = None
        lines |= {Line(State.OPEN, thing, remark): None for remark in log.getvalue().splitlines()}
    yield from lines
    if large:
        yield Line(State.OPEN, thing, f"{_listed(large)}: larger than {MOST / 1e6:.0f} MB, so only the job reads it")
    if texts:
        yield Line(State.GOOD, thing, f"read in {', '.join(texts)}")
    yield from row_lines(thing, read)
    if not (texts or read or lines or large):
        number = len({file for material in members for file in material.files})
        yield Line(State.GOOD, thing, f"all {number} files are there")


def _read_text(plan: Plan, language: str) -> None:
    """Read the first rows of a text.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    texts, _ = fetched_text(language, plan.study.text.model_copy(update={"once": None}), None)
    with contextlib.closing(texts):
        for _ in islice(texts, ROWS):
            pass


def _rows(plan: Plan, product: Any, files: Sequence[str]) -> Iterator[Rows]:
    """The rows of a split, read in the same way as in its job; nothing if some of its files are missing.

    Raises:
        OSError, ValueError: a file cannot be read, or is not what the task needs.
    """
    table = product.rows(plan.study)
    if table is not None:
        split, task = getattr(product, "split", "train"), plan.study.tasks[product.task].task
        yield rows_of(product.language, split, files, table, task)


def rows_of(language: str, split: str, files: Sequence[str], table: "pa.Table", task: "Task") -> Rows:
    """The rows of a checked table."""
    counts = task.head.label_counts(table, task) if task.target in table.column_names else {}
    described = "1 row" if table.num_rows == 1 else f"{table.num_rows:,} rows"
    if counts:
        label, most = max(counts.items(), key=lambda entry: entry[1])
        of_labels = "1 label" if len(counts) == 1 else f"{len(counts)} labels"
        described += f", {of_labels}; the most frequent is {label} ({most / sum(counts.values()):.0%})"
    columns = [table[column].to_pylist() for column in task.inputs if column in table.column_names]
    # A list, such as the words of a sentence, has no hash.
    inputs = [hash(str(values)) for values in zip(*columns, strict=True)]
    return Rows(language, split, files, described, inputs)


def row_lines(thing: str, read: Iterable[Rows]) -> Iterator[Line]:
    """A line for the files of each split, and a line for each two splits or languages with many rows in common."""
    by_split = sorted(read, key=lambda rows: SPLITS.index(rows.split))
    for rows in by_split:
        yield Line(State.GOOD, thing, f"{' and '.join(rows.files)}: {rows.described}")
    for first, second in combinations(by_split, 2):
        if remark := _in_common(first, second):
            yield Line(State.OPEN, thing, remark)


def _in_common(first: Rows, second: Rows) -> str | None:
    """The message about rows that two splits of a language share, or about a split that is equal in two languages."""
    if first.language == second.language:
        key, both = "split", f"{first.split} and {second.split} in {first.language}"
    elif first.split == second.split:
        key, both = "language", f"{first.split} in {first.language} and {second.language}"
    else:
        return None
    # If one file has several splits, some rows may be in two splits.
    if first.inputs == second.inputs:
        if [*first.files] == [*second.files]:
            return f"{both} are both read from {' and '.join(first.files)}: put {{{key}}} into `local`"
        return f"{both} have the same {len(second.inputs):,} rows: see whether the files are the right ones"
    present = {*first.inputs}
    shared = sum(row in present for row in second.inputs) if key == "split" else 0
    if shared and shared >= SHARED * len(second.inputs):
        return f"{both}: {shared:,} of {len(second.inputs):,} {second.split} rows are {first.split} rows, too"
    return None


def tokenizer_lines(plan: Plan) -> Iterator[Line]:
    """A line for each tokenizer and encoder that is not trained here.

    The line says whether it has the tokens that the tasks need, and an embedding for each token. One more line lists
    tokenizers and encoders that are not on this machine.
    """
    study = plan.study
    named = dict.fromkeys(product.under(study.name) for product in plan.needed)
    tasks: dict[str, dict[str, None]] = {}
    for product in named:
        if isinstance(product, Tokens):
            tasks.setdefault(product.tokenizer, {})[product.task] = None
    absent = []
    for product in named:
        if not isinstance(product, Tokenizer | Encoder):
            continue
        entry = _entry(plan, product)
        folder = folder_of(plan, product)
        if folder is None:
            # If a folder of the user is missing, the lines about files report it.
            absent += [product.thing] if entry.repository else []
        elif entry.repository or entry.folder:
            try:
                if isinstance(product, Tokenizer):
                    line = _tokenizer(plan, product, folder, [*tasks.get(product.tokenizer, {})])
                else:
                    line = _encoder(plan, product, folder)
            except (ValueError, OSError) as error:
                line = Line(State.PROBLEM, product.thing, str(error))
            yield line
    if absent:
        yield Line(
            State.OPEN,
            ", ".join(absent),
            f"not on this machine, so tokens and embeddings could not be compared: `xlgrid fetch {study.name}`, then check again",
        )


def folder_of(plan: Plan, product: Tokenizer | Encoder) -> Path | None:
    """The folder of a tokenizer or encoder on this machine: in results/, or else the `path` in the study."""
    entry, needed = _entry(plan, product), "tokenizer.json" if isinstance(product, Tokenizer) else "config.json"
    places = [Path(plan.owned(product).folder), *([Path(entry.folder)] if entry.folder else [])]
    return next((place for place in places if (place / needed).is_file()), None)


def _entry(plan: Plan, product: Tokenizer | Encoder) -> Obtained:
    """The entry of a tokenizer or encoder in the study."""
    if isinstance(product, Tokenizer):
        return plan.study.all_tokenizers[product.tokenizer]
    return plan.study.encoders[product.encoder]


def _tokenizer(plan: Plan, product: Tokenizer, folder: Path, tasks: Sequence[str]) -> Line:
    """Whether a tokenizer has the special tokens of some tasks.

    Raises:
        OSError, ValueError: the tokenizer cannot be read, or lacks a token.
    """
    tokenizer = load_tokenizer(folder)
    for task in tasks:
        described = plan.study.tasks[task]
        check_tokenizer(tokenizer, folder, described.task, described.max_length)
    of_tasks = f", with the special tokens that {', '.join(tasks)} need" if tasks else ""
    return Line(State.GOOD, product.thing, f"{len(tokenizer):,} tokens in {folder}{of_tasks}")


def _encoder(plan: Plan, product: Encoder, folder: Path) -> Line:
    """Whether an encoder is complete, and has an embedding for each token of its tokenizer.

    Raises:
        OSError, ValueError: the encoder cannot be read, is not complete, or lacks embeddings.
    """
    tokenizer = Tokenizer(product.study, plan.study.tokenizer_of(product.encoder))
    tokenizer_folder = folder_of(plan, tokenizer)
    check_encoder(folder)
    if checkpoints.are_pickled(checkpoints.weight_files(folder)):
        text = f"{folder} has weights in PyTorch's own format, which are checked when they are converted"
        return Line(State.OPEN, product.thing, text)
    if tokenizer_folder is None:
        text = f"whole in {folder}; its {tokenizer.thing} is not on this machine to compare it with"
        return Line(State.OPEN, product.thing, text)
    padding = check_fits(tokenizer_folder, folder)
    changed = "" if padding is None else f"; the copy takes the `pad_token_id` {padding} of the tokenizer"
    text = f"whole in {folder}, with an embedding for each token of {tokenizer.thing}{changed}"
    return Line(State.GOOD, product.thing, text)
