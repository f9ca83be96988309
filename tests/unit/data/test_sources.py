"""Which of several origins has a split of a task in a language."""

import json

import pytest
from plugin_fixture import install

from xlgrid.data.sources import ALL_DERIVED, DataSource

CODE = """
from xlgrid.data.sources import DerivedData


class Doubled(DerivedData):
    about = "rows that are taken twice"
    rule = "double_data"
    times: int = 2

    def has(self, split, language):
        return split == "train" and self.origin.has(language)

    def makes(self):
        return [(language, "train") for language in self.origin.languages]

    def inputs(self, plan, task, language):
        return {"files": self.origin.paths(language, "train")}

    def settings(self, study, task):
        return {"times": self.times}
"""


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    """A package that makes data by a rule of its own."""
    points = {"xlgrid.derived_data": {"doubled": "my_double:Doubled", "other": "my_double:DerivedData"}}
    monkeypatch.syspath_prepend(install(tmp_path / "installed", "my-double", "0.1", CODE, points))
    yield
    ALL_DERIVED.imported.clear()


@pytest.mark.usefixtures("doubled")
def test_a_package_makes_a_split_from_the_rows_of_an_origin():
    data = DataSource(hub="a/b", doubled={"local": "{language}.csv", "languages": ["de"], "times": 3})
    derived = data.derived_data("train", "de")
    assert derived is data.derived["doubled"] and derived.times == 3 and data.of("train", "de") is derived.origin
    for split, language in (("train", "en"), ("dev", "de"), ("test", "de")):
        assert data.derived_data(split, language) is None and data.of(split, language) is data.origin
    assert derived.inputs(None, "task", "de") == {"files": ["de.csv"]}


@pytest.mark.usefixtures("doubled")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"doubled": {"local": "x.csv", "time": 3}}, r"doubled\n  .*unknown key 'time', did you mean 'times'"),
        ({"doubled": {"times": 3}}, "doubled.*\n.*give exactly one"),
        ({"double": {"local": "x.csv"}}, "unknown key 'double', did you mean 'doubled'"),
    ],
)
def test_what_a_part_that_makes_data_lacks_is_told_at_its_key(fields, message):
    with pytest.raises(ValueError, match=message):
        DataSource(hub="a/b", **fields)


@pytest.mark.parametrize("source", [{}, {"hub": "a/b", "local": "c"}, {"hub": "a/b", "place": {"kind": "x"}}])
def test_data_have_one_origin(source):
    with pytest.raises(ValueError, match="give exactly one"):
        DataSource(**source)


def test_an_origin_that_an_extended_study_removes_is_none():
    assert DataSource(hub=None, files=None, local="x.csv") == DataSource(local="x.csv")


def test_settings_of_files_are_left_out_of_what_a_rule_hands_on_unless_a_study_has_them():
    """Data of other studies are not made again because these settings exist."""
    settings = DataSource(local="x.csv").of("train", "en").model_dump_json(exclude_none=True)
    assert not any(name in settings for name in ("columns", "quotes", "unanswerable"))
    assert '"columns":["a","_"]' in DataSource(local="x.csv", columns=["a", "_"]).of("train", "en").model_dump_json()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"local": "c.csv", "train": {"local": "a.csv", "train": {"local": "b.csv"}}},
            "unknown key 'train'|train.train",
        ),
        ({"local": "c.csv", "colums": ["a"]}, "unknown key 'colums', did you mean 'columns'"),
        ({"local": "c.csv", "train": {"lokal": "a.csv"}}, "train\n.*unknown key 'lokal', did you mean 'local'"),
        ({"local": "c.csv", "test": {"local": "a.csv"}}, "`test` must list its languages"),
        ({"local": "c.csv", "translated": {"local": "a.csv"}}, "`translated` must list its languages"),
    ],
)
def test_keys_that_a_source_has_not_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        DataSource(**fields)


def test_a_split_s_source_is_what_the_rule_hands_on():
    source = DataSource(local="c.csv", limit=3, train={"local": "a.csv", "labels": {1: "x"}})
    handed = json.loads(source.of("train", "en").model_dump_json(exclude_none=True))
    assert DataSource(**handed).of("train", "en") == source.of("train", "en")
    assert source.of("train", "en").labels == {"1": "x"}
    assert source.of("dev", "en") == source.of("test", "en") and source.of("test", "en").limit == 3


def test_test_sets_of_some_languages_come_from_elsewhere():
    source = DataSource(local="c.csv", test={"local": "a.csv", "languages": ["en"]})
    assert [source.of("test", code).local for code in ("en", "et")] == ["a.csv", "c.csv"]
    assert source.of("train", "en").local == "c.csv"


def test_training_sets_of_some_languages_are_translations():
    squad = {"hub": "rajpurkar/squad", "languages": ["en"]}
    translations = {"local": "t/{language}/{split}.jsonl", "languages": ["de", "fr"]}
    source = DataSource(hub="google/xquad", train=squad, dev=squad, translated=translations)
    assert [str(source.of(split, "de")) for split in ("train", "dev")] == [translations["local"]] * 2
    assert [str(source.of(split, "en")) for split in ("train", "dev")] == ["rajpurkar/squad"] * 2
    assert str(source.of("test", "de")) == "google/xquad"
    assert not source.of("train", "ru").has("ru"), (
        "the language is neither of the training set nor among the translations"
    )


def test_only_a_training_set_repairs_answers():
    source = DataSource(local="c.csv", misplaced="search")
    assert [source.of(split, "en").misplaced for split in ("train", "dev", "test")] == ["search", None, None]
