"""Files of words: CoNLL-U, and the ways in which NER corpora write a word and its label on a line."""

from pathlib import Path

import pytest

from xlgrid.data.formats import Reading, read_table

NER = Reading(words=("tokens", "ner_tags"))
POS = Reading(words=("tokens", "pos_tags"))

# French has multiword tokens ("du" is "de le"), and an enhanced graph has empty nodes.
CONLLU = """\
# newdoc id = one
# sent_id = 1
# text = Il parle du chat.
1\tIl\til\tPRON\tPRO\tNumber=Sing\t2\tnsubj\t_\t_
2\tparle\tparler\tVERB\tV\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\tP\t_\t5\tcase\t_\t_
4\tle\tle\tDET\tD\t_\t5\tdet\t_\t_
5\tchat\tchat\tNOUN\tN\t_\t2\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\tS\t_\t2\tpunct\t_\t_

# sent_id = 2
1\tdix mille\tdix mille\tNUM\tN\t_\t0\troot\t_\t_
1.1\tsont\têtre\tVERB\tV\t_\t_\t_\t0:root\t_
"""


def test_the_words_of_conllu_are_the_syntactic_words_with_their_universal_parts_of_speech(tmp_path: Path) -> None:
    (tmp_path / "fr.conllu").write_text(CONLLU, encoding="utf-8")
    assert read_table(tmp_path / "fr.conllu", POS).to_pydict() == {
        "tokens": [["Il", "parle", "de", "le", "chat", "."], ["dix mille"]],
        "pos_tags": [["PRON", "VERB", "ADP", "DET", "NOUN", "PUNCT"], ["NUM"]],
    }


def test_other_columns_of_conllu_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "fr.conllu").write_text(CONLLU, encoding="utf-8")
    reading = POS._replace(columns=("_", "_", "tokens", "_", "pos_tags"))
    table = read_table(tmp_path / "fr.conllu", reading)
    assert table["tokens"].to_pylist()[0][1:3] == ["parler", "de"]
    assert table["pos_tags"].to_pylist() == [["PRO", "V", "P", "D", "N", "S"], ["N"]]


def test_words_without_labels_are_read_alone(tmp_path: Path) -> None:
    (tmp_path / "fr.conllu").write_text(CONLLU, encoding="utf-8")
    (tmp_path / "fr.txt").write_text("Il\nparle\n\nOui\n")
    unlabelled = Reading(words=("tokens",))
    assert read_table(tmp_path / "fr.conllu", unlabelled).column_names == ["tokens"]
    assert read_table(tmp_path / "fr.txt", unlabelled).to_pydict() == {"tokens": [["Il", "parle"], ["Oui"]]}


EXPECTED = {"tokens": [["Nairobi", "#", "2021"], ["Ada"]], "ner_tags": [["B-LOC", "O", "B-DATE"], ["B-PER"]]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "Nairobi B-LOC\n# O\n2021 B-DATE\n\nAda B-PER\n"),
        ("x.txt", "\n\nNairobi  B-LOC \r\n# O\r\n2021 B-DATE\r\n \t\r\n\r\nAda B-PER"),
        ("x.tsv", "Nairobi\tB-LOC\n#\tO\n2021\tB-DATE\n\nAda\tB-PER\n"),
        ("x.conll", "-DOCSTART- -X- O\n\nNairobi NNP B-LOC\n# SYM O\n2021 CD B-DATE\n\nAda NNP B-PER\n"),
        ("x.iob2", "# id = 1\nNairobi\tB-LOC\n#\tO\n2021\tB-DATE\n\n# id = 2\nAda\tB-PER\n"),
        # The first and the last line are mixed into a file with tabs, as in some files of MasakhaNER.
        ("x.txt", "Nairobi B-LOC\n#\tO\n2021\tB-DATE\n\nAda B-PER\n"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_column_is_the_word_and_the_last_its_label(tmp_path: Path, name: str, text: str, mark: str) -> None:
    (tmp_path / name).write_bytes((mark + text).encode())
    assert read_table(tmp_path / name, NER).to_pydict() == EXPECTED


MULTICONER = (
    "# id 5239-a1\tdomain=en\nNairobi _ _ B-LOC\n# _ _ O\n2021 _ _ B-DATE\n\n# id 5240\tdomain=en\nAda _ _ B-PER\n"
)


@pytest.mark.parametrize(
    "text",
    [
        MULTICONER,
        MULTICONER.replace(" _ _ ", " "),
        MULTICONER.replace(" _ _ ", "\t"),
        MULTICONER.replace(" _ _ ", " ").replace("# id 5239-a1", "#5239-a1"),
        # In a file with 4 columns, each of these comments has 4, too.
        MULTICONER.replace("# id 5239-a1\tdomain=en", "# sent_id = 1\n# text = Nairobi"),
        MULTICONER.replace("# id 5239-a1\tdomain=en", "#newdoc"),
        MULTICONER.replace("# id 5239-a1\tdomain=en", "# newdoc id = one\n#\n# global.columns = FORM TAG"),
        MULTICONER.replace("# id 5239-a1\tdomain=en", "-DOCSTART- -X- -X- O\n\n# newdoc"),
        MULTICONER.replace("# id 5239-a1\tdomain=en", "# newdoc").replace(" _ _ ", "\t"),
    ],
)
def test_comments_are_no_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.conll").write_text(text)
    assert read_table(tmp_path / "x.conll", NER).to_pydict() == EXPECTED


@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("word", ["#", "#1", "#metoo", "##"])
def test_a_word_may_begin_with_the_mark_of_comments(tmp_path: Path, word: str, separator: str) -> None:
    """It may be the first word of a sentence, and all words of a file may begin so."""
    sentence = f"{word}{separator}O\n"
    (tmp_path / "x.conll").write_text(f"{sentence}Ada{separator}B-PER\n{sentence}\n{sentence}")
    expected = {"tokens": [[word, "Ada", word], [word]], "ner_tags": [["O", "B-PER", "O"], ["O"]]}
    assert read_table(tmp_path / "x.conll", NER).to_pydict() == expected
    (tmp_path / "x.conll").write_text(sentence)
    assert read_table(tmp_path / "x.conll", NER)["tokens"].to_pylist() == [[word]]


def test_a_line_within_a_sentence_that_lacks_its_label_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("Ada B-PER\n#\nLovelace I-PER\n")
    with pytest.raises(ValueError, match=r"line 2 has 1 columns, and line 1 has 2"):
        read_table(tmp_path / "x.conll", NER)
    (tmp_path / "x.tsv").write_text("Ada\tB-PER\n#\nLovelace\tI-PER\n")
    with pytest.raises(ValueError, match=r"line 2 has 1 columns, and line 1 has 2"):
        read_table(tmp_path / "x.tsv", NER)


def test_named_columns_may_be_followed_by_others_in_some_lines(tmp_path: Path) -> None:
    """Universal NER has two more columns in the lines of entities."""
    (tmp_path / "en.iob2").write_text("# text = Bush nominated\n1\tBush\tB-PER\t-\tann\n2\tnominated\tO\n")
    reading = NER._replace(columns=("_", "tokens", "ner_tags"))
    expected = {"tokens": [["Bush", "nominated"]], "ner_tags": [["B-PER", "O"]]}
    assert read_table(tmp_path / "en.iob2", reading).to_pydict() == expected
    with pytest.raises(
        ValueError, match=r"line 3 has 3 columns, and line 2 has 5: .* `columns: \[tokens, ner_tags\]`, so that"
    ):
        read_table(tmp_path / "en.iob2", NER)


def test_other_spaces_than_those_of_ascii_are_part_of_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\u00a0b O\n\u2028 O\n\u00a0 O\n", encoding="utf-8")
    assert read_table(tmp_path / "x.txt", NER)["tokens"].to_pylist() == [["a\u00a0b", "\u2028", "\u00a0"]]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("x.txt", "a O\n\nb\n", r"line 3 has 1 columns, and line 1 has 2"),
        ("x.txt", "a\n\nb\n", r"line 1: expected at least 2 columns, with tabs or spaces between them, got 'a'; mend"),
        ("x.txt", "a O\n O\n", r"line 2: column 1, 'tokens', has no text; mend this line"),
        ("x.tsv", "a\tO\n\tO\n", r"line 2: column 1, 'tokens', has no text; mend this line"),
        ("x.txt", "\n \n", r"has no sentence; mend it"),
        ("x.txt", "_ O\n_ O\n", r"has '_' in place of each word: the text was removed, and its provider explains how"),
        (
            "x.conllu",
            "1\ta\tb\n",
            r"line 1: expected the 10 columns of CoNLL-U .* got '1\\ta\\tb'; mend this line, or end",
        ),
        (
            "x.conllu",
            "\t".join(["x"] * 10),
            r"line 1: expected the 10 columns of CoNLL-U .*, the first of them a number",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"x\.\w+,? {problem}"):
        read_table(tmp_path / name, NER)


def test_a_column_that_a_line_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("a X O\nb X\n")
    with pytest.raises(ValueError, match=r"line 2: expected at least 3 columns, .* got 'b X'"):
        read_table(tmp_path / "x.conll", NER._replace(columns=("tokens", "_", "ner_tags")))


def test_a_task_without_words_does_not_read_such_files(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("a O\n")
    with pytest.raises(ValueError, match=r"x\.conll has words with labels, but the task does not read words"):
        read_table(tmp_path / "x.conll")
    (tmp_path / "x.txt").write_text("a O\n")
    with pytest.raises(ValueError, match=r"x\.txt is of an unknown type: .*; tasks of words read \.txt, too"):
        read_table(tmp_path / "x.txt")


def test_a_line_with_the_names_of_the_columns_is_no_word(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("tokens\tner_tags\nAda\tB-PER\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"train\.tsv, line 1 has the names of columns, .*: delete this line"):
        read_table(path, NER)


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_words_are_not_taken_for_words(tmp_path: Path, first: int) -> None:
    path = tmp_path / "de.tsv"
    path.write_text(f"# a source\n{first}\tAnna\tB-PER\tO\n{first + 1}\tlebt\tO\tO\n\n{first}\tJa\tO\tO\n")
    with pytest.raises(ValueError, match=r"columns: \[_, tokens, ner_tags\]"):
        read_table(path, NER)
    named = read_table(path, NER._replace(columns=("_", "tokens", "ner_tags")))
    assert named.to_pydict() == {"tokens": [["Anna", "lebt"], ["Ja"]], "ner_tags": [["B-PER", "O"], ["O"]]}


def test_words_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "de.tsv"
    path.write_text("1\tO\n2\tO\n")
    assert read_table(path, NER)["tokens"].to_pylist() == [["1", "2"]]
