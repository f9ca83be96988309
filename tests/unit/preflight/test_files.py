"""Files of one's own are read as the jobs read them; tokenizers are compared with encoders."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from safetensors.torch import load_file, save_file
from shipped import STUDIES
from tokenizers import models
from transformers import BertConfig, BertModel

from xlgrid.data.downloads import Download
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.preflight import Line, State
from xlgrid.preflight.files import (
    Material,
    Rows,
    by_hand_lines,
    downloads_of,
    file_lines,
    materials,
    row_lines,
    rows_of,
    tokenizer_lines,
)
from xlgrid.products.data import Data
from xlgrid.products.encode import Encoder, Tokenizer
from xlgrid.products.product import Repository
from xlgrid.tasks import task

GRID: dict[str, Any] = {"encoder": ["e"], "method": ["full-ft"], "source": ["qa1"], "target": ["mono"], "seed": [1]}


def of_files(plan: Plan) -> list[Line]:
    return [*file_lines(plan, materials(plan))]


def of_tokenizers(plan: Plan) -> dict[str, Line]:
    return {line.thing: line for line in tokenizer_lines(plan)}


def test_each_file_that_fits_has_a_line_with_its_rows_and_labels(plan_of: Callable[..., Plan]) -> None:
    lines = of_files(plan_of({"de/test": [{"text": f"{n}", "label": "b" if n < 7 else "a"} for n in range(10)]}))
    assert all(line.state is State.GOOD and line.thing == "data topic" for line in lines)
    files = [f"data/{name}.jsonl" for name in ("en/train", "en/dev", "en/test", "de/test")]
    assert sorted(line.text.partition(":")[0] for line in lines) == sorted(files)
    [of_german] = [line.text for line in lines if "de/test" in line.text]
    assert of_german == "data/de/test.jsonl: 10 rows, 2 labels; the most frequent is b (70%)"


def test_remarks_of_reading_are_open(plan_of: Callable[..., Plan]) -> None:
    lines = of_files(plan_of({"de/test": [{"text": "one\x00", "label": "a"}, {"text": "two", "label": "b"}]}))
    [remark] = [line.text for line in lines if line.state is State.OPEN]
    assert remark.startswith("data/de/test.jsonl: 1 of 2 rows have control characters in column 'text'")


def test_the_same_file_for_several_splits_is_open(plan_of: Callable[..., Plan], sized_tasks: dict[str, Any]) -> None:
    sized_tasks["topic"]["data"] = {"local": "data/{language}/test.jsonl"}
    lines = of_files(plan_of(tasks=sized_tasks))
    problems = [line.text for line in lines if line.state is State.OPEN]
    assert "train and test in en are both read from data/en/test.jsonl: put {split} into `local`" in problems


def test_missing_files_are_one_line_and_the_others_are_read(plan_of: Callable[..., Plan]) -> None:
    problem, *rest = of_files(plan_of({"de/test": None}))
    assert problem.state is State.PROBLEM and "data/de/test.jsonl" in problem.text
    assert rest and all(line.state is State.GOOD and line.text.startswith("data/en/") for line in rest)


@pytest.mark.parametrize("rows", [1, 31, 32])
def test_few_training_examples_are_remarked(plan_of: Callable[..., Plan], rows: int) -> None:
    """Fewer than fill a batch; of test sets, any number will do."""
    train = [{"text": str(number), "label": "a"} for number in range(rows)]
    lines = of_files(plan_of({"en/train": train, "de/test": [{"text": "one", "label": "a"}]}))
    few = [line.text for line in lines if line.state is State.OPEN]
    remark = f"data/en/train.jsonl: {rows} training example{'s' * (rows > 1)} for 2 labels: "
    assert [text.startswith(remark) for text in few] == ([] if rows == 32 else [True])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "one", "label": "c"}, "'c'"),
        ({"sentence": "one", "label": "a"}, "no column 'text'"),
        ({"text": None, "label": "a"}, "the value is missing"),
    ],
)
def test_a_wrong_row_is_a_problem_with_its_file(
    plan_of: Callable[..., Plan], row: dict[str, str], message: str
) -> None:
    problem, *_ = of_files(plan_of({"de/test": [row]}))
    assert problem.state is State.PROBLEM and "data/de/test.jsonl" in problem.text and message in problem.text


def test_a_folder_of_the_name_of_a_file_is_no_file(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of({"de/test": None})
    Path("data/de/test.jsonl").mkdir(parents=True)
    problem, *_ = of_files(plan)
    assert problem.state is State.PROBLEM and problem.text.startswith("there is no file data/de/test.jsonl: put it")


def test_a_large_file_is_left_to_its_job(plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlgrid.preflight.files.MOST", 10)
    [line] = of_files(plan_of())
    assert line.state is State.OPEN and "only the job reads it" in line.text


def test_files_that_are_downloaded_are_no_problem_and_their_host_is_named(plan_of: Callable[..., Plan]) -> None:
    downloads = {"data/de/{split}.jsonl": {"url": "https://a.test/{split}"}}
    lines = of_files(plan_of({"de/test": None}, downloads=downloads))
    assert {line.state for line in lines} == {State.GOOD}
    assert lines[0].text == "Snakemake downloads data/de/test.jsonl from a.test"


def test_files_that_a_person_gets_are_one_line_with_what_to_do_until_they_are_there(
    plan_of: Callable[..., Plan],
) -> None:
    downloads = {"data/{language}/{split}.jsonl": {"by_hand": "get them at https://a.test"}}
    missing = {"de/test": None, "en/dev": None}
    problem, *rest = of_files(plan_of(missing, downloads=downloads))
    assert problem.state is State.PROBLEM and "https://a.test" in problem.text
    assert "2 files are missing (" in problem.text and "data/de/test.jsonl" in problem.text
    assert {line.state for line in (*rest, *of_files(plan_of(downloads=downloads)))} == {State.GOOD}


def test_a_file_that_its_entry_cannot_get_is_a_problem(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Download, "lacking", lambda self, path, values: f"{path} lacks {values['language']}")
    downloads = {"data/{language}/{split}.jsonl": {"url": "https://a.test/{language}/{split}"}}
    lines = of_files(plan_of({"de/test": None}, downloads=downloads))
    assert (State.PROBLEM, "data/{language}/{split}.jsonl lacks de") in [(line.state, line.text) for line in lines]


def test_data_of_another_task_are_no_problem_before_they_are_made(plan_of: Callable[..., Plan]) -> None:
    generated = {"kind": "wikiann", "max_length": 16, "options": {"n": 10}}
    taken = {
        "kind": "wikiann",
        "max_length": 16,
        "data": {"local": "results/topics/data/generated/{language}/{split}.parquet"},
    }
    grid = {**GRID, "task": ["taken"]}
    tasks = {"generated": generated, "taken": taken}
    [line] = of_files(plan_of(languages=["qa1", "qa2"], tasks=tasks, grids={"all": grid}))
    assert line.state is State.GOOD and "Snakemake makes results/topics/data/generated/" in line.text


def write_encoder(folder: Path, tokens: list[str], embeddings: int, **config: object) -> None:
    """A folder with a tokenizer of these tokens, and an encoder with so many embeddings."""
    folder.mkdir()
    tokenizer = tokenizers.Tokenizer(
        models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token=tokens[-1])
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    special |= {name: token for name, token in (("pad_token", "[PAD]"), ("mask_token", "[MASK]")) if token in tokens}
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
    sizes = {"hidden_size": 2, "num_hidden_layers": 0, "num_attention_heads": 1, "max_position_embeddings": 8}
    about = {"model_type": "bert", "vocab_size": embeddings, **sizes, **config}
    (folder / "config.json").write_text(json.dumps(about))
    weights = BertModel(BertConfig(**{"vocab_size": embeddings, "pad_token_id": 0, **sizes, **config})).state_dict()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def test_an_encoder_with_an_embedding_for_each_token_is_in_order(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(encoders={"e": {"path": "mine"}})
    write_encoder(Path("mine"), ["[PAD]", "[MASK]", "one", "two"], 4)
    assert {thing: line.state for thing, line in of_tokenizers(plan).items()} == {
        "tokenizer e": State.GOOD,
        "encoder e": State.GOOD,
    }


def test_a_padding_that_the_copy_changes_is_said(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(encoders={"e": {"path": "mine"}})
    write_encoder(Path("mine"), ["[MASK]", "[PAD]", "one", "two"], 4, pad_token_id=0)
    line = of_tokenizers(plan)["encoder e"]
    assert line.state is State.GOOD and "the copy takes the `pad_token_id` 1 of the tokenizer" in line.text


def test_weights_in_several_files_are_read(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(encoders={"e": {"path": "mine"}})
    write_encoder(Path("mine"), ["[PAD]", "[MASK]", "one", "two"], 3)
    shard = Path("mine/model.safetensors").rename("mine/model-00001-of-00001.safetensors")
    index = {"weight_map": dict.fromkeys(load_file(shard), shard.name)}
    Path("mine/model.safetensors.index.json").write_text(json.dumps(index))
    line = of_tokenizers(plan)["encoder e"]
    assert line.state is State.PROBLEM and "'two' has the id 3, but there are 3 embeddings" in line.text
    shard.unlink()
    line = of_tokenizers(plan)["encoder e"]
    assert line.state is State.PROBLEM and f"has no {shard.name}" in line.text


def test_a_token_without_an_embedding_is_a_problem(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(encoders={"e": {"path": "mine"}})
    write_encoder(Path("mine"), ["[PAD]", "[MASK]", "one", "two"], 3)
    line = of_tokenizers(plan)["encoder e"]
    assert line.state is State.PROBLEM and "'two' has the id 3, but there are 3 embeddings" in line.text


def test_a_special_token_that_a_task_needs_is_a_problem_if_it_is_missing(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(encoders={"e": {"path": "mine"}})
    write_encoder(Path("mine"), ["[MASK]", "one"], 2)
    line = of_tokenizers(plan)["tokenizer e"]
    assert line.state is State.PROBLEM and "pad_token" in line.text


def test_what_has_not_been_fetched_is_one_open_line(plan_of: Callable[..., Plan]) -> None:
    lines = of_tokenizers(plan_of())
    assert {*lines} == {"tokenizer e, encoder e"}
    [line] = lines.values()
    assert line.state is State.OPEN and "xlgrid fetch topics" in line.text


def naming_files() -> list[str]:
    """The studies that have a key, or extend a study that has one, with which a study names files of its own."""
    texts = {path.stem: re.sub("#.*", "", path.read_text()) for path in STUDIES.values()}
    named = {name for name, text in texts.items() if re.search(r"\b(local|path|files): ", text)}
    return sorted(name for name, text in texts.items() if {name, *re.findall("(?m)^extends: (.*)", text)} & named)


def taken(plan: Plan) -> dict[str, Material]:
    return {str(material.named.path): material for material in materials(plan)}


def test_the_files_of_each_split_and_the_repository_of_the_encoder_are_named(plan_of: Callable[..., Plan]) -> None:
    by_path = taken(plan_of())
    files = {material.files for material in by_path.values() if isinstance(material.named, Data)}
    assert files == {("data/en/train.jsonl",), ("data/en/dev.jsonl",), ("data/en/test.jsonl",), ("data/de/test.jsonl",)}
    repositories = {type(each.named): each.repository for each in by_path.values() if each.repository}
    expected = Repository("model", "some/encoder", "main")
    assert repositories == {Tokenizer: expected, Encoder: expected}


def test_data_on_the_hub_have_a_repository_and_no_files(plan_of: Callable[..., Plan]) -> None:
    task = {"kind": "wikiann", "data": {"hub": "some/data", "name": "{language}", "revision": "v2"}}
    plan = plan_of(tasks={"topic": task})
    data = [material for material in taken(plan).values() if isinstance(material.named, Data)]
    assert {material.repository for material in data} == {Repository("dataset", "some/data", "v2")}
    assert {material.files for material in data} == {()}


def test_what_is_generated_is_not_taken_from_outside(plan_of: Callable[..., Plan]) -> None:
    scratch = {"kind": "xlmr", "languages": ["qa1", "qa2"], "hidden": 16, "layers": 1, "intermediate": 16}
    grid = {**GRID, "task": ["topic"]}
    tasks = {"topic": {"kind": "wikiann", "max_length": 64}}
    plan = plan_of(languages=["qa1", "qa2"], encoders={"e": {"scratch": scratch}}, tasks=tasks, grids={"all": grid})
    assert taken(plan) == {}


@pytest.mark.slow
@pytest.mark.parametrize("study", naming_files())
def test_each_file_of_a_study_is_made_downloaded_or_named_with_its_address(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a project without files of one's own, so that nobody learns of a missing one from a job."""
    monkeypatch.chdir(tmp_path)
    plan = load_plan(STUDIES[study])
    outside = materials(plan)
    downloads = downloads_of(plan, outside)
    others = {file for material in outside for file in material.files} - {*downloads}
    # A study may take the data of one of its tasks as the files of another.
    assert [file for file in others if not Data.parse(file)] == []
    assert [found.problem for found in downloads.values() if found.problem] == []
    for line in by_hand_lines(plan, outside):
        assert re.search(r"https?://\S+\.\S+", line.text), f"{line.thing} has no address"


NER = task("token", {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER"]})
QA = task("span", {"inputs": ["question", "context"], "target": "answers"})


def rows(split: str, inputs: list[int], language: str = "en", file: str = "") -> Rows:
    return Rows(language, split, [file or f"{language}-{split}"], f"{len(inputs)} rows", inputs)


def remarks(*read: Rows) -> list[str]:
    return [line.text for line in row_lines("data x", read) if line.state is State.OPEN]


def test_labels_of_words_are_counted_for_each_word() -> None:
    table = pa.table({"words": [["Ada", "is", "in"], ["No"]], "tags": [[1, 0, 0], [0]]})
    assert rows_of("en", "test", ["x"], table, NER).described == "2 rows, 2 labels; the most frequent is O (75%)"


def test_rows_without_labels_are_counted_alone() -> None:
    answers = [{"text": ["a"], "answer_start": [0]}]
    table = pa.table({"question": ["q"], "context": ["a b"], "answers": answers})
    assert rows_of("en", "test", ["x"], table, QA).described == "1 row"
    assert rows_of("en", "test", ["x"], pa.table({"words": [["Ada"]]}), NER).described == "1 row"


def test_rows_are_the_same_if_the_encoder_reads_the_same() -> None:
    first, second = ({"words": [["Ada"], ["No"]], "tags": tags} for tags in ([[0], [0]], [[1], [0]]))
    inputs = [rows_of("en", "test", ["x"], pa.table(table), NER).inputs for table in (first, second)]
    assert inputs[0] == inputs[1] and len({*inputs[0]}) == 2


@pytest.mark.parametrize(
    ("first", "second", "remark"),
    [
        ([1, 2, 3], [1, 2, 3], "train and test in en have the same 3 rows: see whether"),
        ([1, 2, 3], [3, 2, 4], "train and test in en: 2 of 3 test rows are train rows, too"),
        ([*range(100)], [*range(95, 195)], None),
        ([1, 2, 3], [4, 5], None),
    ],
)
def test_splits_with_many_rows_in_common_are_remarked(first: list[int], second: list[int], remark: str | None) -> None:
    said = remarks(rows("train", first), rows("test", second))
    assert len(said) == (remark is not None) and all(text.startswith(str(remark)) for text in said)


def test_one_file_for_two_splits_is_named() -> None:
    [remark] = remarks(rows("dev", [1, 2], file="x.csv"), rows("test", [1, 2], file="x.csv"))
    assert remark == "dev and test in en are both read from x.csv: put {split} into `local`"


def test_rows_that_two_splits_of_one_file_share_are_counted() -> None:
    """Such as those of a database, or of a file in which `where` tells the splits apart."""
    [remark] = remarks(rows("dev", [1, 2], file="x.db"), rows("test", [2, 3], file="x.db"))
    assert remark == "dev and test in en: 1 of 2 test rows are dev rows, too"


def test_one_file_for_two_languages_is_named_and_translations_are_not() -> None:
    [remark] = remarks(*(rows("test", [1, 2], language, "x.csv") for language in ("en", "de")))
    assert remark == "test in en and de are both read from x.csv: put {language} into `local`"
    assert not remarks(rows("test", [1, 2], "en"), rows("test", [3, 4], "de"))
