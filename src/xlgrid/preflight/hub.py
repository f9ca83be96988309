"""Asks the Hub about the repositories of a study; where the Hub does not answer, the lock file and files on this machine do."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.names import unknown
from xlgrid.data.encoders import without_tokenizer
from xlgrid.data.lock import Unreachable, ask, read_lock
from xlgrid.plan.products import Vocabulary
from xlgrid.preflight.lines import Line, State
from xlgrid.preflight.materials import Material, Repository, origin_of
from xlgrid.results.identity import Encoder

if TYPE_CHECKING:
    from xlgrid.study.schema import Study

# Seconds that the Hub has for an answer.
PATIENCE = 10.0
# The branch in which the Hub keeps each data set as parquet files, in a folder for each configuration.
PARQUET = "refs/convert/parquet"


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
                problem = next(_missing(study, used_by, answer), None)
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


def _missing(study: "Study", used_by: Sequence[Material], answer: Any) -> Iterator[str]:
    """What the study takes from a repository that the repository does not have, and what to do."""
    files = [sibling.rfilename for sibling in answer.siblings or ()]
    if not files:
        return
    for material in used_by:
        product = material.named
        if isinstance(product, Encoder):
            if "config.json" not in files:
                yield f"encoder {product.encoder}: the repository has no config.json: name one in the layout of transformers"
            elif not any(fnmatch(file, "model*.safetensors") or file == "pytorch_model.bin" for file in files):
                yield f"encoder {product.encoder}: the repository has neither model.safetensors nor pytorch_model.bin: name another"
        elif isinstance(product, Vocabulary):
            if "tokenizer.json" not in files:
                yield f"vocabulary {product.vocabulary}: {without_tokenizer('the repository', files)}"
        elif origin := origin_of(study, product):
            yield from _missing_data(material, origin, files, answer)


def _missing_data(material: Material, origin: Any, files: Sequence[str], answer: Any) -> Iterator[str]:
    product: Any = material.named
    split = getattr(product, "split", "train")
    place = f"{getattr(product, 'task', 'text')}, {product.language}"
    if origin.files:
        [pattern] = origin.hub_arguments(product.language, split)["data_files"].values()
        if not any(fnmatch(file, pattern) for file in files):
            yield f"{place}, {split}: {unknown('file', pattern, files[:20])}: correct `files`"
        return
    known = _configurations(origin.revision, files, answer)
    name = origin.configuration(product.language)
    if name and known and name not in known:
        yield f"{place}: {unknown('configuration', name, known)}: correct `name` or `names`"


def _configurations(revision: str, files: Sequence[str], answer: Any) -> list[str]:
    """The configurations of a data set, as far as its card or the folders of its parquet branch list them."""
    if revision == PARQUET:
        return sorted({file.split("/")[0] for file in files if "/" in file})
    card = getattr(answer, "card_data", None)
    listed = getattr(card, "configs", None) or []
    return [entry["config_name"] for entry in listed if isinstance(entry, dict) and "config_name" in entry]
