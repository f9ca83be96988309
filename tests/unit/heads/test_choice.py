"""The head `choice`: the segments of each choice, and the labels of data."""

from typing import Any

import pyarrow as pa
import pytest
from transformers import BertTokenizerFast

from xlgrid.heads import HEADS
from xlgrid.heads.encoding import Encoding
from xlgrid.tasks import TASKS

HEAD, TASK = HEADS["choice"], TASKS["copa"]
ROWS: list[dict[str, Any]] = [
    {"premise": "it rained", "question": "effect", "choice1": "it got wet", "choice2": "it fell", "label": 1},
    {"premise": "it fell", "question": "cause", "choice1": "it rained", "choice2": "it got wet", "label": 0},
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "it", "rained", "effect", "cause", "got", "wet", "fell"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("choice") / "vocab.txt"
    path.write_text("\n".join(WORDS))
    return BertTokenizerFast(vocab=str(path))


def test_each_choice_has_an_input_beside_everything_else(tokenizer: Any) -> None:
    table = pa.Table.from_pylist([row | {"label": TASK.labels[row["label"]]} for row in ROWS])
    columns = HEAD.encode(table, TASK, Encoding(tokenizer, 20))
    texts = [[tokenizer.decode(ids) for ids in row] for row in columns["input_ids"]]
    assert texts == [
        ["[CLS] it rained effect [SEP] it got wet [SEP]", "[CLS] it rained effect [SEP] it fell [SEP]"],
        ["[CLS] it fell cause [SEP] it rained [SEP]", "[CLS] it fell cause [SEP] it got wet [SEP]"],
    ]
    assert columns["context_length"] == [[5, 5], [5, 5]] and columns["label"] == [1, 0]


def test_labels_may_be_numbers_that_read_as_their_names() -> None:
    HEAD.check(pa.Table.from_pylist(ROWS), TASK, "here")
    with pytest.raises(ValueError, match=r"here, row 1, column 'label': unknown label '7'"):
        HEAD.check(pa.Table.from_pylist([ROWS[0] | {"label": 7}]), TASK, "here")
