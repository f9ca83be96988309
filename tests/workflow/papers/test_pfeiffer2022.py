"""An encoder with modules for languages, pre-trained here or published, fine-tuned, extended by a language, and evaluated."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from project import make, planned, project, small
from transformers import XmodConfig, XmodForMaskedLM

CELLS = "results/demo/cells"
PRETRAINED, ADDED, PUBLISHED = (
    f"{CELLS}/{place}/seed1.json"
    for place in ("ner/own/xmod/qa1/qa2", "ner/own/xmod/qa1/qb1", "perplexity/published/as-is/none/qa2")
)
SCRATCH = {
    "kind": "xlmr", "architecture": "xmod", "languages": ["qa1", "qa2"],
    "vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16,
}  # fmt: skip


def study() -> dict[str, Any]:
    """The demo with an encoder of two languages, the same as it would be published, and a third language that is added."""
    described = small()
    described["encoders"] = {
        "own": {"scratch": SCRATCH, "training": {"steps": 5, "micro_batches": "language"}},
        "published": {"path": "published", "tokenizer": "own", "modules": {"qa1": "qa1_XX", "qa2": "qa2_XX"}},
    }
    described["tokenizers"] = {"added-qb1": {"kind": "xlmr", "languages": ["qb1"], "size": 250}}
    described["tasks"] = {
        "ner": described["tasks"]["ner"],
        "text": {"kind": "mlm", "tokenizer": "added-{language}"},
        "perplexity": {"kind": "perplexity", "max_length": 64},
    }
    start = {"task": "text", "method": "add", "pairs": ["qb1"], "missing": "none"}
    described["methods"] = {
        "add": {"base": "xmod", "options": {"tune": "language"}},
        "xmod": {"start": start},
        "as-is": {},
    }
    axes = {"encoder": ["own"], "source": ["qa1"], "seed": [1]}
    described["grids"] = {
        "ner": axes | {"task": ["ner"], "method": ["xmod"], "target": ["qa2", "qb1"]},
        "bare": axes | {"task": ["perplexity"], "encoder": ["own", "published"], "method": ["as-is"], "source": ["none"], "target": ["qa2"]},
    }  # fmt: skip
    return {
        key: value for key, value in described.items() if key not in ("exhibits", "claims", "groups", "training")
    } | {"training": [{"set": {"steps": 4, "batch_tokens": 256, "evaluations": 2}}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("modules"), study())
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = XmodConfig(
        **sizes, vocab_size=300, max_position_embeddings=514, type_vocab_size=1, languages=["qa2_XX", "qa1_XX"]
    )
    model = XmodForMaskedLM(config)
    (folder / "published").mkdir()
    model.config.save_pretrained(folder / "published")
    torch.save(model.state_dict(), folder / "published" / "pytorch_model.bin")
    return folder


def test_a_pretrained_target_an_added_one_and_a_published_encoder(folder: Path) -> None:
    jobs = planned(folder, f"{PRETRAINED} {ADDED} {PUBLISHED}")
    assert jobs["train"] == 2 and jobs["pretrain"] == jobs["fetch_encoder"] == 1 and jobs["tokenizer"] == 2
    make(folder, PRETRAINED, ADDED, PUBLISHED)
    pretrained, added, published = (json.loads((folder / path).read_text()) for path in (PRETRAINED, ADDED, PUBLISHED))
    assert pretrained["stack"] == ["module:qa2"] and pretrained["speaks"] == []
    assert added["stack"] == ["embeddings:qb1", "module:qb1"]
    assert added["speaks"] == ["results/demo/runs/text/own/add/qb1/seed1"]
    assert published["stack"] == ["module:qa2"] and published["weights"] == "results/demo/encoders/published"
    assert json.loads((folder / "results/demo/encoders/published/config.json").read_text())["languages"] == [
        "qa2",
        "qa1",
    ]
