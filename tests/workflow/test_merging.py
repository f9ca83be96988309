"""Runs that are merged from others, in the real Snakemake: soups over seeds, soups over sources, and a task vector with a language vector."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import blocks, first, installed, make, planned, project, refused, succeeds, write
from safetensors.torch import load_file

from xlgrid.models.deltas import DELTA

PAGE = "docs/how-to/merging.md"
RUNS, FIRST = "results/merged/runs", "results/first/runs"
ENCODER = "results/first/encoders/mini-xlmr/model.safetensors"
CELLS = "results/merged/cells/ner/mini-xlmr"
REPORT = "results/merged/report.html"
# A merge with a weight of 0.
ALONE = {
    "base": "full-ft",
    "merge": {"by": "sum", "of": [{"method": "full-ft"}, {"method": "soup", "seeds": [1]}], "weights": [1, 0]},
}


def study() -> dict[str, Any]:
    """The first study of the page, cut down like the study `first` that it extends."""
    content: dict[str, Any] = yaml.safe_load(blocks(PAGE, "yaml")[0])
    content["methods"]["soup"]["merge"]["of"][0]["seeds"] = [1, 2]
    content["methods"]["alone"] = ALONE
    content["training"] = [*first()["training"], {"when": {"task": "mlm"}, "set": {"keep": "last"}}]
    content["grids"]["all"]["method"].append("alone")
    content["grids"]["soup"]["source"] = ["qa1"]
    each = [{"method": "full-ft", "source": "each"}, {"method": "full-ft", "source": "qa1"}]
    tried = {"by": "average", "of": each, "weights": [[1, 0], [0, 1], [1, 1]]}
    content["methods"]["chosen"] = {"base": "full-ft", "merge": tried}
    fisher = {"by": "fisher", "options": {"examples": 5}, "of": each[:1]}
    content["methods"]["fisher"] = {"base": "full-ft", "merge": fisher}
    content["grids"]["both"] |= {"seed": [1], "method": ["full-ft", "both", "chosen", "fisher"]}
    return content


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("merging"), first(), "first")
    write(folder, study(), "merged")
    # Three targets have a merge each; the others are for all targets.
    assert planned(folder, REPORT)["merge"] == 3 + 5
    make(folder, REPORT)
    return folder


def delta(folder: Path, run: str, runs: str = RUNS) -> dict[str, Any]:
    return load_file(folder / runs / run / DELTA)


@pytest.mark.parametrize(
    ("merged", "members"),
    [
        ("soup/qa1/seed1", [(FIRST, "full-ft/qa1/seed1"), (RUNS, "full-ft/qa1/seed2")]),
        ("both/qa1+qb1/seed1", [(FIRST, "full-ft/qa1/seed1"), (RUNS, "full-ft/qb1/seed1")]),
    ],
)
def test_a_soup_is_the_mean_of_its_members(built: Path, merged: str, members: list[tuple[str, str]]) -> None:
    one, other = (delta(built, f"ner/mini-xlmr/{run}", runs) for runs, run in members)
    for name, tensor in delta(built, f"ner/mini-xlmr/{merged}").items():
        assert tensor.equal(((one[name].double() + other[name].double()) / 2).float()), name


def test_a_sum_with_weights_1_and_0_is_the_run_itself(built: Path) -> None:
    """The header of each file has the digest of its own recipe."""
    paths = [
        built / RUNS / "ner/mini-xlmr/alone/qa1/seed1" / DELTA,
        built / FIRST / "ner/mini-xlmr/full-ft/qa1/seed1" / DELTA,
    ]
    one, other = (path.read_bytes() for path in paths)
    tensors = [contents[8 + int.from_bytes(contents[:8], "little") :] for contents in (one, other)]
    assert len(one) == len(other) and tensors[0] == tensors[1] and len(tensors[0]) > 10_000
    cells = [
        json.loads((built / f"{folder}/{method}/qa1/qb1/seed1.json").read_text())
        for folder, method in ((CELLS, "alone"), (CELLS.replace("merged", "first"), "full-ft"))
    ]
    assert cells[0]["outcomes"] == cells[1]["outcomes"] and cells[0]["scores"] == cells[1]["scores"]


def test_a_language_vector_is_added_to_a_task_vector_for_each_target(built: Path) -> None:
    encoder = load_file(built / ENCODER)
    task, language = (
        delta(built, "ner/mini-xlmr/full-ft/qa1/seed1", FIRST),
        delta(built, "mlm/mini-xlmr/mlm-ft/qb1/seed1"),
    )
    merged = delta(built, "ner/mini-xlmr/lang-task/qa1@qb1/seed1")
    assert merged.keys() == task.keys() and {name for name in merged if name not in language} == {
        "classifier.weight",
        "classifier.bias",
    }
    for name, tensor in merged.items():
        if name not in language:
            assert tensor.equal(task[name])
            continue
        begin = encoder[name.removeprefix("roberta.") if name not in encoder else name].double()
        expected = begin + (task[name].double() - begin) + 0.5 * (language[name].double() - begin)
        assert (tensor.double() - expected).abs().max() < 1e-7, name
    assert not delta(built, "ner/mini-xlmr/lang-task/qa1@qa1/seed1")[
        "roberta.encoder.layer.0.output.dense.weight"
    ].equal(merged["roberta.encoder.layer.0.output.dense.weight"])


def test_a_merge_is_shown_with_its_members_and_without_steps(built: Path) -> None:
    record = json.loads((built / RUNS / "ner/mini-xlmr/soup/qa1/seed1/run.json").read_text())
    assert record["steps"] == 0 and record["seconds"] > 0
    assert record["recipe"]["derived"]["weights"] == [[0.5, 0.5]]
    runs = [f"{FIRST}/ner/mini-xlmr/full-ft/qa1/seed1", f"{RUNS}/ner/mini-xlmr/full-ft/qa1/seed2"]
    assert [member["run"] for member in record["members"]] == runs
    digests = [json.loads((built / run / "run.json").read_text())["digest"] for run in runs]
    assert [member["digest"] for member in record["members"]] == digests
    assert "lang-task" in (built / REPORT).read_text()
    succeeds(
        built,
        "xlgrid status merged",
        "xlgrid cost merged",
        "xlgrid check merged",
        "xlgrid export merged --output exported.parquet",
    )


def test_the_chosen_weights_have_the_best_score_on_the_dev_sets_of_both_sources(built: Path) -> None:
    record = json.loads((built / RUNS / "ner/mini-xlmr/chosen/qa1+qb1/seed1/run.json").read_text())
    scores = [each["score"] for each in record["tried"]]
    assert len(scores) == 3 and record["dev_score"] == max(scores)
    assert record["weights"] == record["recipe"]["derived"]["weights"][scores.index(max(scores))]
    read = [json.loads((built / run["run"] / "run.json").read_text())["n_dev"] for run in record["members"]]
    # Parallel sources share the examples of a mix.
    assert record["n_dev"] == read[0] == read[1]


def test_a_fisher_weighted_mean_lies_between_its_members(built: Path) -> None:
    one, other = delta(built, "ner/mini-xlmr/full-ft/qa1/seed1", FIRST), delta(built, "ner/mini-xlmr/full-ft/qb1/seed1")
    mean = delta(built, "ner/mini-xlmr/both/qa1+qb1/seed1")
    merged = delta(built, "ner/mini-xlmr/fisher/qa1+qb1/seed1")
    for name, tensor in merged.items():
        assert (tensor >= one[name].minimum(other[name]) - 1e-6).all() and (
            tensor <= one[name].maximum(other[name]) + 1e-6
        ).all()
    assert not all(tensor.equal(mean[name]) for name, tensor in merged.items())


def test_a_changed_member_makes_its_merges_again_and_no_other_run(built: Path) -> None:
    changed = study()
    changed["training"].append({"when": {"task": "mlm"}, "set": {"lr": 2.0e-3}})
    write(built, changed, "merged")
    jobs = planned(built, REPORT)
    assert (jobs["train"], jobs["merge"], jobs["evaluate"]) == (3, 3, 3)
    write(built, study(), "merged")
    assert planned(built, REPORT) == {}


def test_other_weights_make_one_merge_again(built: Path) -> None:
    changed = study()
    changed["methods"]["lang-task"]["merge"]["weights"] = [1.0, 0.25]
    write(built, changed, "merged")
    jobs = planned(built, REPORT)
    write(built, study(), "merged")
    assert (jobs.get("train", 0), jobs["merge"], jobs["evaluate"]) == (0, 3, 3)


def test_a_study_that_extends_another_has_its_merges(built: Path) -> None:
    languages = ["qa1", "qa2", "qb1", "qb2"]
    write(built, {"extends": "merged", "title": "More", "languages": languages}, "more")
    jobs = planned(built, f"{CELLS.replace('merged', 'more')}/soup/qa1/qb2/seed1.json")
    assert jobs == {"data": 1, "tokens": 1, "evaluate": 1}


def test_a_lost_merge_is_made_from_the_runs_that_are_there(built: Path) -> None:
    folder = built / RUNS / "ner/mini-xlmr/soup/qa1/seed1"
    before = (folder / DELTA).read_bytes()
    for name in ("run.json", DELTA, "curve.jsonl"):
        (folder / name).unlink()
    run = f"{RUNS}/ner/mini-xlmr/soup/qa1/seed1/run.json"
    assert planned(built, run) == {"merge": 1}
    make(built, run)
    assert (folder / DELTA).read_bytes() == before


def test_an_operation_of_a_package_merges_the_runs(built: Path) -> None:
    run, median = "ner/mini-xlmr/soup/qa1/seed1", study()["methods"]["soup"]
    median["merge"]["by"] = "median"
    write(built, {"extends": "merged", "title": "Median", "methods": {"soup": median}}, "median")
    with installed(PAGE, built):
        make(built, f"{RUNS.replace('merged', 'median')}/{run}/run.json")
    one, other = delta(built, "ner/mini-xlmr/full-ft/qa1/seed1", FIRST), delta(built, "ner/mini-xlmr/full-ft/qa1/seed2")
    of_package = delta(built, run, RUNS.replace("merged", "median"))
    # torch's median of two numbers is the smaller one.
    assert of_package["roberta.encoder.layer.0.output.dense.weight"].equal(
        one["roberta.encoder.layer.0.output.dense.weight"].minimum(other["roberta.encoder.layer.0.output.dense.weight"])
    )


def test_a_mistake_is_told_before_anything_runs(built: Path) -> None:
    wrong = study()
    wrong["methods"]["soup"]["merge"]["of"][0]["method"] = "bitfit"
    write(built, wrong, "wrong")
    said = refused(built, "xlgrid check wrong")
    assert "methods.soup.merge.of.0.method: bitfit differs from soup by `base`, so that" in said
