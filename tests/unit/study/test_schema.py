"""The schema's own rules, and the recipes that follow from a study."""

from pathlib import Path

import pytest
from study_fixture import QA, STARTED, TEXT, write

from xlgrid.plan.load import load_plan, load_study
from xlgrid.study.schema import Study


def test_a_study_s_name_must_do_for_a_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'my study' cannot be a name"):
        load_study(write(tmp_path, TEXT, "my study.yaml"))


def test_later_training_entries_win(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    assert study.recipe("rt", "mini", "full-ft", "en", 1).training.lr == 1e-3
    assert study.recipe("rt", "mini", "bitfit", "en", 1).training.lr == 2e-3


def test_training_settings_for_a_base_are_those_of_every_method_of_it(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}", "{base: bitfit}").replace(
        "  bitfit: {}", "  bitfit: {}\n  mine: {base: bitfit}"
    )
    study = load_study(write(tmp_path, text.replace("[full-ft, bitfit]", "[full-ft, bitfit, mine]")))
    rates = {method: study.recipe("rt", "mini", method, "en", 1).training.lr for method in study.methods}
    assert rates == {"full-ft": 1e-3, "bitfit": 2e-3, "mine": 2e-3}


def test_training_settings_for_a_group_are_those_of_its_members(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}, set", "{source: [romance, en-X]}, set")
    study = load_study(write(tmp_path, text.replace("source: [en]", "source: [mono, en-X]")))
    rates = {source: study.recipe("rt", "mini", "bitfit", source, 1).training.lr for source in ("en", "fr", "en-fr")}
    assert rates == {"en": 1e-3, "fr": 2e-3, "en-fr": 2e-3}


def test_a_language_that_joins_a_group_gets_its_training_settings(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}, set", "{source: romance}, set")
    write(tmp_path, text.replace("source: [en]", "source: [mono]"))
    wider = "extends: s\nlanguages: [en, fr, it]\ngroups: {romance: [fr, it]}\n"
    study = load_study(write(tmp_path, wider, "wider.yaml"))
    assert study.recipe("rt", "mini", "bitfit", "it", 1).training.lr == 2e-3


@pytest.mark.usefixtures("queries")
def test_settings_of_mlm_runs_are_training_settings_like_any(tmp_path: Path) -> None:
    entry = "training:\n  - {when: {task: mlm, method: query, source: en-fr}, set: {steps: 7}}\n"
    study = load_study(write(tmp_path, STARTED.replace("training:\n", entry)))
    assert study.recipe("mlm", "mini", "query", "en-fr", 1).training.steps == 7
    assert study.recipe("rt", "mini", "pair", "en+en-fr", 1).training.steps is None


GROUPED = (
    TEXT.replace(
        "exhibits:\n",
        "exhibits:\n"
        "  blocks: {kind: heatmap, title: t, method: full-ft, select: {task: rt}, blocks: [romance]}\n"
        "  panels: {kind: curve, title: t, x: size, lines: method, panels: group, groups: [romance]}\n",
    )
    .replace(
        "exhibits:\n",
        "claims:\n"
        "  romance: {says: s, select: {group: romance}, compare: [{method: full-ft}, {method: bitfit}], expect: greater}\n"
        "exhibits:\n",
        1,
    )
    .replace("languages: [en]}}", "languages: [en]}, facts: {size: 2}}")
)


def _settings(study: Study) -> dict[str, list[str]]:
    """Exhibit, or `claims` -> the settings with which Snakemake compares the last ones."""
    return {name: study.exhibit(name).settings(study) for name in study.exhibits} | {"claims": study.claims_settings}


def test_a_changed_group_makes_again_what_shows_groups(tmp_path: Path) -> None:
    """No input of an exhibit has the members of a group, so Snakemake sees them only in the settings."""
    before = _settings(load_study(write(tmp_path, GROUPED)))
    after = _settings(load_study(write(tmp_path, GROUPED.replace("romance: [fr]", "romance: [en]"))))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"blocks", "panels", "table", "claims"}


def test_a_changed_family_makes_again_the_heatmap_that_it_orders(tmp_path: Path) -> None:
    text = TEXT.replace("languages: [en, fr]", "languages: [en, qzz]").replace("romance: [fr]", "romance: [qzz]")
    text = text.replace("{kind: ruletaker, options: {n: 100}}", "{kind: ruletaker, data: {local: x}}")
    stated = "new_languages: {{qzz: {{name: Z, family: {}, script: Latn}}}}\n"
    before, after = (_settings(load_study(write(tmp_path, text + stated.format(family)))) for family in ("A", "B"))
    assert before["heat"] != after["heat"] and before["curve"] == after["curve"]


def test_a_renamed_claim_is_judged_again(tmp_path: Path) -> None:
    """The table of verdicts shows the name of each claim."""
    study, renamed = (
        load_study(write(tmp_path, GROUPED.replace("  romance: {says", f"  {name}: {{says"))) for name in "ab"
    )
    assert study.claims_settings != renamed.claims_settings


def test_another_order_of_the_grids_makes_again_what_has_rows_in_this_order(tmp_path: Path) -> None:
    """Snakemake compares inputs without their order."""
    before = _settings(load_study(write(tmp_path, TEXT)))
    after = _settings(load_study(write(tmp_path, TEXT.replace("[full-ft, bitfit]", "[bitfit, full-ft]"))))
    # The heatmap is of one method.
    assert {name for name in before if before[name] != after[name]} == {"table", "curve"}


def test_the_page_of_a_report_depends_on_what_it_shows_of_languages_and_exhibits(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    swapped = load_study(write(tmp_path, TEXT.replace("  heat:", "  later:")))
    assert study.report_settings != swapped.report_settings
    declared = TEXT.replace("languages: [en, fr]", "languages: [en, qzz]").replace("[fr]", "[qzz]")
    declared = (
        declared.replace("options: {n: 100}", "data: {local: x}")
        + "new_languages: {qzz: {name: NAME, family: F, script: Latn}}\n"
    )
    pages = [load_study(write(tmp_path, declared.replace("NAME", name))).report_settings for name in ("Zed", "Zet")]
    assert pages[0] != pages[1]


def test_metrics_follow_from_the_tasks_and_a_table_shows_the_main_ones(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("rows: [task]", "rows: [task, metric]")))
    expected = {"xquad": ("squad-f1", "squad-em"), "copa": ("accuracy",), "siqa": ("accuracy",)}
    assert study.metrics == expected | {"pretraining": ("accuracy",)}
    assert study.exhibits["table"].names_metric
    assert not load_study(write(tmp_path, QA)).exhibits["table"].names_metric


def test_a_table_shows_both_metrics_where_it_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, axes in (("main", "rows: [task]"), ("both", "rows: [task, metric]")):
        plan = load_plan(write(tmp_path, QA.replace("rows: [task]", axes)))
        plan.study.exhibit("table").render("table", plan, name)
        lines = Path(name, "table.csv").read_text().splitlines()
        # Two targets each.
        assert len(lines) - 1 == 2 * (2 if name == "main" else 3)
        assert "Metric: SQuAD-F1, " in Path(name, "table.md").read_text()


def test_an_axis_has_each_value_of_the_grids_once(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA))
    values = study.order
    assert {axis: len(set(known)) for axis, known in values.items()} == {
        axis: len(known) for axis, known in values.items()
    }
    assert set(map(str, values["task"])) <= set(study.defined_names["task"])


def test_the_tasks_that_others_begin_with_count(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA))
    first, second = [*study.tasks][:2]
    begins = study.tasks[second].model_copy(update={"start": first})
    chained = study.model_copy(update={"tasks": {**study.tasks, second: begins}})
    assert chained.with_first([second]) == [second, first]
