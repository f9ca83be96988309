"""A study on data that exist is guessed from them, says why, and is accepted; what the data leave open is an error that names an option."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, List, Value

from xlgrid.plan.load import load_plan
from xlgrid.preflight import State
from xlgrid.preflight.files import file_lines, materials
from xlgrid.starters.described import Wishes
from xlgrid.starters.new import begin
from xlgrid.study.schema import Study

SPLITS = ("train", "dev", "test")
# Sentences that are all different, with nine words each.
TEXTS = [f"this is the sentence of number {number} in a file" for number in range(24)]
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "studies").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(rows: Sequence[Row] | str, path: str, features: Features | None = None) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, str):
        file.write_text(rows)
    elif file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([*rows], schema=features.arrow_schema if features else None), file)
    elif file.suffix in (".csv", ".tsv"):
        mark = "," if file.suffix == ".csv" else "\t"
        file.write_text(
            "".join(mark.join(map(str, row)) + "\n" for row in ([*rows[0]], *(row.values() for row in rows)))
        )
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def everywhere(
    rows: Callable[[str, str], Sequence[Row] | str], pattern: str, languages: Sequence[str] = ("en", "sw"),
    splits: Sequence[str] = SPLITS, features: Features | None = None,
) -> None:  # fmt: skip
    for language in languages:
        for split in splits:
            write(rows(language, split), pattern.format(language=language, split=split), features)


def written(files: str, **wishes: Any) -> tuple[Study, str]:
    """The study that is written about files, which reads them without a remark, and its text."""
    [path] = begin("study", "mine", wishes=Wishes(data=files, **wishes)).files
    plan = load_plan("mine")
    lines = [*file_lines(plan, materials(plan))]
    assert lines and not [line for line in lines if line.state is State.PROBLEM], lines
    return plan.study, path.read_text()


def task(study: Study) -> Any:
    [entry] = study.tasks.values()
    return entry


def data(study: Study) -> Any:
    return task(study).data.origin


def plain(language: str, split: str) -> list[Row]:
    return [
        {"text": f"{language} {split} {text}", "label": ("sport", "news", "health")[i % 3]}
        for i, text in enumerate(TEXTS)
    ]


def ner(language: str, split: str) -> str:
    return "".join(f"Ali B-PER\nBaba I-PER\nin O\n{language}{split}{i} B-LOC\n\n" for i in range(8))


def conllu(language: str, split: str) -> str:
    words = "".join(
        f"{n}\t{word}\t_\t{tag}\t_\t_\t{n - 1}\t{'det' if n % 2 else 'root'}\t_\t_\n"
        for n, (word, tag) in enumerate([(f"{language}{split}", "NOUN"), ("runs", "VERB"), (".", "PUNCT")], 1)
    )
    return f"# text = x\n{words}\n" * 8


def squad(language: str, split: str) -> str:
    qas = [
        {"id": f"{split}{i}", "question": f"Who is {i} in {language}?", "answers": [{"text": "Ali", "answer_start": 0}]}
        for i in range(6)
    ]
    return json.dumps(
        {
            "data": [
                {"title": "t", "paragraphs": [{"context": f"Ali lives in {language} {split} since long.", "qas": qas}]}
            ]
        }
    )


def choices(language: str, split: str) -> list[Row]:
    rows = [
        {"id": i, "passage": f"{language} {split} {text}", "question": f"what is it {i} then?"}
        for i, text in enumerate(TEXTS)
    ]
    return [
        row
        | {f"mc_answer{n}": f"the choice {n} of {row['id']}" for n in range(1, 5)}
        | {"correct_answer_num": str(1 + row["id"] % 4)}
        for row in rows
    ]


def emotions(language: str, split: str) -> list[Row]:
    return [
        {"id": i, "text": f"{language} {split} {text}", "joy": i % 2, "fear": int(i % 3 == 0), "anger": int(i % 5 == 0)}
        for i, text in enumerate(TEXTS)
    ]


def topics(language: str, split: str) -> list[Row]:
    sets = [["sport"], ["news", "sport"], []]
    return [{"text": f"{language} {split} {text}", "topics": sets[i % 3]} for i, text in enumerate(TEXTS)]


def similarities(language: str, split: str) -> list[Row]:
    return [
        {"sentence1": f"{language} {split} {text}", "sentence2": f"{text} too", "similarity_score": i % 5 + 0.25}
        for i, text in enumerate(TEXTS)
    ]


@pytest.mark.parametrize(
    ("rows", "pattern", "expected"),
    [
        (emotions, "d/{language}/{split}.jsonl", {"kind": "multilabel", "inputs": ["text"], "labels": ["joy", "fear", "anger"]}),
        (emotions, "d/{language}/{split}.csv", {"kind": "multilabel", "inputs": ["text"], "labels": ["joy", "fear", "anger"]}),
        (topics, "d/{language}/{split}.jsonl", {"kind": "multilabel", "inputs": ["text"], "target": "topics", "labels": ["news", "sport"]}),
        (similarities, "d/{language}/{split}.jsonl", {"kind": "regression", "inputs": ["sentence1", "sentence2"], "target": "similarity_score", "labels": []}),
        (similarities, "d/{language}/{split}.csv", {"kind": "regression", "inputs": ["sentence1", "sentence2"], "target": "similarity_score"}),
        (plain, "d/{language}/{split}.jsonl", {"kind": "sequence", "inputs": ["text"], "target": "label", "labels": ["health", "news", "sport"]}),
        (plain, "d/{language}_{split}.tsv", {"kind": "sequence", "inputs": ["text"], "target": "label", "labels": ["health", "news", "sport"]}),
        (plain, "d/{split}/{language}.csv", {"kind": "sequence", "inputs": ["text"]}),
        (ner, "d/{language}/{split}.txt", {"kind": "token", "inputs": ["tokens"], "target": "tags", "labels": ["O", "B-LOC", "B-PER", "I-PER"]}),
        (ner, "d/{language}/{split}.conll", {"kind": "token", "labels": ["O", "B-LOC", "B-PER", "I-PER"]}),
        (ner, "d/{language}-{split}.tsv", {"kind": "token", "labels": ["O", "B-LOC", "B-PER", "I-PER"]}),
        (conllu, "d/{language}/{split}.conllu", {"kind": "token", "labels": ["NOUN", "PUNCT", "VERB"]}),
        (squad, "d/{language}.{split}.json", {"kind": "span", "inputs": ["question", "context"], "target": "answers", "labels": []}),
        (choices, "d/{language}/{split}.jsonl", {"kind": "choice", "inputs": ["passage", "question"], "choices": [f"mc_answer{n}" for n in range(1, 5)], "labels": ["1", "2", "3", "4"]}),
    ],
)  # fmt: skip
def test_each_form_of_data_is_recognised(rows: Any, pattern: str, expected: Mapping[str, Any]) -> None:
    everywhere(rows, pattern)
    study, _ = written(pattern)
    assert {key: getattr(task(study), key) for key in expected} == expected
    assert study.languages == ["en", "sw"] and data(study).local == pattern
    [grid] = study.grids.values()
    assert ([*grid.source], [*grid.target], [*grid.seed]) == (["en"], ["en", "sw"], [1, 2, 3])
    assert {*study.methods} == {"full-ft", "bitfit"} and {*study.exhibits} == {"scores", "transfer"}


def test_trees_are_read_where_the_head_is_given_and_said_to_be_possible_otherwise() -> None:
    everywhere(conllu, "d/{language}/{split}.conllu")
    study, _ = written("d/{language}/{split}.conllu", head="parse")
    assert (task(study).kind, task(study).target, task(study).labels) == (
        "parse",
        "deprel",
        ["det", "root"],
    )


def test_names_of_labels_are_read_from_the_features_of_parquet_files() -> None:
    tags = ["O", "B-PER", "I-PER"]
    features = Features(
        {"id": Value("string"), "tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=tags))}
    )
    rows = [{"id": str(i), "tokens": ["Ali", "runs", f"w{i}"], "ner_tags": [1, 0, 0]} for i in range(9)]
    everywhere(lambda *_: rows, "d/{language}/{split}.parquet", features=features)
    assert task(written("d/{language}/{split}.parquet")[0]).labels == tags


def test_the_tagging_scheme_and_the_main_score_are_said() -> None:
    everywhere(ner, "d/{language}/{split}.conll")
    assert "which follow IOB" in (text := written("d/{language}/{split}.conll")[1]) and "The main score is f1." in text


def test_numbers_of_classes_are_translated_to_their_names() -> None:
    features = Features(
        {"premise": Value("string"), "hypothesis": Value("string"), "label": ClassLabel(names=["yes", "no"])}
    )
    rows = [{"premise": text, "hypothesis": f"{text} too", "label": i % 2} for i, text in enumerate(TEXTS)]
    everywhere(lambda *_: rows, "d/{language}/{split}.parquet", features=features)
    entry = task(written("d/{language}/{split}.parquet")[0])
    assert (entry.inputs, entry.labels, entry.data.origin.labels) == (
        ["premise", "hypothesis"],
        ["yes", "no"],
        {"0": "yes", "1": "no"},
    )


@pytest.mark.parametrize(
    ("there", "names"),
    [
        (("hau", "swa"), {"ha": "hau", "sw": "swa"}),
        (("hau_Latn", "swh_Latn"), {"ha": "hau_Latn", "sw": "swh_Latn"}),
        (("ha-NG", "sw_KE"), {"ha": "ha-NG", "sw": "sw_KE"}),
        (("ha", "swa"), {"sw": "swa"}),
        (("ha", "sw"), {}),
    ],
)
def test_names_are_written_only_for_languages_that_the_data_call_otherwise(
    there: Sequence[str], names: dict[str, str]
) -> None:
    everywhere(plain, "d/{language}/{split}.jsonl", there)
    study, _ = written("d/{language}/{split}.jsonl", languages=("ha", "sw"))
    assert study.languages == ["ha", "sw"] and data(study).names == names


def test_the_usual_variety_and_script_of_a_language_come_first_and_others_are_said() -> None:
    everywhere(plain, "d/{language}/{split}.jsonl", ("ary_Arab", "arb_Latn", "arb_Arab", "en"))
    study, text = written("d/{language}/{split}.jsonl", languages=("en", "ar"))
    assert data(study).names == {"ar": "arb_Arab"}
    assert "# ar could also be arb_Latn, ary_Arab: write it in `names`." in text


def test_labels_that_are_not_balanced_are_scored_by_macro_f1() -> None:
    rows = [{"text": text, "label": "rare" if i % 6 == 0 else "usual"} for i, text in enumerate(TEXTS)]
    everywhere(lambda *_: rows, "d/{language}/{split}.jsonl")
    study, text = written("d/{language}/{split}.jsonl")
    assert task(study).metric == "macro-f1" and "83% of the examples have the label usual" in text


def test_one_language_needs_no_name_in_the_files() -> None:
    everywhere(plain, "d/{split}.jsonl", ("",))
    assert written("d/{split}.jsonl", languages=("sw",))[0].languages == ["sw"]


def test_files_that_show_no_language_are_a_question_of_languages() -> None:
    everywhere(plain, "d/{split}.jsonl", ("",))
    with pytest.raises(ValueError, match=r"nothing says in which language the data are: .*--languages"):
        written("d/{split}.jsonl")


def test_the_source_has_most_training_data_and_targets_have_a_test_set() -> None:
    everywhere(plain, "d/{language}/{split}.jsonl", ("en", "sw", "yo"), ("test",))
    everywhere(plain, "d/{language}/{split}.jsonl", ("en", "sw"), ("train", "dev"))
    write(plain("sw", "train") * 2, "d/sw/train.jsonl")
    grid = written("d/{language}/{split}.jsonl")[0].grids["all"]
    assert ([*grid.source], [*grid.target]) == (["sw"], ["en", "sw", "yo"])


@pytest.mark.parametrize(
    ("splits", "names"),
    [(("train", "test"), {"dev": "train"}), (("train", "validation"), {"dev": "train", "test": "validation"})],
)
def test_no_weights_are_chosen_on_the_test_set(splits: Sequence[str], names: dict[str, str]) -> None:
    everywhere(plain, "d/{language}/{split}.jsonl", splits=splits)
    [path] = begin("study", "mine", wishes=Wishes(data="d/{language}/{split}.jsonl")).files
    study = load_plan("mine").study
    assert data(study).splits == names and "keep their last weights" in path.read_text()
    assert study.training[0].set["keep"] == "last"


def test_a_method_suits_the_encoder() -> None:
    everywhere(plain, "d/{language}/{split}.jsonl")
    Path("modern").mkdir()
    Path("modern/config.json").write_text('{"model_type": "modernbert"}')
    begin("study", "mine", wishes=Wishes(data="d/{language}/{split}.jsonl", encoder="modern"))
    study = load_plan("mine").study
    assert {*study.methods} == {"full-ft"} and study.encoders["modern"].path == "modern"


def test_several_texts_are_a_question_of_inputs_and_others_are_said() -> None:
    rows = [
        {"headline": text, "url": f"https://x.org/{i}", "text": f"{text} at length", "category": ("a", "b")[i % 2]}
        for i, text in enumerate(TEXTS)
    ]
    everywhere(lambda *_: rows, "d/{language}/{split}.jsonl")
    study, text = written("d/{language}/{split}.jsonl")
    assert task(study).inputs == ["text"] and "Also possible: --inputs headline." in text


TWO = [
    {"one": text, "two": f"{text} again", "label": "ab"[i % 2], "class": "cd"[i % 2]} for i, text in enumerate(TEXTS)
]


@pytest.mark.parametrize(
    ("rows", "wishes", "message"),
    [
        (TWO, {"target": "label"}, "one and two can be the text .* --inputs one,two"),
        (TWO, {"inputs": ("one",)}, "label and class can each be the answer: choose one, such as --target"),
        (TWO, {"target": "lable"}, "--target: .*did you mean 'label'"),
        (TWO, {"head": "span"}, r"the columns one \(text\).* do not fit span: .*--inputs.*--target"),
        (TWO, {"head": "sequense"}, "--head: unknown head 'sequense', did you mean 'sequence'"),
        (TWO, {"languages": ("en", "swa", "yo")}, "--languages: .*unknown language 'yo'.*there are: en, sw"),
        (TWO, {"languages": ("yoruba",)}, "the code of Yoruba is yo"),
        ([{"tokens": ["a", "b"], "tags": [0, 1]}] * 9, {}, "the numbers 0, 1, ..., whose names .* --labels"),
        ([{"tokens": ["a", "b", "c"], "ner": ["x", "x", "z"], "pos": ["u", "v", "u"]}] * 9, {}, "ner and pos can each be the answer: choose one, such as --target"),
        ([{"n": 1.5}], {}, r"the columns n \(number\) do not fit any of the heads"),
        (TWO, {"encoder": "no such"}, "--encoder no such: there is no such folder"),
    ],
)  # fmt: skip
def test_what_the_data_leave_open_names_the_option_that_decides(
    rows: Any, wishes: dict[str, Any], message: str
) -> None:
    everywhere(lambda *_: rows, "d/{language}/{split}.jsonl", ("en", "swa"))
    with pytest.raises(ValueError, match=message):
        begin("study", "mine", wishes=Wishes(data="d/{language}/{split}.jsonl", **wishes))
    assert [*Path("studies").iterdir()] == []


def test_data_without_a_training_set_are_refused_with_what_to_do() -> None:
    everywhere(plain, "d/{language}/{split}.jsonl", splits=("dev", "test"))
    with pytest.raises(ValueError, match=r"no training set in en, sw \(its splits: dev, test\): .*`trained_on`"):
        begin("study", "mine", wishes=Wishes(data="d/{language}/{split}.jsonl"))


def test_a_training_set_alone_is_refused_with_what_to_do() -> None:
    everywhere(plain, "data/{language}/{split}.jsonl", splits=("train",))
    with pytest.raises(ValueError, match=r"nothing to evaluate on in en, sw: divide it"):
        written("data/{language}/{split}.jsonl")


def test_files_without_a_header_are_refused_with_what_to_do() -> None:
    everywhere(
        lambda _, split: "".join(
            f"{text}\t{'good' if number % 2 == (split == 'dev') else 'bad'}\n" for number, text in enumerate(TEXTS)
        ),
        "data/{language}/{split}.tsv",
    )
    with pytest.raises(ValueError, match=r"has no column 'good', as other files have: .* put a header into each"):
        written("data/{language}/{split}.tsv")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("d/{language}.jsonl", r"\{split\} is missing"),
        ("e/{language}/{split}.jsonl", "no file below e has such a path"),
    ],
)
def test_files_that_are_not_there_are_said(files: str, message: str) -> None:
    everywhere(plain, "d/{language}/{split}.jsonl")
    with pytest.raises(ValueError, match=message):
        begin("study", "mine", wishes=Wishes(data=files))


@pytest.mark.parametrize(
    ("kind", "wishes", "message"),
    [
        ("task", Wishes(data="d"), "--data is only for a new study"),
        ("study", Wishes(encoder="x"), "give one of the two"),
        ("study", Wishes("a/b", "d"), "give one of the two"),
    ],
)
def test_options_of_studies_on_data_belong_together(kind: str, wishes: Wishes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        begin(kind, "mine", wishes=wishes)
