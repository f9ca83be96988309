"""The names in an encoder with cross-attention, which are those of transformers' decoders of XLM-R."""

from xlgrid.papers.luo2021.seq2seq.model import CROSS

# The entry of config.json that says how S uses cross-attention.
STREAM = "s_stream"


def is_cross_attention(name: str) -> bool:
    """Whether a parameter belongs to the cross-attention of a layer."""
    return CROSS in name.split(".")
