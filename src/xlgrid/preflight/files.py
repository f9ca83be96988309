"""Reads the files of one's own that a study names: data with their columns and labels, text, vocabularies and encoders."""

import contextlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from xlgrid.data import checkpoints
from xlgrid.data.downloads import Found
from xlgrid.data.encoders import check_encoder, check_fits
from xlgrid.data.text import fetched_text
from xlgrid.data.tokenize import check_tokenizer, load_tokenizer
from xlgrid.plan.plan import Plan
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.materials import Material, downloads_of
from xlgrid.preflight.rows import Rows, row_lines, rows_of
from xlgrid.products.data import Data, Text, Unlabelled, local_rows
from xlgrid.products.encode import Encoder, Tokens, Vocabulary
from xlgrid.products.product import Product
from xlgrid.products.train import Run

# Larger files of data, in bytes, are read by the jobs alone, so that the checks take seconds.
MOST = 50_000_000
# Rows of a text that are read.
ROWS = 300
# Files that a line names at most.
SHOWN = 3


def file_lines(plan: Plan, materials: Sequence[Material]) -> Iterator[Line]:
    """A line for the files of each task, for text, and for each vocabulary and encoder from a folder; more where there are problems.
    Files that a person has to get have a line for each entry of `downloads`."""
    yield from by_hand_lines(plan, materials)
    downloads = downloads_of(plan, materials)
    groups: dict[str, list[Material]] = {}
    for material in materials:
        if material.files:
            groups.setdefault(_thing(material.named), []).append(material)
    for thing, members in groups.items():
        yield from _missing(thing, members, downloads)
        if present := [material for material in members if not material.missing]:
            yield from _checked(plan, thing, present)


def by_hand_lines(plan: Plan, materials: Sequence[Material]) -> Iterator[Line]:
    """A line for each entry of `downloads` whose files a person has to get, if one of them is missing."""
    entries: dict[str, list[str]] = {}
    downloads = downloads_of(plan, materials)
    missing = {file for material in materials for file in material.missing}
    for file, found in downloads.items():
        if found.entry.url is None and file in missing:
            entries.setdefault(found.path, []).append(file)
    for path, files in entries.items():
        them = "it is" if len(files) == 1 else f"{len(files)} are"
        yield Line(
            State.PROBLEM,
            path,
            f"{them} missing ({_listed(files)}), and only you can put {'it' if len(files) == 1 else 'them'} there: "
            f"{downloads[files[0]].entry.by_hand}",
        )


def tokenizer_lines(plan: Plan, needed: Iterable[Product]) -> Iterator[Line]:
    """A line for each vocabulary and encoder that does not come from a training here: whether it has the tokens that the tasks need,
    and an embedding for each token. One line lists those that are not on this machine.

    Args:
        needed: everything on which the study rests.
    """
    study = plan.study
    named = dict.fromkeys(product.under(study.name) for product in needed)
    tasks: dict[str, dict[str, None]] = {}
    for product in named:
        if isinstance(product, Tokens):
            tasks.setdefault(product.vocabulary, {})[product.task] = None
    absent = []
    for product in named:
        if isinstance(product, Vocabulary):
            origin: Any = study.all_vocabularies[product.vocabulary]
        elif isinstance(product, Encoder):
            origin = study.encoders[product.encoder]
        else:
            continue
        if not (origin.hub or origin.path):
            continue
        if (folder := folder_of(plan, product)) is None:
            # A missing folder of one's own has a line with its files.
            absent += [_thing(product)] if origin.hub else []
        elif isinstance(product, Vocabulary):
            yield _vocabulary(plan, product, folder, [*tasks.get(product.vocabulary, {})])
        else:
            vocabulary = Vocabulary(study.name, study.vocabulary_of(product.encoder))
            yield _encoder(plan, product, folder, vocabulary.vocabulary, folder_of(plan, vocabulary))
    if absent:
        yield Line(
            State.OPEN,
            ", ".join(absent),
            f"not on this machine, so tokens and embeddings could not be compared: `xlgrid fetch {study.name}`, then check again",
        )


def folder_of(plan: Plan, product: Vocabulary | Encoder) -> Path | None:
    """The folder on this machine with a vocabulary or an encoder: that of the results, or else the `path` of the study."""
    study = plan.study
    entry: Any = (
        study.all_vocabularies[product.vocabulary]
        if isinstance(product, Vocabulary)
        else study.encoders[product.encoder]
    )
    needed = "tokenizer.json" if isinstance(product, Vocabulary) else "config.json"
    places = [Path(plan.owned(product).folder), *([Path(entry.path)] if entry.path else [])]
    return next((place for place in places if (place / needed).is_file()), None)


def _thing(product: Product) -> str:
    match product:
        case Data() | Unlabelled():
            return f"data {product.task}"
        case Text():
            return "text"
        case Vocabulary():
            return f"vocabulary {product.vocabulary}"
        case Encoder():
            return f"encoder {product.encoder}"
        case Run():
            return f"adapters of method {product.method}"
    return str(product)


def _missing(thing: str, members: Iterable[Material], downloads: Mapping[str, Found]) -> Iterator[Line]:
    files = dict.fromkeys(file for material in members for file in material.missing)
    hosts: dict[str, list[str]] = {}
    for file in files:
        if file in downloads and (urls := downloads[file].urls):
            hosts.setdefault(urlsplit(urls[0]).netloc or "this machine", []).append(file)
    # A study may take the data of a task as the files of another, or of another study.
    of_tasks = [file for file in files if Data.parse(file)]
    known = {*downloads, *of_tasks}
    others = [file for file in files if file not in known]
    if of_tasks:
        yield Line(State.GOOD, thing, f"Snakemake makes {_listed(of_tasks)}")
    for host, downloaded in hosts.items():
        yield Line(State.GOOD, thing, f"Snakemake downloads {_listed(downloaded)} from {host}")
    for problem in dict.fromkeys(filter(None, (downloads[file].problem for file in files if file in downloads))):
        yield Line(State.PROBLEM, thing, problem)
    if others:
        is_one = len(others) == 1
        missing = "there is no file" if is_one else f"{len(others)} files are missing:"
        them = "it" if is_one else "them"
        yield Line(
            State.PROBLEM,
            thing,
            f"{missing} {_listed(others)}: put {them} there, correct the path in the study, or say under `downloads` where "
            f"{'it is' if is_one else 'they are'} from",
        )


def _listed(files: Sequence[str]) -> str:
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return ", ".join(files[:SHOWN]) + more


def _checked(plan: Plan, thing: str, members: Sequence[Material]) -> Iterator[Line]:
    """Lines on files that are all there."""
    problems: dict[str, None] = {}
    remarks: dict[str, None] = {}
    texts: dict[str, None] = {}
    read: list[Rows] = []
    large: list[str] = []
    for material in members:
        named = material.named
        if not isinstance(named, Data | Unlabelled | Text):
            continue
        if not isinstance(named, Text) and max(Path(file).stat().st_size for file in material.files) > MOST:
            large += material.files
            continue
        log = io.StringIO()
        with contextlib.redirect_stderr(log):
            try:
                if isinstance(named, Text):
                    _read_text(plan, named)
                    texts[named.language] = None
                elif rows := _rows(plan, named, material.files):
                    read.append(rows)
            except (ValueError, OSError) as error:
                problems[str(error)] = None
        remarks |= dict.fromkeys(log.getvalue().splitlines())
    yield from (Line(State.PROBLEM, thing, problem) for problem in problems)
    yield from (Line(State.OPEN, thing, remark) for remark in remarks)
    if large:
        yield Line(State.OPEN, thing, f"{_listed(large)}: larger than {MOST / 1e6:.0f} MB, so only the job reads it")
    if texts:
        yield Line(State.GOOD, thing, f"read in {', '.join(texts)}")
    yield from row_lines(thing, read)
    if not (texts or read or problems or large):
        yield Line(
            State.GOOD,
            thing,
            f"all {len(dict.fromkeys(file for each in members for file in each.files))} files are there",
        )


def _read_text(plan: Plan, product: Text) -> None:
    """Read the first rows of a text.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    texts, _ = fetched_text(product.language, plan.study.text.model_copy(update={"once": None}), None)
    with contextlib.closing(texts):
        for _ in islice(texts, ROWS):
            pass


def _rows(plan: Plan, product: Data | Unlabelled, files: Sequence[str]) -> Rows | None:
    """The rows of a split, read as the job does that fetches it; None if not all of its files are there.

    Raises:
        OSError, ValueError: a file cannot be read, or is not what the task needs.
    """
    split = product.split if isinstance(product, Data) else "train"
    entry = plan.study.tasks[product.task]
    table = local_rows(entry, product.language, split)
    return None if table is None else rows_of(product.language, split, files, table, entry.task)


def _vocabulary(plan: Plan, product: Vocabulary, folder: Path, tasks: Sequence[str]) -> Line:
    thing = _thing(product)
    try:
        tokenizer = load_tokenizer(folder)
        for task in tasks:
            described = plan.study.tasks[task]
            check_tokenizer(tokenizer, folder, described.task, described.max_length)
    except (ValueError, OSError) as error:
        return Line(State.PROBLEM, thing, str(error))
    of_tasks = f", with the special tokens that {', '.join(tasks)} need" if tasks else ""
    return Line(State.GOOD, thing, f"{len(tokenizer):,} tokens in {folder}{of_tasks}")


def _encoder(plan: Plan, product: Encoder, folder: Path, vocabulary: str, vocabulary_folder: Path | None) -> Line:
    thing, entry = _thing(product), plan.study.encoders[product.encoder]
    padding = None
    try:
        check_encoder(folder)
        is_pickled = checkpoints.are_pickled(checkpoints.weight_files(folder))
        if vocabulary_folder and not is_pickled:
            padding = check_fits(vocabulary_folder, folder)
        # The copy in the results has been cut already.
        if entry.layers and entry.path and folder == Path(entry.path):
            checkpoints.first_layers(json.loads((folder / "config.json").read_text(encoding="utf-8")), entry.layers)
    except (ValueError, OSError) as error:
        return Line(State.PROBLEM, thing, str(error))
    if is_pickled:
        return Line(
            State.OPEN,
            thing,
            f"{folder} has weights in PyTorch's own format, which are checked when they are converted",
        )
    if vocabulary_folder is None:
        return Line(
            State.OPEN,
            thing,
            f"whole in {folder}; its vocabulary {vocabulary} is not on this machine to compare it with",
        )
    changed = "" if padding is None else f"; the copy takes the `pad_token_id` {padding} of the vocabulary"
    return Line(
        State.GOOD, thing, f"whole in {folder}, with an embedding for each token of vocabulary {vocabulary}{changed}"
    )
