"""The pages about the architectures of papers show encoders and grids that go together in one study."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from xlgrid.architectures.scratch import architecture_of
from xlgrid.study.checks import problems
from xlgrid.study.schema import Study


def test_the_studies_of_the_pages_about_architectures_are_valid() -> None:
    pages = Path(__file__).parents[3] / "docs" / "how-to"
    text = "".join(
        (pages / f"{name}.md").read_text() for name in ("language-modules", "cross-attention", "encoder-decoder")
    )
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    keys: dict[str, Any] = {"name": "s", "title": "s"}
    keys["tasks"] = {"xnli": {"kind": "xnli", "data": {"local": "x"}}, "pretraining": {"kind": "mlm"}}
    for block in blocks:
        for section, entries in block.items():
            keys[section] = keys.get(section, {}) | entries
    codes = {code for entry in keys["encoders"].values() for code in entry.get("scratch", {}).get("languages", ())}
    keys["languages"] = sorted(codes | {"bg", "de"})
    keys["text"] = {"files": {code: f"{code}.txt" for code in keys["languages"]}}
    described = Study.model_validate(keys)
    assert problems(described) == []
    assert set(keys["grids"]["nli"]["method"]) < set(described.methods)
    stages = {name: described.pretraining(name).scratch for name in ("veco-stage-1", "veco", "xlm")}
    assert [scratch.begins_with for scratch in stages.values() if scratch] == [
        "xlmr-large",
        "veco-stage-1",
        "xlmr-large",
    ]
    embeddings = "roberta.embeddings.word_embeddings.weight"
    assert [scratch.trains_weight(embeddings) for scratch in stages.values() if scratch] == [False, True, True]


def test_a_key_of_another_architecture_names_it_where_no_architecture_is_stated() -> None:
    with pytest.raises(ValueError, match=r"'reduction' is for .*set `architecture: shared or xmod`; unknown key 'foo'"):
        architecture_of({"languages": ["en"], "reduction": 2, "foo": 1})
