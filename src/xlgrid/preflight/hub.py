"""Asks the Hub about the repositories of a study; where the Hub does not answer, the lock file and files on this machine do."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.names import unknown
from xlgrid.data.checkpoints import weights_problem
from xlgrid.data.encoders import without_tokenizer
from xlgrid.data.formats import matches
from xlgrid.data.lock import PARQUET_BRANCH, Unreachable, admits, ask, closed, read_lock
from xlgrid.data.published import Repository
from xlgrid.preflight import Line, State
from xlgrid.preflight.files import Material
from xlgrid.products.encode import Encoder, Vocabulary

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# Seconds that the Hub has for an answer.
PATIENCE = 10.0
# Files of a repository that a line names at most.
SHOWN = 20


def hub_lines(study: "Study", materials: Iterable[Material], lock: str | Path) -> Iterator[Line]:
    """A line for each repository. After the first question without an answer, the Hub is not asked again.

    Args:
        lock: the lock file, see `xlgrid.data.lock`.

    Raises:
        ValueError: the lock file is damaged.
    """
    commits = read_lock(lock)
    users: dict[Repository, list[Material]] = {}
    for material in materials:
        if material.repository:
            users.setdefault(material.repository, []).append(material)
    is_silent = False
    for repository, used_by in users.items():
        kind, name, revision = repository
        thing = f"{'model' if kind == 'model' else 'data set'} {name}"
        commit = commits.get(f"{kind}/{name}@{revision}")
        at = f"{revision}, which {lock} locks at {commit[:7]}" if commit else revision
        if not is_silent:
            try:
                answer = ask(kind, name, commit or revision, PATIENCE)
            except Unreachable as error:
                is_silent = True
                yield Line(
                    State.OPEN,
                    "Hub",
                    f"does not answer ({error}), so the lines on its repositories say what is known here",
                )
            except ValueError as error:
                yield Line(
                    State.PROBLEM,
                    thing,
                    f"is not on the Hub at {at} ({error}): correct its name or revision in the study",
                )
                continue
            else:
                problem = _gated(repository, used_by, answer) or next(_missing(study, used_by, answer), None)
                yield Line(State.PROBLEM if problem else State.GOOD, thing, problem or f"is on the Hub at {at}")
                continue
        if commit:
            yield Line(State.GOOD, thing, f"{at}; the Hub was not asked")
        elif all(material.is_there for material in used_by):
            yield Line(State.GOOD, thing, "has been fetched; the Hub was not asked")
        else:
            yield Line(
                State.OPEN,
                thing,
                f"was not asked for, and {lock} has no commit: `xlgrid fetch {study.name}` where there is a network",
            )


def _gated(repository: Repository, used_by: Sequence[Material], answer: Any) -> str | None:
    """That nobody may download from a repository without access, which whoever runs this lacks, and what to do."""
    if not getattr(answer, "gated", False) or all(material.is_there for material in used_by):
        return None
    return None if admits(repository.kind, repository.name) else f"is {closed(repository.kind, repository.name)}"


def _missing(study: "Study", used_by: Sequence[Material], answer: Any) -> Iterator[str]:
    """What the study takes from a repository that the repository does not have, and what to do."""
    files = [sibling.rfilename for sibling in answer.siblings or ()]
    if not files:
        return
    for material in used_by:
        product = material.named
        if isinstance(product, Encoder):
            place = f"encoder {product.encoder}: the repository"
            if "config.json" not in files:
                yield f"{place} has no config.json: name one in the layout of transformers"
            elif problem := weights_problem(place, files):
                yield problem
        elif isinstance(product, Vocabulary):
            if "tokenizer.json" not in files:
                yield f"vocabulary {product.vocabulary}: {without_tokenizer('the repository', files)}"
        elif origin := product.origin(study):
            # Only an origin on the Hub has a repository.
            yield from _missing_data(study, material, origin, files, answer)


def _missing_data(study: "Study", material: Material, origin: Any, files: Sequence[str], answer: Any) -> Iterator[str]:
    product: Any = material.named
    split, repository = getattr(product, "split", "train"), origin.hub
    task = study.tasks[product.task].task if hasattr(product, "task") else None
    place = f"{getattr(product, 'task', 'text')}, {product.language}"
    script = f"{repository.rpartition('/')[2]}.py"
    if script in files and not (task and origin.is_file(task)):
        yield f"{place}: the repository is a script, {script}, which is not run: {_instead(repository, files)}"
        return
    if origin.files:
        [pattern] = origin.arguments(product.language, split)["data_files"].values()
        if not any(matches(pattern, file) for file in files):
            yield f"{place}, {split}: {unknown('file', pattern, _nearest(pattern, files))}: correct `files`"
        return
    known = _configurations(origin.revision, files, answer)
    name = origin.configuration(product.language)
    if name and known and name not in known:
        yield f"{place}: {unknown('configuration', name, known)}: correct `name` or `names`"


def _instead(repository: str, files: Sequence[str]) -> str:
    """What to write in place of a revision that is a script: the layout of the Hub's copy as parquet, or a file of this revision."""
    try:
        copied = [sibling.rfilename for sibling in ask("dataset", repository, PARQUET_BRANCH, PATIENCE).siblings or ()]
    except ValueError:  # There is no copy, or no answer.
        copied = []
    for example in sorted(copied):
        # Either en/train/0000.parquet, or en/name-train.parquet in copies of before August 2023.
        if new := re.fullmatch(r"[^/]+/[^/]+/[^/]+\.parquet", example):
            return f'write `revision: {PARQUET_BRANCH}` and `files: "{{name}}/{{split}}/*.parquet"`, where files are such as {new[0]}'
        if old := re.fullmatch(r"[^/]+/(.+)-(train|validation|test)(-.*)?\.parquet", example):
            return f'write `revision: {PARQUET_BRANCH}` and `files: "{{name}}/{old[1]}-{{split}}*.parquet"`, where files are such as {old[0]}'
    tables = [file for file in files if re.search(r"\.(tsv|csv|conll|txt|iob2|conllu)$", file)]
    if tables:
        return f"write the path of its files as `files`, with `quotes` or `columns`; it has {', '.join(tables[:3])}"
    return f"the Hub has no copy of it on {PARQUET_BRANCH}: name another repository, or put its files here as `local`"


def _nearest(pattern: str, files: Sequence[str]) -> list[str]:
    """Some files of a repository, those first that are in the folder that a pattern names."""
    folder = pattern.split("*")[0].rpartition("/")[0]
    return sorted(files, key=lambda file: not file.startswith(f"{folder}/"))[:SHOWN]


def _configurations(revision: str, files: Sequence[str], answer: Any) -> list[str]:
    """The configurations of a data set, as far as its card or the folders of its parquet branch list them."""
    if revision == PARQUET_BRANCH:
        return sorted({file.split("/")[0] for file in files if "/" in file})
    card = getattr(answer, "card_data", None)
    listed = getattr(card, "configs", None) or []
    return [entry["config_name"] for entry in listed if isinstance(entry, dict) and "config_name" in entry]
