"""The six stages of a study: which rules belong to each, and how many of its jobs are done."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlgrid.data.downloads import ALL_DOWNLOADS, Download
from xlgrid.products import kinds
from xlgrid.training.imported import ALL_IMPORTED

# The rules that make files which a study names in `downloads`; no product of a study is among them.
_KINDS: list[type[Download]] = [Download, *ALL_DOWNLOADS.own.values()]
_DOWNLOADS = ("download_archive", *(rule for kind in _KINDS for rule in kind.rules))
_IMPORTS = tuple(kind.rule for kind in ALL_IMPORTED.own.values())
# Stage -> the rules of its file in rules/, and those of papers.
RULES = {
    stage: (*(rule for kind in kinds() if kind.stage == stage for rule in kind.rules), *others)
    for stage, others in {**{kind.stage: () for kind in kinds()}, "data": _DOWNLOADS, "train": _IMPORTS}.items()
}
# The rules whose jobs train, and say in their logs how far they are.
TRAINING = ("train", "pretrain")
# The stage of rules that are not xlgrid's, in a workflow that includes xlgrid as a module.
OTHER = "other"
_STAGE_OF_RULE = {rule: stage for stage, rules in RULES.items() for rule in rules}


class Stage(NamedTuple):
    """A stage at one moment, as numbers of jobs. The jobs that are neither done, running, queued nor failed wait for others."""

    name: str
    jobs: int
    done: int = 0
    running: int = 0
    queued: int = 0
    failed: int = 0


def stage_of_rule(rule: str) -> str:
    """The stage of a rule; `other` for a rule of another workflow."""
    return _STAGE_OF_RULE.get(rule, OTHER)


def stages(states: Iterable[tuple[str, str]]) -> list[Stage]:
    """The stages, in their order, from the stage and the state of each job; stages without a job are left out.

    Args:
        states: a state is done, running, queued or failed; any other state is that of a job that waits.
    """
    counts: dict[str, dict[str, int]] = {name: {} for name in (*RULES, OTHER)}
    for name, state in states:
        counts[name][state] = counts[name].get(state, 0) + 1
    return [_stage(name, count) for name, count in counts.items() if count]


def _stage(name: str, count: Mapping[str, int]) -> Stage:
    of_states = {state: count.get(state, 0) for state in ("done", "running", "queued", "failed")}
    return Stage(name, sum(count.values()), **of_states)
