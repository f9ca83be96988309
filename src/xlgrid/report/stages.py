"""The six stages of a study: which rules and which products belong to each, and how many of its jobs are done."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xlgrid.plan.products import (
    Cell,
    Claims,
    Comparison,
    Contrast,
    Data,
    Encoder,
    Exhibit,
    Meanings,
    Product,
    Report,
    Run,
    Summary,
    Text,
    Tokens,
    Unlabelled,
    Vocabulary,
)

# Stage -> the rules of its file in rules/.
RULES = {
    "data": (
        "meanings",
        "data",
        "fetch_data",
        "fetch_unlabelled",
        "label_data",
        "text",
        "fetch_text",
        "download",
        "download_archive",
        "unpack",
        "join_bitext",
        "by_hand",
    ),
    "encode": (
        "vocabulary",
        "hub_vocabulary",
        "local_vocabulary",
        "pretrain",
        "snapshot_encoder",
        "hub_encoder",
        "local_encoder",
        "tokens",
    ),
    "train": ("train", "import_adapter"),
    "evaluate": ("evaluate", "attention"),
    "exhibits": ("table", "figure", "compared"),
    "report": ("claims", "report_notebook", "report_html"),
}
# Stage -> the kinds of products that these rules make.
PRODUCTS: dict[str, tuple[type[Product], ...]] = {
    "data": (Meanings, Data, Unlabelled, Text),
    "encode": (Vocabulary, Encoder, Tokens),
    "train": (Run,),
    "evaluate": (Cell, Contrast),
    "exhibits": (Exhibit, Comparison),
    "report": (Claims, Summary, Report),
}
# The rules whose jobs train, and say in their logs how far they are.
TRAINING = ("train", "pretrain")
# The stage of rules that are not xlgrid's, in a workflow that includes xlgrid as a module.
OTHER = "other"
_STAGE_OF_RULE = {rule: stage for stage, rules in RULES.items() for rule in rules}
_STAGE_OF_KIND = {kind: stage for stage, kinds in PRODUCTS.items() for kind in kinds}


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


def stage_of(product: Product) -> str:
    """The stage that makes a product."""
    return _STAGE_OF_KIND[type(product)]


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
