"""What a study may merge, which runs a merge is made of, and what is refused before any job."""

from pathlib import Path

import pytest

from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell
from xlgrid.products.train import Run
from xlgrid.study.schema import MethodEntry, Study
from xlgrid.training.recipe import Recipe

STUDY = """\
title: a study
languages: [en, fr, de]
encoders:
  mini: {scratch: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
  other: {kind: ruletaker, options: {n: 200}}
  ner: {kind: udpos, data: {local: "{language}.{split}.csv", languages: [en]}}
  mlm: {kind: mlm}
methods:
  full-ft: {}
  bitfit: {}
  as-is: {}
  mlm-ft: {base: full-ft}
  target: {base: full-ft, start: {task: mlm, method: mlm-ft, at: target}}
  merged: {base: full-ft, merge: {by: average, of: [{method: full-ft}]}}
grids:
  main: {task: [rt], encoder: [mini], method: [full-ft, merged], source: [en], target: [fr], seed: [1]}
exhibits: {}
"""
ENTRY = "{by: average, of: [{method: full-ft}]}"


def load(folder: Path, *changes: tuple[str, str]) -> Plan:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "merges.yaml"
    path.write_text(text)
    return load_plan(str(path))


def members(plan: Plan, source: str = "en", seed: int = 1, task: str = "rt") -> dict[str, float]:
    run = Run("merges", task, "mini", "merged", source, seed)
    derived = plan.study.recipe(*run[1:]).derived
    [weights] = derived["weights"]
    names = [f"{m['task']}/{m['method']}/{m['source']}/{m['seed']}" for m in derived["members"]]
    return dict(zip(names, weights, strict=True))


@pytest.mark.parametrize(
    ("entry", "source", "expected"),
    [
        (ENTRY, "en", {"rt/full-ft/en/1": 1.0}),
        (
            "{by: average, of: [{method: full-ft, seeds: [3, 5]}]}",
            "en",
            {"rt/full-ft/en/3": 0.5, "rt/full-ft/en/5": 0.5},
        ),
        ("{by: average, of: [{method: full-ft, seeds: 2}]}", "en", {"rt/full-ft/en/1": 0.5, "rt/full-ft/en/2": 0.5}),
        (
            "{by: sum, of: [{method: full-ft, source: each}, {method: full-ft, source: de}], weights: [1, 3]}",
            "en+fr",
            {"rt/full-ft/en/1": 0.5, "rt/full-ft/fr/1": 0.5, "rt/full-ft/de/1": 3.0},
        ),
        (
            "{by: task-arithmetic, of: [{method: full-ft}, {method: mlm-ft, task: mlm, source: target}], weights: [1, -0.5]}",
            "en@fr",
            {"rt/full-ft/en/1": 1.0, "mlm/mlm-ft/fr/1": -0.5},
        ),
        (
            "{by: sum, of: [{method: full-ft}, {method: full-ft, source: en}], weights: [0.25, 0.5]}",
            "en",
            {"rt/full-ft/en/1": 0.75},
        ),
        ("{by: average, of: [{method: full-ft, task: other}]}", "en", {"other/full-ft/en/1": 1.0}),
    ],
)
def test_a_merge_is_made_of_the_runs_that_it_names(
    tmp_path: Path, entry: str, source: str, expected: dict[str, float]
) -> None:
    plan = load(tmp_path, (ENTRY, entry), ("source: [en]", f"source: [{source.partition('@')[0]}]"))
    assert members(plan, source) == expected
    run = Run("merges", "rt", "mini", "merged", source, 1)
    assert run in plan.runs and plan.runs.index(run) == len(plan.runs) - 1, "after the runs that it is made of"
    assert Cell(*run[:-1], "fr", 1) in plan.cells
    folders = [f"results/merges/runs/{task}/mini/{method}/{source}/seed{seed}/delta.safetensors" for task, method, source, seed in (name.split("/") for name in expected)]  # fmt: skip
    assert run.inputs(plan)["members"] == folders


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("one", [1, 4])
def test_soups_of_n_seeds_share_no_run(one: int, n: int) -> None:
    entry = MethodEntry.model_validate(
        {"base": "full-ft", "merge": {"by": "average", "of": [{"method": "full-ft", "seeds": n}]}}
    )
    assert entry.derived
    study = Study(
        name="s",
        title="s",
        languages=["en"],
        encoders={"e": {"scratch": {"languages": ["en"]}}},
        tasks={"t": {"kind": "ruletaker"}},
        methods={"full-ft": {}, "merged": entry.model_dump(exclude_unset=True)},
        grids={
            "g": {
                "task": ["t"],
                "encoder": ["e"],
                "method": ["merged"],
                "source": ["en"],
                "target": ["en"],
                "seed": [1],
            }
        },
    )
    seeds = [
        [run.seed for run in entry.derived.runs(Run("s", "t", "e", "merged", "en", seed), study)]
        for seed in (one, one + 1)
    ]
    assert seeds[1] == [seed + n for seed in seeds[0]] and seeds[0] == [*range(seeds[0][0], seeds[0][0] + n)]


def test_mlm_runs_have_seed_1_in_runs_of_every_seed(tmp_path: Path) -> None:
    entry = "{by: sum, of: [{method: full-ft}, {method: mlm-ft, task: mlm, source: en}], weights: [1, 1]}"
    plan = load(tmp_path, (ENTRY, entry), ("seed: [1]", "seed: [1, 2]"))
    assert members(plan, seed=2) == {"rt/full-ft/en/2": 1.0, "mlm/mlm-ft/en/1": 1.0}


def test_a_merge_of_runs_for_each_target_is_for_each_target(tmp_path: Path) -> None:
    merged = f"base: full-ft, merge: {ENTRY}"
    aimed = "base: full-ft, start: {task: mlm, method: mlm-ft, at: target}, merge: {by: average, of: [{method: target, seeds: 2}]}"
    plan = load(tmp_path, (merged, aimed))
    assert members(plan, "en@fr") == {"rt/target/en@fr/1": 0.5, "rt/target/en@fr/2": 0.5}
    run = Run("merges", "rt", "mini", "merged", "en@fr", 1)
    assert run.inputs(plan)["start"] == ["results/merges/runs/mlm/mini/mlm-ft/fr/seed1/delta.safetensors"]


def test_the_identity_of_a_merge_follows_its_members_and_not_other_runs(tmp_path: Path) -> None:
    run = Run("merges", "rt", "mini", "merged", "en", 1)

    def digest(setting: str) -> tuple[str, str]:
        plan = load(tmp_path, ("exhibits: {}", f"exhibits: {{}}\ntraining: [{setting}]"))
        recipe = plan.study.recipe(*run[1:])
        assert Recipe.parse(recipe.identity()) == recipe
        return recipe.digest(), str(run.settings(plan.study)["recipe"])

    before = digest("{set: {dropout: null}}")
    of_member, of_other = (
        digest("{when: {method: full-ft}, set: {lr: 0.5}}"),
        digest("{when: {method: full-ft}, set: {checkpoint_seconds: 5}}"),
    )
    assert of_other == before and of_member[0] != before[0] and of_member[1] != before[1]


def test_an_entry_comes_back_from_its_dump() -> None:
    entry = MethodEntry.model_validate(
        {
            "base": "full-ft",
            "merge": {"by": "ties", "options": {"density": 0.5}, "of": [{"method": "full-ft", "seeds": [1, 2]}]},
        }
    )
    assert MethodEntry.model_validate(entry.model_dump()) == entry


def test_an_mlm_run_that_others_begin_with_is_no_merge_for_a_target(tmp_path: Path) -> None:
    mixed = "\n  mixed: {base: full-ft, merge: {by: average, of: [{method: mlm-ft, source: target}]}}\ngrids:"
    started = "base: full-ft, start: {task: mlm, method: mixed, at: source}"
    changes = (("\ngrids:", mixed), (f"base: full-ft, merge: {ENTRY}", started))
    with pytest.raises(
        ValueError, match=r"methods.mixed.merge.of.0: .*/mlm/mini/mixed/en/seed1: .* leave out `source: target`"
    ):
        load(tmp_path, *changes)
    plan = load(tmp_path, (changes[0][0], mixed.replace(", source: target", "")), changes[1])
    assert [run.method for run in plan.runs if run.task == "mlm"] == ["mlm-ft", "mixed"]


def test_several_weights_are_tried_on_the_dev_set_of_the_source(tmp_path: Path) -> None:
    entry = "{by: average, of: [{method: full-ft, seeds: [1, 2]}, {method: full-ft, seeds: [3]}], weights: [[1, 1], [3, 1]]}"
    plan = load(tmp_path, (ENTRY, entry))
    run = Run("merges", "rt", "mini", "merged", "en", 1)
    derived = plan.study.recipe(*run[1:]).derived
    assert derived["weights"] == [[0.25, 0.25, 0.5], [0.375, 0.375, 0.25]] and derived["metric"] is None
    assert run.inputs(plan)["dev"] == ["results/merges/tokens/rt/mini/en/dev.arrow"]
    costs = [Estimate(plan).of(each) for each in (run, run._replace(method="full-ft"))]
    single = load(tmp_path)
    assert run.inputs(single)["dev"] == [] and Estimate(single).of(run).tokens == 0
    assert costs[0].steps == 0 and costs[0].tokens > 0 and costs[0].hours < costs[1].hours


def test_the_gradients_of_an_operation_cost_what_steps_on_as_many_examples_cost(tmp_path: Path) -> None:
    run = Run("merges", "rt", "mini", "merged", "en", 1)
    of = "of: [{method: full-ft, seeds: [1, 2]}]"
    mean, fisher = (
        Estimate(load(tmp_path, (ENTRY, f"{{by: {by}, {of}}}"))) for by in ("average", "fisher, options: {examples: 8}")
    )
    assert fisher.of(run).tokens == 2 * 8 * fisher.sizes.of_example("rt") and mean.of(run).tokens == 0
    assert (fisher.of(run).steps, fisher.of(run).runs) == (0, 1)
    trained = fisher.of(run._replace(method="full-ft"))
    assert fisher.of(run).operations / fisher.of(run).tokens > trained.operations / trained.tokens
    assert fisher.of(run).hours * 3600 > 2 * 8 * fisher.speed.step
    everything = Estimate(load(tmp_path, (ENTRY, f"{{by: fisher, options: {{examples: 1000000}}, {of}}}"))).of(run)
    assert everything.tokens < 100 * 2 * fisher.sizes.of_example("rt"), "a run has no more than its training examples"


def test_a_merge_of_runs_that_are_chosen_on_the_target_is_an_oracle(tmp_path: Path) -> None:
    sweep = "sweep: [{when: {method: full-ft}, set: {lr: [1.0e-5, 1.0e-4]}, choose_on: target}]"
    training = "training: [{when: {method: full-ft}, set: {dev_targets: [fr]}}]"
    run = Run("merges", "rt", "mini", "merged", "en", 1)
    assert load(tmp_path, ("exhibits: {}", f"exhibits: {{}}\n{training}\n{sweep}")).study.is_oracle(run)
    assert not load(tmp_path).study.is_oracle(run)


NEAREST = "{by: average, of: [{method: full-ft, source: each, nearest: {table: far, count: 2}}]}"
TABLE = "source,target,value\nen,fr,3\nde,fr,1\nes,fr,2\nfr,fr,0\nde,en,5\nes,en,4\n"


def near(folder: Path, entry: str = NEAREST, table: str = TABLE, targets: str = "fr") -> Plan:
    """A study that merges, for a target, the runs on those sources that are nearest to it."""
    (folder / "far.csv").write_text(table)
    named = f"pairs: {{far: {{file: {folder / 'far.csv'}}}}}\ntasks:"
    wider = (
        ("[en, fr, de]", "[en, fr, de, es]"),
        ("source: [en]", "source: [en+de+es+fr]"),
        ("target: [fr]", f"target: [{targets}]"),
    )
    return load(folder, (ENTRY, entry), ("tasks:", named), *wider)


def test_the_nearest_sources_of_each_target_are_merged(tmp_path: Path) -> None:
    plan = near(tmp_path, targets="fr, en")
    assert members(plan, "en+de+es+fr@fr") == {"rt/full-ft/de/1": 0.5, "rt/full-ft/es/1": 0.5}
    assert members(plan, "en+de+es+fr@en") == {"rt/full-ft/es/1": 0.5, "rt/full-ft/de/1": 0.5}
    assert Cell("merges", "rt", "mini", "merged", "en+de+es+fr@fr", "fr", 1).shown.source == "en+de+es+fr"


def test_the_nearest_sources_follow_the_direction_of_the_table_and_its_changes(tmp_path: Path) -> None:
    built_in = NEAREST.replace("far, count: 2", "great-circle, count: 1")
    assert [*members(near(tmp_path, built_in), "en+de+es+fr@fr")] == ["rt/full-ft/en/1"], "London is nearest to Paris"
    assert [*members(near(tmp_path), "en+de+es+fr@fr")] == ["rt/full-ft/de/1", "rt/full-ft/es/1"]
    assert [*members(near(tmp_path, table=TABLE.replace("en,fr,3", "en,fr,0")), "en+de+es+fr@fr")] == [
        "rt/full-ft/en/1",
        "rt/full-ft/de/1",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry": NEAREST.replace("table: far", "table: faar")}, "merge.of.0.nearest.table: .*did you mean 'far'"),
        ({"entry": NEAREST.replace("source: each, ", "")}, "merge.of.0.nearest: .*got no `source`"),
        ({"entry": NEAREST.replace("count: 2", "count: 0")}, "count"),
        (
            {"table": "source,target,value\nen,fr,x\n"},
            "merge.of.0.nearest.table: .*far.csv:2: value 'x' is not a number",
        ),
        (
            {"table": "source,target,value\nen,fr,3\n"},
            "merge.of.0: there are not enough runs .*: table far has values of too few",
        ),
        (
            {"table": "source,target,value\nen,fr,1\nde,fr,2\nes,fr,2\n"},
            "de and es are equally near to fr",
        ),
        (
            {"table": "source,target,value\n"},
            "merge.of.0: there are not enough runs .*: table far has values of too few",
        ),
    ],
)
def test_a_mistake_about_nearest_sources_is_told(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        near(tmp_path, **changes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("by: average", "by: avrage", "methods.merged.merge.*unknown operation 'avrage', did you mean 'average'"),
        ("by: average,", "by: ties, options: {densty: 0.1},", "methods.merged.merge.*densty.*density"),
        ("by: average,", "by: dare, options: {rate: 1},", "methods.merged.merge.*rate"),
        ("by: average", "by: sum", "methods.merged.merge.*add `weights`"),
        ("full-ft}]}", "full-ft}], weights: [1, 2]}", "there are 2 weights for 1 entries of `of`"),
        ("full-ft}]}", "full-ft}], weights: [-1]}", "weights of a mean are 0 or more"),
        ("full-ft}]}", "full-ft}], weights: [.inf]}", "methods.merged.merge.*finite"),
        ("full-ft}]}", "full-ft, seeds: [1, 2, 1]}]}", "merge.of.0.seeds: a seed is twice"),
        ("[{method: full-ft}]", "[]", "methods.merged.merge.of"),
        ("{method: full-ft}", "{method: ful-ft}", "methods.merged.merge.of.0.method: .*did you mean 'full-ft'"),
        ("{method: full-ft}", "{method: full-ft, task: rtt}", "methods.merged.merge.of.0.task: .*did you mean 'rt'"),
        ("{method: full-ft}", "{method: full-ft, source: it}", "methods.merged.merge.of.0.source: .*'it'"),
        ("{method: full-ft}", "{method: full-ft, source: en+}", "methods.merged.merge.of.0.source: "),
        ("{method: full-ft}", "{method: bitfit}", "merge.of.0.method: bitfit differs from merged by `base`, so"),
        ("{method: full-ft}", "{method: target}", "merge.of.0.method: target differs from merged by `start`, so"),
        ("{method: full-ft}", "{method: as-is}", "merge.of.0.method: method as-is trains nothing"),
        ("{method: full-ft}", "{method: merged}", "methods.merged: .* in a circle, merged -> merged"),
        ("{method: full-ft}", "{method: mlm-ft, task: mlm}", "merge.weights: .* add up to 0 in .* more than 0"),
        (ENTRY, "{by: sum, of: [{method: full-ft}, {method: full-ft, seeds: [2]}], weights: [1, -1]}", "merge.weights: .* add up to 0 in"),
        ("{method: full-ft}", "{method: full-ft, task: ner}", "methods.merged.merge.of: the head of task ner does not fit task rt"),
        ("full-ft}]}", "full-ft}], weights: [[1], [1, 2]]}", "there are 2 weights for 1 entries of `of`"),
        ("full-ft}]}", "full-ft}], weights: [[1]]}", "methods.merged.merge.weights"),
        ("seed: [1]", "seed: [1, 2]", None),
        ("{method: full-ft}]}}\ngrids", "{method: full-ft, seeds: [1, 2]}]}}\ngrids", None),
    ],
)  # fmt: skip
def test_a_mistake_is_told_before_any_job(tmp_path: Path, old: str, new: str, message: str | None) -> None:
    changes = (f"merge: {ENTRY}", f"merge: {ENTRY.replace(old, new)}") if old in ENTRY else (old, new)
    if message is None:
        load(tmp_path, changes)
        return
    with pytest.raises(ValueError, match=message):
        load(tmp_path, changes)


@pytest.mark.parametrize(
    ("entry", "axis", "message"),
    [
        ("{method: full-ft, seeds: [1, 2]}", "seed: [1, 2]", "grids.main.seed: merge of method merged names the same runs for every seed"),
        ("{method: full-ft, source: en}", "source: [en, fr]", "grids.main.source: merge of method merged names the same runs"),
        ("{method: full-ft, source: each}", "source: [en, fr]", None),
        ("{method: full-ft, seeds: 2}", "seed: [1, 2]", None),
    ],
)  # fmt: skip
def test_copies_of_a_merge_do_not_count_as_several(tmp_path: Path, entry: str, axis: str, message: str | None) -> None:
    key = axis.partition(":")[0]
    changes = (("{method: full-ft}", entry), (f"{key}: [{'1' if key == 'seed' else 'en'}]", axis))
    if message is None:
        load(tmp_path, *changes)
        return
    with pytest.raises(ValueError, match=message):
        load(tmp_path, *changes)


def test_methods_that_merge_one_another_are_a_circle(tmp_path: Path) -> None:
    second = "\n  second: {base: full-ft, merge: {by: average, of: [{method: merged}]}}\ngrids:"
    with pytest.raises(ValueError, match="in a circle, merged -> second -> merged"):
        load(tmp_path, ("{method: full-ft}", "{method: second}"), ("\ngrids:", second))


def test_a_source_without_data_is_told(tmp_path: Path) -> None:
    """A grid checks its own sources only."""
    entry = "{by: average, of: [{method: full-ft}, {method: full-ft, source: yo}]}"
    with pytest.raises(ValueError, match=r"merge.of: results/merges/runs/rt/mini/full-ft/yo/seed1 has no data"):
        load(tmp_path, ("[en, fr, de]", "[en, fr, de, yo]"), (ENTRY, entry))


def test_embeddings_of_another_tokenizer_are_not_merged(tmp_path: Path) -> None:
    entry = "{by: sum, of: [{method: full-ft}, {method: mlm-ft, task: mlm, source: en}], weights: [1, 1]}"
    tokenizers = "tokenizers: {own: {languages: [en]}}\ntasks:"
    with pytest.raises(ValueError, match=r"merge.of: .*/mlm/mini/mlm-ft/en/seed1 has embeddings of tokenizer own"):
        load(tmp_path, (ENTRY, entry), ("tasks:", tokenizers), ("{kind: mlm}", "{kind: mlm, tokenizer: own}"))


@pytest.mark.parametrize("base", ["lora", "ia3"])
def test_products_of_weights_are_not_merged(tmp_path: Path, base: str) -> None:
    merge = f"merged: {{base: {base}, merge: {{by: average, of: [{{method: few}}]}}}}"
    with pytest.raises(ValueError, match=r"methods.merged.merge.of.0.method: runs of few cannot be merged: "):
        load(
            tmp_path,
            ("full-ft: {}", f"full-ft: {{}}\n  few: {{base: {base}}}"),
            (f"merged: {{base: full-ft, merge: {ENTRY}}}", merge),
        )


def test_runs_for_one_target_each_are_not_merged_as_runs_on_the_source(tmp_path: Path) -> None:
    shots = "source: [en], target: [fr], seed: [1], vary: {shots: [8]}}\n  merges: {task: [rt], encoder: [mini], method: [merged], "
    with pytest.raises(ValueError, match="each run of full-ft@shots=8 is for one target: merge runs of full-ft"):
        load(
            tmp_path,
            ("method: [full-ft, merged], ", "method: [full-ft], "),
            ("source: [en], target: [fr], seed: [1]}", shots + "source: [en], target: [fr], seed: [1]}"),
            (ENTRY, ENTRY.replace("full-ft", "full-ft@shots=8")),
        )
