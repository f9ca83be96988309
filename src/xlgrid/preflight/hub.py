"""Asks the Hub about the repositories of a study. If the Hub does not answer, uses the lock file and local files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.data import lock as locks
from xlgrid.data.published import Repository
from xlgrid.preflight import Line, State
from xlgrid.preflight.files import Material

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


def hub_lines(study: "Study", materials: Iterable[Material], lock: str | Path) -> Iterator[Line]:
    """A line for each repository. If the Hub does not answer once, it is not asked again.

    Args:
        lock: the lock file, see `xlgrid.data.lock`.

    Raises:
        ValueError: the lock file is damaged.
    """
    commits = locks.read_lock(lock)
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
                answer = locks.ask(kind, name, commit or revision, locks.PATIENCE)
            except locks.Unreachable as error:
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
    """The problem, and what to do, if this user has no access to a repository that requires it; otherwise None."""
    if not getattr(answer, "gated", False) or all(material.is_there for material in used_by):
        return None
    return (
        None
        if locks.admits(repository.kind, repository.name)
        else f"is {locks.closed(repository.kind, repository.name)}"
    )


def _missing(study: "Study", used_by: Sequence[Material], answer: Any) -> Iterator[str]:
    """A message for each product that cannot be made from the repository, with what to do."""
    if files := [sibling.rfilename for sibling in answer.siblings or ()]:
        yield from filter(None, (material.named.problem_there(study, files, answer) for material in used_by))
