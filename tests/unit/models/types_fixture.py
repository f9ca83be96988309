"""Tiny configurations of every type of transformers that has a class for a head, for tests and for the page of types."""

import re
from functools import cache
from typing import Any

from xlgrid.heads import HEADS
from xlgrid.heads.probe import head_problem, type_problem
from xlgrid.methods import ALL_METHODS, make
from xlgrid.models.fit import misfit_of_method

# The heads whose models begin with an encoder and a class of transformers.
TRAINED = ("sequence", "token", "span", "choice", "mlm")
# Heads that evaluate an encoder as it is read the states that all encoders have.
ALL = (*TRAINED, "embed")
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "full-ft": ("full-ft", {}),
    "bitfit": ("bitfit", {}),
    "structured-dropout": ("structured-dropout", {"tune": "full-ft"}),
    "qcross": ("qcross", {"tune": "full-ft"}),
    "madx": ("madx", {}),
    "xmod": ("xmod", {}),
}
_TEXT_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "full-ft": ("full-ft", {}),
    "madx": ("madx", {"tune": "language"}),
    "xmod": ("xmod", {"tune": "language"}),
}
# Those of papers that are installed.
METHODS = {name: each for name, each in _METHODS.items() if each[0] in ALL_METHODS.names()}
TEXT_METHODS = {name: each for name, each in _TEXT_METHODS.items() if each[0] in ALL_METHODS.names()}
IDS = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "cls_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
    "mask_token_id": 4,
}
# What types call their sizes, and a small number for each.
_SIZES = (
    (r".*vocab_size", 64),
    (r"(pooler_)?hidden_size|true_hidden_size|d_model|dim|n_embd|emb_dim|intra_bottleneck_size", 16),
    # The embeddings of many types may be narrower than their layers.
    (r".*embedding_size|entity_emb_size", 8),
    (r"intermediate_size|hidden_dim|d_inner|d_ff|.*ffn_dim", 24),
    (r"num_hidden_layers|n_layers?|num_layers|(en|de)coder_layers", 2),
    (r"num_attention_heads|n_heads?|num_heads|num_key_value_heads|(en|de)coder_attention_heads", 2),
    (r"d_head|head_dim", 8),
    (r"max_position_embeddings|n_positions", 66),
    (r"pronunciation_embed_dim|shape_embed_dim", 8),
)


# What a type asks of the sizes above.
_MORE: dict[str, dict[str, Any]] = {
    "longformer": {"attention_window": 16},
    "reformer": {"axial_pos_embds_dim": [4, 12], "axial_pos_shape": [8, 8]},
    "squeezebert": {"embedding_size": 16},
    "xmod": {"languages": ["en", "fr"]},
    "neomme": {"layer_types": ["sliding_attention", "full_attention"], "head_dim": 16, "per_layer_config": {}},
}


def types(*heads: str) -> list[str]:
    """The types that have a class of transformers for one of the heads, without mBART, which has classes of its own here."""
    from transformers.models.auto import modeling_auto

    names = {
        "sequence": "SEQUENCE_CLASSIFICATION",
        "token": "TOKEN_CLASSIFICATION",
        "span": "QUESTION_ANSWERING",
        "choice": "MULTIPLE_CHOICE",
        "mlm": "MASKED_LM",
    }
    mappings = [getattr(modeling_auto, f"MODEL_FOR_{names[head]}_MAPPING_NAMES") for head in heads]
    return sorted({kind for mapping in mappings for kind in mapping} - {"mbart"})


@cache
def tiny(kind: str, tokenizer: int = 64) -> dict[str, Any]:
    """The contents of the config.json of a tiny model of a type; those with the defaults of the type where its sizes depend on one another."""
    from transformers import CONFIG_MAPPING

    maker = CONFIG_MAPPING[kind]
    sizes = {"model_type": kind}
    try:
        for name, value in maker().to_dict().items():
            if (isinstance(value, int) and not isinstance(value, bool)) or name == "vocab_size":
                small = next((size for pattern, size in _SIZES if re.fullmatch(pattern, name)), value)
                sizes[name] = small if value is None or small < value else value
        config = maker.from_dict(sizes | IDS | {"vocab_size": tokenizer} | _MORE.get(kind, {}))
        return config.to_dict() | {"model_type": kind}
    except Exception:  # Transformers raises errors of many types.
        return {"model_type": kind}


def problem(
    kind: str, head: str, base: str, options: dict[str, Any], config: dict[str, Any] | None = None
) -> str | None:
    """Why an encoder of a type cannot have a head and a method, when a study is read; None if it can."""
    config = config or tiny(kind)
    return (
        type_problem(config)
        or head_problem(config, HEADS[head])
        or misfit_of_method(config, make(base, options), HEADS[head])
    )
