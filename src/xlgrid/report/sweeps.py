"""The sweeps of a study in its report: what was tried at which cost, what won, and the surface of dev scores."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
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
MOST_SURFACES = 12


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
    """The mean dev score of the winner, and the best of the others."""
    means = [each["mean"] for each in choice["tried"] if each["settings"] != choice["chosen"]]
    others = [mean for mean in means if not isnan(mean)]
    second = (max if metric(choice["metric"]).higher_is_better else min)(others, default=nan)
    return f"{metric(choice['metric']).title} {number(choice['mean'], 1)} (next: {number(second, 1)})"


def remarks(choice: Mapping[str, Any]) -> list[str]:
    """What a reader should know about a choice."""
    if "chosen" not in choice:
        missing = choice["missing"]
        return [
            f"waits for {len(missing)} of {choice['runs']} runs, such as {missing[0]}" if missing else "not made yet"
        ]
    found = [f"the best {key} is the {end} tried" for key, end in choice["at_bounds"].items()]
    if choice["ties"]:
        found.append(f"{choice['ties']} other settings have the same score: the first of the list wins")
    if choice["choose_on"] == "target":
        found.append(f"{ORACLE} an oracle, chosen on the dev sets of {', '.join(choice['dev'])}")
    return found


def surface(choice: Mapping[str, Any]) -> "Figure":
    """The mean dev score for each value that a choice tried, or for each pair of values of two settings. The winner has a ring
    or a frame. If there are further settings, the figure has the best score over their values.

    Args:
        choice: a choice that is made.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9, 2.5), layout="constrained")
    ax = figure.add_subplot()
    (_line if len(choice["set"]) == 1 else _matrix)(ax, choice)
    mark = f" {ORACLE} oracle" * (choice["choose_on"] == "target")
    ax.set_title(f"{choice['method']}{mark}\n", loc="left", fontsize=9, fontweight="bold")
    ax.text(0, 1.03, f"{choice['task']}, {choice['encoder']}, {choice['source']}", transform=ax.transAxes)
    ax.tick_params(length=2)
    return figure


def _line(ax: "Axes", choice: Mapping[str, Any]) -> None:
    """The scores of all seeds as dots, and their means as a line."""
    import seaborn as sns

    from xlgrid.exhibits.drawing import plots

    [(key, values)] = choice["set"].items()
    scores = [(at, run["dev_score"]) for at, each in enumerate(choice["tried"]) for run in each["runs"]]
    places, of_seeds = zip(*scores, strict=True)
    sns.scatterplot(x=places, y=of_seeds, ax=ax, color=plots.FAINT, s=12)
    sns.lineplot(x=places, y=of_seeds, ax=ax, color=plots.COLOURS[0], marker="o", markersize=4, errorbar=None)
    ax.plot(values.index(choice["chosen"][key]), choice["mean"], "o", color=plots.INK, fillstyle="none", markersize=11)
    ax.set_xticks(range(len(values)), map(str, values))
    ax.margins(x=0.15, y=0.2)
    ax.set(xlabel=key, ylabel=f"dev {metric(choice['metric']).title}")
    sns.despine(ax=ax)


def _matrix(ax: "Axes", choice: Mapping[str, Any]) -> None:
    import pandas as pd
    import seaborn as sns
    from matplotlib.patches import Rectangle

    from xlgrid.exhibits.heatmap import SEQUENTIAL, limits

    (row, rows), (column, columns), *_ = choice["set"].items()
    measured = metric(choice["metric"])
    higher = measured.higher_is_better
    tried = pd.DataFrame([{**each["settings"], "mean": each["mean"]} for each in choice["tried"]])
    best = tried.groupby([row, column])["mean"].agg("max" if higher else "min").unstack()
    low, high = limits(tried["mean"], diverging=False, percent=measured.unit == "%")
    look: Any = {"cmap": SEQUENTIAL + "_r" * (not higher), "vmin": low, "vmax": high, "cbar": False}
    sns.heatmap(best.reindex(rows, columns=columns), ax=ax, annot=True, fmt=".1f", annot_kws={"size": 8}, **look)
    x, y = columns.index(choice["chosen"][column]), rows.index(choice["chosen"][row])
    # The white frame in the black one shows on dark colours.
    for edge, colour in ((0.02, "black"), (0.05, "white")):
        frame = Rectangle((x + edge, y + edge), 1 - 2 * edge, 1 - 2 * edge, fill=False, edgecolor=colour, linewidth=1.5)
        ax.add_patch(frame)
    ax.tick_params(axis="y", rotation=0)
