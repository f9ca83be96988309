"""Tables: cells -> entries (one tidy row per entry) -> Markdown, LaTeX (booktabs) and HTML."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

# What a sheet adds to its entries: the text, its class in HTML, and what HTML tells when pointed at.
PRINTED = ("text", "state", "hover")


@dataclass(frozen=True)
class Sheet:
    """A table ready for printing.

    `entries` has the columns `rows`, `axes`, `PRINTED` and, of an exhibit, the statistics of `stats.over_seeds`, one line per
    entry, in the order of printing; `columns` are the values of `axes`, the outer first, from left to right.
    """

    title: str
    caption: str
    notes: str
    rows: tuple[str, ...]
    columns: Sequence[tuple[str, ...]]
    entries: pd.DataFrame
    axes: tuple[str, ...] = ("column",)


def sheet(
    found: pd.DataFrame,
    *,
    title: str,
    caption: str = "",
    notes: Sequence[str] = (),
    rows: Sequence[str],
    axes: Sequence[str] = ("column",),
    order: Mapping[str, Sequence[Any]],
    statistic: str = "mean-sd",
    digits: int = 1,
) -> Sheet:
    """Put entries into the order of printing and write out their texts and the notes that they need.

    Args:
        found: entries as `entries` returns them.
        notes: sentences to put before the ones on seeds and coverage.
        rows: the columns of `found` that name a row.
        axes: the columns of `found` that name a column, the outer first.
        order: for each of `rows` its values from top to bottom, for each of `axes` from left to right.
        statistic: "mean-sd", "mean" or "min-max".
        digits: decimals.
    """

    def rank(values: pd.Series) -> pd.Series:
        return values.map({value: i for i, value in enumerate(order[str(values.name)])})

    found = found.sort_values([*rows, *axes], key=rank).reset_index(drop=True)
    columns = found[list(axes)].drop_duplicates().sort_values(list(axes), key=rank)
    planned = found["n_seeds_expected"].unique()
    same_n = int(planned[0]) if len(planned) == 1 else None
    texts = [(entry_text(entry, statistic, digits, same_n), *_state_and_hover(entry)) for entry in found.itertuples()]
    found[list(PRINTED)] = pd.DataFrame(texts, columns=list(PRINTED), index=found.index)
    blank = len(found) < len(found[list(rows)].drop_duplicates()) * len(columns)
    sentences = [*notes, *_notes(found, axes, statistic, same_n, blank)]
    labels = [tuple(map(label, column)) for column in columns.itertuples(index=False)]
    return Sheet(title, caption, " ".join(sentences), tuple(rows), labels, found, tuple(axes))


def label(value: Any) -> str:
    """How a key is printed: numbers without a needless fraction, everything else as it is."""
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def number(value: float, digits: int) -> str:
    """A fixed number of decimals, a true minus sign, and no negative zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def entry_text(entry: Any, statistic: str, digits: int, same_n: int | None) -> str:
    """The text of one entry; `same_n` is the number of seeds that the caption states for all complete entries, if one."""
    several_cells = entry.n_cells_expected > entry.n_seeds_expected
    cells = f"{entry.n_cells}/{entry.n_cells_expected}"
    if entry.n_seeds == 0:
        return f"– ({cells})"
    text = number(entry.mean, digits)
    if entry.n_seeds > 1 and statistic == "mean-sd":
        text += f" ± {number(entry.sd, digits)}"
    if entry.n_seeds > 1 and statistic == "min-max":
        text = f"{number(entry.min, digits)}–{number(entry.max, digits)}"
    if entry.n_seeds < entry.n_seeds_expected:
        seeds = f"{entry.n_seeds}/{entry.n_seeds_expected} seeds"
        return f"{text} † ({cells} cells, {seeds})" if several_cells else f"{text} † ({seeds})"
    return text if same_n is not None else f"{text} (n={entry.n_seeds})"


def _state_and_hover(entry: Any) -> tuple[str, str]:
    state = "missing" if entry.n_seeds == 0 else "incomplete" if entry.n_seeds < entry.n_seeds_expected else "complete"
    told = [f"{entry.n_seeds} of {entry.n_seeds_expected} seeds", f"{entry.n_cells} of {entry.n_cells_expected} cells"]
    told += [f"mean {entry.mean:.3f}"] if entry.n_seeds else []
    told += [f"sd {entry.sd:.3f}"] if entry.n_seeds > 1 else []
    return state, ", ".join(told)


def _notes(found: pd.DataFrame, axes: Sequence[str], statistic: str, same_n: int | None, blank: bool) -> list[str]:
    name = {"mean-sd": "Mean ± standard deviation", "mean": "Mean", "min-max": "Minimum–maximum"}[statistic]
    if same_n == 1:
        notes = ["One seed (n = 1), so no deviation."]
    elif same_n is not None:
        notes = [f"{name} over n = {same_n} seeds."]
    else:
        notes = [f"{name} over n seeds; n stands with each entry."]
    per_seed = found["n_cells_expected"] // found["n_seeds_expected"]
    # Told by a single axis where that says it all.
    for by in (*([axis] for axis in axes), list(axes)):
        names = found[by].map(str).agg(" ".join, axis=1)
        spans = {name: (int(one.min()), int(one.max())) for name, one in per_seed.groupby(names, sort=False)}
        if all(low == high for low, high in spans.values()):
            break
    if max(high for _, high in spans.values()) > 1:
        said = {name: f"{low}" if low == high else f"{low} to {high}" for name, (low, high) in spans.items()}
        several = [f"{count} in {name}" for name, count in said.items() if count != "1"]
        counts = ", ".join(several if len(set(said.values())) > 1 else set(said.values()))
        notes.append(f"Cells averaged within each seed: {counts}.")
    if any(low < high for low, high in spans.values()):
        notes.append("Entries of one column that average different numbers of cells compare only roughly.")
    short = found["n_seeds"] < found["n_seeds_expected"]
    if (short & (found["n_seeds"] > 0)).any():
        notes.append("† fewer seeds are complete than planned; incomplete seeds are left out.")
    if (found["n_seeds"] == 0).any():
        notes.append("– no seed is complete (cells with a result/cells planned).")
    if short.any() and not short.all():
        notes.append("Coverage differs between entries: compare only entries without a mark.")
    if blank:
        notes.append("Blank: not planned in this study.")
    return notes


def about(cells: pd.DataFrame) -> list[str]:
    """Sentences on the metric of the cells behind an exhibit and on how many of them have a result."""
    # A cell with several metrics is one cell.
    identity = ["task", "encoder", "method", "source", "target", "seed", "snapshot"]
    unique = cells.drop_duplicates([name for name in identity if name in cells])
    have, planned = int(unique["score"].notna().sum()), len(unique)
    # Unknown as long as no cell of a task has a result.
    metrics = ", ".join(str(metric) for metric in dict.fromkeys(cells["metric"]) if metric)
    said = [f"Metric: {metrics}, in percent."] if metrics else []
    return [*said, f"Cells with a result: {have} of {planned}."]


def _lines(sheet: Sheet) -> list[tuple[tuple[str, ...], list[Any]]]:
    """For each printed row its keys, and one entry per column or None where there is none."""
    rows: dict[tuple[str, ...], dict[tuple[str, ...], Any]] = {}
    for entry in sheet.entries.itertuples():
        keys, column = (tuple(label(getattr(entry, name)) for name in names) for names in (sheet.rows, sheet.axes))
        rows.setdefault(keys, {})[column] = entry
    return [(keys, [row.get(column) for column in sheet.columns]) for keys, row in rows.items()]


def _blocks(sheet: Sheet) -> list[tuple[str, int]]:
    """The values of the outer of two axes, and how many columns stand under each; nothing where there is one axis."""
    return [(outer, len(list(block))) for outer, block in groupby(column[0] for column in sheet.columns if column[1:])]


def markdown(sheet: Sheet) -> str:
    """A pipe table with its title above and the notes below; a column of two axes is headed by both."""
    head = [*map(str.capitalize, sheet.rows), *map(" ".join, sheet.columns)]
    body = [[*keys, *(entry.text if entry else "" for entry in row)] for keys, row in _lines(sheet)]
    lines = [[_md(text) for text in line] for line in (head, *body)]
    width = [max(3, *(len(line[i]) for line in lines)) for i in range(len(head))]
    keys = len(sheet.rows)
    printed = [
        "| "
        + " | ".join(t.ljust(w) if i < keys else t.rjust(w) for i, (t, w) in enumerate(zip(line, width, strict=True)))
        for line in lines
    ]
    rule = "| " + " | ".join("-" * w if i < keys else "-" * (w - 1) + ":" for i, w in enumerate(width))
    table = "\n".join(f"{line} |" for line in (printed[0], rule, *printed[1:]))
    said = f"**{_md(sheet.title)}**" + (f" {_md(sheet.caption)}" if sheet.caption else "")
    return f"{said}\n\n{table}\n\n*{_md(sheet.notes)}*\n"


def _md(text: str) -> str:
    for mark in "\\|*`<":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "†": r"\textsuperscript{\dag}",
    "–": "--",
    "\N{MINUS SIGN}": "$-$",
    "\n": " ",
}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands, also without extra packages."""
    return "".join(_LATEX.get(character, character) for character in text)


def latex(sheet: Sheet, name: str) -> str:
    r"""A `table` environment with booktabs rules, also under each block of columns; needs `\usepackage{booktabs}`; its label is
    `tab:{name}`."""
    head = [*map(str.capitalize, sheet.rows), *(column[-1] for column in sheet.columns)]
    above, rules, first = [""] * len(sheet.rows), [], len(sheet.rows) + 1
    for outer, width in _blocks(sheet):
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(outer)}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    body, before = [], None
    for keys, row in _lines(sheet):
        # The outermost key is printed once per block of rows, as papers do.
        same = before is not None and len(keys) > 1 and keys[0] == before
        if before is not None and len(keys) > 1 and not same:
            body.append(r"\midrule")
        cells = ["" if same else keys[0], *keys[1:], *(entry.text if entry else "" for entry in row)]
        body.append(" & ".join(map(escape_latex, cells)) + r" \\")
        before = keys[0]
    caption = " ".join(part for part in (f"{sheet.title.rstrip('.')}.", sheet.caption, sheet.notes) if part)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering",
            rf"\begin{{tabular}}{{@{{}}{'l' * len(sheet.rows)}{'r' * len(sheet.columns)}@{{}}}}",
            r"\toprule",
            *([" & ".join(above) + r" \\", " ".join(rules)] if rules else []),
            " & ".join(map(escape_latex, head)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{name}}}",
            r"\end{table}",
            "",
        ]
    )


def to_html(sheet: Sheet) -> str:
    """A `<table class="exhibit">` fragment; an entry tells its statistics and coverage when pointed at."""
    lines = _lines(sheet)
    body, before = [], None
    for keys, row in lines:
        cells = [f'<th scope="row">{html.escape(key)}</th>' for key in keys]
        if len(keys) > 1:
            block = sum(other[0] == keys[0] for other, _ in lines)
            cells[0] = (
                "" if keys[0] == before else f'<th scope="rowgroup" rowspan="{block}">{html.escape(keys[0])}</th>'
            )
        before = keys[0]
        body.append(f"<tr>{''.join(cells)}{''.join(map(_html_entry, row))}</tr>")
    said = f"<strong>{html.escape(sheet.title)}</strong>" + (f" {html.escape(sheet.caption)}" if sheet.caption else "")
    return "\n".join(
        [
            '<table class="exhibit">',
            f"<caption>{said} <small>{html.escape(sheet.notes)}</small></caption>",
            *_html_head(sheet),
            "<tbody>",
            *body,
            "</tbody>",
            "</table>",
            "",
        ]
    )


def _html_head(sheet: Sheet) -> list[str]:
    blocks = _blocks(sheet)
    across = ' rowspan="2"' if blocks else ""
    keys = "".join(f'<th scope="col"{across}>{html.escape(name.capitalize())}</th>' for name in sheet.rows)
    columns = "".join(f'<th scope="col">{html.escape(column[-1])}</th>' for column in sheet.columns)
    if not blocks:
        return [f"<thead><tr>{keys}{columns}</tr></thead>"]
    above = "".join(f'<th scope="colgroup" colspan="{n}">{html.escape(outer)}</th>' for outer, n in blocks)
    return [
        # To head a block, a cell has to stand over a group of columns.
        "".join(f'<colgroup span="{n}"></colgroup>' for n in (len(sheet.rows), *(n for _, n in blocks))),
        f"<thead><tr>{keys}{above}</tr>",
        f"<tr>{columns}</tr></thead>",
    ]


def _html_entry(entry: Any) -> str:
    if entry is None:
        return "<td></td>"
    hover = f' title="{html.escape(entry.hover)}"' if entry.hover else ""
    return f'<td class="{entry.state}"{hover}>{html.escape(entry.text)}</td>'
