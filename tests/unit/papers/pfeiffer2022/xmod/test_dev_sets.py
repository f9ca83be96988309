"""A run is evaluated on each dev set with the module of its language."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from test_dev_targets import files, recipe
from transformers import XmodForSequenceClassification
from xmod_fixture import model_of, save

from xlgrid.training.loop import train

__all__ = ["files"]

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_dev_set_is_evaluated_with_the_module_of_its_language(files: dict[str, Path], tmp_path: Path) -> None:
    """The scores are those of transformers' own model with the weights of the run and the language of each dev set."""
    drawn = model_of()
    with torch.no_grad():
        for name, parameter in drawn.named_parameters():
            if "LayerNorm" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.7)
    encoder = save(drawn, tmp_path / "encoder")
    run_recipe = recipe("fr", "sw", steps=6, lr=1e-5).model_copy(update={"base": "xmod", "options": {}})
    train(run_recipe, encoder, [files["train"]], [files["de"], files["de"]], tmp_path / "run")
    [*_, last] = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    model: Any = XmodForSequenceClassification.from_pretrained(encoder, num_labels=3).eval()
    missing = model.load_state_dict(load_file(tmp_path / "run" / "delta.safetensors"), strict=False)
    assert not missing.unexpected_keys
    table = pa.ipc.open_file(files["de"]).read_all()
    rows = [*zip(table["input_ids"].to_pylist(), table["label"].to_pylist(), strict=True)]
    accuracies = {}
    for language in ("en", "fr", "sw"):
        lang_ids = torch.tensor([model.config.languages.index(language)])
        with torch.inference_mode():
            right = [int(model(torch.tensor([ids]), lang_ids=lang_ids).logits.argmax()) == label for ids, label in rows]
        accuracies[language] = 100 * sum(right) / len(right)
    assert len(set(accuracies.values())) == 3, "modules that give one score would show nothing"
    best = (accuracies["fr"] + accuracies["sw"]) / 2
    assert record["dev_score"] == pytest.approx(best)
    assert last["score"] <= best
