"""The study of XTREME: nine tasks with their languages, every exhibit with cells, and numbers as docs/papers/xtreme.md has them."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from shipped import STUDIES

from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.tasks import TASKS

ROOT = Path(__file__).parents[3]
# The languages of each task in XTREME's `evaluate.py`; its tables of Tatoeba have 36.
LANGUAGES = {
    "xnli": 15,
    "pawsx": 7,
    "udpos": 33,
    "panx": 40,
    "xquad": 11,
    "mlqa": 7,
    "tydiqa": 9,
    "bucc": 4,
    "tatoeba": 36,
}


@pytest.fixture(scope="module")
def plan() -> Iterator[Plan]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield load_plan("xtreme")


def test_each_task_has_the_languages_of_the_benchmark(plan: Plan) -> None:
    encoders = len(plan.study.encoders)
    seeds = {"bucc": 1, "tatoeba": 1}
    expected = {task: encoders * count * seeds.get(task, 3) for task, count in LANGUAGES.items()}
    assert Counter(cell.task for cell in plan.cells) == expected


def test_every_data_set_has_each_language_of_its_task(plan: Plan) -> None:
    for cell in plan.cells:
        data = plan.study.tasks[cell.task].data
        assert data
        for split, code in (("test", cell.target), ("dev", "en"), ("train", "en")):
            if split == "test" or not cell.target.is_pair:
                assert data.of(split, code).has(code), (cell.task, split, code)
    names = plan.study.tasks["tatoeba"].data
    assert names and len({*names.origin.names.values()}) == 36
    assert TASKS["udpos"].labels[7] == "NOUN" and len(TASKS["udpos"].labels) == 17


def test_every_exhibit_shows_cells(plan: Plan) -> None:
    for name, exhibit in plan.study.exhibits.items():
        exhibit_cells = exhibit.cells(plan.cells, plan.study.facts)
        assert len(exhibit_cells) == (
            len(plan.cells) if name == "xtreme" else sum(cell.task == name for cell in plan.cells)
        )


def test_a_study_of_three_lines_evaluates_another_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [study] = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "docs" / "papers" / "xtreme.md").read_text(), re.MULTILINE | re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/xtreme.yaml").write_text((STUDIES["xtreme"]).read_text())
    Path("studies/mine.yaml").write_text(study)
    of_encoder = Counter((cell.study, cell.encoder) for cell in load_plan("mine").cells)
    each = sum(count * (1 if task in ("bucc", "tatoeba") else 3) for task, count in LANGUAGES.items())
    assert of_encoder == {("mine", "mine"): each, ("xtreme", "xlmr-large"): each, ("xtreme", "mmbert"): each}
