"""The report's notebook, and the page that the template makes of it."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest
from page_fixture import NOTEBOOKS, PREPARATION, RUNS, run_notebook, study_of

from xlgrid.base.provenance import provenance
from xlgrid.report import notebook


@pytest.mark.slow
def test_a_saved_notebook_names_its_study_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run by a kernel, and a copy of it in another project reads that project."""
    study = (NOTEBOOKS.parent / "studies" / "demo.yaml").read_text(encoding="utf-8")
    for place, title in (("first", "the first one"), ("second", "the second one")):
        folder = tmp_path / place
        (folder / "studies").mkdir(parents=True)
        (folder / "studies" / "other.yaml").write_text(re.sub("(?m)^title: .*$", f"title: {title}", study))
        monkeypatch.chdir(folder)
        source = NOTEBOOKS / "report.ipynb" if place == "first" else tmp_path / "first" / "report.ipynb"
        notebook.execute("other", source, Path("report.ipynb"))
        text = Path("report.ipynb").read_text(encoding="utf-8")
        assert title in text
        command = "snakemake --cores all results/other/report.html"
        assert json.loads(text)["metadata"]["made_by"] == provenance() | {"command": command}
        assert "Out[" not in notebook.to_html(nbformat.reads(text, as_version=4)), "a prompt of the kernel"
        assert str(tmp_path) not in text and str(NOTEBOOKS.parent) not in text
        assert [path.name for path in folder.iterdir() if path.name != "studies"] == ["report.ipynb"]


@pytest.fixture
def html(tmp_path: Path, cells: pd.DataFrame, curves: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a study with an exhibit that is not made yet."""
    exhibits = {
        "table01": SimpleNamespace(title="Accuracy & more", caption="", suffixes=[".csv", ".html"], is_compared=False)
    }
    parts = {"exhibits": exhibits, "curves": curves, "runs": RUNS, "preparation": PREPARATION}
    return notebook.to_html(run_notebook(study_of(cells, **parts), monkeypatch))


def test_page_contents_lead_to_every_heading(html: str) -> None:
    contents = html[html.index("<nav") : html.index("</nav>")]
    targets = [part.split('"')[0] for part in contents.split('href="#')[1:]]
    assert targets[:3] == ["Exhibits", "exhibit-table01", "Languages"]
    assert [target for target in targets if f'id="{target}"' not in html] == [], "contents lead nowhere"
    assert len(targets) == html.count("<h2") + html.count("<h3"), "a heading is not in the contents"


def test_page_is_offline_and_its_scripts_only_add_to_it(html: str) -> None:
    before, _, script = html.partition("<script>")
    assert "://" not in html.replace("http://www.w3.org", "")
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|src)\b", script), "the script reads something"
    assert before.rstrip().endswith("</main>"), "the page is written before the script begins"
    assert "table.exhibit .incomplete" in html, "the style sheet is part of the page"


def test_page_is_named_after_the_study_and_shows_no_code(html: str) -> None:
    assert "<title>A title</title>" in html
    assert "report.overview" not in html


@pytest.mark.parametrize(
    ("commit", "expected"), [("c0ffee-dirty", "xlgrid 1.2, commit c0ffee-dirty, by"), (None, "xlgrid 1.2, by")]
)
def test_a_page_says_which_code_made_it(commit: str | None, expected: str) -> None:
    made_by = {"xlgrid": "1.2", "commit": commit, "command": "xlgrid report 'a <b'"}
    html = notebook.to_html(nbformat.v4.new_notebook(metadata={"made_by": made_by}))
    assert expected in html and "<code>xlgrid report 'a &lt;b'</code>" in html


def test_page_leaves_out_warnings_and_shows_errors() -> None:
    cell = nbformat.v4.new_code_cell("f()")
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        nbformat.v4.new_output("error", ename="ValueError", evalue="bad", traceback=["ValueError: bad"]),
    ]
    html = notebook.to_html(nbformat.v4.new_notebook(cells=[cell]))
    assert "a warning" not in html
    assert "ValueError: bad" in html


def test_notebook_is_committed_without_outputs_and_defines_nothing() -> None:
    source = json.loads((NOTEBOOKS / "report.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in source["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert not any("def " in line for cell in code for line in cell["source"])
