"""An encoder for each language, each with a tokenizer of its own, beside one for all languages: one table has both."""

import json
from pathlib import Path

import pytest
import yaml
from hub import write_mbert, write_xlmr
from project import blocks, make, project, small, succeeds

PAGE = "docs/how-to/encoder.md"


@pytest.mark.slow
def test_monolingual_encoders_stand_beside_a_multilingual_one(tmp_path: Path) -> None:
    """The study of the page, with tiny encoders in folders."""
    folder = project(tmp_path, small())
    texts = {"ha": ["Ada ta je Kano jiya"], "sw": ["Ada alienda Mombasa jana"]}
    for code, (text,) in texts.items():
        (folder / "names" / code).mkdir(parents=True)
        first, *words = text.split()
        for split in ("train", "dev", "test"):
            lines = [
                f"{first} B-PER\n" + "".join(f"{word} O\n" for word in words) + f"{split}{i} O\n" for i in range(6)
            ]
            (folder / "names" / code / f"{split}.txt").write_text("\n".join(lines))
    write_xlmr(folder / "checkpoints" / "ha", texts["ha"])
    write_mbert(folder / "checkpoints" / "sw", texts["sw"] * 2 + ["na kwa hiyo tu"])
    write_xlmr(folder / "all", [*texts["ha"], *texts["sw"]])
    [shown] = [block for block in blocks(PAGE, "yaml") if "{language}" in block]
    study = yaml.safe_load(shown)
    study["encoders"] = {"mono": {"path": "checkpoints/{language}"}, "xlmr": {"path": "all"}}
    study["training"] = [{"set": {"steps": 2, "batch_size": 4}}]
    study["grids"]["all"]["seed"] = [1]
    (folder / "studies" / "mono.yaml").write_text(yaml.safe_dump(study))
    succeeds(folder, "xlgrid check mono", "xlgrid cost mono")
    make(folder, "results/mono/exhibits/in-language.md", "results/mono/cells/ner/mono/full-ft/ha/sw/seed1.json")
    results = folder / "results" / "mono"
    assert {path.name for path in (results / "encoders").iterdir()} == {"mono.ha", "mono.sw", "xlmr"}
    types = [
        json.loads((results / "encoders" / f"mono.{code}" / "config.json").read_text())["model_type"] for code in texts
    ]
    assert types == ["xlm-roberta", "bert"]
    table = (results / "exhibits" / "in-language.md").read_text()
    assert "| mono" in table and "| xlmr" in table and "Cells with a result: 8 of 8" in table
    # A cell on another language has the encoder and the tokenizer of the source.
    cell = json.loads((results / "cells/ner/mono/full-ft/ha/sw/seed1.json").read_text())
    assert (cell["encoder"], cell["source"], cell["target"]) == ("mono", "ha", "sw")
    assert (results / "tokens/ner/mono.ha/sw/test.arrow").exists()
    assert not (results / "tokens/ner/mono.ha/sw/train.arrow").exists()
