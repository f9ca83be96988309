"""A seed gives the same data in every version: results of two versions can be compared only if their data are the same.

A digest below that fails means that a change alters the data of existing studies. If that is intended, note it in the changelog,
and compute the numbers in README and docs again.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from xlgrid.data.formats import read_table
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.origins.origin import SPLITS
from xlgrid.data.text import TextSettings, make_text
from xlgrid.tasks import TASKS

# Digests of 100 examples: kind -> language or pair -> digest.
DATA: dict[str, dict[str, str]] = {
    "ruletaker": {
        "en": "df18384006b9cf72",
        "fr": "93d6645c7f386aec",
        "ar": "549fec987334b174",
        "en-ru": "c06e05085c8b91d6",
    },
    "lot": {"en": "e66923e6683f386f", "de": "7816fd2b277561c8", "en-zh": "9e3f3ee0298a4296"},
    "xnli": {"en": "48e802f6dac556c7", "it": "1cb9498a6a4b6e07", "en-es": "e519875c1153b740"},
    "causal-nli": {"qa1": "460ccc3e88d16256", "qa1-qb1": "c047e3b3f6dd04d6"},
    "wikiann": {"qa1": "961ca0a2b5a5a4f6", "qk3": "fe039159e0594840"},
    "udpos": {"qa1": "bdc0359d4c334d3f", "qc2": "b0453cc87b38cb46"},
    "udpos-chunks": {"qa1": "bdc0359d4c334d3f", "qc2": "b0453cc87b38cb46"},
    "xquad": {"qa1": "1ec5de6599829945", "qb2-qd1": "b750dd9bccdf5b96"},
    "tydiqa": {"qa1": "1ec5de6599829945", "qb2-qd1": "b750dd9bccdf5b96"},
    "mlqa": {"qa2": "1f7465113135737f"},
    "copa": {"qa1": "d229905c689b4317", "qe1": "bd650d5bcc0278e1"},
    "siqa": {"qa1": "86ddff585914b35f", "qf1": "a3b3ab90d08feea2"},
    "tatoeba": {"qa1-qb1": "5aff7c8192c628ca", "qc1-qa2": "a6899676a0dc0aec"},
    "bucc": {"qa1-qb1": "4704103c89cd445c", "qc1-qa2": "9edd10a70d5faf02"},
    "udparse": {"qa1": "5dba48769f16bbcc", "qb1": "34b767190244348c"},
    "similarity": {"qa1": "1943a2ab31b48dbe", "qb1": "798708cdcbb4305d"},
    "mentions": {"qa1": "bd1ca4aa4f71f5cb", "qb1": "eabe33f22445899e"},
}
# Digests of texts of 200 rows: name -> language, settings, digest.
TEXTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "theories": ("en", {}, "22245b6e9bba2b99"),
    "relations": ("fr", {"options": {"relational": 1.0}}, "f602b844e4630b86"),
    "taxonomy": ("de", {"options": {"taxonomy": 1.0}}, "40467edf014e3ba4"),
    "facts": ("qa1", {}, "9820d2fff240bd08"),
    "dials": ("qb2", {"dials": {"distance": 0.7, "loans": 0.3, "overlap": 0.6}}, "9fe4e61f89ed3aba"),
    "customs": ("qc1", {"customs": {"facts": 50, "share": 0.4}}, "ce87979498ff0d68"),
}


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


def test_all_generated_kinds_have_a_digest() -> None:
    assert DATA.keys() == {kind for kind, task in TASKS.items() if task.generator}


@pytest.mark.parametrize("kind", DATA)
def test_data_stay_the_same(kind: str, tmp_path: Path) -> None:
    options = {"n": 100}
    make_meanings(kind, options, tmp_path / "meanings.parquet")
    digests = {}
    for language in DATA[kind]:
        make_data(kind, options, language, tmp_path / "meanings.parquet", tmp_path / language)
        digests[language] = digest([read_table(tmp_path / language / f"{s}.parquet").to_pylist() for s in SPLITS])
    assert digests == DATA[kind]


@pytest.mark.parametrize("name", TEXTS)
def test_texts_stay_the_same(name: str, tmp_path: Path) -> None:
    language, settings, expected = TEXTS[name]
    make_text(language, tmp_path / "text.parquet", TextSettings(sentences=200, seed=3, **settings))
    assert digest(read_table(tmp_path / "text.parquet").to_pylist()) == expected
