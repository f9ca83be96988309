"""The settings of a source of data."""

from pathlib import Path

import pytest

from xlgrid.data.sources import DataSource, Origin, is_wanted, local_files
from xlgrid.tasks import task


def test_the_hub_s_validation_is_dev_unless_the_study_says_otherwise():
    assert (
        DataSource(hub="a/b").named("dev") == DataSource(hub="a/b", splits={"test": "dev"}).named("dev") == "validation"
    )
    assert DataSource(hub="a/b", splits={"dev": "dev"}).named("dev") == "dev"
    assert DataSource(local="x.csv").named("dev") == "dev"


def test_a_file_may_have_the_name_that_a_language_has_in_the_source():
    source = DataSource(local="{language}/{name}-ud-{split}.conllu", names={"yo": "UD_Yoruba-YTB/yo_ytb"})
    assert source.path("yo", "dev") == "yo/UD_Yoruba-YTB/yo_ytb-ud-dev.conllu"
    assert source.path("sw", "dev") == "sw/sw-ud-dev.conllu" and not source.has("sw")
    assert DataSource(local="{name}.txt", name="data-{language}").path("yo", "dev") == "data-yo.txt"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"local": "x.jsonl", "columns": ["a"]},
            r"`columns` names the columns of files without a header in \.csv, \.tsv, ",
        ),
        ({"hub": "a/b", "columns": ["a"]}, r"`columns` names the columns of files without a header in "),
        (
            {"local": "x.txt", "quotes": True},
            r"`quotes` is about values in \.csv, \.tsv, and x\.txt is of another type",
        ),
        (
            {"local": "x.tsv", "columns": ["a", "_", "_", "a"]},
            "`columns` names each column that is read once, .* a, _, _, a",
        ),
        (
            {"local": "x.tsv", "columns": ["_"]},
            "`columns` names each column that is read once, and the others _, got _",
        ),
        ({"local": "x.tsv", "columns": []}, "got nothing"),
        ({"local": "x.json", "unanswerable": "keep"}, "Input should be 'drop'"),
        (
            {"local": "{lang}/x.csv"},
            r"unknown name in the braces of `local` 'lang', did you mean 'language'\? \(there are",
        ),
        ({"hub": "a/b", "name": "{split}"}, r"unknown name in the braces of `name` 'split' \(there are: language\)"),
        ({"local": "{language}.docx"}, r"`local` names files of an unknown type, \.docx: expected \.parquet, \.jsonl"),
    ],
)
def test_settings_that_do_not_suit_the_type_of_the_files_are_refused(change, problem):
    with pytest.raises(ValueError, match=problem):
        DataSource(**change)


def test_settings_of_files_are_left_out_of_what_a_rule_hands_on_unless_a_study_has_them():
    """Data of other studies are not made again because these settings exist."""
    settings = DataSource(local="x.csv").of("train", "en").model_dump_json(exclude_none=True)
    assert not any(name in settings for name in ("columns", "quotes", "unanswerable"))
    assert '"columns":["a","_"]' in DataSource(local="x.csv", columns=["a", "_"]).of("train", "en").model_dump_json()


def test_a_task_of_words_says_how_files_of_words_are_read():
    source = DataSource(local="x.tsv", columns=["tokens", "_", "ner_tags"])
    assert source.reading(task("wikiann")) == (("tokens", "_", "ner_tags"), None, ("",), ("tokens", "ner_tags"))
    assert source.reading(task("wikiann").unlabelled).words == ("tokens",)
    assert source.reading(task("xnli")).words == source.reading().words == ()


def test_what_a_source_says_of_other_languages_does_not_concern_one():
    before = DataSource(hub="a/b", name="{language}", names={"en": "english"}, languages=["en", "de"])
    after = DataSource(
        hub="a/b", name="{language}", names={"en": "english", "fr": "french"}, languages=["en", "de", "fr"]
    )
    for code in ("en", "de"):
        assert after.of("train", code).concerning(code) == before.of("train", code).concerning(code)
    assert after.concerning("fr").configuration("fr") == "french" and after.concerning("fr").names == {"fr": "french"}


def test_a_pair_concerns_the_names_of_the_pair_and_of_its_languages():
    names = {"en": "english", "fr": "french", "en-fr": "mixed", "de": "german"}
    source = DataSource(hub="a/b", names=names).concerning("en-fr")
    assert source.names == {"en": "english", "fr": "french", "en-fr": "mixed"} and source.has("en-fr")


def test_a_split_s_own_source_has_none_of_its_own():
    inner = {"local": "a.csv", "train": {"local": "b.csv"}}
    with pytest.raises(ValueError, match="unknown key 'train'"):
        DataSource(local="c.csv", train=inner)


def test_a_split_s_source_is_what_the_rule_hands_on():
    source = DataSource(local="c.csv", limit=3, train={"local": "a.csv", "labels": {1: "x"}})
    assert DataSource(**source.of("train", "en").model_dump(exclude_none=True)).of("train", "en").labels == {"1": "x"}
    assert source.of("dev", "en").model_dump() == source.of("test", "en").model_dump()
    assert source.of("test", "en").limit == 3


def test_test_sets_of_some_languages_come_from_elsewhere():
    source = DataSource(local="c.csv", test={"local": "a.csv", "languages": ["en"]})
    assert [source.of("test", code).local for code in ("en", "et")] == ["a.csv", "c.csv"]
    assert source.of("train", "en").local == "c.csv"
    with pytest.raises(ValueError, match="list them in it as `languages`"):
        DataSource(local="c.csv", test={"local": "a.csv"})


def test_training_sets_of_some_languages_are_translations():
    squad = {"hub": "rajpurkar/squad", "languages": ["en"]}
    translations = {"local": "t/{language}/{split}.jsonl", "languages": ["de", "fr"]}
    source = DataSource(hub="google/xquad", train=squad, dev=squad, translated=translations)
    assert {split: source.of(split, "de").local for split in ("train", "dev", "test")} == {
        "train": translations["local"],
        "dev": translations["local"],
        "test": None,
    }
    assert source.of("train", "en").hub == source.of("dev", "en").hub == "rajpurkar/squad"
    assert not source.of("train", "ru").has("ru"), (
        "the language is neither of the training set nor among the translations"
    )
    without = DataSource(hub="google/xquad", train=squad, dev=squad)
    assert source.of("train", "en") == without.of("train", "en") and source.of("test", "de") == without.of("test", "de")
    with pytest.raises(ValueError, match="`translated` is for some languages: list them"):
        DataSource(local="c.csv", translated={"local": "a.csv"})


def test_a_source_has_a_pair_if_it_has_both_of_its_languages():
    source = DataSource(local="{language}.csv", languages=["en", "fr"])
    assert source.has("en-fr") and not source.has("en-de") and not source.has("de-fr")


def test_a_file_with_the_rows_of_all_languages_has_none_of_a_pair(tmp_path: Path) -> None:
    (tmp_path / "test.csv").touch()
    assert DataSource(local=f"{tmp_path}/{{split}}.csv").has_pair("en-fr"), "it may be a file of translations"
    begins = {"id": {"en": "english-", "fr": "french-"}}
    assert not DataSource(local=f"{tmp_path}/{{split}}.csv", begins=begins).has_pair("en-fr")


def test_rows_to_label_are_the_training_set_of_their_languages() -> None:
    by = {"task": "ner", "encoder": "e", "method": "full-ft", "source": "en"}
    source = DataSource.model_validate(
        {"hub": "a/b", "name": "{language}", "labelled": {"local": "x", "languages": ["de", "fr"], "by": by}}
    )
    assert source.of("train", "de").local == "x" and source.labelled_in("train", "de") is source.labelled
    for split, language in (("train", "en"), ("dev", "de"), ("test", "fr")):
        assert source.labelled_in(split, language) is None
        assert source.of(split, language).hub == "a/b"


@pytest.mark.parametrize("listed", [{"languages": ["en-de"]}, {"names": {"en-de": "de-en"}}])
def test_a_pair_that_is_listed_has_files_of_its_own_before_they_are_there(listed: dict[str, object]) -> None:
    """So that they can be downloaded; other pairs are joined from the files of their languages."""
    source = DataSource.model_validate({"local": "o/{name}/{split}.jsonl", "name": "{language}", **listed})
    assert local_files(source, "en-de", "dev") == [source.path("en-de", "dev")]
    assert local_files(source, "de-fr", "dev") == ["o/de/dev.jsonl", "o/fr/dev.jsonl"]


@pytest.mark.parametrize(
    ("files", "settings", "is_file"),
    [
        ("data/{name}/{split}.tsv", {}, True),
        ("data/{name}.csv.gz", {}, True),
        ("data/{name}/*.csv", {}, True),
        ("data/{name}/*.txt", {"columns": ["premise"]}, True),
        ("data/{name}.parquet", {}, False),
        (None, {}, False),
    ],
)
def test_csv_and_tsv_of_the_hub_are_read_as_local_files_are(files, settings, is_file):
    assert Origin(hub="a/b", files=files, **settings).is_file(task("xnli")) is is_file


def test_the_home_of_the_user_may_stand_in_paths(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert Origin(local="~/{language}.csv").local == "/home/ada/{language}.csv"


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [("01", "01", True), ("01", 1, False), ("1", 1, True), (1.0, 1, True), (True, "true", True), (None, "None", False)],
)
def test_where_compares_text_as_it_is_written_and_numbers_as_numbers(value, wanted, expected):
    assert is_wanted(value, wanted) is expected
