"""The names in an encoder with cross-attention, which are those of transformers' decoders of XLM-R."""

# The place of the cross-attention in the name of a parameter, and the entry of config.json that says how S uses it.
CROSS, STREAM = "crossattention", "s_stream"


def is_cross_attention(name: str) -> bool:
    """Whether a parameter belongs to the cross-attention of a layer."""
    return CROSS in name.split(".")
