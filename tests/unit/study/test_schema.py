"""The schema's own rules, and the recipes that follow from a study."""

from pathlib import Path

import pytest
from study_fixture import STARTED, TEXT, write

from xlgrid.plan.load import load_study
from xlgrid.study.schema import ImportedAdapters


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


def test_settings_of_text_runs_are_training_settings_like_any(tmp_path: Path) -> None:
    entry = "training:\n  - {when: {task: mlm, method: query, source: en-fr}, set: {steps: 7}}\n"
    study = load_study(write(tmp_path, STARTED.replace("training:\n", entry)))
    assert study.recipe("mlm", "mini", "query", "en-fr", 1).training.steps == 7
    assert study.recipe("rt", "mini", "pair", "en+en-fr", 1).training.steps is None


def test_weights_are_read_under_the_names_that_others_gave() -> None:
    imported = ImportedAdapters(
        hub="Hub/{encoder}-{language}-wiki", names={"xlmr": "xlm-roberta-base", "zhyue": "zh_yue"}
    )
    assert imported.place("zhyue", "xlmr") == "Hub/xlm-roberta-base-zh_yue-wiki"
    assert imported.place("qu", "bert") == "Hub/bert-qu-wiki"
