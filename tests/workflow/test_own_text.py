"""A language with a text file of one's own: what is made from it, and what is made again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from project import planned, project, shell, small, write

from xlgrid.data import batches
from xlgrid.data.formats import read_table

TOKENS = "results/demo/tokens/mlm/mini-xlmr/qa9/train.arrow"
LINES = [f"line {i} of a language of mine" for i in range(60)]


def study(task: dict[str, Any] | None = None, **text: Any) -> dict[str, Any]:
    """The demo with two languages more, which no encoder knows, and a task on text."""
    demo = small()
    # Texts of other languages would make the pre-training longer, and change nothing here.
    demo["encoders"]["mini-xlmr"]["scratch"] |= {"languages": ["qa1"], "bitext": []}
    demo["tasks"]["mlm"] = {"kind": "mlm"} | (task or {})
    demo["languages"] += ["qa9", "qb9"]
    demo["text"] |= {"files": {"qa9": "my.txt"}} | text
    return demo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("own"), study())
    (folder / "my.txt").write_text("\n\n".join(LINES))
    process = shell(folder, f"snakemake --profile laptop {TOKENS}")
    assert process.returncode == 0, process.stderr[-4000:]
    return folder


@pytest.fixture(autouse=True)
def as_it_was(built: Path) -> Iterator[None]:
    yield
    write(built, study())


def test_the_lines_are_the_text(built: Path) -> None:
    assert read_table(built / "results/demo/text/qa9.parquet")["text"].to_pylist() == LINES
    # With the empty lines between them, lines 0, 50 and 100 are for dev, and lines 26 and 76 for test.
    assert len(batches.read(built / TOKENS, "qa9")) == 55


@pytest.mark.parametrize(
    "task",
    [{"options": {"documents": "split"}}, {"max_length": 9}, {"options": {"dev_rows": 1}}, {"separators": "one"}],
)
def test_what_concerns_tokens_needs_no_other_text(built: Path, task: dict[str, Any]) -> None:
    write(built, study(task))
    assert planned(built, TOKENS) == {"tokens": 1}


def test_a_file_for_another_language_concerns_that_one_only(built: Path) -> None:
    (built / "other.txt").write_text("a\nb\n")
    write(built, study(files={"qa9": "my.txt", "qb9": "other.txt"}))
    assert planned(built, TOKENS) == {}


def test_a_language_that_the_study_declares_has_text_too(built: Path) -> None:
    changed = study(files={"qa9": "my.txt", "nqo": "other.txt"})
    changed["languages"].append("nqo")
    changed["new_languages"] = {"nqo": {"name": "N'Ko", "family": "Mande", "script": "Nkoo", "direction": "rtl"}}
    (built / "other.txt").write_text("ߒߞߏ ߕߟߋ߬ߓߊ߮\n" * 3)
    write(built, changed)
    process = shell(built, "snakemake --cores 1 results/demo/text/nqo.parquet")
    assert process.returncode == 0, process.stderr[-4000:]
    assert read_table(built / "results/demo/text/nqo.parquet").num_rows == 3
    assert planned(built, TOKENS.replace("qa9", "nqo")) == {"tokens": 1}


def test_settings_of_generated_text_do_not_concern_it(built: Path) -> None:
    write(built, study(seed=9))
    assert planned(built, "results/demo/text/qa9.parquet") == {}


def test_a_changed_file_is_read_again(built: Path) -> None:
    """By rule `text`, which is no local rule: a large file should not be read on a login node."""
    (built / "my.txt").write_text("\n".join(LINES[:50]))
    assert planned(built, TOKENS) == {"text": 1, "tokens": 1}


def test_a_file_that_is_not_there_is_told_by_its_name(built: Path) -> None:
    write(built, study(files={"qa9": "my.txt", "qb9": "mine.txt"}))
    process = shell(built, f"snakemake --dry-run {TOKENS.replace('qa9', 'qb9')}")
    assert process.returncode and "mine.txt" in process.stdout + process.stderr


def test_a_task_on_text_takes_data_of_its_own(built: Path) -> None:
    """Sentences and their translations in files, with a dev set, in the place of the texts of the study."""
    source = {"local": "bitext/{language}/{split}.jsonl"}
    task = {"inputs": ["source", "translation"], "data": source, "max_length": 32}
    changed = study(task)
    changed["methods"] |= {
        "cs": {"base": "full-ft"},
        "after": {"base": "bitfit", "start": {"task": "mlm", "method": "cs"}},
    }
    changed["methods"]["after"]["start"]["source"] = "qa9-qb9"
    [name] = [name for name, grid in changed["grids"].items() if "ner" in grid["task"]]
    changed["grids"]["after"] = changed["grids"][name] | {
        "method": ["after"],
        "source": ["qa1"],
        "target": ["qa1"],
        "seed": [1],
    }
    folder = built / "bitext" / "qa9-qb9"
    folder.mkdir(parents=True)
    for split, number in (("train", 40), ("dev", 6)):
        rows = [{"source": f"a sentence {i}", "translation": f"of mine {i}"} for i in range(number)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write(built, changed)
    run = "results/demo/runs/mlm/mini-xlmr/cs/qa9-qb9/seed1/run.json"
    process = shell(built, f"snakemake --profile laptop {run}")
    assert process.returncode == 0, process.stderr[-4000:]
    record = json.loads((built / run).read_text())
    assert (record["n_train"], record["n_dev"], record["metric"]) == (40, 6, "accuracy")
    cell = "results/demo/cells/ner/mini-xlmr/after/qa1/qa1/seed1.json"
    assert planned(built, cell)["train"] == 1, "the run on text is there, the run of the task begins with it"
