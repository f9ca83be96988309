"""The lock file: the commit of each Hub repository and revision at the first fetch, and the checksum of each
download."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import yaml

from xlgrid.base.files import write_text
from xlgrid.base.names import unknown
from xlgrid.base.yaml_files import read_yaml

# The branch with the Hub's copy of a data set as parquet files, in a folder for each configuration.
PARQUET_BRANCH = "refs/convert/parquet"
# Two pieces of advice in errors: for a data set that is a script, and for a repository that needs a login.
WITHOUT_SCRIPT = (
    f'write `revision: {PARQUET_BRANCH}` with `files: "{{name}}/{{split}}/*.parquet"`, or the path of a file in the repository as `files` with '
    "`quotes` or `columns`"
)
# A check waits at most this many seconds for the Hub's answer.
PATIENCE = 10.0
LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"

_COMMIT = re.compile("[0-9a-f]{40}")
_CHECKSUM = re.compile("[0-9a-f]{64}")
_HEADER = (
    "# Commits of Hub repositories, kind/repo@revision: commit, and checksums of downloads, address: SHA-256. To fetch "
    "one anew, delete its line and the files that were made from it.\n"
)


def commit(lock: str | Path, kind: Literal["model", "dataset"], repo: str, revision: str = "main") -> str:
    """The commit, 40 hexadecimal digits, of a revision on the Hub. A commit that is not in the lock file is added to
    it.

    Raises:
        ValueError: the file is not a lock file, or the Hub cannot be reached or does not know the repository or
            revision.
    """
    lock = Path(lock)
    asked = lambda: revision if _COMMIT.fullmatch(revision) else _ask(kind, repo, revision, lock)  # noqa: E731
    return _kept(lock, f"{kind}/{repo}@{revision}", asked)


def keep_checksum(lock: str | Path, url: str, sha256: str) -> None:
    """Add the checksum of a download to the lock file, or compare it with the checksum in the file.

    Raises:
        ValueError: the file is not a lock file, or has another checksum.
    """
    lock = Path(lock)
    if (kept := _kept(lock, url, lambda: sha256)) != sha256:
        raise ValueError(
            f"the download from {url} has the SHA-256 {sha256}, and the first download had {kept}: the file at this "
            f"address has changed. To use the new file, delete the line of this address in {lock} and the files that "
            "were made from the download"
        )


def _kept(lock: Path, key: str, value: Callable[[], str]) -> str:
    """The value of a key in the lock file. A missing key is added to the file."""
    from filelock import FileLock

    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock.with_name(f".{lock.name}.lock")):
        values = read_lock(lock)
        if key not in values:
            values[key] = value()
            write_text(lock, _HEADER + yaml.safe_dump(values, sort_keys=True, width=1000))
        return values[key]


def read_lock(lock: str | Path) -> dict[str, str]:
    """All locked commits by "kind/repo@revision", and all checksums by address; empty if the lock file does not exist.

    Raises:
        ValueError: the file is not YAML, or a value is neither a commit nor a checksum.
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
            f"{lock} is not a lock file: expected lines like 'model/owner/name@main: <commit>'; restore it from "
            "version control, or delete it"
        )
    for key, value in commits.items():
        is_download = "://" in str(key)
        if not isinstance(value, str) or not (_CHECKSUM if is_download else _COMMIT).fullmatch(value):
            what = "a SHA-256 of 64" if is_download else "a commit of 40"
            raise ValueError(f"{lock}, {key}: {value!r} is not {what} hexadecimal digits; delete the line")
    return commits


class Unreachable(ValueError):
    """The error that the Hub does not answer, or must not be asked (HF_HUB_OFFLINE)."""


def ask(kind: str, repo: str, revision: str, seconds: float | None = None) -> Any:
    """The Hub's description of a repository at a revision: `sha`, the commit, and `siblings`, its files.

    Args:
        kind: "model" or "dataset".
        seconds: the maximum time to wait for an answer; None for the library's own limit.

    Raises:
        Unreachable: the Hub does not answer.
        ValueError: the Hub does not know the repository or the revision, or does not permit access to it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return HfApi().repo_info(repo, revision=revision, repo_type=kind, timeout=seconds)
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ValueError(said(error, kind, repo, revision)) from error
    except Exception as error:  # The library passes on errors of the network of many types.
        raise Unreachable(f"{type(error).__name__}: {error}") from error


def licences(kind: str, repo: str, revision: str) -> list[str]:
    """The licences that the card of a repository states at a revision, by their names on the Hub.

    Raises:
        Unreachable, ValueError: see `ask`.
    """
    card = ask(kind, repo, revision, PATIENCE).card_data
    named = getattr(card, "license", None) or []
    # The Hub calls a licence that is not in its list "other", and has its name beside it.
    own = getattr(card, "license_name", None) or "other"
    return [own if name == "other" else str(name) for name in ([named] if isinstance(named, str) else named)]


def said(error: Exception, kind: str, repo: str, revision: str = "") -> str:
    """A phrase about an error of the Hub, or of a library that reads from the Hub, with advice if some is known."""
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
    """Whether this machine's token, if any, gives access to a gated repository. True if the Hub does not answer."""
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
    """A phrase saying that a repository is gated, and how to get access."""
    where = f"https://huggingface.co/{'datasets/' if kind == 'dataset' else ''}{repo}"
    return f"gated: ask for access at {where}, then {LOG_IN}"


def _revisions(kind: str, repo: str) -> list[str]:
    """The branches and tags of a repository; empty if the Hub does not list them."""
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
