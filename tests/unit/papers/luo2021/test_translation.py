"""Parallel sentences of artificial languages."""

import hashlib
import json
from pathlib import Path

import pytest

from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.origins.origin import SPLITS
from xlgrid.papers.luo2021 import translation
from xlgrid.synthetic.artificial import artificial
from xlgrid.tasks import task

OPTIONS = translation.Options(n=20)


def test_source_and_target_state_one_fact_in_the_languages_of_the_pair() -> None:
    for fact in translation.examples(OPTIONS, (14, 2, 4)):
        row = translation.row(fact, "qa1-qb1", OPTIONS)
        assert row == {"source": artificial("qa1").sentence(fact), "target": artificial("qb1").sentence(fact)}
        assert translation.row(fact, "qb1-qa1", OPTIONS) == {"source": row["target"], "target": row["source"]}


def test_a_language_alone_is_copied() -> None:
    (fact,) = translation.examples(OPTIONS, (1, 0, 0))
    row = translation.row(fact, "qa1", OPTIONS)
    assert row["source"] == row["target"] == artificial("qa1").sentence(fact)


def test_a_natural_language_has_no_sentences() -> None:
    (fact,) = translation.examples(OPTIONS, (1, 0, 0))
    with pytest.raises(ValueError, match="'en'"):
        translation.row(fact, "en-qa1", OPTIONS)


def test_the_task_reads_the_source_and_scores_the_target_by_bleu() -> None:
    described = task("translation")
    assert (described.inputs, described.target, described.second) == (("source",), "target", "target")
    assert described.metrics == ("bleu",)


@pytest.mark.parametrize(("language", "expected"), [("qa1", "3f07e289361a3a83"), ("qa1-qb1", "eedf2dce608f8f6c")])
def test_data_stay_the_same(language: str, expected: str, tmp_path: Path) -> None:
    """As `tests/unit/data/test_generated_bytes.py` says, also where a study does not say how many there are."""
    make_meanings("translation", {"n": 100}, tmp_path / "meanings.parquet")
    make_data("translation", {"n": 100}, language, tmp_path / "meanings.parquet", tmp_path)
    rows = [read_table(tmp_path / f"{split}.parquet").to_pylist() for split in SPLITS]
    written = json.dumps(rows, ensure_ascii=False, sort_keys=True).encode()
    assert hashlib.sha256(written).hexdigest()[:16] == expected
    assert translation.Options().n == 10_000
