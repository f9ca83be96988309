"""Print tables: a tidy frame with a row per entry becomes a sheet, and a sheet becomes Markdown and HTML.

`xlgrid.exhibits.drawing.latex` prints a sheet as LaTeX.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from xlgrid.exhibits.drawing.labels import label, labelled
from xlgrid.results import units
from xlgrid.results.records import IMPLEMENTATION

# The columns that a sheet adds to its entries: the text, the class of the cell in HTML, and the hover text in HTML.
PRINTED = ("text", "state", "hover")
# The mark after an entry that depends on a model which has learnt nothing.
NOTHING = "§"


@dataclass(frozen=True)
class Sheet:
    """A table that is ready for printing.

    `entries` has a row per entry in the order of printing, with the columns `rows`, `axes`, `PRINTED` and, for
    exhibits, the statistics of `stats.over_seeds`. `columns` has the values of `axes`, the outer first, from left to
    right. `column_axes` has the axes of the study behind these columns, if `axes` do not name
    them.

    Of the notes, `numbers` says what the numbers are. `bold` says what bold means in LaTeX, or why no entry is bold. `labels`
    has what is printed for names.
    """

    title: str
    caption: str
    notes: str
    rows: tuple[str, ...]
    columns: Sequence[tuple[str, ...]]
    entries: pd.DataFrame
    axes: tuple[str, ...] = ("column",)
    column_axes: tuple[str, ...] = ()
    # Markdown repeats the label of a block of rows in each row, unless this is true. LaTeX and HTML never repeat it.
    labels_once: bool = False
    numbers: str = ""
    bold: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def heads(self) -> list[tuple[str, ...]]:
        """What is printed above each column, the outer name first."""
        return [tuple(labelled(name, self.labels) for name in column) for column in self.columns]

    @property
    def key_heads(self) -> list[str]:
        """What is printed above the keys of the rows."""
        return self._named(self.rows)

    @property
    def key_heads_of_columns(self) -> list[str]:
        """The names of the axes of the columns, which a transposed table prints above the keys of its rows."""
        return self._named(self.column_axes or ["" if axis == "column" else axis for axis in self.axes])

    def _named(self, axes: Sequence[str]) -> list[str]:
        return [self.labels.get(name, name.capitalize()) for name in axes]


def sheet(
    entries: pd.DataFrame,
    *,
    title: str,
    caption: str = "",
    notes: Sequence[str] = (),
    rows: Sequence[str],
    axes: Sequence[str] = ("column",),
    column_axes: Sequence[str] = (),
    order: Mapping[str, Sequence[Any]],
    deviation: bool = True,
    digits: int = 1,
) -> Sheet:
    """The sheet of some entries: the entries in the order of printing, with their texts, and the notes that they need.

    Args:
        entries: the result of `xlgrid.results.stats.entries`, optionally with the column of `with_learning`.
        notes: sentences to put before the sentences about seeds and coverage.
        rows: the columns of `entries` that name a row.
        axes: the columns of `entries` that name a column, the outer first.
        column_axes: the axes of the study behind these columns, if their names do not say it.
        order: the values of each of `rows` from top to bottom, and of each of `axes` from left to right.
        deviation: whether the standard deviation over seeds follows each mean.
        digits: the number of decimals.
    """

    def rank(values: pd.Series) -> pd.Series:
        return values.map({value: i for i, value in enumerate(order[str(values.name)])})

    entries = entries.sort_values([*rows, *axes], key=rank).reset_index(drop=True)
    columns = entries[list(axes)].drop_duplicates().sort_values(list(axes), key=rank)
    planned = entries["n_seeds_expected"].unique()
    same_n = int(planned[0]) if len(planned) == 1 else None
    texts = [(entry_text(entry, deviation, digits, same_n), *_state_and_hover(entry)) for entry in entries.itertuples()]
    entries[list(PRINTED)] = pd.DataFrame(texts, columns=list(PRINTED), index=entries.index)
    if "learnt_nothing" in entries:
        nothing = entries.pop("learnt_nothing")
        entries["text"] += (nothing != "").map({True: f" {NOTHING}", False: ""})
        entries["hover"] += nothing.map(lambda reason: f", {NOTHING} {reason}" if reason else "")
    blank = len(entries) < len(entries[list(rows)].drop_duplicates()) * len(columns)
    numbers, *others = _notes(entries, axes, deviation, same_n, blank)
    heads = [tuple(map(label, column)) for column in columns.itertuples(index=False)]
    sentences = " ".join([*notes, numbers, *others])
    return Sheet(
        title, caption, sentences, tuple(rows), heads, entries, tuple(axes), tuple(column_axes), numbers=numbers
    )


def with_learning(entries: pd.DataFrame, behind: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The entries with the column `learnt_nothing`: the reason why a model behind an entry has learnt nothing, or "" if
    all have learnt something.

    Args:
        behind: the cells behind the entries, from `xlgrid.results.records.read_cells`.
        by: the columns of both frames that name an entry.
    """
    empty = behind[_learnt_nothing(behind)] if "learnt_nothing" in behind else behind.iloc[:0]
    reasons = dict(
        zip(empty[list(by)].itertuples(index=False, name=None), empty.get("learnt_nothing", ()), strict=True)
    )
    keys = entries[list(by)].itertuples(index=False, name=None)
    return entries.assign(learnt_nothing=[reasons.get(key, "") for key in keys])


def number(value: float, digits: int) -> str:
    """A number with fixed decimals, a true minus sign, and no negative zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def entry_text(entry: Any, deviation: bool, digits: int, same_n: int | None) -> str:
    """The text of an entry. `same_n` is the number of seeds that the caption states for all complete entries, if
    any."""
    several_cells = entry.n_cells_expected > entry.n_seeds_expected
    cells = f"{entry.n_cells}/{entry.n_cells_expected}"
    if entry.n_seeds == 0:
        return f"– ({cells})"
    text = number(entry.mean, digits)
    if entry.n_seeds > 1 and deviation:
        text += f" ± {number(entry.sd, digits)}"
    if entry.n_seeds < entry.n_seeds_expected:
        seeds = f"{entry.n_seeds}/{entry.n_seeds_expected} seeds"
        return f"{text} † ({cells} cells, {seeds})" if several_cells else f"{text} † ({seeds})"
    return text if same_n is not None else f"{text} (n={entry.n_seeds})"


def _state_and_hover(entry: Any) -> tuple[str, str]:
    state = "missing" if entry.n_seeds == 0 else "incomplete" if entry.n_seeds < entry.n_seeds_expected else "complete"
    facts = [f"{entry.n_seeds} of {entry.n_seeds_expected} seeds", f"{entry.n_cells} of {entry.n_cells_expected} cells"]
    facts += [f"mean {entry.mean:.3f}"] if entry.n_seeds else []
    facts += [f"sd {entry.sd:.3f}"] if entry.n_seeds > 1 else []
    return state, ", ".join(facts)


def _notes(entries: pd.DataFrame, axes: Sequence[str], deviation: bool, same_n: int | None, blank: bool) -> list[str]:
    name = "Mean ± standard deviation" if deviation else "Mean"
    if same_n == 1:
        notes = ["One seed (n = 1), so no deviation."]
    elif same_n is not None:
        notes = [f"{name} over n = {same_n} seeds."]
    else:
        notes = [f"{name} over n seeds; each entry has its n."]
    per_seed = entries["n_cells_expected"] // entries["n_seeds_expected"]
    # A single axis is named if the number of cells depends only on it.
    for by in (*([axis] for axis in axes), list(axes)):
        names = entries[by].map(str).agg(" ".join, axis=1)
        spans = {name: (int(n.min()), int(n.max())) for name, n in per_seed.groupby(names, sort=False)}
        if all(low == high for low, high in spans.values()):
            break
    if max(high for _, high in spans.values()) > 1:
        counts = {name: f"{low}" if low == high else f"{low} to {high}" for name, (low, high) in spans.items()}
        several = [f"{count} in {name}" for name, count in counts.items() if count != "1"]
        averaged = ", ".join(several if len(set(counts.values())) > 1 else set(counts.values()))
        notes.append(f"Cells averaged within each seed: {averaged}.")
    if any(low < high for low, high in spans.values()):
        notes.append("Entries of a column that average different numbers of cells are only roughly comparable.")
    short = entries["n_seeds"] < entries["n_seeds_expected"]
    if (short & (entries["n_seeds"] > 0)).any():
        notes.append("† fewer seeds are complete than planned; incomplete seeds are left out.")
    if (entries["n_seeds"] == 0).any():
        notes.append("– no seed is complete (cells with a result/cells planned).")
    if short.any() and not short.all():
        notes.append("Coverage differs between entries: compare only entries without a mark.")
    if blank:
        notes.append("Blank: not planned in this study.")
    return notes


def about(cells: pd.DataFrame) -> list[str]:
    """Sentences about the metric of the cells behind an exhibit, and the number of cells with a result."""
    # A cell with several metrics is one cell.
    identity = ["task", "encoder", "method", "run_method", "source", "target", "seed", "checkpoint"]
    unique = cells.drop_duplicates([name for name in identity if name in cells])
    done, planned = int(unique["score"].notna().sum()), len(unique)
    metrics = units.sentence(cells["metric"])
    stated = [f"Metric: {metrics}."] if metrics else []
    return [*stated, *several_ways(cells), f"Cells with a result: {done} of {planned}.", *_on_learning(cells)]


def several_ways(cells: pd.DataFrame) -> list[str]:
    """A sentence for each metric that is computed in different ways, such as BLEU with two tokenizers."""
    if IMPLEMENTATION not in cells:
        return []
    sentences = []
    for metric, of_metric in cells.dropna(subset=[IMPLEMENTATION]).groupby("metric", sort=False):
        ways = of_metric[IMPLEMENTATION].unique()
        if len(ways) == 1:
            continue
        # The axis whose values distinguish the ways.
        axes = ("task", "target", "encoder", "method", "source", "seed")
        parts = next((axis for axis in axes if of_metric.groupby(axis)[IMPLEMENTATION].nunique().max() == 1), None)
        names = [
            f" ({parts} {', '.join(map(str, of_metric.loc[of_metric[IMPLEMENTATION] == way, parts].unique()))})"
            if parts
            else ""
            for way in ways
        ]
        listed = "; ".join(f"{way}{name}" for way, name in zip(ways, names, strict=True))
        [computed] = units.metrics_of([str(metric)])
        sentences.append(
            f"{computed.title} is computed in {len(ways)} ways, whose scores are not comparable: {listed}."
        )
    return sentences


def _learnt_nothing(cells: pd.DataFrame) -> "pd.Series[bool]":
    """Whether the model of each cell has learnt nothing, see `xlgrid.results.learning`."""
    return cells["learnt_nothing"].notna() & (cells["learnt_nothing"] != "")


def _on_learning(cells: pd.DataFrame) -> list[str]:
    """A sentence about the models of some cells that have learnt nothing; empty if all have learnt something."""
    if "learnt_nothing" not in cells or not (nothing := _learnt_nothing(cells)).any():
        return []
    axes = ["task", "encoder", "run_method" if "run_method" in cells else "method", "source", "seed"]
    models, first = cells.drop_duplicates(axes), cells[nothing].iloc[0]
    empty = cells[nothing].drop_duplicates(axes)
    example = f"{' '.join(str(first[axis]) for axis in axes[:-1])} seed {first['seed']}: {first['learnt_nothing']}"
    return [
        f"{NOTHING} {len(empty)} of {len(models)} models have learnt nothing, so that these numbers are no evidence "
        f"about transfer ({example})."
    ]


class Line(NamedTuple):
    """A printed row.

    Attributes:
        keys: each key, with the number of rows that its label spans; 0 if the label begins in a row above.
        entries: an entry per column; None for a column without an entry.
    """

    keys: list[tuple[str, int]]
    entries: list[Any]


def lines(sheet: Sheet) -> list[Line]:
    """The rows of a sheet from top to bottom. Neighbouring rows share the label of a key if they agree in this key and
    in all keys before it, except for the last key."""
    rows: dict[tuple[str, ...], dict[tuple[str, ...], Any]] = {}
    # Names of columns, such as facts, are free, and may be no attributes of an entry.
    sides = [sheet.entries[list(names)].itertuples(index=False, name=None) for names in (sheet.rows, sheet.axes)]
    for entry, *of in zip(sheet.entries.itertuples(), *sides, strict=True):
        keys, column = (tuple(map(label, values)) for values in of)
        rows.setdefault(keys, {})[column] = entry
    return [
        Line(
            [(labelled(key, sheet.labels), rows) for key, rows in zip(keys, span, strict=True)],
            [row.get(column) for column in sheet.columns],
        )
        for (keys, row), span in zip(rows.items(), spans([*rows]), strict=True)
    ]


def spans(rows: list[tuple[str, ...]]) -> Iterator[tuple[int, ...]]:
    """For each row and key, the number of rows that the label of the key spans; 0 if the label begins in a row above."""
    return zip(*(_spans(rows, depth + 1) for depth in range(len(rows[0]))), strict=True) if rows else iter(())


def _spans(rows: list[tuple[str, ...]], depth: int) -> Iterator[int]:
    """For each row, the number of rows that its label at `depth` spans."""
    if rows and depth == len(rows[0]):
        yield from [1] * len(rows)
        return
    for _, block in groupby(rows, key=lambda keys: keys[:depth]):
        size = len(list(block))
        yield from [size, *[0] * (size - 1)]


def column_blocks(heads: Sequence[tuple[str, ...]]) -> list[tuple[str, int]]:
    """The values of the outer axis of two, with the number of columns under each; empty for a single axis."""
    return [(outer, len(list(block))) for outer, block in groupby(column[0] for column in heads if column[1:])]


def markdown(sheet: Sheet) -> str:
    """A pipe table with its title above and the notes below. The header of a column has the values of both axes."""
    head = [*sheet.key_heads, *map(" ".join, sheet.heads)]
    body = [
        [
            *(key if rows or not sheet.labels_once else "" for key, rows in line.keys),
            *(entry.text if entry else "" for entry in line.entries),
        ]
        for line in lines(sheet)
    ]
    texts = [[_md(text) for text in row] for row in (head, *body)]
    width = [max(3, *(len(row[i]) for row in texts)) for i in range(len(head))]
    keys = len(sheet.rows)
    printed = [
        "| "
        + " | ".join(t.ljust(w) if i < keys else t.rjust(w) for i, (t, w) in enumerate(zip(row, width, strict=True)))
        for row in texts
    ]
    rule = "| " + " | ".join("-" * w if i < keys else "-" * (w - 1) + ":" for i, w in enumerate(width))
    table = "\n".join(f"{row} |" for row in (printed[0], rule, *printed[1:]))
    title = f"**{_md(sheet.title)}**" + (f" {_md(sheet.caption)}" if sheet.caption else "")
    return f"{title}\n\n{table}\n\n*{_md(sheet.notes)}*\n"


def _md(text: str) -> str:
    for mark in "\\|*`<":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def html(sheet: Sheet) -> str:
    """A `<table class="exhibit">` fragment. The hover text of an entry has its statistics and coverage."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("xlgrid.exhibits.drawing", "."), autoescape=True, keep_trailing_newline=True
    )
    template = environment.get_template("table.html.j2")
    return template.render(sheet=sheet, blocks=column_blocks(sheet.heads), lines=lines(sheet))
