"""Tokens of rows whose token ids do not matter, for the outcomes of predictions that a test makes up."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from xlgrid.heads.tokens import Tokens, Vocabulary


def rows_of(head: str, columns: Mapping[str, Any], **others: Any) -> Tokens:
    """Rows of one token each, in English."""
    count = len(next(iter(columns.values())))
    fields: dict[str, Any] = {
        "label_names": (),
        "languages": ("en",),
        "language_of": np.zeros((count, 2), np.int16),
        "vocabulary": Vocabulary(4, 1, (0,)),
        "columns": columns,
    }
    counts = {
        "values": np.zeros(count, np.int32),
        "offsets": np.arange(count + 1),
        "contexts": np.ones(count, np.int64),
    }
    return Tokens(head=head, pad_id=0, **counts, **{**fields, **others})
