"""Local files as an origin: their paths, and what a study says of their columns."""

from pathlib import Path
from typing import Any

import pytest

from xlgrid.data.sources import origin_of
from xlgrid.tasks import task


def test_a_file_may_have_the_name_that_a_language_has_in_the_source() -> None:
    names = {"yo": "UD_Yoruba-YTB/yo_ytb"}
    source = origin_of({"local": "{language}/{name}-ud-{split}.conllu", "names": names})
    assert source.path("yo", "dev") == "yo/UD_Yoruba-YTB/yo_ytb-ud-dev.conllu"
    assert source.path("sw", "dev") == "sw/sw-ud-dev.conllu" and not source.has("sw")
    assert origin_of({"local": "{name}.txt", "name": "data-{language}"}).path("yo", "dev") == "data-yo.txt"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"local": "x.jsonl", "columns": ["a"]}, "`columns` names the columns of files without a header in"),
        ({"hub": "a/b", "columns": ["a"]}, "`columns` names the columns of files without a header in "),
        ({"local": "x.txt", "quotes": True}, r"`quotes` is about values in .*x\.txt is of another type"),
        ({"local": "x.tsv", "columns": ["a", "_", "_", "a"]}, "`columns` must name each column that is read once"),
        ({"local": "x.tsv", "columns": ["_"]}, "and all other columns _, got _"),
        ({"local": "x.tsv", "columns": []}, "got nothing"),
        ({"local": "{lang}/x.csv"}, "in the braces of `local` 'lang', did you mean 'language'"),
        ({"hub": "a/b", "name": "{split}"}, "in the braces of `name` 'split'"),
        ({"local": "{language}.docx"}, r"files of an unknown type, \.docx: expected"),
        ({"local": "x.csv", "files": "*.csv"}, "unknown key 'files'"),
    ],
)
def test_settings_that_do_not_suit_the_type_of_the_files_are_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        origin_of(change)


def test_a_task_of_words_says_how_files_of_words_are_read() -> None:
    source = origin_of({"local": "x.tsv", "columns": ["tokens", "_", "ner_tags"]})
    read = ("tokens", "_", "ner_tags"), None, ("",), ("tokens", "ner_tags"), ("FORM", "UPOS")
    assert source.reading(task("wikiann")) == read
    of_trees = origin_of({"local": "x.conllu"}).reading(task("udparse"))
    assert (of_trees.words, of_trees.conllu) == (("tokens", "head", "deprel"), ("FORM", "HEAD", "DEPREL"))
    assert source.reading(task("xnli")).words == source.reading().words == ()


def test_a_file_with_the_rows_of_all_languages_has_none_of_a_pair(tmp_path: Path) -> None:
    (tmp_path / "test.csv").touch()
    local = f"{tmp_path}/{{split}}.csv"
    assert origin_of({"local": local}).has_pair("en-fr"), "it may be a file of translations"
    assert not origin_of({"local": local, "begins": {"id": {"en": "english-", "fr": "french-"}}}).has_pair("en-fr")


@pytest.mark.parametrize("listed", [{"languages": ["en-de"]}, {"names": {"en-de": "de-en"}}])
def test_a_pair_that_is_listed_has_files_of_its_own_before_they_are_there(listed: dict[str, object]) -> None:
    """So that they can be downloaded; other pairs are joined from the files of their languages."""
    source = origin_of({"local": "o/{name}/{split}.jsonl", "name": "{language}", **listed})
    assert source.paths_of("en-de", "dev") == [source.path("en-de", "dev")]
    assert source.paths_of("de-fr", "dev") == ["o/de/dev.jsonl", "o/fr/dev.jsonl"]


def test_the_home_of_the_user_may_stand_in_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert origin_of({"local": "~/{language}.csv"}).local == "/home/ada/{language}.csv"
