"""Runs that train together in tests."""

from typing import Any

from transformers import BertConfig, BertForPreTraining, XLMRobertaConfig, XLMRobertaForMaskedLM

from xlgrid.training.recipe import Recipe, Training

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
SIZE |= {"vocab_size": 50, "max_position_embeddings": 64, "type_vocab_size": 1}
MODELS = {
    "bert": lambda: BertForPreTraining(BertConfig(**{**SIZE, "type_vocab_size": 2})),
    "xlm-roberta": lambda: XLMRobertaForMaskedLM(XLMRobertaConfig(**SIZE, pad_token_id=0)),
}
# Method -> options. Dropout is that of the encoders, 0.1, and LoRA's.
METHODS: dict[str, dict[str, Any]] = {
    "bitfit": {},
    "lora": {"dropout": 0.1},
    "madx": {"language": False, "invertible": False},
}
# The runs of a group differ in seed, in their data, in the length of the training, in the rate, and in the memory that a
# part of a step may take.
RUNS: tuple[dict[str, Any], ...] = (
    {"seed": 1},
    {"seed": 2, "lr": 1e-2, "micro_batch_tokens": 64},
    {"seed": 3, "source": "fr", "steps": 16, "weight_decay": 0.1},
    {"seed": 4, "source": "fr", "batch_tokens": 200},
)


def recipe(base: str, **settings: Any) -> Recipe:
    axes = {"seed": 1, "source": "en"} | {key: settings.pop(key) for key in ("seed", "source") if key in settings}
    names = {"study": "s", "task": "t", "kind": "ruletaker", "encoder": "e", "method": "m", "base": base, **axes}
    training = {"steps": 20, "batch_tokens": 128, "lr": 5e-3, "evaluations": 2, **settings}
    members = {"together": tuple(f"m/{run.get('source', 'en')}/{run['seed']}" for run in RUNS)}
    return Recipe.model_validate({**names, **members, "options": METHODS[base], "training": Training(**training)})
