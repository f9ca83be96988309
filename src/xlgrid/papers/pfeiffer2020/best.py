"""A table of the source that transfers best to each target."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xlgrid.exhibits.exhibit import OfCells, Rendering
from xlgrid.languages.sources import Source

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.exhibits.drawing.sheet import Sheet
    from xlgrid.study.schema import Study


class Best(OfCells):
    """A table of the source with the best mean over seeds for each target and method, among sources not trained on this
    target."""

    kind: Literal["best"] = "best"

    def of_scores(self, study: "Study", cells: "pd.DataFrame", runs: Iterable[str | Path] = ()) -> Rendering:
        return Rendering(self.sheet(cells))

    def sheet(self, cells: "pd.DataFrame") -> "Sheet":
        """A row per target, a column per method; each entry is a source and its mean over complete seeds.

        Sources that are trained on the target, alone or in a mix, are left out. If sources have equal means, the first
        one in the study is best.

        Returns:
            A sheet whose entries have `target`, `column`, `source` ("" if no source has a complete seed), `mean`, `sd`,
            `next` (the second-best source) and its `next_mean`, `n_sources` (with all of their seeds) and
            `n_sources_expected`.

        Raises:
            ValueError: the selection is empty; or an entry would mix tasks, encoders, methods or metrics, or metrics
                that differ in whether higher is better.
        """
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import Sheet, about
        from xlgrid.results import stats, units

        chosen = stats.select(cells, self.select)
        trained = [
            target in Source(source).parts for source, target in zip(chosen["source"], chosen["target"], strict=True)
        ]
        others = chosen[[not on_target for on_target in trained]]
        if others.empty:
            raise ValueError(
                "every selected source is trained on its target: select others, or an exhibit of another kind"
            )
        higher = {column: units.higher_is_better(part["metric"]) for column, part in others.groupby("method")}
        scores = stats.entries(others, ["method", "source"], "target")
        scores = scores.rename(columns={"column": "target", "method": "column"})
        order = {name: stats.in_order(chosen, name, self.select) for name in ("target", "method")}
        rows = [
            {"target": target, "column": column} | _entry(candidates, higher[column], self.digits)
            for target in order["target"]
            for column in order["method"]
            if len(candidates := scores[(scores["target"] == target) & (scores["column"] == column)])
        ]
        notes = [
            *about(others),
            "The source, not trained on the target, with the best mean over complete seeds; in brackets, the mean of "
            "the second-best source minus the mean of the best.",
        ]
        if any(row["state"] == "incomplete" for row in rows):
            notes.append("† some sources lack some of their seeds, so another source may be better.")
        if any(row["state"] == "missing" for row in rows):
            notes.append("– no source has a complete seed.")
        columns = [(str(column),) for column in order["method"]]
        return Sheet(self.title, self.caption, " ".join(notes), ("target",), columns, pd.DataFrame(rows))


def _entry(candidates: "pd.DataFrame", higher_is_better: bool, digits: int) -> dict[str, Any]:
    """The entry of the best of some sources, with its text and hover text."""
    from xlgrid.exhibits.drawing.sheet import PRINTED, number

    complete = int((candidates["n_seeds"] == candidates["n_seeds_expected"]).sum())
    counts = {"n_sources": complete, "n_sources_expected": len(candidates)}
    hover = f"{complete} of {len(candidates)} sources with all of their seeds"
    ranked = candidates[candidates["n_seeds"] > 0].sort_values("mean", ascending=not higher_is_better, kind="stable")
    if ranked.empty:
        nothing = {"source": "", "mean": float("nan"), "sd": float("nan"), "next": "", "next_mean": float("nan")}
        return nothing | counts | dict(zip(PRINTED, ("–", "missing", hover), strict=True))
    first, *rest = ranked.head(2).to_dict("records")
    text, after = f"{first['source']} {number(first['mean'], digits)}", {"next": "", "next_mean": float("nan")}
    if rest:
        after = {"next": rest[0]["source"], "next_mean": rest[0]["mean"]}
        text += f" ({number(rest[0]['mean'] - first['mean'], digits)})"
        hover = f"next {rest[0]['source']} {number(rest[0]['mean'], digits)}; {hover}"
    state = "complete" if complete == len(candidates) else "incomplete"
    printed = (text + " †" * (state == "incomplete"), state, hover)
    best = {name: first[name] for name in ("source", "mean", "sd")}
    return best | after | counts | dict(zip(PRINTED, printed, strict=True))
