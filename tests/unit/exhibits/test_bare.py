"""Perplexity of bare encoders and of a run, from a study through cells to a table, a curve, claims, status, cost and report."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokens_fixture import write
from transformers import BertConfig, BertForMaskedLM, BertModel
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.data import batches
from xlgrid.evaluation.cell import evaluate
from xlgrid.exhibits import claims
from xlgrid.heads import HEADS
from xlgrid.plan.estimate import Estimate
from xlgrid.plan.explain import explain
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.encode import Encoder
from xlgrid.products.product import flat
from xlgrid.report import page
from xlgrid.report.overview import look
from xlgrid.results import records
from xlgrid.training.loop import train

pytestmark = pytest.mark.usefixtures("one_thread")

STUDY = """\
title: Perplexity
languages: [en, fr]
encoders:
  a: {scratch: {kind: bert, languages: [en]}, facts: {variant: shared}}
  b: {scratch: {kind: bert, languages: [en, fr]}, facts: {variant: shared}}
tasks:
  perplexity: {kind: perplexity, max_length: 64}
methods: {as-is: {}, full-ft: {}}
training:
  - set: {steps: 40, batch_tokens: 128, lr: 0.02, dropout: 0, evaluations: 2}
grids:
  bare: {task: [perplexity], encoder: [a, b], method: [as-is], source: [none], target: [en, fr], seed: [1]}
  tuned: {task: [perplexity], encoder: [a], method: [full-ft], source: [en], target: [en, fr], seed: [1]}
exhibits:
  table: {kind: table, title: Bare, rows: [encoder], columns: target, select: {method: as-is}, digits: 2}
  curve: {kind: curve, title: Bare, x: languages, lines: variant, select: {method: as-is, target: en}}
  learning: {kind: curve, title: Learning, x: step, lines: languages, select: {method: full-ft, variant: shared}}
claims:
  tuned: {says: Tuning helps., select: {encoder: a, target: en}, compare: [{method: full-ft, source: en}, {method: as-is, source: none}], expect: less}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Iterator[Plan]:
    """The plan of the study, whose run is trained and whose cells are evaluated as the rule does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("bare"))
        Path("s.yaml").write_text(STUDY)
        plan = load_plan("s.yaml")
        size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        for seed, encoder in enumerate(plan.study.encoders):
            torch.manual_seed(seed)
            config = BertConfig(vocab_size=50, max_position_embeddings=64, initializer_range=0.3, **size)
            BertForMaskedLM(config).save_pretrained(Encoder(plan.study.name, encoder).folder)
        rng = np.random.default_rng(1)
        # Which token follows is plain in English.
        texts = {"en": [[2, *[5 + (at + i) % 20 for i in range(12)], 2] for at in range(60)]}
        texts["fr"] = [[2, *rng.integers(5, 50, 12).tolist(), 2] for _ in range(60)]
        for cell in plan.cells:
            path = Path(cell.tokens(plan).path)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, texts[cell.target], "perplexity")
        [run] = plan.runs
        tokens = [Path(plan.cells[-2].tokens(plan).path)]
        recipe = plan.study.recipe(*run[1:])
        train(recipe, Encoder(plan.study.name, run.encoder).folder, tokens, tokens, run.folder)
        for cell in plan.cells:
            files = cell.inputs(plan)
            arguments = ["--encoder", files["encoder"], "--tokens", files["tokens"]]
            arguments += ["--output", cell.path, *flat({"runs": files["runs"]})]
            result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)])
            assert result.exit_code == 0, result.output
        yield plan


def by_hand(encoder: str, target: str) -> float:
    """The perplexity from transformers' own loss, one row at a time."""
    tokens = batches.read(f"results/s/tokens/perplexity/{encoder}/{target}/test.arrow", target)
    model = BertForMaskedLM.from_pretrained(f"results/s/encoders/{encoder}").eval()
    total = number = 0.0
    for row in range(len(tokens)):
        batch = HEADS["perplexity"].evaluation_batch(tokens, np.array([row]), True)
        masked = int((batch["labels"] != -100).sum())
        with torch.no_grad():
            total += masked * float(model(**batch).loss) if masked else 0.0
        number += masked
    return math.exp(total / number)


def test_a_bare_cell_rests_on_its_encoder_and_on_held_out_text(plan: Plan) -> None:
    cell = plan.cells[1]
    assert cell.inputs(plan) == {
        "runs": [],
        "encoder": "results/s/encoders/a/model.safetensors",
        "tokens": "results/s/tokens/perplexity/a/fr/test.arrow",
    }
    assert not [each for each in plan.rests_on(cell) if "/runs/" in each.path]
    assert "method as-is trains nothing and has no runs: ask for a cell" in str(explain(plan, cell.run.path))


def test_a_bare_cell_says_what_it_is_and_has_the_perplexity_of_transformers(plan: Plan) -> None:
    for cell in plan.cells[:4]:
        record = records.read_expected(cell.path, cell._asdict())
        assert (record["run"], record["weights"]) == (None, f"results/s/encoders/{cell.encoder}")
        assert record["scores"]["perplexity"] == pytest.approx(by_hand(cell.encoder, cell.target), rel=1e-4)
        outcomes = records.outcomes(cell.path, record)
        assert record["n"] == len(outcomes) == 60
        total, masked = np.sum(outcomes, 0)
        assert math.exp(total / masked) == pytest.approx(record["scores"]["perplexity"])


def test_two_encoders_are_compared_on_the_same_masked_tokens(plan: Plan) -> None:
    first, second = (
        records.outcomes(cell.path, records.read_cell(cell.path)) for cell in (plan.cells[1], plan.cells[3])
    )
    assert [masked for _, masked in first] == [masked for _, masked in second]
    assert [total for total, _ in first] != [total for total, _ in second]


def scores(plan: Plan) -> dict[tuple[str, str, str], float]:
    """(encoder, method, target) -> perplexity."""
    return {
        (cell.encoder, cell.method, cell.target): records.read_cell(cell.path)["scores"]["perplexity"]
        for cell in plan.cells
    }


def test_a_run_on_the_head_has_cells_with_the_language_modelling_head_that_it_trained(
    plan: Plan, tmp_path: Path
) -> None:
    known = scores(plan)
    assert known["a", "full-ft", "en"] < 0.3 * known["a", "as-is", "en"]
    [run] = plan.runs
    record = json.loads(Path(run.path).read_text())
    assert record["metric"] == "perplexity"
    tokens = plan.cells[-2].tokens(plan).path
    assert record["dev_score"] == known["a", "full-ft", "en"], "its dev set here is the test set"
    evaluate(run.folder, "results/s/encoders/a", tokens, {"target": "en"}, tmp_path / "again.json")
    assert records.read_cell(tmp_path / "again.json")["scores"]["perplexity"] == record["dev_score"]


def test_exhibits_show_bare_cells(plan: Plan, tmp_path: Path) -> None:
    known = scores(plan)
    for name in ("table", "curve"):
        plan.study.exhibit(name).render(name, plan, tmp_path)
    table = pd.read_csv(tmp_path / "table.csv").set_index(["encoder", "column"])["mean"]
    assert table.to_dict() == {
        (encoder, target): pytest.approx(known[encoder, "as-is", target]) for encoder in "ab" for target in ("en", "fr")
    }
    assert "Metric: perplexity, lower is better." in (tmp_path / "table.md").read_text()
    curve = pd.read_csv(tmp_path / "curve.csv")
    assert curve[["languages", "column"]].values.tolist() == [[1, "shared"], [2, "shared"]]
    assert curve["mean"].tolist() == pytest.approx([known["a", "as-is", "en"], known["b", "as-is", "en"]])


def test_a_learning_curve_takes_a_fact_of_the_encoder_for_its_lines(plan: Plan, tmp_path: Path) -> None:
    plan.study.exhibit("learning").render("learning", plan, tmp_path)
    [run] = plan.runs
    points = [json.loads(line) for line in Path(run.file("curve.jsonl")).read_text().splitlines()]
    learning = pd.read_csv(tmp_path / "learning.csv")
    assert learning[["step", "column"]].values.tolist() == [[20, 1], [40, 1]]
    assert learning["mean"].tolist() == pytest.approx([point["score"] for point in points])


def test_a_claim_compares_a_run_with_the_bare_encoder(plan: Plan, tmp_path: Path) -> None:
    known = scores(plan)
    claims.render(plan.study, plan.cells, tmp_path)
    [judged] = pd.read_csv(tmp_path / "claims.csv").to_dict("records")
    assert judged["effect"] == pytest.approx(known["a", "full-ft", "en"] - known["a", "as-is", "en"])
    assert judged["metric"] == "perplexity"


def test_status_report_and_cost_count_bare_cells_without_runs(plan: Plan) -> None:
    overview = look(plan, "no-ledger")
    assert set(overview.cells.values()) == {"done"} and len(overview.cells) == 6 and len(overview.runs) == 1
    Path(plan.cells[0].path).rename("aside.json")
    assert look(plan, "no-ledger").cells[plan.cells[0]] == "waiting"
    Path("aside.json").rename(plan.cells[0].path)
    report = page.load("s.yaml")
    html = page.overview(report)
    assert "6 of 6" in html and "1 of 1" in html
    assert "as-is" in page.cost(report)
    stages = Estimate(plan).stages()
    # Beside the run, the pre-training of both encoders.
    assert (stages["whole study"].runs, stages["whole study"].cells) == (1 + 2, 6) and stages["evaluation"].hours > 0


def test_an_encoder_without_a_language_modelling_head_is_refused(plan: Plan, tmp_path: Path) -> None:
    cell = plan.cells[0]
    BertModel(BertConfig.from_pretrained("results/s/encoders/a")).save_pretrained(tmp_path / "a")
    arguments = ["--encoder", tmp_path / "a", "--tokens", cell.tokens(plan).path]
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments), "--output", cell.path])
    assert result.exit_code == 1 and "has no language-modelling head" in result.output
    assert "lacks cls.predictions.bias" in result.output and "lm_head: {languages: [en, fr]}" in result.output


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("source: [none]", "source: [en]", "grids.bare.source: method as-is trains on nothing, got en: write `source: [none]`"),
        ("source: [none]", "source: [none, en]", "method as-is trains on nothing, got en"),
        ("source: [en]", "source: [en, none]", "runs of method full-ft train on a language, a pair or a mix, got `none`"),
        ("method: [as-is]", "method: [as-is, full-ft]", "method full-ft train on a language, a pair or a mix, got `none`"),
        ("target: [en, fr], seed: [1]}\n  t", "target: [none], seed: [1]}\n  t", "grids.bare.target: 'none': `none` is no language"),
        ("source: [none]", "source: [none+en]", "grids.bare.source: "),
        ("[en, fr], seed: [1]}\n  t", "[en, fr], seed: [1, 2]}\n  t", "grids.bare.seed: without training"),
        ("  tuned: {t", "  other: {task: [perplexity], encoder: [a], method: [as-is], source: [none], target: [en], seed: [2]}\n  tuned: {t", "grids.other.seed: "),
        ("kind: perplexity", "kind: mlm", "is of kind mlm, whose runs are MLM runs without cells: leave it out"),
        ("kind: perplexity", "kind: xnli", "the weights of the head of perplexity would be random: name a task of kind `perplexity`"),
        ("as-is: {}", "as-is: {start: {task: perplexity, method: full-ft}}", "unknown task of kind `mlm`"),
        ("- set: {steps", "- {when: {method: as-is}, set: {lr: 1}}\n  - set: {steps", "training.0.when.method: method as-is has no runs to train: leave it out"),
        ("title:", "groups: {none: [en]}\ntitle:", "groups.none: this is the source of methods without training"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_the_way_out(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in STUDY
    (tmp_path / "s.yaml").write_text(STUDY.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        load_plan(tmp_path / "s.yaml")
    assert problem in str(error.value)
