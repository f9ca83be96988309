"""The cost of a study: operations as torch counts them, steps and hours in proportion to what a study asks for."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from plan_fixture import COSTED as STUDY
from queries_fixture import ReadQueries
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForSequenceClassification

from xlgrid.heads import HEADS
from xlgrid.languages.sources import Source
from xlgrid.models.parameters import attention_work, count
from xlgrid.plan.estimate import A100, Cost, Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.train import Run
from xlgrid.study.schema import TrainingEntry

RUN = Run("tiny", "rt", "tiny", "full-ft", "en", 1)
QUERY = RUN._replace(task="mlm", method="query", source=Source("en-fr"))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()


def estimate(text: str = STUDY, name: str = "tiny") -> Estimate:
    Path(f"studies/{name}.yaml").write_text(text)
    return Estimate(load_plan(name))


@pytest.mark.parametrize("length", [32, 256])
def test_the_operations_of_a_token_are_those_that_torch_counts(length: int) -> None:
    """Long inputs show the operations of attention."""
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128}
    config = BertConfig(vocab_size=50, attn_implementation="eager", **sizes)
    counted, attention = count(config, HEADS["sequence"], 2, "full-ft", {}), attention_work(config, length)
    model = BertForSequenceClassification(config)
    ids = torch.ones(4, length, dtype=torch.long)
    with FlopCounterMode(display=False) as forward:
        loss = model(input_ids=ids).logits.sum()
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert counted.evaluation + attention == pytest.approx(forward.get_total_flops() / ids.numel(), rel=0.03)
    both = forward.get_total_flops() + backward.get_total_flops()
    assert counted.training + 3 * attention == pytest.approx(both / ids.numel(), rel=0.03)


def test_twice_the_steps_take_twice_the_training() -> None:
    def of_query(steps: int) -> Cost:
        text = STUDY.replace(
            "steps: 100, batch_size: 16, evaluations: 5", f"steps: {steps}, batch_size: 16, evaluations: 1"
        )
        return estimate(text).of(QUERY)

    one, two, three = map(of_query, (100, 200, 300))
    for before, after in zip(one[2:6], two[2:6], strict=True):
        assert after > before
    assert [c - b for b, c in zip(two[2:6], three[2:6], strict=True)] == pytest.approx(
        [b - a for a, b in zip(one[2:6], two[2:6], strict=True)]
    )


def test_hours_are_operations_over_the_speed_of_the_precision() -> None:
    exact, fast = estimate().of(RUN), estimate(STUDY.replace("epochs: 2,", "epochs: 2, precision: bf16,")).of(RUN)
    saved = exact.operations / A100.operations["fp32"] - exact.operations / A100.operations["bf16"]
    assert fast.operations == exact.operations
    assert 3600 * (exact.hours - fast.hours) == pytest.approx(saved)


def test_the_whole_study_is_the_sum_of_its_stages() -> None:
    *stages, whole = estimate().stages().values()
    assert whole == pytest.approx([sum(column) for column in zip(*stages, strict=True)])
    planned = load_plan("tiny")
    assert (whole.runs, whole.cells) == (len(planned.runs) + 1, len(planned.cells)), "with the pre-training"


def test_what_another_study_makes_costs_nothing() -> None:
    whole = estimate().stages()["whole study"]
    more = estimate("extends: tiny\ngrids: {one: {seed: [1, 2, 3]}}\n", "more")
    assert more.exhibits()["pairs"] == Cost()
    assert (more.stages()["whole study"].runs, more.stages()["pre-training"]) == (4, Cost())
    together = estimate(STUDY.replace("seed: [1, 2]", "seed: [1, 2, 3]"), "together").stages()["whole study"]
    both = [a + b for a, b in zip(whole, more.stages()["whole study"], strict=True)]
    assert both == pytest.approx(list(together))


def test_an_exhibit_takes_the_runs_with_which_its_runs_begin() -> None:
    exhibits = estimate().exhibits()
    assert exhibits["pairs"].runs == 3
    assert exhibits["list"] == Cost()


def test_a_mix_that_takes_its_parts_whole_has_the_examples_of_all_of_them() -> None:
    mixed = RUN._replace(source=Source("en+en-fr"))
    shares = estimate()
    assert shares.of(mixed).steps == shares.of(RUN).steps
    whole = estimate(STUDY.replace("rt: {kind: ruletaker,", "rt: {kind: ruletaker, mix: whole,"))
    assert whole.of(mixed).steps == 2 * whole.of(RUN).steps


def test_a_run_on_the_data_of_another_task_takes_the_steps_of_that_task() -> None:
    tasks = "tasks:\n  other: {kind: ruletaker, options: {n: 2000, questions_per_theory: 2}}\n"
    text = STUDY.replace("tasks:\n", tasks).replace(
        "questions_per_theory: 2}}\n  mlm", "questions_per_theory: 2}, trained_on: other}\n  mlm"
    )
    assert estimate(text).of(RUN).steps == 2 * estimate().of(RUN).steps


def record(**changes: Any) -> Path:
    path = Path("run.json")
    path.write_text(json.dumps({"recipe": RUN._asdict(), "steps": 44, "seconds": 90.0} | changes))
    return path


def test_a_measured_run_takes_the_time_that_it_took() -> None:
    assert 3600 * estimate().measured(record()).of(RUN).hours == pytest.approx(90)


def test_a_run_that_took_twice_as_long_doubles_all_hours() -> None:
    slow, fast = (estimate().measured(record(seconds=seconds)).stages() for seconds in (180.0, 90.0))
    assert [cost.hours for cost in slow.values()] == pytest.approx([2 * cost.hours for cost in fast.values()])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": RUN._asdict() | {"seed": 9}}, "not a training of study tiny"),
        ({"recipe": 1}, "is not a valid run.json"),
        ({"seconds": 0}, "not a training of study tiny"),
        ({"steps": 0}, "not a training of study tiny"),
    ],
)
def test_another_run_is_no_measure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate().measured(record(**changes))


def test_derived_runs_are_stored_and_not_trained() -> None:
    trained = estimate()
    methods = trained.study.methods
    imported = methods["query"].model_copy(update={"derived": ReadQueries(folder="x")})
    changed = trained.study.model_copy(update={"methods": methods | {"query": imported}})
    assert Estimate(Plan(changed)).of(QUERY) == Cost(runs=1, gigabytes=trained.of(QUERY).gigabytes)


def test_checkpoints_are_stored_and_cost_no_training() -> None:
    plain = estimate()
    entry = TrainingEntry(when={"task": "mlm"}, set={"checkpoints": [50, 100]})
    kept = Estimate(Plan(plain.study.model_copy(update={"training": [*plain.study.training, entry]}))).of(QUERY)
    assert kept.gigabytes == pytest.approx(3 * plain.of(QUERY).gigabytes)
    assert kept.hours == plain.of(QUERY).hours


def test_embeddings_of_another_tokenizer_count_where_they_train() -> None:
    text = STUDY.replace("mlm: {kind: mlm}", "mlm: {kind: mlm, tokenizer: large}")
    other = estimate(f"{text}tokenizers: {{large: {{languages: [en], size: 150}}}}\n")
    assert other.count(QUERY).trained - estimate().count(QUERY).trained == 150 * 8
    assert other.count(RUN) == estimate().count(RUN)


def test_an_encoder_of_unknown_size_has_to_be_fetched() -> None:
    with pytest.raises(ValueError, match=r"snakemake --cores 1 results/tiny/encoders/tiny/model\.safetensors"):
        estimate(STUDY.replace("{scratch: {kind: bert,", "{hub: a/b} #")).of(RUN)
