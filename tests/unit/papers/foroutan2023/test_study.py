"""The studies of Foroutan et al. 2023 plan what the paper ran."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from shipped import PUBLISHED, STUDIES

from xlgrid.data.text import TextSettings
from xlgrid.exhibits import Table
from xlgrid.methods import ALL_METHODS
from xlgrid.plan.grid import cells, runs
from xlgrid.plan.load import load_study
from xlgrid.products.train import Run
from xlgrid.results import published as compare
from xlgrid.results.claims import terms
from xlgrid.study.schema import Grid, Study, TrainingEntry
from xlgrid.study.starts import OwnStart, PairsStart, SharedStart
from xlgrid.study.tasks import TaskEntry
from xlgrid.tasks import TASKS
from xlgrid.training.recipe import ALL_SETTINGS, Training

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def foroutan() -> Study:
    return load_study(STUDIES["foroutan2023"])


def test_foroutan2023_has_the_cells_of_its_tables(foroutan: Study) -> None:
    """Of three seeds; tables 13 and 15 have 1,600 values each, tables 1 and 7 average over 8 or 9 targets, 2 and 8 over 16."""
    count = Counter((cell.task.partition("-")[0], cell.encoder, cell.method) for cell in cells(foroutan))
    mixes, targets, table_9 = 4, 9 + 8 + 8, 3 * 2 * 4 * 25
    for task, sets in (("ruletaker", 4), ("lot", 1)):
        for encoder in ("mbert", "xlmr-base"):
            for method in ("cs-baseline", "shared-qcross", "pair-qcross"):
                assert count[task, encoder, method] == 3 * sets * mixes * targets
            extra = table_9 if (task, encoder) == ("ruletaker", "mbert") else 0
            assert count[task, encoder, "full-ft"] == 3 * sets * (9 * 9 + 8 * 16) + extra
    assert count["lot", "mbert", "bitfit"] == 3 * mixes * targets + 3 * 8, "table 6 has eight probes"


@pytest.fixture(scope="module")
def compared(foroutan: Study, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """What the exhibits of foroutan2023 compare, if every cell scores 50: exhibit and published number of each entry."""
    folder = tmp_path_factory.mktemp("exhibits")
    planned = pd.DataFrame(cells(foroutan)).drop(columns="study").assign(metric="accuracy", score=50.0, n=100)
    comparisons = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for name in foroutan.exhibits:
            exhibit = foroutan.exhibit(name)
            if not isinstance(exhibit, Table):
                continue
            exhibit.write_published(name, folder, exhibit.of_scores(foroutan, planned))
            comparison = pd.read_csv(folder / f"{name}-published.csv")
            comparisons.append(comparison.assign(file=exhibit.files(foroutan, compare=True)[0]))
    return pd.concat(comparisons)


@pytest.mark.slow
def test_every_published_number_of_foroutan2023_stands_beside_one_of_ours(compared: pd.DataFrame) -> None:
    folder = PUBLISHED["foroutan2023"]
    there = {str(path.relative_to(ROOT)): len(compare.read(path)) for path in folder.glob("table*.csv")}
    assert compared.groupby("file")["published"].count().to_dict() == there


@pytest.mark.slow
def test_every_entry_of_foroutan2023_is_complete(compared: pd.DataFrame) -> None:
    assert (compared["n_seeds_expected"] == 3).all()


def test_the_figures_of_foroutan2023_show_attention_of_three_runs_each(foroutan: Study) -> None:
    """Of the baseline and of its own method, on a pair trained on and on another (figures 4 and 5)."""
    contrasts = [
        contrast for name in ("figure04", "figure05") for contrast in foroutan.exhibit(name).products(cells(foroutan))
    ]
    assert Counter((contrast.method, contrast.source, contrast.target, contrast.other) for contrast in contrasts) == {
        (method, "en+en-fr", "en-fr", "en-ar"): 3 for method in ("bitfit", "pair-qcross")
    }


def test_every_claim_of_foroutan2023_is_about_cells_that_are_planned_with_three_seeds(foroutan: Study) -> None:
    planned = cells(foroutan)
    seeds = {
        name: {term.cell.seed for term in terms(name, claim, planned, foroutan.belongs)}
        for name, claim in foroutan.claims.items()
    }
    assert seeds
    assert [name for name, planned_seeds in seeds.items() if planned_seeds != {1, 2, 3}] == []


def test_foroutan2023_trains_a_query_for_each_pair_of_xnli_and_a_shared_one(foroutan: Study) -> None:
    trained = Counter((run.encoder, run.method) for run in runs(foroutan) if run.task == "mlm")
    assert trained == {
        (encoder, method): count
        for encoder in ("mbert", "xlmr-base")
        for method, count in (("query", 6 + 1), ("cs-mlm", 1))
    }


@pytest.mark.parametrize(
    ("task", "encoder", "method", "epochs", "lr", "phases"),
    [
        ("ruletaker-d0", "mbert", "full-ft", 5, 1e-5, 0),
        ("ruletaker-d3", "mbert", "pair-qcross", 35, 4e-4, 0),
        ("ruletaker-d1", "xlmr-base", "full-ft", 5, 5e-6, 0),
        ("ruletaker-d1", "xlmr-base", "bitfit", 35, 3e-4, 0),
        ("ruletaker-d2", "xlmr-base", "bitfit", 35, 3e-4, 1),
    ],
)
def test_foroutan2023_trains_as_table_10_says(
    foroutan: Study, task: str, encoder: str, method: str, epochs: int, lr: float, phases: int
) -> None:
    training = foroutan.recipe(task, encoder, method, "en+en-fr", 1).training
    curriculum = training.added.get("curriculum")
    assert (training.epochs, training.lr, training.batch_size) == (epochs, lr, 32)
    assert (len(curriculum.root) if curriculum else 0) == phases


@pytest.fixture(scope="module")
def code() -> Study:
    return load_study(STUDIES["foroutan2023-code"])


def test_the_variant_of_the_code_has_all_of_foroutan2023_and_a_small_grid_of_both(foroutan: Study, code: Study) -> None:
    ours = {cell._replace(study=foroutan.name) for cell in cells(code)}
    assert ours.issuperset(cells(foroutan))
    beside = ours.difference(cells(foroutan))
    assert Counter((cell.task, cell.encoder, cell.method, cell.source) for cell in beside) == {
        ("ruletaker-d0", "mbert", method, "en+en-fr"): 3 * (9 + 8 + 8)
        for method in ("bitfit-paper", "pair-qcross-paper")
    }


def test_the_variant_of_the_code_changes_what_the_code_does_otherwise_and_nothing_else(
    foroutan: Study, code: Study
) -> None:
    """Its list of training entries is a copy, which must not stay behind."""

    def expected(run: Run) -> dict[str, object]:
        queries = run.task == "mlm" or "qcross" in run.method
        tuned = run.task.startswith("ruletaker") and (run.encoder, run.method) == ("mbert", "full-ft")
        return {
            "precision": "fp32",
            "warmup": 0,
            "keep": "last",
            "segments": False,
            **({"epochs": 4.0} if tuned else {}),
            **({"mixed_batches": False} if queries else {}),
            **({"batch_size": 8} if (run.task, run.encoder) == ("mlm", "mbert") else {}),
            **({"head": "lm-head"} if run.task != "mlm" and run.encoder == "xlmr-base" else {}),
            **({"bert_head": "biases"} if run.method in ("bitfit", "cs-baseline") else {}),
        }

    wrong = {}
    for run in runs(foroutan):
        paper, ours = (study.recipe(*run[1:]) for study in (foroutan, code))
        assert ours.model_copy(update={"study": paper.study, "training": None, "options": None}) == paper.model_copy(
            update={"training": None, "options": None}
        )
        changed = {
            key: value
            for changed_to, before in (
                (ours.training.model_dump(), paper.training.model_dump()),
                (ours.options, paper.options),
            )
            for key, value in changed_to.items()
            if key not in before or value != before[key]
        }
        if changed != expected(run):
            wrong[run] = changed
    assert wrong == {}


def test_the_papers_values_stand_in_the_variant_too(foroutan: Study, code: Study) -> None:
    for axes in (
        ("ruletaker-d0", "mbert", "bitfit"),
        ("ruletaker-d0", "mbert", "pair-qcross"),
        ("mlm", "mbert", "query"),
    ):
        paper, ours = (
            study.recipe(*axes[:2], axes[2] + suffix, "en-fr", 1)
            for study, suffix in ((foroutan, ""), (code, "-paper"))
        )
        assert (ours.training, ours.options) == (paper.training, paper.options), axes


def test_the_text_and_data_of_the_variant_are_those_of_the_code(foroutan: Study, code: Study) -> None:
    assert {name: entry.separators for name, entry in code.tasks.items()} == dict.fromkeys(foroutan.tasks, "one")
    assert code.text == foroutan.text.model_copy(update={"once": None, "separators": "one"})
    changed = [name for name, entry in code.tasks.items() if entry.options != foroutan.tasks[name].options]
    assert changed == ["lot"] and code.tasks["lot"].options == {**foroutan.tasks["lot"].options, "evaluation": "mix"}


def test_the_codes_choices_and_the_papers_stand_beside_one_published_number(
    code: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    planned = pd.DataFrame(cells(code)).drop(columns="study").assign(metric="accuracy", score=50.0, n=100)
    name = "code-beside-paper"
    code.exhibit(name).write_published(name, tmp_path, code.exhibit(name).of_scores(code, planned))
    published = pd.read_csv(tmp_path / f"{name}-published.csv").pivot(
        index="column", columns="method", values="published"
    )
    assert published.shape == (3, 4) and published.notna().all().all()
    for method in ("bitfit", "pair-qcross"):
        assert published[method].tolist() == published[f"{method}-paper"].tolist()


DOCS = ROOT / "docs" / "papers"
# With a method that each example of the page is about.
PAPERS = {"foroutan2023": ["shared-qcross", "pair-qcross-bias"], "pfeiffer2020": ["madx", "madx", "madx-equations"]}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_switch_of_the_open_choices_exists(paper: str) -> None:
    known = {
        "tasks": {
            *TaskEntry.model_fields,
            *(f"options.{name}" for kind in ("lot", "mlm") for name in TASKS[kind].Options.model_fields),
        },
        "text": set(TextSettings.model_fields),
        "options": {name for method in ALL_METHODS.own.values() for name in method.model_fields},
        "start": {*OwnStart.model_fields, *SharedStart.model_fields, *PairsStart.model_fields},
        "training": {*Training.model_fields, *ALL_SETTINGS.own, *TrainingEntry.model_fields},
        "grids": set(Grid.model_fields),
    }
    named = re.findall(r"[|,] `(\w+): ([\w., ]+)(?:: [^`]*)?`", (DOCS / f"{paper}.md").read_text())
    assert {place for place, _ in named} == set(known)
    switches = [(place, key) for place, keys in named for key in keys.split(", ")]
    assert [(place, key) for place, key in switches if key not in known[place]] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_the_examples_of_the_open_choices_are_studies(paper: str, tmp_path: Path) -> None:
    for path in (DOCS.parents[1] / "studies").glob(f"{paper}*.yaml"):
        shutil.copy(path, tmp_path)
    examples = re.findall(r"^```yaml\n(.*?)^```", (DOCS / f"{paper}.md").read_text(), re.MULTILINE | re.DOTALL)
    for example, method in zip(examples, PAPERS[paper], strict=True):
        (tmp_path / "example.yaml").write_text(example)
        assert any(cell.method == method for cell in cells(load_study(tmp_path / "example.yaml")))
