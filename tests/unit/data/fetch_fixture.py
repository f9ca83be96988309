"""Data of tasks that tests read as the jobs do."""

import pyarrow as pa
import pyarrow.parquet as pq

from xlgrid.data import fetch
from xlgrid.data.formats import read_table
from xlgrid.data.origins.origin import SPLITS

MASAKHA = "Nairobi B-LOC\nmwaka B-DATE\n2021 I-DATE\n. O\n\nAda B-PER\nLovelace I-PER\n"
DATE = {"labels": ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-DATE", "I-DATE"]}
XNLI = {0: "entailment", 1: "neutral", 2: "contradiction"}
NER = {"inputs": ["words"], "target": "tags", "labels": ["O", "B-PER", "I-PER"]}


def fetch_data(kind, source, language, folder, lock):
    """Every split."""
    for split in SPLITS:
        fetch.fetch_data(kind, source, language, split, folder / f"{split}.parquet", lock)


def written(folder, row):
    """A file of two equal rows, as the source of the test set."""
    pq.write_table(pa.Table.from_pylist([row, row]), folder / "test.parquet")
    return {"local": f"{folder}/{{split}}.parquet"}


def fetched(kind, source, folder, columns=None, language="en"):
    """The rows of the test set."""
    fetch.fetch_data(kind, source, language, "test", folder / "out.parquet", folder / "lock.yaml", columns)
    return read_table(folder / "out.parquet").to_pylist()
