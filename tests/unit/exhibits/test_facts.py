"""Facts of encoders as axes: the curves and the table of Pfeiffer et al. 2022, from made-up cells, against sums by hand."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from xlgrid.evaluation.cell import pack
from xlgrid.exhibits.drawing.sheet import PRINTED
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.results import claims, verdicts

STUDY = """\
title: X-MOD
languages: [en, fr]
encoders:
  x60: {path: e, facts: {variant: xmod, languages: 60, updates: 125000}}
  x13: {path: e, facts: {variant: xmod, languages: 13, updates: 125000}}
  x60-early: {path: e, facts: {variant: xmod, languages: 60, updates: 50000}}
  s60: {path: e, facts: {variant: shared, languages: 60, updates: 125000}}
  s13: {path: e, facts: {variant: shared, languages: 13, updates: 125000}}
  s60-early: {path: e, facts: {variant: shared, languages: 60, updates: 50000}}
  other: {scratch: {languages: [en, fr]}, training: {steps: 30}, facts: {updates: 7}}
tasks:
  perplexity: {kind: perplexity, max_length: 128}
  nli: {kind: xnli, max_length: 128}
methods: {full-ft: {}, as-is: {}}
grids:
  ppl: {task: [perplexity], encoder: &all [x60, x13, x60-early, s60, s13, s60-early], method: [as-is], source: [none], target: [en, fr], seed: [1]}
  nli: {task: [nli], encoder: *all, method: [full-ft], source: [en], target: [en, fr], seed: [1, 2]}
exhibits:
  figure2a: {kind: curve, title: Perplexity, x: languages, lines: variant, select: {task: perplexity, updates: 125000}}
  figure8: {kind: curve, title: Scores, x: updates, lines: variant, select: {task: nli, languages: 60}}
  by-group:
    kind: table
    title: Scores
    rows: [languages]
    columns: [variant, group]
    groups: [in-language, zero-shot]
    select: {task: nli, updates: 125000}
  table2: {kind: table, title: Scores, rows: [variant, languages], columns: target, select: {task: nli, updates: 125000}}
"""
# (task, encoder) -> the score on en with seed 1; on fr it is 2 less, and with seed 2, which NLI has, 1 more.
SCORES = {
    ("perplexity", "x60"): 10.0,
    ("perplexity", "x13"): 9.0,
    ("perplexity", "s60"): 14.0,
    ("perplexity", "s13"): 9.5,
    ("nli", "x60"): 70.0,
    ("nli", "x13"): 71.0,
    ("nli", "x60-early"): 60.0,
    ("nli", "s60"): 65.0,
    ("nli", "s13"): 72.0,
    ("nli", "s60-early"): 58.0,
}


def write(cell: Cell, score: float) -> None:
    """A cell with a made-up score."""
    metric = "perplexity" if cell.task == "perplexity" else "accuracy"
    outcomes = pack([[score, 1]] if metric == "perplexity" else [1])
    head = {"perplexity": "perplexity"}.get(metric, "embed")
    record = {
        **cell._asdict(),
        "head": head,
        "labels": [],
        "scores": {metric: score},
        "metric": {"name": metric},
        "n": 1,
        "outcomes": outcomes,
    }
    Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
    Path(cell.path).write_text(json.dumps(record))


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(STUDY)
    plan = load_plan("s.yaml")
    for cell in plan.cells:
        if (cell.task, cell.encoder) in SCORES:
            write(cell, SCORES[cell.task, cell.encoder] - 2 * (cell.target == "fr") + (cell.seed - 1))
    yield plan


def rendered(plan: Plan, name: str) -> pd.DataFrame:
    plan.study.exhibit(name).render(name, plan, ".")
    return pd.read_csv(f"{name}.csv")


def test_perplexity_over_the_number_of_languages_has_a_line_for_each_variant(plan: Plan) -> None:
    """The mean over en and fr is 1 less than the score on en."""
    table = rendered(plan, "figure2a")
    assert table[["languages", "column", "mean", "n_cells"]].values.tolist() == [
        [13, "xmod", 8.0, 2],
        [13, "shared", 8.5, 2],
        [60, "xmod", 9.0, 2],
        [60, "shared", 13.0, 2],
    ]
    text = Path("figure2a.svg").read_text()
    assert all(f">{words}</text>" in text for words in ("languages", "variant", "perplexity", "xmod", "shared"))


def test_the_rows_of_a_table_are_variants_and_in_each_the_languages_in_order(plan: Plan) -> None:
    table = rendered(plan, "table2")
    assert table[["variant", "languages", "column", "mean"]].values.tolist() == [
        ["xmod", 13, "en", 71.5],
        ["xmod", 13, "fr", 69.5],
        ["xmod", 60, "en", 70.5],
        ["xmod", 60, "fr", 68.5],
        ["shared", 13, "en", 72.5],
        ["shared", 13, "fr", 70.5],
        ["shared", 60, "en", 65.5],
        ["shared", 60, "fr", 63.5],
    ]


def test_a_fact_with_a_fraction_is_selected(plan: Plan) -> None:
    text = STUDY.replace("{variant: xmod", "{alpha: 0.3, variant: xmod").replace(
        "{variant: shared", "{alpha: 0.7, variant: shared"
    )
    text = text.replace("select: {task: nli, updates: 125000}}", "select: {task: nli, updates: 125000, alpha: [0.3]}}")
    Path("s.yaml").write_text(text)
    plan = load_plan("s.yaml")
    assert {cell.encoder for cell in plan.study.exhibit("table2").cells(plan.cells, plan.study.facts)} == {"x60", "x13"}
    assert set(rendered(plan, "table2")["variant"]) == {"xmod"}


DRAWS = """\
title: Two replicas
languages: [en, fr]
encoders:
  s: {scratch: {languages: [en, fr], seed: 1}, facts: {variant: shared}}
  s-2: {scratch: {languages: [en, fr], seed: 2}, facts: {variant: shared}}
  x: {scratch: {languages: [en], seed: 1}, facts: {variant: xmod}}
  x-2: {scratch: {languages: [en], seed: 2}, facts: {variant: xmod}}
tasks: {perplexity: {kind: perplexity, max_length: 128}}
methods: {as-is: {}}
grids:
  first: {task: [perplexity], encoder: [s, x], method: [as-is], source: [none], target: [en, fr], seed: [1]}
  second: {task: [perplexity], encoder: [s-2, x-2], method: [as-is], source: [none], target: [en, fr], seed: [2]}
exhibits:
  curve: {kind: curve, title: Perplexity, x: languages, lines: variant}
  encoders: {kind: table, title: Perplexity, rows: [encoder], columns: target, select: {encoder: [s, s-2]}}
claims:
  lower: {says: X-MOD has a lower perplexity., compare: [{encoder: [x, x-2]}, {encoder: [s, s-2]}], expect: less}
"""


def test_encoders_that_differ_by_their_seeds_alone_are_seeds_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(DRAWS)
    plan = load_plan("s.yaml")
    for cell in plan.cells:
        write(cell, {"s": 10.0, "s-2": 14.0, "x": 7.0, "x-2": 9.0}[cell.encoder] - 2 * (cell.target == "fr"))
    curve = rendered(plan, "curve")
    assert curve[["column", "mean", "sd", "n_seeds", "n_cells"]].round(4).values.tolist() == [
        ["xmod", 7.0, round(2**0.5, 4), 2, 4],
        ["shared", 11.0, round(8**0.5, 4), 2, 4],
    ]
    assert list(rendered(plan, "encoders")["encoder"]) == ["s", "s", "s-2", "s-2"], "a row may be one replica"
    each = claims.terms("lower", plan.study.claims["lower"], plan.cells, plan.study.belongs)
    measured = verdicts.measure({"lower": each}).iloc[0]
    assert (measured["effect"], measured["n_seeds"]) == (-4.0, 2)
    assert measured["seed_variance"] == pytest.approx(1.0), "the effects of the two replicas are -3 and -5"


def test_replicas_are_seeds_of_one_where_an_exhibit_selects_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    selected = "rows: [variant], columns: target, select: {encoder: [s, s-2]}"
    Path("s.yaml").write_text(DRAWS.replace("rows: [encoder], columns: target, select: {encoder: [s, s-2]}", selected))
    plan = load_plan("s.yaml")
    assert rendered(plan, "encoders")[["column", "n_seeds_expected"]].values.tolist() == [["en", 2], ["fr", 2]]


def test_replicas_with_the_same_seeds_are_not_averaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = DRAWS.replace("methods: {as-is: {}}", "methods: {full-ft: {}}").replace("[none]", "[en]")
    text = (
        text.replace("[as-is]", "[full-ft]")
        .replace("seed: [1]}", "seed: [1, 2]}")
        .replace("seed: [2]}", "seed: [1, 2]}")
    )
    Path("s.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"an entry would average over several encoders \(.*s, s-2\)"):
        rendered(load_plan("s.yaml"), "curve")


def test_two_replicas_of_an_encoder_have_different_seeds(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(DRAWS.replace("seed: [2]", "seed: [1]"))
    with pytest.raises(
        ValueError, match=r"grids.second.seed: encoder s-2 differs from s only by its seed, .* got seed 1 for both"
    ):
        load_plan(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    "fact", [*PRINTED, "n_seeds", "n_cells", "n_cells_expected", "scores", "rows", "mean", "score"]
)
def test_a_fact_has_no_name_of_a_column_of_exhibits(fact: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY.replace("variant", fact))
    with pytest.raises(ValueError, match=f"encoders.x60.facts.{fact}: an axis or a column of exhibits has this name"):
        load_plan(tmp_path / "s.yaml")


def test_an_exhibit_depends_on_the_facts_that_it_names_and_on_no_others(plan: Plan) -> None:
    changes = {
        "variant: xmod": "variant: x-mod",
        "languages: 60, updates: 50000": "languages: 60, updates: 50000, size: base",
    }
    settings = []
    for old, new in changes.items():
        Path("s.yaml").write_text(STUDY.replace(old, new, 1))
        study = load_plan("s.yaml").study
        settings.append(study.exhibit("table2").settings(study))
    before = plan.study.exhibit("table2").settings(plan.study)
    assert settings[0] != before and settings[1] == before


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "*all, method: [full-ft]",
            "[x60, other], method: [full-ft]",
            "encoder other has no fact 'variant' (it has: languages, updates): write it under encoders.other.facts",
        ),
        (
            "languages: 13, updates: 125000}}\n  x60-early",
            "languages: few, updates: 125000}}\n  x60-early",
            "exhibits.figure2a.x: languages of encoder x13 is the text 'few', but must be a number",
        ),
        ("select: {task: nli, languages: 60}", "select: {task: nli, languages: 61}", "unknown languages '61'"),
        (
            "columns: target, select: {task: nli,",
            "columns: target, select: {encoder: [x60, x60-early], task: nli,",
            "s.yaml:28: exhibits.table2.select.encoder: no cell of encoder 'x60-early' has the other values that `select` names",
        ),
        (
            "variant: xmod",
            "variant: no",
            "encoders.x60.facts.variant: must be a whole number or a number or a text, got no, which YAML reads as false",
        ),
    ],
)
def test_a_fact_that_an_encoder_lacks_or_that_does_not_fit_is_named(
    old: str, new: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert old in STUDY
    Path("s.yaml").write_text(STUDY.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        load_plan("s.yaml")
    assert problem in str(error.value)


def test_an_encoder_that_is_trained_here_has_facts_of_its_own_unless_they_are_written(plan: Plan) -> None:
    assert plan.study.facts["other"] == {"languages": 2, "updates": 7}


def test_a_checkpoint_has_the_facts_of_the_encoder_whose_pre_training_it_is_of(tmp_path: Path) -> None:
    encoders = (
        "  scratch: {scratch: {languages: [en, fr]}, training: {steps: 30, checkpoints: [10]}, facts: {variant: own}}\n"
        "  early: {of: scratch, step: 10}\n  named: {of: scratch, step: 10, facts: {variant: other}}\n"
    )
    (tmp_path / "s.yaml").write_text(STUDY.replace("tasks:\n", f"{encoders}tasks:\n", 1))
    facts = load_plan(tmp_path / "s.yaml").study.facts
    assert facts["scratch"] == {"variant": "own", "languages": 2, "updates": 30}
    assert facts["early"] == {"variant": "own", "languages": 2, "updates": 10}
    assert facts["named"] == {"variant": "other", "languages": 2, "updates": 10}
