"""The head `parse`: what the data may be, sentences that are too long, the loss, trees, and runs of every family and method."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from published_fixture import PUBLISHED, publish, take_over
from tokenizers_fixture import tokenizer_of

from xlgrid.data import batches
from xlgrid.data.fetch import fetch_data
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.cell import evaluate
from xlgrid.heads import HEADS
from xlgrid.heads.encoding import IGNORED, Encoding
from xlgrid.heads.parsing.head import Parsing, Tree
from xlgrid.heads.parsing.trees import best_tree, problem_of
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method
from xlgrid.models import prediction
from xlgrid.models.load import has_segments, load_model
from xlgrid.results import records
from xlgrid.tasks import task
from xlgrid.training.loop import train
from xlgrid.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")

HEAD: Any = HEADS["parse"]
RELATIONS = ("root", "nsubj", "obj", "advmod")
COLUMNS = {"inputs": ["tokens"], "target": "deprel", "labels": [*RELATIONS]}
TASK = task("parse", COLUMNS)
# "anne see the dogs" and others, whose words have one token or several.
SENTENCES = [
    ["anne", "see", "the", "dogs"],
    ["dogs", "see"],
    ["big"],
    ["see", "anne", "big"],
    ["the", "dogs", "is", "big", "an"],
]
HEADS_OF = [[2, 0, 4, 2], [2, 0], [0], [0, 1, 1], [2, 3, 0, 3, 4]]
NUMBERS = [[1, 0, 3, 2], [1, 0], [0], [0, 2, 3], [3, 1, 0, 2, 3]]


def table(**columns: Any) -> pa.Table:
    return pa.table({"tokens": SENTENCES, "head": HEADS_OF, "deprel": NUMBERS} | columns)


def encoding(max_length: int = 40, **options: Any) -> Encoding:
    return Encoding(tokenizer_of("wordpiece"), max_length, options=Parsing(**options))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and the tokens of the sentences."""
    folder = tmp_path_factory.mktemp("parsing")
    _, tokenizer = take_over(publish("bert", folder / "hub"), folder)
    pq.write_table(table(), folder / "rows.parquet")
    tokenize([folder / "rows.parquet"], tokenizer, "parse", 40, folder / "rows.arrow", columns=COLUMNS)
    return folder


def model_of(world: Path) -> Any:
    torch.manual_seed(1)
    return load_model(world / "encoder", HEAD, len(RELATIONS)).eval()


# Data


def test_the_current_data_of_the_hub_are_read(tmp_path: Path) -> None:
    """Syntactic words alone, with heads as text and subtypes of relations."""
    rows = {"tokens": [["anne", "see", "dogs"]], "head": [["2", "0", "2"]], "deprel": [["nsubj:outer", "root", "obj"]]}
    assert read(tmp_path, **rows) == [{"tokens": ["anne", "see", "dogs"], "head": [2, 0, 2], "deprel": [1, 0, 2]}]


@pytest.mark.parametrize("missing", ["None", None])
def test_multiword_tokens_and_empty_nodes_of_older_data_of_the_hub_are_left_out(
    tmp_path: Path, missing: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        "tokens": [["annesee", "anne", "see", "dogs", "big"], ["see"]],
        "head": [[missing, "2", "0", "2", missing], ["0"]],
        "deprel": [["_", "nsubj", "root", "obj", "_"], ["root"]],
    }
    assert read(tmp_path, **rows)[0] == {"tokens": ["anne", "see", "dogs"], "head": [2, 0, 2], "deprel": [1, 0, 2]}
    assert "2 rows: 2 multiword tokens and empty nodes left out" in capsys.readouterr().err


def read(folder: Path, **columns: Any) -> list[dict[str, Any]]:
    pq.write_table(pa.table(columns), folder / "en.parquet")
    source = {"local": str(folder / "{language}.parquet")}
    fetch_data("parse", source, "en", "train", folder / "out.parquet", folder / "lock", COLUMNS)
    found: list[dict[str, Any]] = pq.read_table(folder / "out.parquet").to_pylist()
    return found


@pytest.mark.parametrize("name", ["en.conllu", "en.conll"])
def test_files_of_conllu_are_read(tmp_path: Path, name: str) -> None:
    lines = ["1-2\tannesee", "1\tanne\t_\t_\t_\t_\t2\tnsubj:pass\t_\t_", "2\tsee\t_\t_\t_\t_\t0\troot\t_\t_"]
    conllu = "\n".join(["# text = annesee", lines[0] + "\t_" * 8, *lines[1:], "2.1\tx" + "\t_" * 8, "", ""])
    (tmp_path / name).write_text(conllu if name.endswith("u") else "\n".join([*lines[1:], "", ""]))
    source = {"local": str(tmp_path / name)}
    if name.endswith(".conll"):
        with pytest.raises(
            ValueError, match=r"which columns are tokens, head, deprel\? Name the columns in their order"
        ):
            fetch_data("parse", source, "en", "train", tmp_path / "out.parquet", tmp_path / "lock", COLUMNS)
        source |= {"columns": ["_", "tokens", "_", "_", "_", "_", "head", "deprel"]}
    fetch_data("parse", source, "en", "train", tmp_path / "out.parquet", tmp_path / "lock", COLUMNS)
    expected = [{"tokens": ["anne", "see"], "head": [2, 0], "deprel": [1, 0]}]
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"head": [["2", "_"]]}, "row 1, column 'head': the head of a word must be a number, 0 for the root, got '2'"),
        ({"head": [["2", "0", "1"]]}, "row 1, column 'head': 3 heads for 2 words"),
        ({"head": [["2", "1"]]}, "row 1, column 'head': 0 words have the head 0"),
        ({"head": [["3", "0"]]}, "row 1, column 'head': the head of word 1 is 3"),
        ({"head": [[]]}, "row 1, column 'head': 0 heads for 2 words"),
        ({"head": [["2", "None", "0", "None"]]}, "row 1, column 'head': 2 heads for 1 words"),
        ({"head": [2]}, "row 1, column 'head': the head of a word must be a number, 0 for the root, got 2"),
        ({"head": [None]}, "row 1, column 'head': the value is missing"),
        ({"deprel": [["nsubj", "case"]]}, "unknown label 'case'"),
        ({"deprel": [["nsubj"]]}, "2 values in 'tokens' but 1 in 'deprel'"),
    ],
)
def test_what_is_wrong_with_a_row_is_told(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    rows = {"tokens": [["anne", "see"]], "head": [["2", "0"]], "deprel": [["nsubj", "root"]]}
    with pytest.raises(ValueError) as error:
        read(tmp_path, **(rows | change))
    assert problem in str(error.value)


def test_a_missing_column_of_heads_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no column 'head', which parse needs"):
        read(tmp_path, tokens=[["see"]], heads=[["0"]], deprel=[["root"]])


def test_a_subtype_that_the_task_has_stays(tmp_path: Path) -> None:
    own = task("parse", COLUMNS | {"labels": [*RELATIONS, "nsubj:pass"]})
    found = HEAD.labelled(pa.chunked_array([[["nsubj:pass", "nsubj:outer", "root"]]]), own, {})
    assert found.to_pylist() == [[4, 1, 0]]
    found = HEAD.labelled(
        pa.chunked_array([[["nsubj:pass", "subj", "root"]]]), own, {"subj": "nsubj", "nsubj:pass": "obj"}
    )
    assert found.to_pylist() == [[2, 1, 0]]


# Tokens


def test_each_token_has_the_number_of_its_word_and_the_first_one_is_the_root() -> None:
    rows = HEAD.encode(table(), TASK, encoding())
    pieces = tokenizer_of("wordpiece").convert_ids_to_tokens(rows["input_ids"][0])
    assert pieces == ["[CLS]", "an", "##ne", "see", "the", "do", "##gs", "[SEP]"]
    assert rows["word"][0] == [0, 1, 1, 2, 3, 4, 4, -1]
    assert (rows["heads"], rows["relations"]) == (HEADS_OF, NUMBERS)


def test_of_a_long_sentence_the_first_words_are_read() -> None:
    cut = encoding(6)
    rows = HEAD.encode(table(), TASK, cut)
    assert rows["word"][0] == [0, 1, 1, 2, 3, -1], "`dogs` would have two tokens more"
    assert rows["heads"] == HEADS_OF and cut.truncated == 2
    assert all(len(ids) <= 6 for ids in rows["input_ids"])


def test_a_tokenizer_without_special_tokens_is_refused() -> None:
    bare = encoding()
    bare.tokenizer.backend_tokenizer.post_processor = None
    with pytest.raises(
        ValueError, match="no special token at the beginning or the end of an input, which would stand for"
    ):
        HEAD.encode(table(), TASK, bare)


# Batches and the loss


def cut(world: Path, size: int) -> Tokens:
    """The tokens of the sentences, cut to a size."""
    path = world / f"{size}.arrow"
    tokenize([world / "rows.parquet"], world / "tokenizer", "parse", size, path, columns=COLUMNS)
    return batches.read(path, "en")


def test_a_batch_has_the_weights_of_tokens_and_the_labels_of_words(world: Path) -> None:
    tokens = batches.read(world / "rows.arrow", "en")
    batch = HEAD.collate(tokens, np.array([1, 0]), True)
    assert batch["labels"].tolist() == [
        [[2, 1], [0, 0], [IGNORED, IGNORED], [IGNORED, IGNORED]],
        [[2, 1], [0, 0], [4, 3], [2, 2]],
    ]
    assert batch["words"].shape == (2, 5, 8)
    assert batch["words"][1, 1].tolist() == [0, 0.5, 0.5, 0, 0, 0, 0, 0]
    assert batch["words"].sum(-1).tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert HEAD.terms(batch) == 6


def test_a_word_whose_head_is_not_read_has_no_loss(world: Path) -> None:
    batch = HEAD.collate(cut(world, 6), np.array([0]), True)
    assert batch["labels"].tolist() == [[[2, 1], [0, 0], [IGNORED, IGNORED]]]
    assert HEAD.terms(batch) == 2


def test_the_loss_is_the_sum_over_words_of_the_cross_entropies_of_head_and_relation(world: Path) -> None:
    tokens, model = batches.read(world / "rows.arrow", "en"), model_of(world)
    expected = 0.0
    for row, (heads, relations) in enumerate(zip(HEADS_OF, NUMBERS, strict=True)):
        batch = HEAD.collate(tokens, np.array([row]), True)
        batch.pop("labels")
        vectors = model(**batch).logits
        arcs = model.parser.arcs(vectors, torch.ones(1, len(heads) + 1, dtype=torch.bool))[0].log_softmax(-1)
        names = model.parser.relations(vectors, torch.tensor([heads]))[0].log_softmax(-1)
        for word, (head, relation) in enumerate(zip(heads, relations, strict=True)):
            expected -= (arcs[word, head] + names[word, relation]).item()
    batch = HEAD.collate(tokens, np.arange(5), True)
    assert HEAD.loss(model, batch).item() == pytest.approx(expected, rel=1e-5)
    assert HEAD.terms(batch) == 15


@torch.inference_mode()
def test_predictions_are_the_best_trees_with_the_best_relations_and_padding_changes_none(world: Path) -> None:
    tokens, model = batches.read(world / "rows.arrow", "en"), model_of(world)
    together = HEAD.predict(model, HEAD.collate(tokens, np.arange(5), True), tokens, np.arange(5))
    for row, tree in enumerate(together):
        batch = HEAD.collate(tokens, np.array([row]), True)
        assert HEAD.predict(model, batch, tokens, np.array([row])) == [tree]
        assert problem_of(tree.heads) is None and len(tree.relations) == len(tree.heads) == len(SENTENCES[row])
        batch.pop("labels")
        vectors = model(**batch).logits
        arcs = model.parser.arcs(vectors, torch.ones(1, len(tree.heads) + 1, dtype=torch.bool))[0]
        assert tree.heads == best_tree(arcs.double().numpy())
        assert tree.relations == model.parser.relations(vectors, torch.tensor([tree.heads]))[0].argmax(-1).tolist()


# Scores


def test_outcomes_have_relations_without_their_subtypes(world: Path) -> None:
    tokens = replace(cut(world, 40), label_names=("nsubj:pass", "root", "nsubj", "root:x"))
    outcomes = HEAD.outcomes(tokens, [Tree(heads, names) for heads, names in zip(HEADS_OF, NUMBERS, strict=True)])
    assert [outcome[1] for outcome in outcomes] == [[1, 0, 1, 0], [1, 0], [0], [0, 0, 1], [1, 1, 0, 0, 1]]
    assert HEAD.metric(RELATIONS, "las").score(outcomes) == 100


def test_outcomes_are_over_all_words_of_the_file(world: Path) -> None:
    tokens = cut(world, 6)
    right = [
        Tree(heads[:count], names[:count])
        for heads, names, count in zip(HEADS_OF, NUMBERS, (3, 2, 1, 3, 3), strict=True)
    ]
    outcomes = HEAD.outcomes(tokens, right)
    assert [outcome[0] for outcome in outcomes] == HEADS_OF
    assert HEAD.counts(tokens, outcomes) == {"words": 15, "unread": 3}
    assert HEAD.metric(RELATIONS, "uas").score(outcomes) == pytest.approx(100 * 12 / 15)


def test_chance_is_the_better_chain(world: Path) -> None:
    """Over which 6 words have the word after them as their head, and the root is never the last word but in `dogs see` and `big`."""
    tokens = batches.read(world / "rows.arrow", "en")
    after = sum(
        heads == guess for row in HEADS_OF for heads, guess in zip(row, [*range(2, len(row) + 1), 0], strict=True)
    )
    before = sum(heads == guess for row in HEADS_OF for heads, guess in zip(row, range(len(row)), strict=True))
    assert HEAD.chance(tokens)["uas"] == pytest.approx(100 * max(after, before) / 15)


# Runs


def run(folder: Path, kind: str, base: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """The cell of a run that learns the sentences by heart, of an encoder of a family."""
    encoder, tokenizer = take_over(publish(kind, folder / "hub"), folder)
    pq.write_table(pa.concat_tables([table()] * 4), folder / "rows.parquet")
    sizes = {"arc_size": 20, "relation_size": 10} | (options or {})
    tokens = folder / "rows.arrow"
    tokenize([folder / "rows.parquet"], tokenizer, "parse", 40, tokens, columns=COLUMNS, options=sizes)
    names = {"study": "s", "task": "t", "kind": "parse", "encoder": "e", "method": base, "source": "en", "seed": 1}
    settings = {"steps": 40, "batch_tokens": 200, "evaluations": 1, "lr": 1e-2, "dropout": 0.0}
    recipe = Recipe.model_validate({**names, "base": base, "training": settings})
    train(recipe, encoder, [tokens], [tokens], folder / "run")
    evaluate(folder / "run", encoder, tokens, {"target": "en"}, folder / "cell.json")
    cell: dict[str, Any] = records.read_cell(folder / "cell.json")
    return cell


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_run_of_every_family_learns_and_is_evaluated(kind: str, tmp_path: Path) -> None:
    cell = run(tmp_path, kind, "full-ft")
    assert cell["scores"]["las"] > 90 and cell["words"] == 60 and cell["unread"] == 0
    assert cell["metric"]["name"] == "las" and cell["n"] == 20
    assert cell["options"] == {"arc_size": 20, "relation_size": 10}


@pytest.mark.parametrize("options", [{"arc_size": 0, "relation_size": 0}])
def test_a_run_learns_with_other_options(options: dict[str, Any], tmp_path: Path) -> None:
    assert run(tmp_path, "xlm-roberta", "bitfit", options)["scores"]["uas"] > 90


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_model_of_every_family_has_a_finite_loss(kind: str, tmp_path: Path) -> None:
    if kind == "xmod":
        pytest.skip("an X-MOD has to be told the language of each input")
    encoder, tokenizer = take_over(publish(kind, tmp_path / "hub"), tmp_path)
    pq.write_table(table(), tmp_path / "rows.parquet")
    tokenize([tmp_path / "rows.parquet"], tokenizer, "parse", 12, tmp_path / "rows.arrow", columns=COLUMNS)
    tokens = batches.read(tmp_path / "rows.arrow", "en")
    model: Any = load_model(encoder, HEAD, len(RELATIONS), 0.0)
    batch = HEAD.collate(tokens, np.arange(5), has_segments(model))
    assert bool(torch.isfinite(HEAD.loss(model, batch)))
    outcomes = prediction.outcomes_on(model, Method(), tokens, 40)
    assert outcomes == prediction.outcomes_on(model, Method(), tokens, 400)
