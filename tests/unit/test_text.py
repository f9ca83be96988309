"""Texts for pre-training."""

import pytest

from xlgrid.data import read_table
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


def test_a_misspelt_option_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="atributes"):
        texts(tmp_path, "en", options={"atributes": 3})


def test_dials_reach_the_artificial_language(tmp_path):
    plain = texts(tmp_path, "qa1")["text"]
    assert plain != texts(tmp_path, "qa1", dials={"overlap": 0.1})["text"]
