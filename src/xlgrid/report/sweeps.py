"""The sweeps of a study in its report: what was tried at which cost, what won, and the surface of dev scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.clock import duration
from xlgrid.exhibits.drawing.sheet import number
from xlgrid.exhibits.exhibit import ORACLE
from xlgrid.heads import metric
from xlgrid.plan.plan import Plan
from xlgrid.training.sweep import read_choice, text_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The most sweeps whose surfaces are drawn. The table has all.
MOST_PANELS = 12


def read_choices(plan: Plan, root: Path = Path()) -> list[dict[str, Any]]:
    """The contents of the file of each choice, with `path` and `method`. A choice that is not made has no `chosen`, and in
    `missing` the runs that it waits for.

    Raises:
        ValueError: a file is damaged.
    """
    choices = []
    for named in plan.choices:
        made = plan.owned(named)
        swept = named.swept(plan.study)
        assert swept
        runs = [plan.owned(run) for run in named.tried(plan.study)]
        about = {axis: getattr(named, axis) for axis in ("task", "encoder", "method", "source")}
        about |= {"path": made.path, **swept.model_dump(mode="json", exclude={"chosen"}), "runs": len(runs)}
        if (root / made.path).exists():
            choices.append(read_choice(root / made.path) | about)
        else:
            choices.append(about | {"missing": [run.folder for run in runs if not (root / run.path).exists()]})
    return choices


def table(choices: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """A row of texts for each choice: what was tried, with which bounds and seeds, at what cost, what won, and remarks."""
    import pandas as pd

    return pd.DataFrame(
        {
            "Task": choice["task"],
            "Encoder": choice["encoder"],
            "Method": choice["method"] + f" {ORACLE}" * (choice["choose_on"] == "target"),
            "Source": choice["source"],
            "Tried": "; ".join(f"{key} {', '.join(map(str, values))}" for key, values in choice["set"].items()),
            "Runs": f"{choice['runs']} (seed{'s' * (len(choice['seeds']) > 1)} {', '.join(map(str, choice['seeds']))})",
            "Time": duration(choice["seconds"]) if "chosen" in choice else "–",
            "Chosen": text_of(choice["chosen"]) if "chosen" in choice else "–",
            "Dev score": _score(choice) if "chosen" in choice else "–",
            "Remarks": "; ".join(remarks(choice)),
        }
        for choice in choices
    )


def _score(choice: Mapping[str, Any]) -> str:
    """The mean dev score of the winner, and the difference from the best of the others."""
    others = [each["mean"] for each in choice["tried"] if each["settings"] != choice["chosen"]]
    second = sorted(others, reverse=metric(choice["metric"]).higher_is_better)[0]
    return f"{choice['metric']} {number(choice['mean'], 1)} (next: {number(second, 1)})"


def remarks(choice: Mapping[str, Any]) -> list[str]:
    """What a reader should know about a choice."""
    if "chosen" not in choice:
        missing = choice["missing"]
        waits = (
            f"waits for {len(missing)} of {choice['runs']} runs, such as {missing[0]}" if missing else "not made yet"
        )
        return [waits]
    found = [f"the best {key} is the {end} tried" for key, end in choice["at_bounds"].items()]
    if choice["ties"]:
        found.append(f"{choice['ties']} other settings have the same score: the first of the list wins")
    if choice["choose_on"] == "target":
        found.append(f"{ORACLE} an oracle, chosen on the dev sets of {', '.join(choice['dev'])}")
    return found


def surfaces(choices: Sequence[Mapping[str, Any]]) -> "Figure":
    """A panel for each choice: the mean dev score for each value, or for each pair of values of two settings. The winner has a
    ring or a frame. If there are further settings, a panel has the best score over their values.

    Args:
        choices: choices that are made, at least one.
    """
    from matplotlib.figure import Figure

    across = min(3, len(choices))
    down = -(-len(choices) // across)
    figure = Figure(figsize=(max(2.9, 2.6 * across), 2.5 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, choice in zip(axes, choices, strict=False):
        (_line if len(choice["set"]) == 1 else _matrix)(ax, choice)
        mark = f" {ORACLE} oracle" * (choice["choose_on"] == "target")
        ax.set_title(f"{choice['method']}{mark}\n", loc="left", fontsize=9, fontweight="bold")
        about = f"{choice['task']}, {choice['encoder']}, {choice['source']}"
        ax.text(0, 1.03, about, transform=ax.transAxes, fontsize=8)
        ax.tick_params(labelsize=8, length=2)
    for ax in axes[len(choices) :]:
        ax.set_visible(False)
    return figure


def _line(ax: "Axes", choice: Mapping[str, Any]) -> None:
    from xlgrid.exhibits.drawing import plots

    [(key, values)] = choice["set"].items()
    places = range(len(values))
    means = [each["mean"] for each in choice["tried"]]
    for at, each in zip(places, choice["tried"], strict=True):
        scores = [line["dev_score"] for line in each["runs"]]
        ax.plot([at] * len(scores), scores, ".", color=plots.FAINT, markersize=5)
    ax.plot(places, means, marker="o", color=plots.COLOURS[0], linewidth=1.2, markersize=4)
    winner = values.index(choice["chosen"][key])
    ax.plot([winner], [choice["mean"]], "o", color=plots.INK, fillstyle="none", markersize=11)
    ax.set_xticks(places, [str(value) for value in values])
    ax.margins(x=0.15, y=0.2)
    ax.set_xlabel(key, fontsize=8)
    ax.set_ylabel(f"dev {choice['metric']}", fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _matrix(ax: "Axes", choice: Mapping[str, Any]) -> None:
    import pandas as pd
    import seaborn as sns
    from matplotlib.patches import Rectangle

    from xlgrid.exhibits.heatmap import SEQUENTIAL, limits

    (row, rows), (column, columns), *_ = choice["set"].items()
    measured = metric(choice["metric"])
    tried = pd.DataFrame([{**each["settings"], "mean": each["mean"]} for each in choice["tried"]])
    best = tried.groupby([row, column])["mean"].agg(max if measured.higher_is_better else min)
    low, high = limits(tried["mean"], diverging=False, percent=measured.unit == "%")
    shades = SEQUENTIAL + ("" if measured.higher_is_better else "_r")
    how: Any = {
        "cmap": shades,
        "vmin": low,
        "vmax": high,
        "cbar": False,
        "annot": True,
        "fmt": ".1f",
        "annot_kws": {"size": 8},
    }
    sns.heatmap(best.unstack().reindex(index=rows, columns=columns), ax=ax, **how)
    at = columns.index(choice["chosen"][column]), rows.index(choice["chosen"][row])
    frame: Any = {"fill": False, "edgecolor": "black", "zorder": 4}
    # The white frame in the black one shows on dark colours.
    ax.add_patch(Rectangle((at[0] + 0.02, at[1] + 0.02), 0.96, 0.96, linewidth=2, **frame))
    ax.add_patch(Rectangle((at[0] + 0.05, at[1] + 0.05), 0.9, 0.9, linewidth=1, **frame | {"edgecolor": "white"}))
    ax.set_xlabel(column, fontsize=8)
    ax.set_ylabel(row, fontsize=8)
    ax.tick_params(axis="y", rotation=0)
