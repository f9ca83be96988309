"""`xlgrid check` finds exhibits that their jobs could not render."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight.exhibits import exhibit_lines
from xlgrid.preflight.lines import State

ROOT = Path(__file__).parents[3]
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
    grid = {
        "task": ["topic"],
        "encoder": ["e"],
        "method": ["full-ft", "bitfit"],
        "source": ["en"],
        "target": ["mono"],
        "seed": [1],
    }
    plan = plan_of(methods={"full-ft": {}, "bitfit": {}}, exhibits={"one": exhibit}, grids={"all": grid})
    [line] = exhibit_lines(plan)
    assert line.state is State.PROBLEM and line.thing == "exhibit one" and message in line.text


def test_exhibits_that_can_be_rendered_have_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learning curves of the demo are none before its runs have begun."""
    monkeypatch.chdir(ROOT)
    plan = load_plan("demo")
    [line] = exhibit_lines(plan)
    assert line.state is State.GOOD and line.text.startswith(f"{len(plan.study.exhibits) - 1} can be rendered")
