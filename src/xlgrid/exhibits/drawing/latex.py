"""Print tables as LaTeX (booktabs)."""

from collections.abc import Sequence
from typing import NamedTuple

from xlgrid.exhibits.drawing.sheet import NOTHING, Sheet, column_blocks, lines, spans
from xlgrid.exhibits.latex import WIDTHS, Latex, Place

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
    "√": r"$\surd$",
    "²": "$^2$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "→": r"$\rightarrow$",
    "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}",
    "§": r"\textsuperscript{\S}",
    "–": "--",
    "\N{MINUS SIGN}": "$-$",
    "\n": " ",
}


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped. It needs no additional packages."""
    return "".join(_LATEX.get(character, character) for character in text)


# The sizes of letters in a document of 11 points: command, points, and the space at the sides of a column in points. A
# table that fits in none of the first two in a column is set on a page.
SIZES = ((r"\small", 10.0, 6), (r"\footnotesize", 9.0, 4), (r"\scriptsize", 8.0, 3))
IN_COLUMN = 2
# The widths of characters of Times in em; other characters are about as wide as a small letter.
_TIMES = {
    0.25: " .,", 0.28: "ijlt/:;", 0.34: "Ifrs()[]-'!†‡§", 0.45: "acez?\"", 0.56: "PSFJ+<>=–", 0.62: "ELTZ", 0.68: "BCR",
    0.73: "ADGHKNOQUVXYw&", 0.8: "m±−≈≤≥", 0.9: "MW%@",
}  # fmt: skip
_WIDTH = {character: width for width, characters in _TIMES.items() for character in characters}


class Grid(NamedTuple):
    """The texts of a table.

    Attributes:
        corner: what stands above the keys of the rows.
        columns: the heads of each column, the outer first.
        rows: the keys of each row.
        texts: the entries of each row.
        bold: whether each of these is bold.
    """

    corner: tuple[str, ...]
    columns: list[tuple[str, ...]]
    rows: list[tuple[str, ...]]
    texts: list[list[str]]
    bold: list[list[bool]]

    def transposed(self, corner: Sequence[str]) -> "Grid":
        """The columns as rows, and the rows as columns. A column has at most two heads, so that the outer keys are joined."""
        heads = [(" ".join(keys[:-1]), keys[-1]) if keys[1:] else keys for keys in self.rows]
        texts, bold = ([list(row) for row in zip(*each, strict=True)] for each in (self.texts, self.bold))
        return Grid(tuple(corner), heads, self.columns, texts, bold)

    def parts(self, number: int) -> list["Grid"]:
        """The grid, cut into parts of about as many columns each."""
        size = -(-len(self.columns) // number)
        cuts = [slice(at, at + size) for at in range(0, len(self.columns), size)]
        return [
            self._replace(
                columns=self.columns[cut],
                texts=[row[cut] for row in self.texts],
                bold=[row[cut] for row in self.bold],
            )
            for cut in cuts
        ]

    def inches(self, points: float, space: int) -> float:
        """About how wide the table is."""
        keys = [max(map(em, each)) for each in zip(self.corner, *self.rows, strict=True)]
        inner = [column[-1] for column in self.columns]
        columns = [max(map(em, each)) for each in zip(inner, *self.texts, strict=True)]
        first = 0
        for outer, number in column_blocks(self.columns):
            under = sum(columns[first : first + number]) + 2 * space / points * (number - 1)
            columns[first] += max(0.0, em(outer) - under)
            first += number
        number = len(keys) + len(columns)
        # A point of TeX is 1/72.27 in.
        return (1.02 * points * sum([*keys, *columns]) + 2 * space * (number - 1)) / 72.27


def em(text: str) -> float:
    """About how wide a text is in Times, in em."""
    return sum(_WIDTH.get(character, 0.5) for character in text)


def parts_of(sheet: Sheet, settings: Latex) -> list[Grid]:
    """The parts of a table, one below the other."""
    printed = lines(sheet)
    rows = [tuple(key for key, _ in line.keys) for line in printed]
    texts = [[entry.text if entry else "" for entry in line.entries] for line in printed]
    bold = [[bool(getattr(entry, "is_best", False)) for entry in line.entries] for line in printed]
    grid = Grid(tuple(sheet.key_heads), sheet.heads, rows, texts, bold)
    if settings.transpose:
        grid = grid.transposed(sheet.key_heads_of_columns)
    return grid.parts(settings.split)


def setting(parts: Sequence[Grid], width: Place | None) -> tuple[Place, str, int, float]:
    """Where a table is set: in a column or on a page, in letters of which size, with which space, and what it lacks there.

    Returns:
        The place, the command of the size, the space in points, and how many inches the table is too wide; 0 if it fits.
    """
    for place in [width] if width else WIDTHS:
        for command, points, space in SIZES if width or place == "page" else SIZES[:IN_COLUMN]:
            over = max(part.inches(points, space) for part in parts) - WIDTHS[place]
            if over <= 0:
                return place, command, space, 0
    return place, command, space, over


def too_wide(sheet: Sheet, settings: Latex, width: Place | None) -> str:
    """What to do about a table that is too wide for its place; "" if it fits."""
    place, _, _, over = setting(parts_of(sheet, settings), width)
    if not over:
        return ""

    def fits(place: Place | None = width, **form: int) -> bool:
        return not setting(parts_of(sheet, settings.model_copy(update=form)), place)[-1]

    number = next((number for number in range(settings.split + 1, 10) if fits(split=number)), 0)
    offered = ["`width: page`"] * (place == "column" and fits("page"))
    turned = not settings.transpose
    offered += [f"`latex: {{transpose: {str(turned).lower()}}}`"] * fits(transpose=turned)
    offered += [f"`latex: {{split: {number}}}`"] * bool(number)
    return (
        f"the table is about {WIDTHS[place] + over:.1f} in wide in the smallest letters, and a {place} has {WIDTHS[place]:g} in: "
        f"{'write ' + ' or '.join(offered) if offered else 'select fewer rows or columns'}"
    )


def latex(sheet: Sheet, name: str, settings: Latex, width: Place | None = None, *, picture: Place | None = None) -> str:
    r"""A floating table with booktabs rules, also under each block of columns. Its label is `tab:{name}`.

    The table needs `\usepackage{booktabs}`. Entries whose `is_best` is true are bold. The caption is that of the exhibit; the
    notes are a comment, unless an entry lacks a result.

    Args:
        width: where the table is for; None: in a column if it fits there, and otherwise on a page.
        picture: where the picture of the exhibit is for, if it has one. A comment then includes it.
    """
    parts = parts_of(sheet, settings)
    place, size, space, _ = setting(parts, width)
    of_page = "*" * (place == "page")
    entries = sheet.entries
    lacking = bool(entries["state"].ne("complete").any() or entries["text"].str.contains(NOTHING).any())
    # Why no entry is bold is for the author, and what bold means is for the reader.
    is_bold = "is_best" in entries and bool(entries["is_best"].any())
    title = sheet.title if sheet.title.endswith((".", "?", "!")) else f"{sheet.title}."
    said = [title, sheet.caption or ("" if lacking else sheet.numbers), sheet.notes * lacking, sheet.bold * is_bold]
    caption = escape_latex(" ".join(filter(None, said)))
    problem = too_wide(sheet, settings, width)
    notes = [r"needs \usepackage{booktabs}", problem, sheet.notes * (not lacking), sheet.bold * (not is_bold)]
    if picture:
        float_ = "figure" + "*" * (picture == "page")
        notes += [
            r"the picture, with \usepackage{graphicx}:",
            rf"\begin{{{float_}}}[t] \centering \includegraphics{{{name}.pdf}} \caption{{{caption}}} "
            rf"\label{{fig:{name}}} \end{{{float_}}}",
        ]
    return "\n".join(
        [
            *(f"% {' '.join(note.split())}" for note in notes if note),
            rf"\begin{{table{of_page}}}[t]",
            r"\centering",
            size,
            rf"\setlength{{\tabcolsep}}{{{space}pt}}",
            "\n\n\\medskip\n".join(map(_tabular, parts)),
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{name}}}",
            rf"\end{{table{of_page}}}",
            "",
        ]
    )


def _tabular(grid: Grid) -> str:
    above, rules, first = [""] * len(grid.corner), [], len(grid.corner) + 1
    for outer, width in column_blocks(grid.columns):
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(outer)}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    body: list[str] = []
    for keys, span, texts, bold in zip(grid.rows, spans(grid.rows), grid.texts, grid.bold, strict=True):
        # There is a rule between blocks of the outermost key.
        if body and len(keys) > 1 and span[0]:
            body.append(r"\midrule")
        cells = [escape_latex(key) if rows else "" for key, rows in zip(keys, span, strict=True)]
        cells += [
            rf"\textbf{{{escape_latex(text)}}}" if best else escape_latex(text)
            for text, best in zip(texts, bold, strict=True)
        ]
        # LaTeX would read a bracket or an asterisk at the beginning as an argument of the line break before it.
        protected = "{}" if cells[0].startswith(("[", "*")) else ""
        body.append(protected + " & ".join(cells) + r" \\")
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}{'l' * len(grid.corner)}{'r' * len(grid.columns)}@{{}}}}",
            r"\toprule",
            *([" & ".join(above) + r" \\", " ".join(rules)] if rules else []),
            " & ".join(map(escape_latex, [*grid.corner, *(column[-1] for column in grid.columns)])) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )
