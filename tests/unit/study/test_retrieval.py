"""Tasks of retrieval in a study: pairs alone, encoders without training alone."""

from pathlib import Path

import pytest
from study_fixture import write

from xlgrid.plan.load import load_study

STUDY = """\
title: a study
languages: [qa1, qb1]
encoders: {mini: {scratch: {kind: bert, languages: [qa1, qb1]}}}
tasks:
  tatoeba: {kind: tatoeba, max_length: 64, options: {layer: 2, n: 100}}
  bucc: {kind: bucc, max_length: 64, data: {local: "b/{language}.{split}.{part}"}}
methods: {as-is: {}, full-ft: {}}
grids:
  bare: {task: [tatoeba, bucc], encoder: [mini], method: [as-is], source: [none], target: [qa1-qb1], seed: [1]}
"""


def test_a_study_evaluates_pairs_without_training(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, STUDY))
    assert study.tasks["tatoeba"].options_without_defaults == {"layer": 2, "n": 100}
    assert study.metrics == {"tatoeba": ("accuracy",), "bucc": ("mining-f1",), "pretraining": ("accuracy",)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[qa1-qb1]",
            "[qa1-qb1, qa1]",
            "task tatoeba compares sentences of two languages, got qa1: write a pair, such as qa1-en",
        ),
        ("source: [none]", "source: [qa1]", "method as-is trains on nothing"),
        (
            "method: [as-is], source: [none]",
            "method: [full-ft], source: [qa1]",
            "nothing trains the head of tatoeba, so that there are no runs of method full-ft: put the task into a grid of its own",
        ),
        ("layer: 2", "layers: 2", "unknown key 'layers', did you mean 'layer'"),
        (
            "layer: 2",
            "layer: -1",
            "options.layer: expected the number of a layer, at least 0, or a number for each size of encoder",
        ),
        ("layer: 2", "layer: {12: last}", "as in {12: 8, 24: 14}, got {12: 'last'}"),
        ("layer: 2", "score: margin", "options.score: unknown value 'margin' (there are: cosine, ratio, distance)"),
        (
            "kind: tatoeba, ",
            "kind: embed, inputs: [a, b], ",
            "data of kind embed cannot be generated: name their source in `data`",
        ),
        ("kind: tatoeba, ", "kind: embed, inputs: [a], ", "`inputs` has 1 columns, expected 2"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = STUDY.replace(old, new).replace("n: 100", "n: 100" if "embed" not in new else "k: 3")
    with pytest.raises(ValueError) as error:
        load_study(write(tmp_path, text))
    assert message in str(error.value)


def test_a_pair_that_the_hub_lacks_is_named(tmp_path: Path) -> None:
    of_hub = STUDY.replace("options: {layer: 2, n: 100}", "data: {hub: google/xtreme, names: {qa1-qb1: tatoeba.x}}")
    assert load_study(write(tmp_path, of_hub)).tasks["tatoeba"].data
    message = r"tatoeba has no test data in qb1-qa1: `names` of google/xtreme lists qa1-qb1 only"
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, of_hub.replace("target: [qa1-qb1]", "target: [qa1-qb1, qb1-qa1]")))
