"""Parallel sentences of artificial languages."""

import hashlib
import json
import shlex
from pathlib import Path

import pytest
from plan_fixture import begun

from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.origins.origin import SPLITS
from xlgrid.papers.luo2021 import translation
from xlgrid.products.data import Meanings
from xlgrid.products.encode import Tokens
from xlgrid.study.tasks import TaskEntry
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


def test_tokens_depend_on_settings_of_evaluation_that_a_task_states_and_generated_data_do_not() -> None:
    study = begun()
    stated = {"bleu_tokenizer": {"qa1": "char"}}
    for name, options in (("mt", {}), ("chars", stated)):
        study.tasks[name] = TaskEntry.model_validate({"kind": "translation", "options": options})
    of_tokens = [
        str((Tokens("begun", name, "mini", "qa1-qb1", "dev").settings(study) or {})["text"]) for name in ("mt", "chars")
    ]
    assert of_tokens[0] == "" and json.loads(shlex.split(of_tokens[1])[1]) == stated
    usual, chars = (Meanings("begun", name).settings(study) for name in ("mt", "chars"))
    assert usual == chars and usual
