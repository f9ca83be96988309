"""The lock file: the commit of each Hub repository and revision at the first fetch."""

import re
from pathlib import Path
from typing import Any, Literal

import yaml

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.base.yaml_files import read_yaml

# The branch in which the Hub keeps each data set as parquet files, in a folder for each configuration.
PARQUET = "refs/convert/parquet"
# What to write where a data set is a script, and how the Hub knows who asks.
WITHOUT_SCRIPT = (
    f'write `revision: {PARQUET}` with `files: "{{name}}/{{split}}/*.parquet"`, or the path of a file in the repository as `files` with '
    "`quotes` or `columns`"
)
LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"

_COMMIT = re.compile("[0-9a-f]{40}")
_HEADER = "# Commits of Hub repositories, kind/repo@revision: commit. To fetch a revision anew, delete its line and the files that were made from it.\n"


def commit(lock: str | Path, kind: Literal["model", "dataset"], repo: str, revision: str = "main") -> str:
    """The commit, 40 hexadecimal digits, of a revision on the Hub. A commit that is not in the lock file is added to it.

    Raises:
        ValueError: the file is no lock file, or the Hub cannot be reached or does not know the repository or revision.
    """
    from filelock import FileLock

    lock = Path(lock)
    key = f"{kind}/{repo}@{revision}"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock.with_name(f".{lock.name}.lock")):
        commits = read_lock(lock)
        if key not in commits:
            commits[key] = revision if _COMMIT.fullmatch(revision) else _ask(kind, repo, revision, lock)
            write_text(lock, _HEADER + yaml.safe_dump(commits, sort_keys=True, width=1000))
        return commits[key]


def read_lock(lock: str | Path) -> dict[str, str]:
    """All locked commits by "kind/repo@revision"; none if there is no file.

    Raises:
        ValueError: the file is not YAML, or a value is not a commit.
    """
    lock = Path(lock)
    if not lock.exists():
        return {}
    try:
        commits = read_yaml(lock)[1] or {}
    except ValueError as error:
        raise ValueError(f"{error}; restore the file from version control, or delete it") from None
    if not isinstance(commits, dict):
        raise ValueError(
            f"{lock} is no lock file: expected lines like 'model/owner/name@main: <commit>'; restore it from version control, or delete it"
        )
    for key, value in commits.items():
        if not isinstance(value, str) or not _COMMIT.fullmatch(value):
            raise ValueError(f"{lock}, {key}: {value!r} is not a commit of 40 hexadecimal digits; delete the line")
    return commits


class Unreachable(ValueError):
    """The Hub does not answer, or must not be asked (HF_HUB_OFFLINE)."""


def ask(kind: str, repo: str, revision: str, seconds: float | None = None) -> Any:
    """The Hub's description of a repository at a revision: `sha`, the commit, and `siblings`, its files.

    Args:
        kind: "model" or "dataset".
        seconds: the longest wait for an answer; None for the library's own limit.

    Raises:
        Unreachable: there is no answer.
        ValueError: the Hub does not know the repository or the revision, or shows it to nobody without permission.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return HfApi().repo_info(repo, revision=revision, repo_type=kind, timeout=seconds)
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ValueError(said(error, kind, repo, revision)) from error
    except Exception as error:  # The library passes on errors of the network of many types.
        raise Unreachable(f"{type(error).__name__}: {error}") from error


def said(error: Exception, kind: str, repo: str, revision: str = "") -> str:
    """An error of the Hub or of a library that reads from it, as a phrase with what to do where that is known."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    text = f"{type(error).__name__}: {error}"
    if isinstance(error, GatedRepoError) or "is a gated dataset" in text:
        return f"{repo} is {closed(kind, repo)}"
    if "scripts are no longer supported" in text:
        return f"{repo} is a script, which is not run: {WITHOUT_SCRIPT}"
    if isinstance(error, RevisionNotFoundError):
        return unknown("revision", revision, _revisions(kind, repo))
    if isinstance(error, RepositoryNotFoundError):
        return f"{type(error).__name__}: there is no {repo}, or it is private: {LOG_IN}"
    return text


def admits(kind: str, repo: str) -> bool:
    """Whether the token of this machine, if there is one, gives access to a gated repository; also where the Hub does not answer."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError

    try:
        HfApi().auth_check(repo, repo_type=kind)
    except GatedRepoError:
        return False
    except Exception:  # The library passes on errors of the network of many types.
        return True
    return True


def closed(kind: str, repo: str) -> str:
    """That a repository is gated, and what to do."""
    where = f"https://huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repo}"
    return f"gated: ask for access at {where}, then {LOG_IN}"


def _revisions(kind: str, repo: str) -> list[str]:
    """The branches and tags of a repository, as far as the Hub lists them."""
    from huggingface_hub import HfApi

    try:
        listed = HfApi().list_repo_refs(repo, repo_type=kind)
    except Exception:  # The error that they explain is raised anyway.
        return []
    return [ref.name for ref in (*listed.branches, *listed.tags)] + [ref.ref for ref in listed.converts]


def _ask(kind: str, repo: str, revision: str, lock: Path) -> str:
    try:
        sha = ask(kind, repo, revision).sha
    except ValueError as error:
        raise ValueError(
            f"cannot get the commit of {kind} {repo} at {revision} from the Hub ({error}): "
            f"check the name, run this once where there is a network, or write the commit into {lock}"
        ) from error
    if not sha or not _COMMIT.fullmatch(sha):
        raise ValueError(f"the Hub names no commit for {kind} {repo} at {revision}: write it into {lock}")
    return str(sha)
