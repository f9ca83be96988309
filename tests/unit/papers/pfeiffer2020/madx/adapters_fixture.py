"""Makes data/adapters/: models with adapters and what the `adapters` library, which needs transformers 4, computes with them.

    python -m venv elsewhere && elsewhere/bin/pip install torch==2.13.0 adapters==1.3.0 safetensors
    elsewhere/bin/python tests/unit/papers/pfeiffer2020/madx/adapters_fixture.py

For BERT and XLM-R, a folder each: `model.safetensors` and `config.json` in the ordinary layout, with a language-modelling
head; the adapters as the library saves them, `lang/` (with an invertible one), `plain/` (without) and `task/`; and
`outputs.safetensors`, the inputs and what comes out. `short-lang/` and `short-task/` are without the last layer.
`legacy-lang/` and `legacy-plain/` are the same in the names and with the config of adapter-transformers 1; `legacy-gelu/` is
`legacy-lang/` as if it had been trained with gelu, which the config says of its bottlenecks only, as AdapterHub's do.
"""

import json
import shutil
from pathlib import Path

import adapters
import torch
from adapters import BertAdapterModel, SeqBnConfig, SeqBnInvConfig, XLMRobertaAdapterModel
from adapters.composition import Stack
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

FOLDER = Path(__file__).parent / "adapters"
SIZE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
MODELS = {
    "bert": (BertConfig, BertForMaskedLM, BertAdapterModel),
    "xlmr": (XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaAdapterModel),
}
STACKS = {"lang": "lang", "plain": "plain", "task": "task", "stack": Stack("lang", "task")}


def disturb(parameters: object) -> None:
    with torch.no_grad():
        for parameter in parameters:  # type: ignore[attr-defined]
            parameter.add_(torch.randn_like(parameter) * 0.2)


def make(kind: str) -> None:
    config_class, plain_class, adapter_class = MODELS[kind]
    folder = FOLDER / kind
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(1)
    config = config_class(
        **SIZE, max_position_embeddings=24, pad_token_id=1, type_vocab_size=2 if kind == "bert" else 1
    )
    plain = plain_class(config).eval()
    disturb(plain.parameters())
    plain.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = adapter_class.from_pretrained(folder)
    model.add_adapter("lang", config=SeqBnInvConfig(reduction_factor=2))
    model.add_adapter("plain", config=SeqBnConfig(reduction_factor=2, non_linearity="gelu_new"))
    model.add_adapter("task", config=SeqBnConfig(reduction_factor=8))
    disturb(p for name, p in model.named_parameters() if "adapters." in name)
    model.eval()
    for name, safe in (("lang", False), ("plain", True), ("task", False)):
        model.save_adapter(str(folder / name), name, use_safetensors=safe)
    ids = torch.randint(2, 40, (3, 9))
    ids[1, 6:] = 1
    inputs = {"input_ids": ids, "attention_mask": (ids != 1).long()}
    tensors = {**inputs}
    with torch.no_grad():
        for name, active in STACKS.items():
            model.set_active_adapters(active)
            tensors[f"{name}.states"] = model.base_model(**inputs).last_hidden_state
        model.set_active_adapters("lang")
        embedded = model.base_model.embeddings(input_ids=ids)
        tensors["lang.embedded"] = embedded
        # The head of an AdapterModel has the inverse, and the weights of the ordinary head.
        model.add_masked_lm_head("lm")
        head = model.heads["lm"]
        ours = plain.cls.predictions if kind == "bert" else plain.lm_head
        dense, norm = (
            (ours.transform.dense, ours.transform.LayerNorm) if kind == "bert" else (ours.dense, ours.layer_norm)
        )
        head[0].load_state_dict(dense.state_dict())
        head[2].load_state_dict(norm.state_dict())
        head[3].bias.copy_(ours.bias)
        assert torch.equal(head[3].weight, model.base_model.embeddings.word_embeddings.weight)
        model.active_head = "lm"
        model.eval()
        tensors["lang.logits"] = model(**inputs).logits
        for name in ("lang", "task"):
            model.load_adapter(str(folder / name), load_as=f"short-{name}", leave_out=[1])
            model.save_adapter(str(folder / f"short-{name}"), f"short-{name}", use_safetensors=False)
        model.set_active_adapters(Stack("short-lang", "short-task"))
        tensors["short.states"] = model.eval().base_model(**inputs).last_hidden_state
    for path in folder.rglob("adapter_config.json"):
        # Which names this folder's place on the machine.
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "model_name": kind}, indent=2, sort_keys=True) + "\n"
        )
    legacy(folder)
    model.load_adapter(str(folder / "legacy-gelu"), load_as="gelu", set_active=True)
    with torch.no_grad():
        tensors["gelu.states"] = model.eval().base_model(**inputs).last_hidden_state
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "outputs.safetensors")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)


def legacy(folder: Path) -> None:
    """`lang/` and `plain/` as adapter-transformers 1 would have saved them, which said gelu and meant gelu_new."""
    for name in ("lang", "plain"):
        target = folder / f"legacy-{name}"
        target.mkdir()
        stored = folder / name
        safe = stored / "adapter.safetensors"
        tensors = load_file(safe) if safe.exists() else torch.load(stored / "pytorch_adapter.bin", weights_only=True)
        old = {
            key.replace(".output.adapters.", ".output.layer_text_lang_adapters.").replace(
                "invertible_adapters", "invertible_lang_adapters"
            ): tensor
            for key, tensor in tensors.items()
        }
        torch.save(old, target / "pytorch_adapter.bin")
        config = json.loads((stored / "adapter_config.json").read_text())
        inner = config["config"]
        gelu = {"gelu_new": "gelu", "relu": "relu"}[inner["non_linearity"]]
        nested = {
            "block_type": "nice",
            "non_linearity": gelu,
            "reduction_factor": inner["inv_adapter_reduction_factor"],
        }
        kept = (
            *("adapter_residual_before_ln", "ln_after", "ln_before", "mh_adapter", "output_adapter"),
            *("original_ln_after", "original_ln_before", "reduction_factor", "residual_before_ln"),
        )
        config["config"] = {
            **{key: inner[key] for key in kept},
            "non_linearity": gelu,
            "invertible_adapter": nested if inner["inv_adapter"] else None,
            "attention_type": "sentence-lvl",
            "new_attention_norm": False,
        }
        config |= {"type": "text_lang", "model_class": config["model_class"].replace("Adapter", "WithHeads")}
        del config["version"]
        (target / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    gelu = folder / "legacy-gelu"
    shutil.copytree(folder / "legacy-lang", gelu)
    config = json.loads((gelu / "adapter_config.json").read_text())
    config["config"]["non_linearity"] = "gelu"
    (gelu / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def check() -> None:
    """Print how far what the library computes with what `legacy` wrote is from what it computes with what it saved."""
    for kind, (_, _, adapter_class) in MODELS.items():
        model = adapter_class.from_pretrained(FOLDER / kind)
        stored = load_file(FOLDER / kind / "outputs.safetensors")
        inputs = {name: stored[name] for name in ("input_ids", "attention_mask")}
        for name in ("lang", "plain"):
            model.load_adapter(str(FOLDER / kind / f"legacy-{name}"), load_as=name, set_active=True)
            model.eval()
            with torch.no_grad():
                states = model.base_model(**inputs).last_hidden_state
            print(kind, name, float((states - stored[f"{name}.states"]).abs().max()))


if __name__ == "__main__":
    print("adapters", adapters.__version__)
    for each in MODELS:
        make(each)
    check()
