"""A language with a text file of one's own: what is made from it, and what is made again."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import make, planned, project, refused, small, write

from xlgrid.data import batches
from xlgrid.data.formats import read_table

TOKENS = "results/demo/tokens/mlm/mini-xlmr/qa9/train.arrow"
LINES = [f"line {i} of a language of mine" for i in range(60)]


def study(task: dict[str, Any] | None = None, **files: str) -> dict[str, Any]:
    """The demo with languages that no encoder knows, of which the study declares one, and a task on text."""
    demo = small()
    # Texts of other languages would make the pre-training longer, and change nothing here.
    demo["encoders"]["mini-xlmr"]["scratch"] |= {"languages": ["qa1"], "bitext": []}
    demo["tasks"]["mlm"] = {"kind": "mlm"} | (task or {})
    demo["languages"] += ["qa9", "qb9", "nqo"]
    demo["new_languages"] = {"nqo": {"name": "N'Ko", "family": "Mande", "script": "Nkoo"}}
    demo["text"] |= {"files": {"qa9": "my.txt", "nqo": "nqo.txt"} | files}
    return demo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("own"), study())
    (folder / "my.txt").write_text("\n\n".join(LINES))
    (folder / "nqo.txt").write_text("ߒߞߏ ߕߟߋ߬ߓߊ߮\n" * 3)
    make(folder, TOKENS, "results/demo/text/nqo.parquet")
    return folder


def test_the_lines_are_the_text(built: Path) -> None:
    assert read_table(built / "results/demo/text/qa9.parquet")["text"].to_pylist() == LINES
    # With the empty lines between them, lines 0, 50 and 100 are for dev, and lines 26 and 76 for test.
    assert len(batches.read(built / TOKENS, "qa9")) == 55
    assert read_table(built / "results/demo/text/nqo.parquet").num_rows == 3, "a declared language has text too"


def test_a_changed_file_is_read_again_and_one_of_another_language_is_not(built: Path) -> None:
    """By rule `text`, which is no local rule: a large file should not be read on a login node."""
    (built / "other.txt").write_text("a\nb\n")
    write(built, study(qb9="other.txt"))
    assert planned(built, TOKENS) == {}
    (built / "my.txt").write_text("\n".join(LINES[:50]))
    assert planned(built, TOKENS) == {"text": 1, "tokens": 1}
    write(built, study(qb9="missing.txt"))
    assert "missing.txt" in refused(built, f"snakemake --dry-run {TOKENS.replace('qa9', 'qb9')}")


def test_a_task_on_text_takes_data_of_its_own(built: Path) -> None:
    """Sentences and their translations in files, with a dev set, in the place of the texts of the study."""
    source = {"local": "bitext/{language}/{split}.jsonl"}
    changed = study({"inputs": ["source", "translation"], "data": source, "max_length": 32})
    start = {"task": "mlm", "method": "cs", "source": "qa9-qb9"}
    changed["methods"] |= {"cs": {"base": "full-ft"}, "after": {"base": "bitfit", "start": start}}
    own = {"method": ["after"], "source": ["qa1"], "target": ["qa1"], "seed": [1]}
    changed["grids"]["after"] = changed["grids"]["ner"] | own
    folder = built / "bitext" / "qa9-qb9"
    folder.mkdir(parents=True)
    for split, number in (("train", 40), ("dev", 6)):
        rows = [{"source": f"a sentence {i}", "translation": f"of mine {i}"} for i in range(number)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write(built, changed)
    run = "results/demo/runs/mlm/mini-xlmr/cs/qa9-qb9/seed1/run.json"
    make(built, run)
    record = json.loads((built / run).read_text())
    assert (record["n_train"], record["n_dev"], record["metric"]) == (40, 6, "accuracy")
    cell = "results/demo/cells/ner/mini-xlmr/after/qa1/qa1/seed1.json"
    assert planned(built, cell)["train"] == 1, "the MLM run is there, the run of the task begins with it"
