"""The contract of every task, and what is special about each."""

import pyarrow as pa
import pytest

from xlgrid.synthetic.artificial import NER
from xlgrid.synthetic.natural import natural_codes
from xlgrid.synthetic.world import mentions
from xlgrid.tasks import TASKS, task

GENERATED = [kind for kind, made in TASKS.items() if made.is_generated]


def two_languages(kind):
    """Two languages in which a task is generated."""
    languages = [code for code in ("en", "fr", *natural_codes(), "qa1", "qb2") if task(kind).speaks(code)]
    assert len(languages) >= 2, f"{kind} is generated in {languages}: a miniature needs two languages"
    return languages[:2]


def pairs(kinds):
    return [kind for kind in kinds if task(kind).second]


# A target that no task of the head has.
WRONG = {
    "sequence": "maybe",
    "token": [99],
    "span": {"text": ["nowhere"], "answer_start": [0]},
    "choice": "9",
}


def rows(kind, language, n=20, **options):
    made = task(kind)
    chosen = made.Options(n=n, **options)
    return [made.row(meaning, language, chosen) for meaning in made.examples(chosen, (n, 0, 0))]


@pytest.mark.parametrize("kind", GENERATED)
def test_rows_pass_the_check_and_have_the_columns(kind):
    first, second = two_languages(kind)
    for language in [first, second] + [f"{first}-{second}"] * bool(task(kind).second):
        table = pa.Table.from_pylist(rows(kind, language))
        task(kind).check(table, "here")
        assert set(task(kind).columns) <= set(table.column_names) <= {*task(kind).columns, "depth"}


@pytest.mark.parametrize("kind", GENERATED)
def test_meanings_survive_json(kind):
    made = task(kind)
    for meaning in made.examples(made.Options(n=20), (14, 2, 4)):
        assert made.from_json(made.to_json(meaning)) == meaning


@pytest.mark.parametrize("kind", GENERATED)
def test_a_missing_column_names_the_nearest(kind):
    made = task(kind)
    table = pa.Table.from_pylist(rows(kind, two_languages(kind)[0]))
    column = made.inputs[0]
    wrong = table.rename_columns([column[:-1] if name == column else name for name in table.column_names])
    with pytest.raises(ValueError, match=rf"no column '{column}'.*did you mean '{column[:-1]}'"):
        made.check(wrong, "here")


@pytest.mark.parametrize("kind", GENERATED)
def test_a_wrong_label_names_its_row(kind):
    made = task(kind)
    found = rows(kind, two_languages(kind)[0])
    wrong = WRONG[made.head.name] * len(found[7]["tokens"]) if made.head.name == "token" else WRONG[made.head.name]
    # All of one type, which a column has.
    found = [row | {made.target: str(row[made.target])} if made.head.name == "choice" else row for row in found]
    found[7] = found[7] | {made.target: wrong}
    with pytest.raises(ValueError, match=rf"here, row 7, column '{made.target}'.*(maybe|99|nowhere|'9')"):
        made.check(pa.Table.from_pylist(found), "here")


@pytest.mark.parametrize("kind", GENERATED)
def test_splits_share_no_meaning(kind):
    made = task(kind)
    found = made.examples(made.Options(n=40), (20, 8, 12))
    assert len(found) == 40
    parts = [{made.to_json(meaning) for meaning in part} for part in (found[:20], found[20:28], found[28:])]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


@pytest.mark.parametrize("kind", [kind for kind, made in TASKS.items() if made.head.name in ("span", "choice")])
def test_what_is_no_text_names_its_column(kind):
    made = task(kind)
    found = [row | {made.inputs[0]: 7} for row in rows(kind, two_languages(kind)[0])]
    with pytest.raises(ValueError, match=rf"here, column '{made.inputs[0]}' is of type int64: expected text"):
        made.check(pa.Table.from_pylist(found), "here")


def test_numbers_for_labels_name_the_setting_that_translates_them():
    found = [row | {"label": 1} for row in rows("xnli", "en")]
    with pytest.raises(ValueError, match=r"row 0, column 'label': there is no label 1 .*`labels` in the study"):
        task("xnli").check(pa.Table.from_pylist(found), "here")


def test_unequal_numbers_of_tokens_and_tags_are_an_error():
    found = rows("udpos", "qa1")
    found[3]["pos_tags"].append(0)
    with pytest.raises(ValueError, match="row 3"):
        task("udpos").check(pa.Table.from_pylist(found), "here")


def test_an_empty_table_is_an_error():
    table = pa.Table.from_pylist(rows("udpos", "qa1")).slice(0, 0)
    with pytest.raises(ValueError, match="no rows"):
        task("udpos").check(table, "here")


def test_a_misspelt_task_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'ruletaker'"):
        task("ruletakr")


@pytest.mark.parametrize("kind", pairs(GENERATED))
def test_a_pair_takes_each_input_from_its_language(kind):
    codes = two_languages(kind)
    of_first, of_second, of_pair = (rows(kind, code) for code in (*codes, "-".join(codes)))
    second = task(kind).second
    (first,) = set(task(kind).inputs) - {second}
    assert [row[first] for row in of_pair] == [row[first] for row in of_first]
    assert [row[second] for row in of_pair] == [row[second] for row in of_second]
    assert of_first[0][first] != of_second[0][first]


@pytest.mark.parametrize("kind", [kind for kind in pairs(GENERATED) if task(kind).speaks("en")])
def test_three_languages_are_an_error(kind):
    with pytest.raises(ValueError, match="neither a language nor a pair"):
        rows(kind, "en-fr-de")


def test_labels_are_balanced_and_config_names_the_depth():
    found = rows("ruletaker", "en", n=60, max_depth=2)
    assert sum(row["label"] == "entailment" for row in found) == 30
    assert {row["config"] for row in found} == {"depth-2"}
    assert {row["depth"] for row in found} == {0, 1, 2}


def test_questions_can_be_interrogative():
    assert all(row["question"].endswith("?") for row in rows("ruletaker", "en", question_form="interrogative"))
    assert all(row["question"].endswith(".") for row in rows("ruletaker", "en"))


def test_fewer_concepts_are_the_first_ones():
    chosen = task("ruletaker").Options(persons=3, animals=3, attributes=5, relations=1).theory()
    assert chosen.persons == ("anne", "bob", "charlie")
    assert (len(chosen.animals), len(chosen.attributes)) == (3, 5)
    assert len(chosen.relations) == 1


def test_spans_agree_with_tags():
    for row in rows("wikiann", "qa1", n=50):
        starts = sum(NER[tag].startswith("B-") for tag in row["ner_tags"])
        assert starts == len(row["spans"]) > 0
        words = " ".join(word for word, tag in zip(row["tokens"], row["ner_tags"], strict=True) if tag)
        assert words == " ".join(span.split(": ", 1)[1] for span in row["spans"])


def test_held_out_entities_are_not_in_training():
    made = task("wikiann")
    found = made.examples(made.Options(n=100, held_out_entities=True), (70, 10, 20))
    train, rest = ({name for fact in part for name in mentions(fact)} for part in (found[:70], found[70:]))
    assert len(found) == 100 and len(set(found)) == 100
    assert not train & rest
