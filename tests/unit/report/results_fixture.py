"""Files of results that no training has made."""

import json
from typing import Any

from status_fixture import write

from xlgrid.evaluation.cell import pack
from xlgrid.products.evaluate import Cell


def result(cell: Cell, scores: dict[str, float], **changes: Any) -> None:
    """Write the file of a cell."""
    record = {
        **cell._asdict(),
        "run": cell.run.folder,
        "digest": "d1",
        "seconds": 2.5,
        "cpu_seconds": 3.5,
        "head": "token",
        "labels": [],
        "scores": scores,
        "metric": {"name": next(iter(scores)), "implementation": "i"},
        "n": 2,
        "versions": {"python": "3.11.7", "torch": "2.13"},
        "device": "cuda (A100)",
        "threads": 4,
        "outcomes": pack([1, 1]),
    }
    write(cell.path, json.dumps(record | changes))
