"""Tables of text, with commas or tabs, with a header or without."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from xlgrid.data.formats import Reading, read_table, rows

ROWS = [("one, two", 'he said "no"', "0"), ("three", "four", "1")]
TABLE = [{"premise": first, "hypothesis": second, "label": label} for first, second, label in ROWS]
NAMES = ("premise", "hypothesis", "label")
TSV = 'one, two\the said "no"\t0\nthree\tfour\t1\n'
CSV = '"one, two","he said ""no""",0\nthree,four,1\n'
COMPRESSIONS = [("", bytes), (".gz", gzip.compress)]


@pytest.mark.parametrize(("end", "compress"), COMPRESSIONS)
@pytest.mark.parametrize(("name", "separator", "text"), [("x.tsv", "\t", TSV), ("x.csv", ",", CSV)])
@pytest.mark.parametrize("has_header", [True, False])
def test_tables_are_read_with_a_header_and_without(
    tmp_path: Path,
    name: str,
    separator: str,
    text: str,
    has_header: bool,
    end: str,
    compress: Callable[[bytes], bytes],
) -> None:
    path = tmp_path / f"{name}{end}"
    path.write_bytes(compress(((separator.join(NAMES) + "\n") * has_header + text).encode()))
    reading = Reading() if has_header else Reading(columns=NAMES)
    assert read_table(path, reading).to_pylist() == TABLE
    assert list(rows(path, ["hypothesis", "label"], reading)) == [(second, label) for _, second, label in ROWS]


def test_columns_that_are_not_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text(TSV)
    assert read_table(tmp_path / "x.tsv", Reading(columns=("_", "text", "_"))).to_pydict() == {
        "text": ['he said "no"', "four"]
    }


def test_quotation_marks_are_text_in_tsv_unless_values_stand_in_them(tmp_path: Path) -> None:
    """One mark at the beginning of a value would take the lines after it into this value."""
    (tmp_path / "plain.tsv").write_text('text\tlabel\n"Go\t0\nstop"\t1\n')
    assert read_table(tmp_path / "plain.tsv")["text"].to_pylist() == ['"Go', 'stop"']
    (tmp_path / "quoted.tsv").write_text('text\tlabel\n"say ""go""\nnow"\t0\n')
    assert read_table(tmp_path / "quoted.tsv", Reading(quotes=True))["text"].to_pylist() == ['say "go"\nnow']
    with pytest.raises(ValueError, match=r"quoted\.tsv is damaged .*; if values are in double quotes, set `quotes"):
        read_table(tmp_path / "quoted.tsv")
    (tmp_path / "plain.csv").write_text('text,label\n"Go,0\nstop",1\n')
    assert read_table(tmp_path / "plain.csv", Reading(quotes=False))["text"].to_pylist() == ['"Go', 'stop"']


@pytest.mark.parametrize("read", [read_table, lambda path, reading: [*rows(path, ["a"], reading)]])
@pytest.mark.parametrize(
    ("text", "reading", "problem"),
    [
        ("a\tb\n1\t2\n3\n", Reading(), r"is damaged or not tsv: .*Row #3: Expected 2 columns, got 1"),
        ("1\t2\n3\t4\n", Reading(columns=("a",)), r"Row #1: Expected 1 columns, got 2.*; `columns` in `data` names 1"),
    ],
)
def test_a_row_with_another_number_of_columns_is_named(
    tmp_path: Path, read: Callable[..., object], text: str, reading: Reading, problem: str
) -> None:
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(ValueError, match=rf"x\.tsv .*{problem}"):
        read(tmp_path / "x.tsv", reading)


def test_columns_of_one_name_and_a_column_that_is_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text(TSV)
    with pytest.raises(ValueError, match=r"x\.tsv: unknown column 'premises', did you mean 'premise'"):
        list(rows(tmp_path / "x.tsv", ["premises"], Reading(columns=NAMES)))
    (tmp_path / "x.csv").write_text("text,text\na,b\n")
    with pytest.raises(ValueError, match=r"x\.csv has two columns 'text': rename one of them in the first line"):
        read_table(tmp_path / "x.csv")


# Values that libraries take for numbers, dates, truth values or missing ones.
WORDS = [
    "01",
    "1e5",
    "1.0",
    "1,000",
    "TRUE",
    "no",
    "NA",
    "N/A",
    "null",
    "nan",
    "None",
    "2021-03-04",
    "007",
    "1_000",
    " 1",
    "٣",
]


@pytest.mark.parametrize("end", [".csv", ".tsv"])
def test_every_value_is_text_as_it_is_written(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"x{end}"
    separator, quote = ("\t", "") if end == ".tsv" else (",", '"')
    lines = [f"{quote}{word}{quote}{separator}7" for word in WORDS]
    path.write_text("\n".join([f"text{separator}label", *lines]), encoding="utf-8")
    assert read_table(path).to_pydict() == {"text": WORDS, "label": ["7"] * len(WORDS)}
    assert [*rows(path, ["label", "text"])] == [("7", word) for word in WORDS]


@pytest.mark.parametrize(
    ("missing", "expected"),
    [(("",), ["NA", None, ""]), (("NA", ""), [None, None, ""]), ((), ["NA", "", ""])],
)
def test_the_values_that_count_as_missing_are_those_of_the_study(
    tmp_path: Path, missing: tuple[str, ...], expected: list[str | None]
) -> None:
    """A value in quotes is not missing."""
    (tmp_path / "x.csv").write_text('text,label\nNA,1\n,1\n"",1\n')
    assert read_table(tmp_path / "x.csv", Reading(missing=missing))["text"].to_pylist() == expected
    assert [text for (text,) in rows(tmp_path / "x.csv", ["text"])] == ["NA", "", ""]
