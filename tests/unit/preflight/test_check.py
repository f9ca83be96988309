"""`xlgrid check` looks at all that a study needs, also where the Hub does not answer."""

import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shipped import STUDIES
from study_fixture import TEXT, write

from xlgrid.methods import ALL_METHODS, Method
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.plan.sizes import DataSizes
from xlgrid.preflight import State
from xlgrid.preflight.check import claim_lines, disk_line, exhibit_lines, method_lines, sample_lines, study_lines
from xlgrid.preflight.files import materials
from xlgrid.results.verdicts import smallest_effect

ROOT = Path(__file__).parents[3]
# These differ most. The others are checked by `make test-all`.
SHOWN = ("africa", "demo", "luo2021-mini", "xtreme")
CHECKED = [pytest.param(name, marks=[] if name in SHOWN else pytest.mark.thorough) for name in sorted(STUDIES)]


def test_every_thing_that_the_study_needs_has_a_line(plan_of: Callable[..., Plan], no_hub: list[str]) -> None:
    things = [line.thing for line in study_lines(plan_of(), "hub.lock.yaml")]
    needed = {"study topics", "Hub", "model some/encoder", "data topic", "tokenizer e, encoder e", "disk"}
    assert needed <= {*things}


def test_a_report_that_cannot_be_made_is_a_problem(
    plan_of: Callable[..., Plan], no_hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xlgrid.preflight.check.inherited_problems", lambda plan: ["claims.one: no cell"])
    reports = [line for line in study_lines(plan_of(), "hub.lock.yaml") if line.thing == "report"]
    assert [(line.state, line.text) for line in reports] == [(State.PROBLEM, "claims.one: no cell")]


def test_settings_of_training_that_a_narrower_study_does_not_use_are_a_remark(
    tmp_path: Path, no_hub: list[str]
) -> None:
    write(tmp_path, TEXT)
    narrow = write(tmp_path, "extends: s\ngrids: {main: {method: [full-ft]}}\n", "narrow.yaml")
    [line] = [line for line in study_lines(load_plan(narrow), "hub.lock.yaml") if line.thing == "training"]
    assert line.state is State.OPEN and "no run has method 'bitfit', which the study defines" in line.text


@pytest.mark.parametrize("examples", [10, 72, 73, 1000])
def test_samples_that_are_larger_than_the_data_are_a_problem(examples: int, tmp_path: Path) -> None:
    """The data have 100 examples, of which 72 are for training."""
    study = TEXT.replace("training:", f"training:\n  - {{when: {{method: bitfit}}, set: {{examples: {examples}}}}}", 1)
    lines = [*sample_lines(load_plan(write(tmp_path, study)))]
    assert [line.state for line in lines] == [State.PROBLEM] * (examples > 72), lines
    assert all(line.thing == "examples" and "there are 72: lower the number" in line.text for line in lines)


def test_data_are_not_counted_for_a_setting_that_needs_no_number_of_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = TEXT.replace("training:", "training:\n  - {when: {method: bitfit}, set: {together: 4}}", 1)
    monkeypatch.setattr(DataSizes, "examples", lambda *_: pytest.fail("reads the number of examples"))
    assert not [*sample_lines(load_plan(write(tmp_path, study)))]


class Broken(Method):
    """A method of a package, with a mistake."""

    def install(self, model: Any) -> None:
        model.no_such_module.train()


def test_a_mistake_of_a_package_s_method_is_told_by_the_check_and_not_looked_for_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a study would have to import torch for it."""
    monkeypatch.setitem(ALL_METHODS.imported, "broken", Broken)
    path = write(tmp_path, TEXT.replace("  bitfit: {}\n", "  bitfit: {base: broken}\n"))
    with monkeypatch.context() as reading:
        reading.delattr("xlgrid.models.fit._tried")
        plan = load_plan(path)
    [line] = method_lines(plan)
    assert line.state is State.PROBLEM
    assert "method bitfit, encoder mini: method Broken cannot be installed in an encoder of type bert" in line.text


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
    kinds = {"data", "text", "encoder", "tokenizer", "adapters", "pairs", "disk"}
    # Files that only a person can get have the name that `downloads` gives them.
    names = {name for each in (*plan.ancestors, plan) for name in each.study.downloads}
    assert {line.thing.split()[0] for line in problems} <= kinds | names
    repositories = {each.repository for each in materials(plan) if each.repository}
    assert ("Hub" in {line.thing for line in lines}) == bool(repositories)
    assert len(no_hub) == min(1, len(repositories))


GRID = {"task": ["topic"], "encoder": ["e"], "source": ["en"], "target": ["mono"]}
CLAIM = {"says": "s", "compare": [{"method": "full-ft"}, {"method": "bitfit"}], "expect": "greater"}


def plan(plan_of: Callable[..., Plan], seeds: list[int], claims: int) -> Plan:
    grids = {"all": {**GRID, "method": ["full-ft", "bitfit"], "seed": seeds}}
    return plan_of(methods={"full-ft": {}, "bitfit": {}}, grids=grids, claims={f"c{n}": CLAIM for n in range(claims)})


@pytest.mark.parametrize(("seeds", "claims", "state"), [(3, 1, State.GOOD), (3, 20, State.OPEN), (5, 20, State.GOOD)])
def test_the_line_has_the_smallest_effect_of_the_first_and_the_last_step(
    plan_of: Callable[..., Plan], seeds: int, claims: int, state: State
) -> None:
    [line] = claim_lines(plan(plan_of, [*range(seeds)], claims))
    assert line.state is state
    for step in (claims, 1):
        assert f"{smallest_effect(seeds, step):.1f}" in line.text


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_claims_that_can_have_no_verdict_are_told(plan_of: Callable[..., Plan], seeds: list[int]) -> None:
    [line] = claim_lines(plan(plan_of, seeds, 2))
    assert line.state is State.OPEN and "a verdict needs 3" in line.text


def test_claims_without_a_verdict_never_hold_so_that_the_last_step_counts_them(plan_of: Callable[..., Plan]) -> None:
    """Of five claims, the last of the three with a verdict is tested as the first of three."""
    once: dict[str, Any] = {**CLAIM, "select": {"seed": [1]}}
    both = plan_of(
        methods={"full-ft": {}, "bitfit": {}},
        grids={"all": {**GRID, "method": ["full-ft", "bitfit"], "seed": [1, 2, 3, 4, 5]}},
        claims={"a": CLAIM, "b": CLAIM, "c": CLAIM, "d": once, "e": once},
    )
    first, without = claim_lines(both)
    assert f"the last by {smallest_effect(5, 3):.1f}" in first.text
    assert without.text.startswith("2 of 5")


def test_a_study_without_claims_has_no_line(plan_of: Callable[..., Plan]) -> None:
    assert [*claim_lines(plan_of())] == []


TABLE = {"kind": "table", "title": "t", "rows": ["source"], "columns": "target"}


@pytest.mark.parametrize(
    ("exhibit", "message"),
    [
        (TABLE, "an entry would average over several methods"),
        (
            {**TABLE, "select": {"method": "full-ft"}, "columns": "group", "groups": ["other-script"]},
            "group 'other-script' is empty",
        ),
    ],
)
def test_an_exhibit_that_cannot_be_rendered_is_a_problem(
    plan_of: Callable[..., Plan], exhibit: dict[str, Any], message: str
) -> None:
    grid = {**GRID, "method": ["full-ft", "bitfit"], "seed": [1]}
    plan = plan_of(methods={"full-ft": {}, "bitfit": {}}, exhibits={"one": exhibit}, grids={"all": grid})
    [line] = exhibit_lines(plan)
    assert line.state is State.PROBLEM and line.thing == "exhibit one" and message in line.text


def test_exhibits_that_can_be_rendered_have_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning curves of the demo are none before its runs have begun."""
    monkeypatch.chdir(ROOT)
    plan = load_plan("demo")
    [line] = exhibit_lines(plan)
    assert line.state is State.GOOD and line.text.startswith(f"{len(plan.study.exhibits) - 1} can be rendered")


XLMR = {"e": {"hub": "FacebookAI/xlm-roberta-base"}}
Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("free", "state"), [(2 * 10**9, State.GOOD), (10**9, State.PROBLEM)])
def test_the_disk_has_to_hold_the_runs(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, free: int, state: State
) -> None:
    """A run with all weights of XLM-R base stores 278 million numbers of 4 bytes."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(free, 0, free))
    assert disk_line(plan_of(encoders=XLMR)).state is state


def test_runs_that_are_done_need_no_disk_more(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    plan = plan_of(encoders=XLMR)
    for run in plan.runs:
        Path(run.delta).parent.mkdir(parents=True)
        Path(run.delta).touch()
    assert disk_line(plan).state is State.GOOD


def test_an_encoder_of_unknown_size_leaves_the_disk_open(plan_of: Callable[..., Plan]) -> None:
    assert disk_line(plan_of()).state is State.OPEN
