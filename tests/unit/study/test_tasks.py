"""The description of a task in a study."""

import pytest
from pydantic import ValidationError

from xlgrid.languages.sources import Source
from xlgrid.study.tasks import TaskEntry


def test_a_probe_of_data_that_are_not_generated_is_refused() -> None:
    data = {"local": "lot/{language}/{split}.jsonl"}
    TaskEntry.model_validate({"kind": "lot", "data": data, "options": {"probe": "none"}})
    with pytest.raises(ValidationError, match="the probe context-only needs generated statements"):
        TaskEntry.model_validate({"kind": "lot", "data": data, "options": {"probe": "context-only"}})


OWN = {
    "kind": "choice",
    "inputs": ["passage"],
    "choices": ["one", "two"],
    "target": "answer",
    "labels": [1, 2],
    "data": {"hub": "a/b"},
}


def test_a_study_describes_a_task() -> None:
    entry = TaskEntry.model_validate(OWN)
    assert entry.task.inputs == ("passage", "one", "two") and entry.task.labels == ("1", "2")
    assert entry.columns == {name: OWN[name] for name in ("inputs", "choices", "target")} | {"labels": ["1", "2"]}
    assert TaskEntry(kind="copa").columns == {} and TaskEntry(kind="copa").task.name == "copa"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "choices"}, "did you mean 'choice'"),
        ({"kind": "copa"}, "the task copa has columns of its own, so leave out `inputs`"),
        ({"choice": ["one", "two"]}, "unknown key 'choice', did you mean 'choices'"),
        ({"labels": [1, 2, 3]}, "3 names for 2 `choices`"),
        ({"data": None}, "data of kind choice cannot be generated: name their source in `data`"),
        ({"data": {"hub": "a/b", "labels": {"A": 3}}}, "unknown label of choice in `labels` '3'"),
        ({"options": {"n": 100}}, "unknown key 'n'"),
        (
            {"data": {"local": "x.json", "unanswerable": "drop"}},
            "`unanswerable` is about questions, and choice has none",
        ),
    ],
)
def test_a_mistake_in_the_description_of_a_task_is_named(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        TaskEntry.model_validate(OWN | change)


def test_a_kind_with_labels_of_words_may_have_others_for_data_that_are_not_generated() -> None:
    labels = ["O", "B-PER", "I-PER", "B-DATE", "I-DATE"]
    named = {"kind": "wikiann", "labels": labels}
    entry = TaskEntry.model_validate(
        named | {"data": {"local": "{language}.txt", "labels": {"ORG": "O", "YEAR": "DATE"}}}
    )
    assert entry.task.labels == tuple(labels) and entry.columns == {"labels": labels}
    assert (entry.task.inputs, entry.task.target, entry.task.metrics) == (("tokens",), "ner_tags", ("f1",))
    with pytest.raises(
        ValidationError, match="data of kind wikiann with `labels` of their own cannot be generated: name"
    ):
        TaskEntry.model_validate(named)
    with pytest.raises(ValidationError, match=r"unknown label of wikiann in `labels` 'DAT', did you mean 'DATE'"):
        TaskEntry.model_validate(named | {"data": {"local": "x.txt", "labels": {"YEAR": "DAT"}}})


@pytest.mark.parametrize(
    ("kind", "mix", "message"),
    [
        ("mlm", "shares", "mixes of kind mlm take their parts by whole, got `mix: shares`: leave it out"),
        ("perplexity", "shares", "take their parts by whole"),
        ("tatoeba", "whole", "runs of kind tatoeba train on nothing: leave out `mix`"),
        ("lot", "halves", "Input should be 'shares' or 'whole'"),
    ],
)
def test_a_mix_that_a_kind_does_not_have_is_refused(kind: str, mix: str, message: str) -> None:
    TaskEntry.model_validate({"kind": kind})
    with pytest.raises(ValidationError, match=message):
        TaskEntry.model_validate({"kind": kind, "mix": mix})


def test_the_way_of_a_mix_is_part_of_a_recipe_only_where_it_changes_a_run() -> None:
    whole, shares = (TaskEntry.model_validate({"kind": "lot", "mix": mix}) for mix in ("whole", "shares"))
    assert whole.mix_of(Source("en+fr")) == "whole"
    assert (
        whole.mix_of(Source("en"))
        is shares.mix_of(Source("en+fr"))
        is TaskEntry(kind="lot").mix_of(Source("a+b"))
        is None
    )
    assert TaskEntry(kind="mlm", mix="whole").mix_of(Source("en+fr")) is None


ROWS = {"inputs": ["text"], "target": "label", "labels": ["neg", "pos"], "data": {"local": "{language}/{split}.csv"}}


@pytest.mark.parametrize(
    ("kind", "metric", "main"),
    [
        ("sequence", None, "accuracy"),
        ("sequence", "macro-f1", "macro-f1"),
        ("sequence", "f1:pos", "f1:pos"),
    ],
)
def test_a_task_names_its_main_metric(kind: str, metric: str | None, main: str) -> None:
    described = TaskEntry.model_validate({**ROWS, "kind": kind, "metric": metric}).task
    assert described.metrics == (main,)
    assert {"accuracy", "macro-f1", "f1:neg", "f1:pos", "mcc"} <= {*described.all_metrics}


@pytest.mark.parametrize(("kind", "metric"), [("wikiann", "f1"), ("udpos", "accuracy"), ("xquad", "squad-f1")])
def test_the_main_metric_of_the_kind_may_be_written(kind: str, metric: str) -> None:
    """It changes nothing, also where the metrics of the labels are made anew each time."""
    assert TaskEntry.model_validate({"kind": kind, "metric": metric}).task == TaskEntry(kind=kind).task


def test_another_metric_is_an_error_with_the_nearest_name() -> None:
    for metric, near in (("macro-fl", "macro-f1"), ("f1:posi", "f1:pos")):
        with pytest.raises(ValidationError, match=f"unknown metric '{metric}', did you mean '{near}'"):
            TaskEntry.model_validate({**ROWS, "kind": "sequence", "metric": metric})
