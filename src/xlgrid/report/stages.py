"""The six stages of a study: the rules of each stage, and the numbers of its jobs in each state."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlgrid.data.downloads import ALL_DOWNLOADS, Download
from xlgrid.products import kinds
from xlgrid.training.derived import ALL_DERIVED_RUNS

# The rules that make the files in `downloads` of a study. These files are not products of the study.
_KINDS: list[type[Download]] = [Download, *ALL_DOWNLOADS.own.values()]
_DOWNLOADS = ("download_archive", *(rule for kind in _KINDS for rule in kind.rules))
_DERIVED = tuple(kind.rule for kind in ALL_DERIVED_RUNS.own.values())
# Stage -> the rules of its file in rules/, and those of papers.
RULES = {
    stage: (*(rule for kind in kinds() if kind.stage == stage for rule in kind.rules), *others)
    for stage, others in {**{kind.stage: () for kind in kinds()}, "data": _DOWNLOADS, "train": _DERIVED}.items()
}
# The rules whose jobs train and write their progress to their logs.
TRAINING = ("train", "train_many", "pretrain")
# The stage of other rules in a workflow that includes xlgrid as a module.
OTHER = "other"
_STAGE_OF_RULE = {rule: stage for stage, rules in RULES.items() for rule in rules}


class Stage(NamedTuple):
    """The numbers of jobs of a stage at one moment. All jobs that are not done, running, queued or failed wait for
    other jobs."""

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
    """The stages in order, without the stages that have no jobs.

    Args:
        states: the stage and the state of each job. A state is done, running, queued or failed; any other state means
            that the job waits.
    """
    counts: dict[str, dict[str, int]] = {name: {} for name in (*RULES, OTHER)}
    for name, state in states:
        counts[name][state] = counts[name].get(state, 0) + 1
    return [_stage(name, count) for name, count in counts.items() if count]


def _stage(name: str, count: Mapping[str, int]) -> Stage:
    of_states = {state: count.get(state, 0) for state in ("done", "running", "queued", "failed")}
    return Stage(name, sum(count.values()), **of_states)
