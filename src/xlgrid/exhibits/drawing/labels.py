"""The labels of a study: what its exhibits print for the names of methods, encoders, tasks, languages and metrics."""

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from xlgrid.methods.variants import plain


def label(value: Any) -> str:
    """The text of a value. Numbers have no needless fraction, and numbers from 10,000 are in thousands or millions if
    this is short (125k, 1.5M). All other values are unchanged."""
    if isinstance(value, int | float | Integral) and (size := float(value)) >= 10_000:
        for unit, suffix in ((1_000_000, "M"), (1000, "k")):
            if size >= unit and size % (unit / 10) == 0:
                return f"{size / unit:g}{suffix}"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def labelled(value: Any, labels: Mapping[str, str]) -> str:
    """The text of a value with the labels of a study in place of names.

    A name stands alone, or is a part of a mix (`en+sw`), a pair (`en-sw`), a variant (`bitfit@lr=2e-05`), a difference
    (`bitfit − full-ft`) or a quantity (`f1 (%)`).
    """
    text = label(value)
    return labels[text] if text in labels else re.sub(r"[^ +]+", lambda part: _of_part(part[0], labels), text)


def _of_part(part: str, labels: Mapping[str, str]) -> str:
    ends = part.split("-")
    if part not in labels and len(ends) == 2 and labels.keys() >= {*ends}:
        return "-".join(labels[end] for end in ends)
    name = plain(part)
    return labels.get(part, labels.get(name, name) + part.removeprefix(name))
