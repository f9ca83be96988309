"""Documents in two columns with the sizes of the style of ACL, set by pdflatex.

The style itself (acl.sty) is not part of xlgrid. `PREAMBLE` states its sizes: A4, text of 16 cm, columns of 7.7 cm, Times of 11
points, captions of 10 points, and natbib.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_latex = pytest.mark.skipif(
    not shutil.which("pdflatex"),
    reason="no LaTeX here: `apt-get install --no-install-recommends texlive-latex-extra` installs it",
)


PREAMBLE = r"""\documentclass[11pt,twocolumn]{article}
\usepackage[a4paper,margin=2.5cm,textwidth=16cm,columnsep=0.6cm]{geometry}
\usepackage{times}\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}
\usepackage{natbib,graphicx,booktabs,caption}
\DeclareCaptionFont{ten}{\fontsize{10pt}{12pt}\selectfont}\captionsetup{font=ten}
"""


def log_of(floats: Mapping[str, str], folder: Path) -> str:
    """The log of an article in two columns with these floats, which LaTeX has set without an error."""
    folder.mkdir(exist_ok=True)
    for name, text in floats.items():
        (folder / f"{name}.tex").write_text(text)
    body = "".join(rf"Text.\input{{{name}}}\clearpage" + "\n" for name in floats)
    (folder / "article.tex").write_text(rf"{PREAMBLE}\begin{{document}}{body}\end{{document}}")
    process = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "article.tex"],
        cwd=folder,
        # Lines of the log are not wrapped.
        env=os.environ | {"max_print_line": "10000"},
        capture_output=True,
        timeout=300,
    )
    log = (folder / "article.log").read_text(errors="replace")
    assert process.returncode == 0, log[-2000:]
    return log


def complaints(log: str) -> list[str]:
    """The lines on boxes, floats and characters that do not fit."""
    return [line for line in log.splitlines() if re.match(r"Overfull|LaTeX Warning: Float|Missing character", line)]
