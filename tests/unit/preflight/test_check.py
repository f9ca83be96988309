"""`xlgrid check` looks at all that a study needs, also where the Hub does not answer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from shipped import STUDIES

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.check import study_lines
from xlgrid.preflight.lines import State
from xlgrid.preflight.materials import materials, needed_products

ROOT = Path(__file__).parents[3]
# These differ most. The others are checked by `make test-all`.
SHOWN = ("africa", "demo", "luo2021-mini", "xtreme")
CHECKED = [pytest.param(name, marks=[] if name in SHOWN else pytest.mark.thorough) for name in sorted(STUDIES)]


def test_every_thing_that_the_study_needs_has_a_line(plan_of: Callable[..., Plan], no_hub: list[str]) -> None:
    things = [line.thing for line in study_lines(plan_of(), "hub.lock.yaml")]
    needed = {"study topics", "Hub", "model some/encoder", "data topic", "vocabulary e, encoder e", "disk"}
    assert needed <= {*things}


def test_a_report_that_cannot_be_made_is_a_problem(
    plan_of: Callable[..., Plan], no_hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xlgrid.preflight.check.inherited_problems", lambda plan: ["claims.one: no cell"])
    reports = [line for line in study_lines(plan_of(), "hub.lock.yaml") if line.thing == "report"]
    assert [(line.state, line.text) for line in reports] == [(State.PROBLEM, "claims.one: no cell")]


@pytest.mark.slow
@pytest.mark.parametrize("study", CHECKED)
def test_every_study_of_this_project_is_checked_without_the_hub(
    study: str, monkeypatch: pytest.MonkeyPatch, no_hub: list[str]
) -> None:
    """Files of one's own may be missing here; the Hub alone is no problem."""
    monkeypatch.chdir(ROOT)
    plan = load_plan(study)
    lines = [*study_lines(plan, "hub.lock.yaml")]
    problems = [line for line in lines if line.state is State.PROBLEM]
    kinds = {"data", "text", "encoder", "vocabulary", "adapters", "disk"}
    # Files that only a person can get have the name that `downloads` gives them.
    names = {name for each in (*plan.ancestors, plan) for name in each.study.downloads}
    assert {line.thing.split()[0] for line in problems} <= kinds | names
    repositories = {each.repository for each in materials(plan, needed_products(plan)) if each.repository}
    assert ("Hub" in {line.thing for line in lines}) == bool(repositories)
    assert len(no_hub) == min(1, len(repositories))
