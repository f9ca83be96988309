"""Cells of retrieval and mining: generated data, their tokens, and an encoder that nothing trains."""

import json
from pathlib import Path
from typing import Any

import pytest
from scratch_fixture import pretrain

from xlgrid.architectures.scratch import ALL_ARCHITECTURES, architecture_of
from xlgrid.data import batches
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation.cell import evaluate_bare
from xlgrid.results.records import outcomes

pytestmark = pytest.mark.usefixtures("one_thread")

PAIR, TWINS, CODES = "qa1-qb1", "qa1-qa1", ("qa1", "qb1")
IDENTITY = {"study": "s", "encoder": "e", "method": "as-is", "source": "none", "seed": 1}


@pytest.fixture(
    scope="module", params=[kind for kind in ("xlmr", "xmod") if kind == "xlmr" or kind in ALL_ARCHITECTURES.names()]
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, one with a module for each language as well, and the data of both tasks."""
    folder = tmp_path_factory.mktemp("retrieval")
    texts = {code: folder / f"{code}.parquet" for code in CODES}
    for code, path in texts.items():
        make_text(code, path, TextSettings(sentences=100, seed=0))
    size: Any = {"vocab": 300, "hidden": 16, "layers": 2, "heads": 2, "intermediate": 16}
    modules: Any = {"architecture": "xmod", "reduction": 2} if request.param == "xmod" else {}
    pretrain(architecture_of({"kind": "xlmr", "languages": CODES, **size, **modules}), texts, folder / "encoder")
    for kind, target in (("tatoeba", PAIR), ("tatoeba", TWINS), ("bucc", PAIR)):
        make_meanings(kind, {"n": 100}, folder / "meanings.parquet")
        make_data(kind, {"n": 100}, target, folder / "meanings.parquet", folder / f"{kind}-{target}")
    return folder


def cell(
    folder: Path, kind: str, splits: tuple[str, ...], target: str = PAIR, **options: Any
) -> tuple[dict[str, Any], list[Any]]:
    """The cell of a target, and its outcomes."""
    files = [folder / f"{kind}-{target}" / f"{split}.parquet" for split in splits]
    tokenize(files, folder / "encoder", kind, 64, folder / "t.arrow", options=options)
    identity = IDENTITY | {"task": kind, "target": target}
    evaluate_bare(identity, folder / "encoder", folder / "t.arrow", folder / "cell.json")
    read = json.loads((folder / "cell.json").read_text())
    return read, outcomes(folder / "cell.json", read)


def test_a_cell_of_tatoeba_has_an_outcome_for_each_query(folder: Path) -> None:
    read, listed = cell(folder, "tatoeba", ("test",), layer=1)
    assert read["n"] == len(listed) == 20
    assert set(listed) <= {0, 1}
    assert read["scores"] == {"accuracy": pytest.approx(5 * sum(listed))}
    assert (read["options"]["layer"], read["options"]["queries"], read["run"]) == (1, "second", None)


def test_a_sentence_retrieves_itself(folder: Path) -> None:
    """Where both sides of a pair are in one language."""
    read, _ = cell(folder, "tatoeba", ("test",), TWINS)
    assert read["scores"]["accuracy"] == 100


def test_a_cell_of_bucc_has_an_outcome_for_each_sentence_of_the_first_language(folder: Path) -> None:
    read, listed = cell(folder, "bucc", ("test", "dev"), layer=2, k=2)
    tokens = batches.read(folder / "t.arrow", PAIR)
    sides, is_dev = tokens.columns["side"], tokens.columns["is_dev"]
    assert [int(((sides == side) & (is_dev == dev)).sum()) for side in (0, 1) for dev in (0, 1)] == [10, 5, 10, 5]
    assert read["n"] == len(listed) == 10
    right, wrong, missed = (sum(column) for column in zip(*listed, strict=True))
    assert right + missed == 5
    assert read["scores"]["mining-f1"] == pytest.approx(200 * right / (2 * right + wrong + missed))


def test_mining_takes_the_files_of_both_sets(folder: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"needs the files of the test set and of the dev set, got .*test.parquet: give a file for each",
    ):
        cell(folder, "bucc", ("test",))


def test_tokens_of_a_head_that_no_encoder_is_stored_with_are_refused(folder: Path) -> None:
    make_meanings("causal-nli", {"n": 40}, folder / "meanings.parquet")
    make_data("causal-nli", {"n": 40}, "qa1", folder / "meanings.parquet", folder / "theories")
    tokenize([folder / "theories" / "test.parquet"], folder / "encoder", "causal-nli", 64, folder / "theories.arrow")
    with pytest.raises(ValueError, match="no encoder is stored with the head sequence"):
        evaluate_bare(
            IDENTITY | {"task": "causal-nli", "target": "qa1"},
            folder / "encoder",
            folder / "theories.arrow",
            folder / "c",
        )
