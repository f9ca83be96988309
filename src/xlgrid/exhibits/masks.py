"""The masks of structured attention as an exhibit, drawn by the methods' own code (Foroutan et al. 2023, figures 2, 3)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from xlgrid.base.arrays import Segments
from xlgrid.base.files import write_text
from xlgrid.exhibits.tables import Sheet, latex, markdown, number

if TYPE_CHECKING:
    from xlgrid.exhibits.schema import Masks
    from xlgrid.study.schema import MethodEntry

FIRST = "first"
# Where a cell may be; what is in the first token's row or column is in neither of the other two.
PARTS = ("within a segment", "between the two", "first token")


def render(name: str, exhibit: "Masks", methods: Mapping[str, "MethodEntry"], folder: str | Path) -> None:
    """Make the files of an exhibit of masks, each atomically; the CSV is as `cells` returns it.

    Args:
        name: the exhibit's name, and the stem of its files.
        methods: the study's.
        folder: where the files go.
    """
    from xlgrid.exhibits import panels, plots

    found = cells(exhibit, methods)
    stem = Path(folder) / name
    with plots.style():
        ax = panels.masks(found, exhibit.context, exhibit.title)
        plots.save(ax, stem.with_name(f"{name}.png"), stem.with_name(f"{name}.svg"))
    sheet = shares(found, exhibit)
    write_text(f"{stem}.csv", found.to_csv(index=False, lineterminator="\n"))
    write_text(f"{stem}.md", markdown(sheet))
    write_text(f"{stem}.tex", latex(sheet, name))


def cells(exhibit: "Masks", methods: Mapping[str, "MethodEntry"]) -> pd.DataFrame:
    """Each cell of each mask of one input in two languages, as a step of training draws it.

    Returns:
        Columns `method`, `mask` (M1, M2), `query` and `key` (tokens: `first`, then c2, c3, ... of the context, then q1,
        q2, ... of the question), `kept` (1, or 0 where the weight is masked).
    """
    import numpy as np
    import torch

    from xlgrid.methods import make

    length = exhibit.context + exhibit.question
    tokens = [FIRST, *(f"c{n}" for n in range(2, exhibit.context + 1))]
    tokens += [f"q{n}" for n in range(1, exhibit.question + 1)]
    rows: list[dict[str, Any]] = []
    for name in exhibit.methods:
        method = make(methods[name].base, methods[name].options)
        segments = Segments(np.array([exhibit.context]), ("a", "b"), np.array([[0, 1]], np.int16), length)
        # Whoever draws a figure should not change what others draw from this generator.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(exhibit.seed)
            drawn = method.arrange(segments, torch.device("cpu"), training=True)["layout"].masks(length)
        for which, mask in zip(method.masks, drawn, strict=False):
            rows += [
                {"method": name, "mask": which, "query": query, "key": key, "kept": int(mask[0, i, j])}
                for i, query in enumerate(tokens)
                for j, key in enumerate(tokens)
            ]
    return pd.DataFrame(rows)


def shares(found: pd.DataFrame, exhibit: "Masks") -> Sheet:
    """A table of the share of cells that each mask keeps, in percent.

    Args:
        found: as `cells` returns it.
    """
    segments = found[["query", "key"]].map(lambda token: token[0] == "q")
    part = (segments["query"] == segments["key"]).map({True: PARTS[0], False: PARTS[1]})
    part = part.mask((found[["query", "key"]] == FIRST).any(axis=1), PARTS[2])
    kept = found.assign(column=part).groupby(["method", "mask", "column"], sort=False)["kept"]
    entries = kept.agg(["sum", "size"]).reset_index()
    texts = [number(100 * n / of, 0) for n, of in zip(entries["sum"], entries["size"], strict=True)]
    hover = [f"{n} of {of} cells" for n, of in zip(entries["sum"], entries["size"], strict=True)]
    notes = (
        f"Cells that are not masked, in percent, for a context of {exhibit.context} tokens, a question of "
        f"{exhibit.question}, and seed {exhibit.seed}; first token: its row and its column."
    )
    entries = entries.assign(text=texts, state="complete", hover=hover)
    return Sheet(exhibit.title, exhibit.caption, notes, ("method", "mask"), [(part,) for part in PARTS], entries)
