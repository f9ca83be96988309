"""The names of parameters in an encoder with cross-attention, as in transformers' decoders of XLM-R."""

from xlgrid.papers.luo2021.seq2seq.model import CROSS

# The entry of config.json with the attention of S.
STREAM = "s_stream"


def is_cross_attention(name: str) -> bool:
    """Whether a parameter belongs to the cross-attention of a layer."""
    return CROSS in name.split(".")
