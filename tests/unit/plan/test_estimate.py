"""What a study will take: steps, examples and parameters as worked out by hand, hours in proportion to them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fixture import COSTED as STUDY
from shipped import STUDIES

from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.languages.sources import Source
from xlgrid.plan.estimate import WHOLE, Assumed, Cost, Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.train import Run
from xlgrid.study.schema import ImportedAdapters, TrainingEntry
from xlgrid.training import schedule
from xlgrid.training.encoders import configuration
from xlgrid.training.recipe import Phase, Training
from xlgrid.training.schedule import training_length

# Of 1,000 examples in groups of two; of 1,000 texts every 50th is for the dev set.
TRAIN, DEV, TEST, TEXT_DEV = 700, 100, 200, 20
HIDDEN, INTERMEDIATE, LAYERS, VOCABULARY, POSITIONS = 8, 16, 2, 100, 512
ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "papers"
RUN = Run("tiny", "rt", "tiny", "full-ft", "en", 1)


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)
    return load_plan("studies/tiny.yaml")


@pytest.mark.parametrize(
    ("exhibit", "expected"),
    [
        # 2 sources and seeds, 22 batches twice; 3 targets.
        ("full", Cost(4, 0, 12, 4 * 44, 4 * 4 * DEV + 12 * TEST)),
        # Half of the examples, of depth 0, once (11 batches), and all three times.
        ("biases", Cost(2, 0, 6, 2 * (11 + 66), 2 * 4 * DEV + 6 * TEST)),
        # Begins with the query of en-fr, and de-en is evaluated with that of en-de.
        ("pairs", Cost(3, 2, 2, 44 + 2 * 100, 4 * DEV + 2 * 5 * TEXT_DEV + 2 * TEST)),
        ("masks", Cost()),
        ("look", Cost(3, 2, 0, 44 + 2 * 100, 4 * DEV + 2 * 5 * TEXT_DEV)),
        # The runs on text, which two exhibits need, once; cells that no exhibit shows.
        # With the pre-training of the encoder on one language.
        ("pre-training of tiny", Cost(1, 1, 0, 1500, 2 * TEXT_DEV)),
        (
            WHOLE,
            Cost(
                *(4 + 4 + 3 + 1, 2 + 1, 12 + 12 + 3, 4 * 44 + 4 * 77 + 244 + 1500),
                9 * 4 * DEV + (10 + 2) * TEXT_DEV + 27 * TEST,
            ),
        ),
    ],
)
def test_an_exhibit_takes_what_it_and_what_it_rests_on_take(study: Plan, exhibit: str, expected: Cost) -> None:
    assert dict(Estimate(study, Assumed()).exhibits())[exhibit][:5] == expected[:5]


def test_what_is_there_already_costs_a_study_nothing_more(study: Plan) -> None:
    """One more seed: of two sources, three targets."""
    Path("studies/more.yaml").write_text("extends: tiny\ngrids: {one: {seed: [1, 2, 3]}}\n")
    costs = dict(Estimate(load_plan("more"), Assumed()).exhibits())
    assert costs["full"][:5] == Cost(2, 0, 6, 2 * 44, 2 * 4 * DEV + 6 * TEST)[:5]
    assert costs["pairs"] == costs["look"] == Cost()
    assert costs[WHOLE][:5] == Cost(4, 0, 12, 2 * 44 + 2 * 77, 4 * 4 * DEV + 12 * TEST)[:5]


def test_parameters_are_those_of_the_formulas(study: Plan) -> None:
    """Of BERT's shape: four projections, two layers in between, two norms; embeddings of words, positions, segments."""
    square, norm = HIDDEN * HIDDEN + HIDDEN, 2 * HIDDEN
    layer = 4 * square + 2 * norm + 2 * HIDDEN * INTERMEDIATE + INTERMEDIATE + HIDDEN
    head = square + 2 * HIDDEN + 2
    total = (VOCABULARY + POSITIONS + 2) * HIDDEN + norm + LAYERS * layer + head
    biases = LAYERS * (4 * HIDDEN + INTERMEDIATE + HIDDEN + 2 * HIDDEN) + HIDDEN + head
    estimate = Estimate(study, Assumed())
    full, bitfit, pair, query = (
        estimate.count(run)
        for run in (
            RUN,
            RUN._replace(method="bitfit"),
            RUN._replace(method="pair"),
            RUN._replace(task="mlm", method="query", source=Source("en-fr")),
        )
    )
    assert full == (total, total, total, LAYERS * layer, LAYERS * layer, 0, 1)
    assert bitfit[:3] == (biases, biases, total)
    assert pair[:3] == (biases + LAYERS * HIDDEN, biases + LAYERS * HIDDEN, total + LAYERS * square)
    assert (query.trained, query.stored) == (LAYERS * square, LAYERS * square)
    assert query.passed == pytest.approx(LAYERS * (layer + square) + 0.15 * VOCABULARY * HIDDEN)
    assert full.training == 6 * LAYERS * layer, "two to go forward and four to go back per parameter"


def test_embeddings_of_another_vocabulary_count_where_they_train_and_where_they_are_loaded(study: Plan) -> None:
    estimate, more = Estimate(study, Assumed()), 50
    text = STUDY.replace("mlm: {kind: mlm}", "mlm: {kind: mlm, vocabulary: large}")
    Path("studies/other.yaml").write_text(
        f"{text}vocabularies: {{large: {{languages: [en], size: {VOCABULARY + more}}}}}\n"
    )
    other = Estimate(load_plan("studies/other.yaml"), Assumed())
    # Runs of `pair` on English begin with no text; those on the pair of English and French do.
    begun, query = RUN._replace(method="pair", source=Source("en+en-fr")), RUN._replace(task="mlm", method="query")
    query = query._replace(source=Source("en-fr"))
    for run, trained in ((query, (VOCABULARY + more) * HIDDEN), (begun, 0), (RUN, 0)):
        before, after = estimate.count(run), other.count(run._replace(study="other"))
        assert (after.trained - before.trained, after.stored - before.stored) == (trained, trained)
        assert (after.total - before.total >= more * HIDDEN) == (run != RUN)


def test_an_encoder_that_is_made_counts_as_it_is(study: Plan) -> None:
    from transformers import BertConfig

    BertConfig(vocab_size=77).save_pretrained("results/tiny/encoders/tiny")
    assert configuration(study.study.encoders["tiny"], "results/tiny/encoders/tiny").vocab_size == 77


def test_an_unknown_encoder_of_the_hub_has_to_be_fetched(study: Plan) -> None:
    Path("studies/tiny.yaml").write_text(STUDY.replace("{scratch: {kind: bert,", "{hub: a/b} #"))
    with pytest.raises(ValueError, match=r"snakemake --cores 1 results/tiny/encoders/tiny/model\.safetensors"):
        Estimate(load_plan("studies/tiny.yaml"), Assumed()).run(RUN)


def test_hours_are_work_over_speed(study: Plan) -> None:
    cost = Estimate(study, Assumed(tokens={"ruletaker": 100}, training=2.0, evaluation=4.0, step_ms=0)).run(RUN)
    passed = Estimate(study, Assumed()).count(RUN).passed
    seconds = 6 * passed * 2 * TRAIN * 100 / 2e12 + 2 * passed * 4 * DEV * 100 / 4e12
    assert cost.training_hours == pytest.approx(seconds / 3600)


def test_a_step_takes_time_whatever_its_size(study: Plan) -> None:
    cost = Estimate(study, Assumed(tokens={"rt": 64}, training=1e9, evaluation=1e9, step_ms=36)).run(RUN)
    # Batches of evaluation have 4,096 tokens.
    assert cost.training_hours * 3600 == pytest.approx(44 * 0.036 + 4 * DEV * 64 / 4096 * 0.012)


def test_a_decoder_takes_the_time_of_a_pass_for_each_token_of_a_hypothesis() -> None:
    """Half of the tokens of an example are those of the target."""
    plan = load_plan(STUDIES["luo2021"])
    run = next(run for run in plan.runs if run.task == "iwslt14")
    estimate = Estimate(plan, Assumed(tokens={"iwslt14": 40}, evaluation=1e9, step_ms=30))
    batches = 1000 * 40 / plan.study.recipe(*run[1:]).training.batch_tokens
    assert estimate.evaluation(run, 1000).evaluation_hours * 3600 == pytest.approx(batches * 21 * 0.010)


def test_cells_are_evaluation_and_dev_sets_training(study: Plan) -> None:
    estimate = Estimate(study, Assumed())
    whole = dict(estimate.exhibits())["full"]
    assert whole.training_hours == pytest.approx(4 * estimate.run(RUN).hours)
    assert whole.evaluation_hours == pytest.approx(12 * estimate.evaluation(RUN, TEST).hours)


def settings(**options: Any) -> Training:
    return Training(**options)


@given(
    st.integers(1, 3000),
    st.integers(1, 64),
    st.floats(0.5, 5),
    st.sampled_from([(), (Phase(epochs=2, max_depth=0),), (Phase(share=0.5, max_depth=0),)]),
)
def test_steps_are_those_of_the_plan(n: int, batch: int, epochs: float, curriculum: tuple[Phase, ...]) -> None:
    training = settings(epochs=epochs, batch_size=batch, curriculum=curriculum)
    tokens = Tokens(
        head="sequence",
        label_names=("no", "yes"),
        pad_id=0,
        values=np.zeros(5 * n, np.int32),
        offsets=5 * np.arange(n + 1),
        contexts=np.full(n, 5),
        languages=("en",),
        language_of=np.zeros((n, 2), np.int16),
        vocabulary=Vocabulary(5, 1, (0,)),
        columns={"depth": np.zeros(n, int)},
    )
    steps = training_length(training, n, 5, {})[0]
    try:
        assert steps == schedule.plan(tokens, training, seed=1).steps
    except ValueError as error:
        # A study of one step has no halves.
        assert steps == 1 and "the curriculum takes" in str(error)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"steps": 50, "epochs": 9, "batch_size": 4}, (50, 200)),
        ({"steps": 50, "batch_tokens": 1000}, (50, 500)),
        ({"epochs": 2, "batch_tokens": 1000}, (20, 200)),
        ({"epochs": 1, "batch_size": 30}, (4, 100)),
        ({"epochs": 1, "batch_size": 10, "curriculum": [{"epochs": 2, "max_depth": 1}]}, (20, 200)),
        ({"epochs": 1, "batch_size": 10, "curriculum": [{"epochs": 2, "max_depth": 9}]}, (30, 300)),
    ],
)
def test_length_of_a_training_of_100_examples_of_100_tokens(options: dict[str, Any], expected: tuple[int, int]) -> None:
    """Steps and examples; depths 0 to 3 are equally frequent."""
    assert training_length(settings(**options), 100, 100, {"max_depth": 3}) == expected


def test_tokens_are_as_given_for_the_task_or_its_kind_and_at_most_as_many_as_it_takes(study: Plan) -> None:
    def tokens(**numbers: int) -> int:
        return Estimate(study, Assumed(tokens=numbers)).tokens("rt")

    assert (tokens(), tokens(ruletaker=90), tokens(ruletaker=90, rt=80), tokens(rt=999)) == (140, 90, 80, 512)


def test_choices_are_cut_one_by_one() -> None:
    plan = load_plan(STUDIES["pfeiffer2020"])
    copa = plan.study.tasks["copa"]
    assert Estimate(plan, Assumed(tokens={"copa": 10_000})).tokens("copa") == 2 * copa.max_length


def record(**changes: Any) -> Path:
    path = Path("run.json")
    path.write_text(json.dumps({"recipe": RUN._asdict(), "steps": 44, "seconds": 90.0} | changes))
    return path


def test_a_measured_run_takes_what_it_took(study: Plan) -> None:
    estimate = Estimate(study, Assumed())
    measured = replace(estimate, assumed=estimate.measured(record()))
    assert measured.run(RUN).hours * 3600 == pytest.approx(90)
    assert measured.run(RUN._replace(source=Source("en+en-fr"))).hours * 3600 == pytest.approx(90)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 60}, "60 steps, but 44"),
        ({"recipe": RUN._asdict() | {"seed": 9}}, "no run of study tiny"),
        ({"recipe": 1}, "is no run.json"),
        ({"seconds": 0}, "no run of study tiny"),
        ({"seconds": -1}, "no run of study tiny"),
    ],
)
def test_another_run_is_no_measure(study: Plan, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Estimate(study, Assumed()).measured(record(**changes))


def test_imported_adapters_are_stored_and_not_trained(study: Plan) -> None:
    query = RUN._replace(task="mlm", method="query", source=Source("en-fr"))
    methods = study.study.methods
    imported = methods["query"].model_copy(update={"imported": ImportedAdapters(path="{language}")})
    changed = study.study.model_copy(update={"methods": methods | {"query": imported}})
    read = Estimate(Plan(changed), Assumed()).run(query)
    trained = Estimate(study, Assumed()).run(query)
    assert read == Cost(1, 1, gigabytes=trained.gigabytes) and trained.hours > 0


def test_snapshots_are_stored_and_cost_no_training(study: Plan) -> None:
    query = RUN._replace(task="mlm", method="query", source=Source("en-fr"))
    entry = TrainingEntry(when={"task": "mlm"}, set={"snapshots": [50, 100]})
    changed = study.study.model_copy(update={"training": [*study.study.training, entry]})
    kept = Estimate(Plan(changed), Assumed()).run(query)
    plain = Estimate(study, Assumed()).run(query)
    assert plain.gigabytes == 4 * Estimate(study, Assumed()).count(query).stored / 1e9, "four bytes a number"
    assert (kept.gigabytes, kept.hours) == (3 * plain.gigabytes, plain.hours)


def test_a_first_stage_and_runs_for_each_target_are_counted(study: Plan) -> None:
    text = STUDY.replace("tasks:\n", "tasks:\n  first: {kind: ruletaker, options: {n: 1000}}\n")
    text = text.replace("questions_per_theory: 2}}", "questions_per_theory: 2}, start: first}")
    text = text.replace("method: query, pairs: [en-fr, en-de]", "method: query, at: target")
    text = text.replace("source: [en+en-fr], target: [en-X, de-en]", "source: [en], target: [fr, de]")
    text = text.partition("exhibits:")[0]
    Path("studies/tiny.yaml").write_text(text)
    cost = dict(Estimate(load_plan("studies/tiny.yaml"), Assumed()).exhibits())[WHOLE]
    # One more of each is the pre-training of the encoder.
    assert (cost.runs, cost.text_runs) == (2 * (8 + 2) + 2 + 1, 2 + 1)


def test_a_task_costs_what_the_task_does_that_it_is_trained_on(tmp_path: Path) -> None:
    text = """\
title: Tiny
languages: [qa1]
encoders:
  tiny: {scratch: {kind: bert, languages: [qa1], vocab: 100, hidden: 8, layers: 2, heads: 2, intermediate: 16}}
tasks:
  one: {kind: siqa, options: {n: 1000}}
  two: {kind: copa, options: {n: 50}, trained_on: one}
methods: {full-ft: {}}
training:
  - set: {epochs: 2, batch_size: 32, evaluations: 4}
grids:
  main: {task: [two], encoder: [tiny], method: [full-ft], source: [qa1], target: [qa1], seed: [1]}
"""
    path = tmp_path / "s.yaml"
    path.write_text(text)
    estimate = Estimate(load_plan(path), Assumed())
    cost = estimate.run(Run("s", "two", "tiny", "full-ft", "qa1", 1))
    # 700 training examples, two epochs of batches of 32; four dev sets of 100.
    assert (cost.steps, cost.evaluated) == (44, 400)


def test_the_dev_sets_of_all_dev_targets_are_evaluated(study: Plan) -> None:
    Path("studies/tiny.yaml").write_text(
        STUDY.replace("- set: {", "- set: {dev_targets: [en, fr, de], ", 1).replace(
            "{when: {task: mlm}, set: {", "{when: {task: mlm}, set: {dev_targets: [], "
        )
    )
    costs = dict(Estimate(load_plan("studies/tiny.yaml"), Assumed()).exhibits())
    assert costs["full"].evaluated == 4 * 4 * 3 * DEV + 12 * TEST


def test_a_mix_that_takes_its_parts_whole_has_the_examples_of_all_of_them(study: Plan) -> None:
    mixed, alone = RUN._replace(source=Source("en+en-fr")), RUN
    shares = Estimate(study, Assumed())
    assert shares.run(mixed)[3:5] == shares.run(alone)[3:5]
    Path("studies/tiny.yaml").write_text(STUDY.replace("rt: {kind: ruletaker,", "rt: {kind: ruletaker, mix: whole,"))
    whole = Estimate(load_plan("studies/tiny.yaml"), Assumed())
    assert whole.run(alone) == shares.run(alone)
    # Two passes over twice the examples, in batches of 32; dev sets of both parts.
    assert whole.run(mixed)[3:5] == (2 * 44, 4 * 2 * DEV)
