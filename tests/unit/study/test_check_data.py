"""Data and text are in languages that have them, and fit the encoders."""

from pathlib import Path

import pytest
from study_fixture import QA, TEXT, write

from xlgrid.plan.load import load_study


def test_dials_of_a_task_and_of_the_text_must_agree(tmp_path: Path) -> None:
    text = (
        TEXT.replace("[en, fr]", "[en, fr, qa1]", 1)
        .replace("seed: [1]", "seed: [1], languages: [en, fr]")
        .replace("tasks:", "tasks:\n  ner: {kind: wikiann, options: {overlap: 0.5}}")
    )
    with pytest.raises(ValueError, match=r"s\.yaml:6: tasks\.ner: .* overlap 0\.5, .* 0\.8"):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, "text: {dials: {overlap: 0.5}}\n" + text))


def test_a_text_of_ones_own_is_in_a_language_of_the_study(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"s\.yaml:1: text\.files: unknown language 'frr', did you mean 'fr'"):
        load_study(write(tmp_path, "text: {files: {frr: my.txt}}\n" + TEXT))
    load_study(write(tmp_path, "text: {files: {fr: my.txt}}\n" + TEXT))


def test_fetched_text_is_in_the_languages_of_its_source(tmp_path: Path) -> None:
    """English has a lexicon, and generated text does not take the place of text that a source lacks."""
    text = "text: {data: {local: 't/{name}.jsonl', names: {fr: fra}}, column: text}\n" + TEXT
    with pytest.raises(
        ValueError, match=r"encoders\.mini\.scratch: the text comes from .*, which has only fr .* and not en: "
    ):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, text.replace("{fr: fra}", "{en: eng}")))
    load_study(write(tmp_path, text.replace("data:", "files: {en: my.jsonl}, data:")))


def test_fetched_text_needs_no_lexicon(tmp_path: Path) -> None:
    text = TEXT.replace("[en, fr]", "[en, fr, sw]", 1).replace("languages: [en]", "languages: [sw]")
    text = text.replace("seed: [1]", "seed: [1], languages: [en, fr]")
    with pytest.raises(ValueError, match="there is no text in sw"):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, "text: {data: {local: x}, column: premise}\n" + text))
    text = text.replace("languages: [sw]", "languages: [en]") + "tokenizers: {large: {languages: [en, sw]}}\n"
    with pytest.raises(ValueError, match=r"tokenizers\.large: there is no text in sw"):
        load_study(write(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("select: {method: full-ft}", "select: {metric: squad-me}", "did you mean 'squad-em'"),
        ("expect: greater,", "expect: greater, metric: accuracy,", "unknown metric of its tasks 'accuracy'"),
        (
            "select: {task: xquad}",
            "select: {task: [xquad, copa]}",
            "claims.one.select.task: an effect needs a single metric, but these tasks have squad-f1 and accuracy: write a claim for each",
        ),
        ("kind: copa,", "kind: copa, trained_on: xquad,", "unknown task with this head 'xquad'"),
        ("kind: copa,", "kind: copa, trained_on: copa,", "unknown task with this head 'copa'"),
        (
            "kind: xquad,",
            "kind: xquad, data: {local: x.csv, dev: {local: y.csv, languages: [qb1]}},",
            "grids.main: xquad has no dev data in qa1: `languages` of y.csv lists qb1 only",
        ),
        ("source: [qa1]", "source: [qa1-qb1]", "task copa has no pairs such as qa1-qb1"),
    ],
)
def test_questions_and_choices_are_checked_before_any_job(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in QA
    with pytest.raises(ValueError) as error:
        load_study(write(tmp_path, QA.replace(old, new, 1)))
    assert message in str(error.value)
