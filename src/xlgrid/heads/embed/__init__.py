"""Sentences as vectors of an encoder without training: `head` retrieves translations, `mining` finds them in two pools.

Both use `search`, which finds the nearest vectors.
"""

from xlgrid.heads.embed.head import EmbedHead
from xlgrid.heads.embed.mining import MiningHead

__all__ = ["EmbedHead", "MiningHead"]
