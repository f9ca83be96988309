"""The contract of every task: of those with a file or of an installed package, and of one of each head that a study describes."""

import pyarrow as pa
import pytest
from plugin_fixture import guessing as guessing

from xlgrid.heads import ALL_HEADS
from xlgrid.synthetic.natural import natural_codes
from xlgrid.tasks import ALL_TASKS, TASKS, task

HEADS = ALL_HEADS.own
GENERATED = [kind for kind in ALL_TASKS.names() if ALL_TASKS.find(kind).generator]

# For each head what a study writes, and a row of its data in a language.
STUDY = {
    "sequence": (
        {"inputs": ["sentence1", "sentence2"], "target": "same", "labels": [0, 1]},
        lambda code, i: {"sentence1": f"{code} {i}", "sentence2": f"{code} again {i}", "same": str(i % 2)},
    ),
    "multilabel": (
        {"inputs": ["text"], "target": "emotions", "labels": ["anger", "joy", "fear"]},
        lambda code, i: {"text": f"{code} {i}", "emotions": [i % 2, 0, 1]},
    ),
    "regression": (
        {"inputs": ["sentence1", "sentence2"], "target": "score"},
        lambda code, i: {"sentence1": f"{code} {i}", "sentence2": f"{code} again {i}", "score": i / 4},
    ),
    "token": (
        {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER", "I-PER"]},
        lambda code, i: {"words": [code, str(i)], "tags": [0, 1 + i % 2]},
    ),
    "span": (
        {"inputs": ["query", "passage"], "target": "found"},
        lambda code, i: {
            "id": str(i),
            "query": f"{code}?",
            "passage": f"{code} {i}",
            "found": {"text": [str(i)], "answer_start": [len(code) + 1]},
        },
    ),
    "choice": (
        {"inputs": ["passage"], "choices": ["a", "b", "c"], "target": "right", "labels": ["A", "B", "C"]},
        lambda code, i: {"passage": f"{code} {i}", "a": "x", "b": "y", "c": "z", "right": "ABC"[i % 3]},
    ),
    "embed-mining": (
        {"inputs": ["sentence"]},
        lambda code, i: {
            "id": str(i // 2),
            "side": i % 2,
            "sentence": f"{code} {i}",
            "gold": [] if i % 2 else [str(i // 2)],
        },
    ),
    "mlm": (
        {"inputs": ["sentence", "translation"]},
        lambda code, i: {"sentence": f"{code} {i}", "translation": f"{code} again {i}"},
    ),
}
STUDY["seq2seq"] = (
    {"inputs": ["article"], "target": "summary"},
    lambda code, i: {"article": f"{code} {i} and more", "summary": f"{code} {i}"},
)
STUDY["parse"] = (
    {"inputs": ["words"], "target": "relations", "labels": ["root", "nsubj"]},
    lambda code, i: {"words": [code, str(i)], "head": [2, 0], "relations": [1, 0]},
)
STUDY["token-chunks"] = (STUDY["token"][0] | {"labels": ["NOUN", "VERB", "X"]}, STUDY["token"][1])
STUDY["perplexity"] = STUDY["embed"] = STUDY["mlm"]
STUDY["span-mlqa"] = STUDY["span"]
# A target that no task of a head has, and how an error shows it. Any text can be a target of seq2seq.
WRONG = {
    "sequence": ("maybe", "'maybe'"),
    "token": ([99, 99], "99"),
    "span": ({"text": ["nowhere"], "answer_start": [0]}, "'nowhere'"),
    "choice": ("9", "'9'"),
    "multilabel": ([2, 0, 0], "expected 1, 0 or nothing"),
    "regression": (float("inf"), "expected a number, got inf"),
}
WRONG["token-chunks"] = WRONG["parse"] = WRONG["token"]
WRONG["span-mlqa"] = WRONG["span"]
CONTRACT = [*GENERATED, *HEADS]


def described(kind):
    return task(kind, STUDY[kind][0] if kind in HEADS else None)


def two_languages(kind):
    """Two languages in which a task has data."""
    if kind in HEADS:
        return ["en", "fr"]
    languages = [code for code in ("en", "fr", *natural_codes(), "qa1", "qb2") if task(kind).speaks(code)]
    assert len(languages) >= 2, f"{kind} is generated in {languages}: a miniature needs two languages"
    return languages[:2]


def rows(kind, language, n=20):
    if kind in HEADS:
        return [STUDY[kind][1](language, i) for i in range(n)]
    generator, options = task(kind).generator, task(kind).Options(n=n)
    return [generator.row(meaning, language, options) for meaning in generator.examples(options, (n, 0, 0))]


def check(kind, changed):
    described(kind).check(pa.Table.from_pylist(changed), "here")


@pytest.mark.parametrize("kind", CONTRACT)
def test_rows_pass_the_check_and_have_the_columns(kind):
    for language in two_languages(kind):
        table = rows(kind, language)
        check(kind, table)
        extra = {"depth", "id"}
        assert set(described(kind).columns) - extra <= table[0].keys() <= {*described(kind).columns, *extra}


@pytest.mark.parametrize("kind", HEADS)
def test_a_missing_column_names_the_nearest(kind):
    column = described(kind).inputs[0]
    misspelt = [
        {name + "x" if name == column else name: value for name, value in row.items()}
        for row in rows(kind, two_languages(kind)[0])
    ]
    with pytest.raises(ValueError, match=rf"here has no column '{column}'.*did you mean '{column}x'"):
        check(kind, misspelt)


@pytest.mark.parametrize("kind", HEADS)
def test_a_missing_value_names_its_row_and_column(kind):
    table = rows(kind, two_languages(kind)[0])
    column = described(kind).inputs[-1]
    table[7] |= {column: None}
    with pytest.raises(ValueError, match=rf"here, row 8, column '{column}': the value is missing"):
        check(kind, table)


LABELLED = [kind for kind in HEADS if described(kind).target and kind in WRONG]


@pytest.mark.parametrize("kind", LABELLED)
def test_a_wrong_label_names_its_row(kind):
    target, (wrong, pattern) = described(kind).target, WRONG[described(kind).head.name]
    table = rows(kind, two_languages(kind)[0])
    if isinstance(wrong, list):
        wrong = (wrong * 99)[: len(table[7][target])]
    # A column has one type.
    table = [row | {target: type(wrong)(row[target])} for row in table]
    table[7] |= {target: wrong}
    with pytest.raises(ValueError, match=rf"here, row 8, column '{target}'.*{pattern}"):
        check(kind, table)


@pytest.mark.parametrize("kind", HEADS)
def test_an_input_of_another_type_names_its_column(kind):
    column = described(kind).inputs[0]
    with pytest.raises(ValueError, match=rf"here, column '{column}' is of type int64: expected"):
        check(kind, [row | {column: 7} for row in rows(kind, two_languages(kind)[0])])


@pytest.mark.parametrize("kind", HEADS)
def test_an_empty_table_is_an_error(kind):
    with pytest.raises(ValueError, match="here has no rows"):
        described(kind).check(pa.Table.from_pylist(rows(kind, two_languages(kind)[0])).slice(0, 0), "here")


@pytest.mark.parametrize("kind", GENERATED)
def test_meanings_survive_json(kind):
    generator = task(kind).generator
    for meaning in generator.examples(task(kind).Options(n=20), (14, 2, 4)):
        assert generator.from_json(generator.to_json(meaning)) == meaning


@pytest.mark.parametrize("kind", GENERATED)
def test_splits_share_no_meaning(kind):
    generator = task(kind).generator
    meanings = generator.examples(task(kind).Options(n=40), (20, 8, 12))
    assert len(meanings) == 40
    parts = [set(map(generator.to_json, part)) for part in (meanings[:20], meanings[20:28], meanings[28:])]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


PAIRED = [kind for kind in GENERATED if task(kind).second]


@pytest.mark.parametrize("kind", PAIRED)
def test_a_pair_takes_each_input_from_its_language(kind):
    codes = two_languages(kind)
    of_first, of_second, of_pair = (rows(kind, code) for code in (*codes, "-".join(codes)))
    second = task(kind).second
    (first,) = set(task(kind).inputs) - {second}
    assert [row[first] for row in of_pair] == [row[first] for row in of_first]
    assert [row[second] for row in of_pair] == [row[second] for row in of_second]
    assert of_first[0][first] != of_second[0][first]


def test_every_head_can_be_described():
    assert set(STUDY) >= set(HEADS)


@pytest.mark.parametrize(
    ("kind", "nearest"), [("ruletakr", "ruletaker"), ("sequenc", "sequence"), ("choices", "choice")]
)
def test_a_misspelt_kind_names_the_nearest(kind, nearest):
    with pytest.raises(ValueError, match=f"did you mean '{nearest}'"):
        task(kind)


def test_a_kind_is_a_task_or_a_head_of_a_package(guessing):
    riddles = task("riddles")
    assert (riddles.inputs, riddles.head.name, riddles.metrics) == (("text",), "guess", ("guess-rate",))
    assert task("guess", {"inputs": ["a", "b"], "target": "c", "labels": ["x", "y"]}).head is riddles.head
    with pytest.raises(ValueError, match=r"unknown kind of task 'ridles', did you mean 'riddles'\? .*xnli.*guess"):
        task("ridles")
    with pytest.raises(ValueError, match=r"one of the kinds sequence, .*, guess, and `rename`"):
        task("riddles", {"inputs": ["a"]})


def test_a_named_task_has_columns_of_its_own():
    with pytest.raises(ValueError, match=r"the task xnli has columns of its own, so leave out `inputs` and `labels`"):
        task("xnli", {"inputs": ["a"], "labels": ["x", "y"]})


def test_a_named_task_with_labels_of_words_may_have_others():
    own = task("udpos", {"labels": ["NOUN", "VERB"]})
    assert own.labels == ("NOUN", "VERB") and own.inputs == ("tokens",) and own.metrics == ("accuracy",)
    assert own.generator is None and not own.speaks("qa1"), "generated data have the numbers of other labels"
    assert task("udpos").labels == TASKS["udpos"].labels
    with pytest.raises(ValueError, match=r"a task of kind wikiann: 'O' .*twice in `labels`"):
        task("wikiann", {"labels": ["O", "O"]})
    with pytest.raises(ValueError, match="a task of kind udpos-chunks: `labels` mark spans as IOB"):
        task("udpos-chunks", {"labels": ["O", "B-X", "I-X"]})
    with pytest.raises(ValueError, match="the task wikiann has columns of its own, so leave out `inputs` and `labels`"):
        task("wikiann", {"inputs": ["words"], "labels": ["O", "B-X"]})


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("sequence", {"inputs": []}, "`inputs` has 0 columns, expected 1 or 2"),
        ("sequence", {"inputs": ["a", "b", "c"]}, "`inputs` has 3 columns, expected 1 or 2"),
        ("sequence", {"target": ""}, "`target`, the column of the answer, is missing"),
        ("sequence", {"labels": ["x"]}, "`labels` has 1 names, expected at least 2"),
        ("sequence", {"labels": ["x", "x"]}, "'x' occurs twice in `labels`"),
        ("sequence", {"choices": ["a", "b"]}, "there are no choices, so leave out `choices`"),
        ("token-chunks", {"labels": ["O", "B-X", "I-X"]}, "`labels` mark spans as IOB, which `kind: token` scores"),
        ("token", {"inputs": ["a", "b"]}, "`inputs` has 2 columns, expected 1"),
        ("span", {"inputs": ["context"]}, "`inputs` has 1 columns, expected 2"),
        ("span", {"labels": ["x", "y"]}, "there are no labels, so leave out `labels`"),
        ("choice", {"inputs": []}, "`inputs` has 0 columns, expected at least 1"),
        ("choice", {"choices": []}, "`choices` has 0 columns, expected at least 2"),
        ("choice", {"inputs": ["a"]}, "'a' occurs twice in `inputs` and `choices`"),
        ("mlm", {"inputs": ["a", "b", "c"]}, "`inputs` has 3 columns, expected 1 or 2"),
        ("mlm", {"target": "a"}, "there is no answer to predict, so leave out `target`"),
        ("mlm", {"labels": ["x", "y"]}, "there are no labels, so leave out `labels`"),
        ("choice", {"labels": ["1", "2"]}, "`labels` has 2 names for 3 `choices`: give one name for each choice"),
    ],
)
def test_columns_that_do_not_suit_the_head_are_refused(kind, change, problem):
    with pytest.raises(ValueError, match=f"a task of kind {kind}: .*{problem}"):
        task(kind, STUDY[kind][0] | change)


def test_a_misspelt_column_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'inputs'"):
        task("token", {"input": ["words"]})


@pytest.mark.parametrize("kind", GENERATED)
def test_the_default_of_every_option_can_be_set(kind):
    """The default is within the bounds of the option, so a study may write it out."""
    options = task(kind).Options()
    assert type(options)(**options.model_dump()) == options


def test_tasks_have_as_many_examples_as_before_where_a_study_does_not_say() -> None:
    """Other numbers would change the data of such studies, and with them all of their results."""
    sizes = {
        name: described.Options.model_fields["n"].default
        for name, described in TASKS.items()
        if "n" in described.Options.model_fields
    }
    assert sizes == {
        "ruletaker": 100000,
        "lot": 30000,
        "xnli": 30000,
        "causal-nli": 10000,
        "wikiann": 10000,
        "udpos": 10000,
        "udparse": 10000,
        "udpos-chunks": 10000,
        "xquad": 10000,
        "tydiqa": 10000,
        "mlqa": 10000,
        "copa": 10000,
        "siqa": 10000,
        "mentions": 10000,
        "similarity": 10000,
        "tatoeba": 10000,
        "bucc": 10000,
    }
