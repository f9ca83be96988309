"""Sentences as vectors of an encoder that nothing trains: `head` retrieves translations, `mining` finds them in two pools.

`search` has the products of vectors, which both use.
"""

from xlgrid.heads.embed.head import EmbedHead
from xlgrid.heads.embed.mining import MiningHead

__all__ = ["EmbedHead", "MiningHead"]
