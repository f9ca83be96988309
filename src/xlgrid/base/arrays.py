"""Types of NumPy arrays that several packages share, and the segments of a batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The integers have 64 bits. Arrays with an entry for each row of a text have 32, which halves their memory.
Ints = NDArray[np.signedinteger[Any]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Segments:
    """The segments of a batch's inputs, for methods that treat languages or segments differently.

    Attributes:
        contexts: [inputs], the number of tokens in the first segment, special tokens included.
        languages: the codes of all languages in the data.
        language_of: [inputs, 2], the positions in `languages` of the first and the second segment's language, which are
            equal where an input has one segment.
        length: the number of tokens to which the batch is padded.
    """

    contexts: Ints
    languages: tuple[str, ...]
    language_of: NDArray[np.int16]
    length: int

    @property
    def switched(self) -> Flags:
        """[inputs], whether the two segments are in two languages."""
        return self.language_of[:, 0] != self.language_of[:, 1]
