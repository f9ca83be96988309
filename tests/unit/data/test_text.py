"""Texts for pre-training."""

import gzip
import json
import lzma

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from xlgrid.data import streams
from xlgrid.data.formats import read_table
from xlgrid.data.text import TextSettings, make_text


def texts(path, language, n=30, seed=0, **more):
    make_text(language, path / f"{language}.parquet", TextSettings(sentences=n, seed=seed, **more))
    return read_table(path / f"{language}.parquet")


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
    by_language = {code: texts(tmp_path, code, **settings).to_pylist() for code in ("en", "fr")}
    assert by_language["en"] == [{"id": 0, "text": "a"}, {"id": 1, "text": "b"}, {"id": 2, "text": "c"}]
    assert by_language["fr"] == [{"id": 0, "text": "A"}, {"id": 1, "text": "B"}, {"id": 2, "text": "B"}]


def test_once_counts_the_rows_that_it_keeps_where_a_language_lacks_one_of_them(tmp_path):
    """French has no second line, and an empty last line that English does not have."""
    for code, lines in {"en": "a\nb\na\nc\n", "fr": "A\n\nA'\nC\n\n"}.items():
        (tmp_path / f"{code}.txt").write_text(lines)
    settings = {"data": {"local": f"{tmp_path}/{{language}}.txt"}, "once": "en"}
    assert texts(tmp_path, "en", **settings)["id"].to_pylist() == [0, 1, 2]
    assert texts(tmp_path, "fr", **settings).to_pylist() == [{"id": 0, "text": "A"}, {"id": 2, "text": "C"}]


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
    with pytest.raises(ValueError, match=r"fr/train\.parquet, row 2, column 'premise': expected text, got None"):
        texts(tmp_path, "fr", **settings)
    with pytest.raises(ValueError, match="did you mean 'premise'"):
        texts(tmp_path, "en", **settings | {"column": "premises"})
    pq.write_table(pa.table({"premise": ["A"]}), tmp_path / "data" / "fr" / "train.parquet")
    with pytest.raises(ValueError, match=r"fr/train\.parquet has 1 rows and .*en/train\.parquet has 2"):
        texts(tmp_path, "fr", **settings | {"once": "en"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"column": "premise"}, "`data` and `column` go together"),
        ({"data": {"local": "x.csv"}}, "`data` and `column` go together"),
        ({"data": 5}, "data\n"),
        ({"data": {"local": "x.txt"}, "column": "text"}, "plain text .* has none"),
        ({"files": {"en": "x.jsonl"}}, "so do `files` and `column`"),
        ({"files": {"en": "x.doc"}}, r"`files\.en` is x\.doc: expected a file that ends in \.txt"),
        ({"documents": True}, "`documents` is about plain text"),
        ({"data": {"local": "x.csv"}, "column": "a", "documents": True}, "`documents` is about plain text"),
        ({"once": "en"}, "`once` selects rows of `data`"),
        ({"data": {"local": "x.csv", "labels": {"0": "a"}}, "column": "b"}, "for tasks, not for text"),
        ({"data": {"local": "x.csv", "begins": {"id": {"en": "e"}}}, "column": "b"}, "for tasks, not for text"),
        ({"data": {"local": "x.csv", "missing": ["NA"]}, "column": "a"}, "for tasks, not for text"),
        ({"data": {"local": "x.csv", "unanswerable": "drop"}, "column": "b"}, "for tasks, not for text"),
        (
            {"files": {"en": "x.conllu"}, "column": "text"},
            r"files\.en` is x\.conllu: expected a file that ends in \.txt, ",
        ),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    with pytest.raises(ValueError, match=message):
        TextSettings(**settings)


SAID = ["one", "two, and\u2028more", ' "three"  ', "4"]


def written(path, lines=SAID):
    """`lines` in a file of the type that its name says."""
    kind = path.name.partition(".")[2]
    if kind == "parquet":
        pq.write_table(pa.table({"text": lines}), path)
    elif kind == "csv":
        pyarrow.csv.write_csv(pa.table({"other": range(len(lines)), "text": lines}), path)
    else:
        rows = [json.dumps({"text": line}) if kind == "jsonl" else line for line in lines]
        whole = "".join(f"{row}\n" for row in rows).encode()
        path.write_bytes({"txt.gz": gzip.compress, "txt.xz": lzma.compress}.get(kind, bytes)(whole))
    return path


@pytest.mark.parametrize("kind", ["txt", "txt.gz", "txt.xz", "jsonl", "csv", "parquet"])
def test_a_file_of_any_type_is_text(tmp_path, kind):
    written(tmp_path / f"en.{kind}")
    settings = {"data": {"local": f"{tmp_path}/{{language}}.{kind}"}} | ({} if "txt" in kind else {"column": "text"})
    table = texts(tmp_path / "out", "en", **settings)
    assert table.to_pylist() == [{"id": i, "text": text} for i, text in enumerate(SAID)]


def test_empty_lines_are_no_rows_and_the_others_keep_their_numbers(tmp_path):
    (tmp_path / "en.txt").write_bytes("\ufeffone\r\n\r\n  \n\x0btwo\n\nthree".encode())
    table = texts(tmp_path, "en", files={"en": f"{tmp_path}/en.txt"})
    assert table.to_pylist() == [{"id": 0, "text": "one"}, {"id": 3, "text": "\x0btwo"}, {"id": 5, "text": "three"}]


def test_a_limit_counts_lines(tmp_path):
    (tmp_path / "en.txt").write_text("one\n\nthree\nfour\n")
    settings = {"data": {"local": f"{tmp_path}/{{language}}.txt", "limit": 3}}
    assert texts(tmp_path, "en", **settings)["text"].to_pylist() == ["one", "three"]


def test_a_row_of_a_table_without_text_is_left_out(tmp_path):
    settings = premises(tmp_path, "en", ["a", " ", "c"])
    assert texts(tmp_path, "en", **settings).to_pylist() == [{"id": 0, "text": "a"}, {"id": 2, "text": "c"}]


def test_an_empty_line_of_a_table_of_one_column_has_an_id(tmp_path):
    (tmp_path / "en.tsv").write_text("text\na\n\nc\n")
    settings = {"data": {"local": f"{tmp_path}/{{language}}.tsv"}, "column": "text"}
    assert texts(tmp_path, "en", **settings).to_pylist() == [{"id": 0, "text": "a"}, {"id": 2, "text": "c"}]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_documents_of_plain_text_end_at_an_empty_line(tmp_path, end):
    """As in the files of CC-100."""
    lines = ["one", "two\u2028more", "", "", "three", " ", "four", "five"]
    (tmp_path / "en.txt.xz").write_bytes(lzma.compress(("\n".join(lines) + end).encode()))
    settings = {"data": {"local": f"{tmp_path}/{{language}}.txt.xz"}, "documents": True}
    expected = ["one\ntwo\u2028more", "three", "four\nfive"]
    table = texts(tmp_path, "en", **settings)
    assert table.to_pylist() == [{"id": i, "text": text} for i, text in enumerate(expected)]
    settings["data"]["limit"] = 2
    assert texts(tmp_path, "en", **settings)["text"].to_pylist() == expected[:2]


def test_a_text_without_empty_lines_is_no_document(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "_LONGEST", 100)
    written(tmp_path / "en.txt", ["a" * 10] * 20)
    with pytest.raises(ValueError, match=r"en\.txt has 110 characters without an empty line"):
        texts(tmp_path, "en", files={"en": f"{tmp_path}/en.txt"}, documents=True)


def test_rows_are_selected_renamed_and_limited_one_by_one(tmp_path):
    rows = [{"words": f"{i}", "kind": "ab"[i % 2]} for i in range(10)]
    (tmp_path / "en.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    data = {"local": f"{tmp_path}/{{language}}.jsonl", "where": {"kind": "b"}, "rename": {"words": "said"}, "limit": 3}
    table = texts(tmp_path, "en", data=data, column="said")
    assert table.to_pylist() == [{"id": i, "text": text} for i, text in enumerate("135")]
    with pytest.raises(ValueError, match=r"en\.jsonl has no row whose kind is 'c' \(there are: a, b\)"):
        texts(tmp_path, "en", data=data | {"where": {"kind": "c"}}, column="said")
    with pytest.raises(ValueError, match=r"en\.jsonl, line 1: unknown column 'word', did you mean 'words'"):
        texts(tmp_path, "en", data={"local": data["local"]}, column="word")


@pytest.mark.parametrize(("most", "rows"), [(3, 1), (7, 1), (8, 2), (100, 3)])
def test_text_ends_before_the_row_that_is_too_much(tmp_path, most, rows):
    written(tmp_path / "en.txt", ["abc", "defgh", "i"])
    table = texts(tmp_path, "en", files={"en": f"{tmp_path}/en.txt"}, most_characters=most)
    assert table["text"].to_pylist() == ["abc", "defgh", "i"][:rows]


def test_a_first_row_that_is_too_much_is_told(tmp_path):
    written(tmp_path / "en.txt")
    with pytest.raises(ValueError, match=r"en\.txt, row 1 has 3 characters: raise `most_characters`, 2"):
        texts(tmp_path, "en", files={"en": f"{tmp_path}/en.txt"}, most_characters=2)


def test_a_long_text_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("xlgrid.data.text._GROUP", 10)
    lines = [f"line {i}" for i in range(25)]
    written(tmp_path / "en.txt", lines)
    assert texts(tmp_path, "en", files={"en": f"{tmp_path}/en.txt"})["text"].to_pylist() == lines
    assert pq.ParquetFile(tmp_path / "en.parquet").num_row_groups == 13


@pytest.mark.parametrize("language", ["en", "qa1"])
def test_a_language_with_a_file_has_its_text_and_the_others_what_they_had(tmp_path, language):
    (tmp_path / "other").mkdir()
    own, other = {"files": {language: str(written(tmp_path / "my.txt"))}}, {"en": "qa1", "qa1": "en"}[language]
    assert texts(tmp_path, language, **own)["text"].to_pylist() == SAID
    assert texts(tmp_path, other, **own) == texts(tmp_path / "other", other)


def test_lines_of_an_artificial_language_are_its_text_again(tmp_path):
    make_text("qa1", tmp_path / "my.txt", TextSettings(sentences=30, seed=0))
    assert (
        texts(tmp_path, "qb1", files={"qb1": f"{tmp_path}/my.txt"})["text"].to_pylist()
        == texts(tmp_path, "qa1")["text"].to_pylist()
    )
    with pytest.raises(ValueError, match=r"end the name in \.parquet"):
        make_text("en", tmp_path / "en.txt")
    assert not (tmp_path / "en.txt").exists()


@pytest.mark.parametrize("suffix", ["txt", "parquet"])
def test_a_language_that_is_none_is_told_before_a_file_is_named(tmp_path, suffix):
    with pytest.raises(ValueError, match=r"unknown language 'qa0' .* artificial ones are qa1, qa2, \.\.\. \(qa to qt"):
        make_text("qa0", tmp_path / f"qa0.{suffix}")


def test_a_file_of_ones_own_wins_over_the_data_of_the_others(tmp_path):
    settings = premises(tmp_path, "fr", ["A", "B"]) | {"files": {"en": str(written(tmp_path / "my.txt"))}}
    assert texts(tmp_path, "en", **settings)["text"].to_pylist() == SAID
    assert texts(tmp_path, "fr", **settings)["text"].to_pylist() == ["A", "B"]


def test_only_text_from_the_hub_is_downloaded():
    hub = TextSettings(data={"hub": "a/b"}, column="text", files={"fr": "fr.parquet"})
    assert [hub.is_from_hub(code) for code in ("en", "fr", "qa1")] == [True, False, False]
    assert not TextSettings(data={"local": "{language}.txt"}).is_from_hub("en") and not TextSettings().is_from_hub("en")


def test_text_depends_on_the_settings_of_its_language_alone():
    before = {
        "sentences": 10,
        "seed": 2,
        "data": {"local": "{language}.csv"},
        "column": "a",
        "files": {"de": "x.txt", "qa1": "y.csv"},
    }
    settings_of = {code: TextSettings(**before).concerning(code) for code in ("en", "de", "qa1", "qa2")}
    assert settings_of["en"] == {"data": {"local": "{language}.csv"}, "column": "a"}
    assert settings_of["qa1"] == {"files": {"qa1": "y.csv"}, "column": "a"}
    assert settings_of["de"] == {"files": {"de": "x.txt"}}
    plain = TextSettings(data={"local": "{language}.txt"}, documents=True)
    assert plain.concerning("en")["documents"] and "documents" not in plain.concerning("qa1")
    assert settings_of["qa2"] == {"sentences": 10, "seed": 2}
    names = {"en": "english", "fr": "french", "de": "german"}
    named = TextSettings(data={"hub": "a/b", "names": names}, column="a", once="en").concerning("fr")
    assert named["data"] == {"hub": "a/b", "names": {"en": "english", "fr": "french"}}, "`once` reads English"
    assert all(TextSettings(**settings).concerning(code) == settings for code, settings in settings_of.items()), (
        "it is no settings"
    )
    after = TextSettings(**before | {"files": {"de": "x.txt", "qa1": "z.csv"}})
    changed = [code for code, settings in settings_of.items() if after.concerning(code) != settings]
    assert changed == ["qa1"]


def test_settings_of_a_text_are_the_same_words_whoever_states_the_seed():
    """Snakemake compares the words, and makes a text again if they differ."""
    written = json.dumps(TextSettings(options={"rules": 0.5}, seed=1, sentences=9).concerning("en"))
    assert written == '{"sentences": 9, "options": {"rules": 0.5}}'
    assert json.dumps(TextSettings(options={"rules": 0.5}, sentences=9).concerning("en")) == written


def test_generated_text_depends_on_the_settings_of_its_kind_of_language():
    settings = TextSettings(dials={"overlap": 0.5}, options={"rules": 0.5}, customs={"facts": 9})
    assert settings.concerning("qa1") == {"dials": {"overlap": 0.5}, "customs": {"facts": 9}}
    assert settings.concerning("en") == {"options": {"rules": 0.5}}


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("en.txt", b"good\n\xff\n", r"en\.txt, line 2, byte \d+: not UTF-8 .*mend this line"),
        ("en.csv", b"text,other\na,b\nc\n", r"en\.csv is damaged"),
        ("en.txt", b"\n \n", r"en\.txt has no rows with text"),
    ],
)
def test_a_damaged_file_is_told_and_nothing_is_written(tmp_path, name, contents, message):
    (tmp_path / name).write_bytes(contents)
    column = {} if "txt" in name else {"column": "text"}
    with pytest.raises(ValueError, match=message):
        texts(tmp_path, "en", files={"en": str(tmp_path / name)}, **column)
    assert {path.name for path in tmp_path.iterdir()} <= {name, "out"}


def test_long_work_says_how_far_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(streams.Progress, "due", lambda self: True)
    texts(tmp_path, "en", files={"en": str(written(tmp_path / "en.txt"))})
    assert f"{tmp_path}/en.txt: 2 rows, 16 characters\n" in capsys.readouterr().err


def test_text_gets_the_normalization_form_of_its_source(tmp_path):
    written(tmp_path / "en.txt", ["cafe\u0301", "", "Vie\u0323\u0302t"])
    data = {"local": f"{tmp_path}/{{language}}.txt", "normalize": "NFC"}
    assert texts(tmp_path, "en", data=data)["text"].to_pylist() == ["caf\u00e9", "Vi\u1ec7t"]
