"""Print tables as LaTeX (booktabs)."""

from typing import Any

from xlgrid.exhibits.drawing.sheet import Sheet, column_blocks, lines
from xlgrid.exhibits.latex import Latex

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


# The value of `resize` -> the command around the tabular. A table that is wider than its place is always scaled down.
_WIDTHS = {None: r"max width=\linewidth", "column": r"width=\columnwidth", "text": r"width=\textwidth"}


def latex(sheet: Sheet, name: str, settings: Latex) -> str:
    r"""A floating table with booktabs rules, also under each block of columns. Its label is `tab:{name}`.

    The table needs `\usepackage{adjustbox,booktabs}`. Entries whose `is_best` is true are bold.
    """
    head = [*map(str.capitalize, sheet.rows), *(column[-1] for column in sheet.columns)]
    above, rules, first = [""] * len(sheet.rows), [], len(sheet.rows) + 1
    for outer, width in column_blocks(sheet):
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(outer)}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    body: list[str] = []
    for line in lines(sheet):
        # There is a rule between blocks of the outermost key.
        if body and len(line.keys) > 1 and line.keys[0][1]:
            body.append(r"\midrule")
        cells = [*(escape_latex(key) if rows else "" for key, rows in line.keys), *map(_entry, line.entries)]
        # LaTeX would read a bracket or an asterisk at the beginning as an argument of the line break before it.
        protected = "{}" if cells[0].startswith(("[", "*")) else ""
        body.append(protected + " & ".join(cells) + r" \\")
    caption = " ".join(part for part in (f"{sheet.title.rstrip('.')}.", sheet.caption, sheet.notes) if part)
    return "\n".join(
        [
            r"% needs \usepackage{adjustbox,booktabs}",
            rf"\begin{{{settings.environment}}}[t]",
            r"\centering",
            r"\small",
            rf"\begin{{adjustbox}}{{{_WIDTHS[settings.resize]}}}",
            rf"\begin{{tabular}}{{@{{}}{'l' * len(sheet.rows)}{'r' * len(sheet.columns)}@{{}}}}",
            r"\toprule",
            *([" & ".join(above) + r" \\", " ".join(rules)] if rules else []),
            " & ".join(map(escape_latex, head)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{adjustbox}",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{name}}}",
            rf"\end{{{settings.environment}}}",
            "",
        ]
    )


def _entry(entry: Any) -> str:
    text = escape_latex(entry.text) if entry else ""
    return rf"\textbf{{{text}}}" if getattr(entry, "is_best", False) else text
