"""Texts for pre-training."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xlgrid.data import read_table
from xlgrid.languages.natural import taxonomy
from xlgrid.text import TextSettings, make_text


def texts(path, language, n=30, seed=0, **more):
    make_text(language, path / f"{language}.parquet", TextSettings(sentences=n, seed=seed, **more))
    return read_table(path / f"{language}.parquet")


@pytest.mark.parametrize("language", ["en", "qa1"])
def test_a_larger_text_begins_alike(tmp_path, language):
    short, long = texts(tmp_path, language, 10), texts(tmp_path, language, 30)
    assert long.slice(0, 10).to_pylist() == short.to_pylist()
    assert long["id"].to_pylist() == list(range(30))


def test_another_seed_is_another_text(tmp_path):
    assert texts(tmp_path, "en", seed=0)["text"] != texts(tmp_path, "en", seed=1)["text"]


def test_the_same_id_has_as_many_sentences_in_every_language(tmp_path):
    english, french = (texts(tmp_path, code)["text"].to_pylist() for code in ("en", "fr"))
    assert [text.count(".") for text in english] == [text.count(".") for text in french]


def test_positive_last_statements_repeat_a_fact(tmp_path):
    found = texts(tmp_path, "en", 200, options={"rules": 0.0, "relational": 0.0})["text"].to_pylist()
    repeated = negated = 0
    for text in found:
        *facts, last = text.removesuffix(".").replace("\n", " ").split(". ")
        if " not " in last:
            negated += 1
            assert last.replace(" not ", " ") not in facts, text
        else:
            repeated += 1
            assert last in facts, text
    assert min(repeated, negated) > 60


def test_texts_without_a_taxonomy_are_those_of_before(tmp_path):
    plain, none = texts(tmp_path, "en"), texts(tmp_path, "en", options={"taxonomy": 0.0})
    assert plain == none and not any(" is a " in text for text in plain["text"].to_pylist())


def test_a_share_of_texts_tells_who_is_what(tmp_path):
    found = texts(tmp_path, "en", 400, options={"taxonomy": 0.5})["text"].to_pylist()
    assert 150 < sum(" is a " in text or " is an " in text for text in found) < 250


def test_what_texts_tell_of_the_taxonomy_is_true(tmp_path):
    kinds = {f"The {name}".replace("_", " "): kind for kind, names in taxonomy().items() for name in names}
    shown = set()
    for text in texts(tmp_path, "en", 300, options={"taxonomy": 1.0, "statements": 2})["text"].to_pylist():
        has = {}
        # What classes have may stand after what follows from it.
        for sentence in sorted(
            text.replace("\n", " ").removesuffix(".").split(". "), key=lambda s: s.startswith("The")
        ):
            subject, _, rest = sentence.partition(" is ")
            rest, positive = rest.removeprefix("not "), not rest.startswith("not ")
            article, _, word = rest.partition(" ")
            if article in ("a", "an"):
                assert (kinds[subject] == word) is positive, sentence
                shown.add((subject, word))
            elif subject in kinds:
                assert has[kinds[subject], rest] is positive, text
            else:
                has[subject.split(" ")[1], rest] = positive
    assert set(kinds.items()) <= shown, "not every hypernymy is told"


def test_a_misspelt_option_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="atributes"):
        texts(tmp_path, "en", options={"atributes": 3})


def test_dials_reach_the_artificial_language(tmp_path):
    plain = texts(tmp_path, "qa1")["text"]
    assert plain != texts(tmp_path, "qa1", dials={"overlap": 0.1})["text"]


def premises(path, language, texts):
    """A training split with a column of XNLI's, and the settings that make text of it."""
    (path / "data" / language).mkdir(parents=True)
    pq.write_table(pa.table({"premise": texts}), path / "data" / language / "train.parquet")
    return {"data": {"local": f"{path}/data/{{language}}/{{split}}.parquet"}, "column": "premise"}


def test_parallel_premises_are_text_with_the_rows_as_ids(tmp_path):
    premises(tmp_path, "en", ["a", "b", "a", "c"])
    settings = premises(tmp_path, "fr", ["A", "B", "A'", "B"])
    assert texts(tmp_path, "fr", **settings).to_pylist() == [
        {"id": i, "text": text} for i, text in enumerate(["A", "B", "A'", "B"])
    ]


def test_once_keeps_the_same_rows_in_every_language(tmp_path):
    premises(tmp_path, "en", ["a", "b", "a", "c"])
    settings = premises(tmp_path, "fr", ["A", "B", "A'", "B"]) | {"once": "en"}
    found = {code: texts(tmp_path, code, **settings).to_pylist() for code in ("en", "fr")}
    assert found["en"] == [{"id": 0, "text": "a"}, {"id": 1, "text": "b"}, {"id": 3, "text": "c"}]
    assert found["fr"] == [{"id": 0, "text": "A"}, {"id": 1, "text": "B"}, {"id": 3, "text": "B"}]


def test_fetched_and_generated_texts_have_one_schema(tmp_path):
    generated = texts(tmp_path, "en").schema
    settings = premises(tmp_path, "fr", ["A"])
    assert texts(tmp_path, "fr", **settings).schema == generated


def test_artificial_languages_tell_their_world_beside_fetched_text(tmp_path):
    plain = texts(tmp_path, "qa1")
    assert texts(tmp_path, "qa1", **premises(tmp_path, "en", ["a"])) == plain


def test_texts_that_cannot_be_had(tmp_path):
    premises(tmp_path, "en", ["a", "b"])
    settings = premises(tmp_path, "fr", ["A", None, "C"])
    with pytest.raises(FileNotFoundError, match=r"it/train\.parquet"):
        texts(tmp_path, "it", **settings)
    with pytest.raises(ValueError, match=r"fr/train\.parquet, row 1, column 'premise': expected text, got None"):
        texts(tmp_path, "fr", **settings)
    with pytest.raises(ValueError, match="did you mean 'premise'"):
        texts(tmp_path, "en", **settings | {"column": "premises"})
    pq.write_table(pa.table({"premise": ["A"]}), tmp_path / "data" / "fr" / "train.parquet")
    with pytest.raises(ValueError, match=r"fr/train\.parquet has 1 rows and .*en/train\.parquet has 2"):
        texts(tmp_path, "fr", **settings | {"once": "en"})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"column": "premise"}, "`data` and `column` go together"),
        ({"data": {"local": "x.csv"}}, "`data` and `column` go together"),
        ({"once": "en"}, "`once` selects rows of `data`"),
        ({"data": {"local": "x.csv", "labels": {"0": "a"}}, "column": "b"}, "text has none"),
    ],
)
def test_settings_that_do_not_go_together(settings, told):
    with pytest.raises(ValueError, match=told):
        TextSettings(**settings)


def test_text_from_the_hub_is_fetched_at_the_locked_commit(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(path, name, split, revision):
        asked.append((path, name, split, revision))
        return datasets.Dataset.from_dict({"premise": [f"{name} premise"]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (tmp_path / "lock.yaml").write_text("dataset/facebook/xnli@main: " + "b" * 40)
    settings = TextSettings(data={"hub": "facebook/xnli", "name": "{language}"}, column="premise")
    with pytest.raises(ValueError, match="takes a lock file: pass --lock"):
        make_text("fr", tmp_path / "fr.parquet", settings)
    make_text("fr", tmp_path / "fr.parquet", settings, tmp_path / "lock.yaml")
    assert asked == [("facebook/xnli", "fr", "train", "b" * 40)]
    assert read_table(tmp_path / "fr.parquet").to_pylist() == [{"id": 0, "text": "fr premise"}]
