"""The page about a running study is one file that needs neither scripts nor a network, and says what `xlgrid status` says."""

import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from status_fixture import CELL, DONE, NOW, RESULT, RUN_LOG, bundle, failed, look, running, write
from typer.testing import CliRunner

from xlgrid.cli.app import app
from xlgrid.plan.load import load_plan
from xlgrid.report import ledger, live, status

pytestmark = pytest.mark.usefixtures("tiny_project")

PAGE = Path("results/tiny/status.html")
# Elements without an end tag.
VOID = {"meta", "rect", "polyline", "br", "img", "link"}


class Elements(HTMLParser):
    """The elements of a page. An element that is not closed in order is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, tag


def page(seconds: float = 60) -> str:
    live.write(load_plan("tiny"), ledger.FOLDER, PAGE, seconds)
    return PAGE.read_text()


def words(html: str) -> str:
    body = html.partition("<body")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


def test_the_page_is_whole_and_asks_for_nothing_else() -> None:
    write(CELL.path, DONE)
    bundle("1/a", (RESULT, running()))
    write(RUN_LOG, "step 5/20  loss 0.9  dev 50.00  1 s\nstep 10/20  loss 0.4  dev 60.00  2 s\n")
    elements = Elements(page()).all
    assert {"table", "svg", "details"} <= {tag for tag, _ in elements}
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in elements}
    assert not [about for _, about in elements if re.match(r"\w+:", about.get("src") or about.get("href") or "")]


def test_a_failure_has_its_cause_its_log_and_the_command_that_runs_it_again() -> None:
    failed(RESULT, NOW, message="RuntimeError: <b> of 3 & more")
    [trouble] = status.troubles(look(), together=True)
    html = page()
    assert "out of memory: RuntimeError: &lt;b&gt; of 3 &amp; more" in html
    assert trouble.again in html and trouble.what in html
    # The log is found from the folder of the page.
    [address] = [about["href"] for tag, about in Elements(html).all if tag == "a"]
    assert address == os.path.relpath("a.log", PAGE.parent)


def test_entries_of_a_matrix_count_seeds_and_have_the_state_that_needs_a_look_most() -> None:
    first, second = (CELL.path.replace("qb1", target) for target in ("qa1", "qa2"))
    write(first, DONE.replace('"qb1"', '"qa1"'))
    bundle("1/a", (second, running()), (CELL.path, None), rule="evaluate")
    failed(CELL.path.replace("seed1", "seed2"), NOW)
    [row] = re.findall(r'<th scope="row">qa1</th>(.*?)</tr>', page())
    assert re.findall(r'<td class="(\w+)">(.*?)</td>', row) == [
        ("part", "1/2"),
        ("running", "0/2 ▶"),
        ("failed", "0/2 ✗"),
    ]


def test_the_curves_of_a_training_end_where_it_is() -> None:
    bundle("1/a", (RESULT, running()))
    write(RUN_LOG, "".join(f"step {at}/40  loss {1 / at:.4f}  dev {at}.00  1 s\n" for at in (10, 20, 30)))
    html = page()
    lines = dict(re.findall(r'<polyline class="(\w+)" points="(.*?)"', html))
    assert lines["dev"] == "60.0,48.0 120.0,24.0 180.0,0.0"
    assert lines["loss"].startswith("60.0,0.0 ") and lines["loss"].endswith("180.0,48.0")
    assert "step 30 of 40, dev 10.00 → 30.00, loss 0.10 → 0.03" in words(html)


def test_the_page_has_the_bars_and_totals_of_status() -> None:
    write(CELL.path, DONE)
    bundle("1/a", (RESULT, running()), (RESULT.replace("seed1", "seed2"), None))
    view, shown = look(), words(page())
    for line in status.totals(view).plain.splitlines():
        assert line in shown
    train = next(stage for stage in view.stages if stage.name == "train")
    assert f"train {train.done} / {train.jobs} 1 running 1 queued" in re.sub(r" +", " ", shown)


def test_a_study_that_has_not_begun_has_the_commands_that_begin_it() -> None:
    html = page()
    assert "snakemake --profile laptop" in html and "xlgrid check tiny" in html


def test_a_browser_loads_the_page_again_only_while_it_is_written() -> None:
    assert '<meta http-equiv="refresh" content="60">' in page(60)
    assert "refresh" not in page(0)


def finish() -> None:
    for cell in load_plan("tiny").cells:
        text = DONE.replace('"source": "qa1"', f'"source": "{cell.source}"').replace('"qb1"', f'"{cell.target}"')
        write(cell.path, text.replace('"seed": 1', f'"seed": {cell.seed}'))


def test_watching_ends_with_the_last_cell() -> None:
    finish()
    result = CliRunner().invoke(app, ["status", "tiny", "--watch", "--page", str(PAGE)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "12 of 12 cells done" in PAGE.read_text() and "refresh" not in PAGE.read_text()


def test_an_error_of_the_file_system_is_said_and_the_page_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish()
    written, tries = live.write, iter([OSError("stale file handle")])

    def fails_once(*arguments: object) -> bool:
        for error in tries:
            raise error
        return written(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "write", fails_once)
    live.follow({PAGE: load_plan("tiny")}, 0)
    assert "stale file handle" in capsys.readouterr().err and PAGE.exists()


def test_the_process_that_writes_the_page_ends_after_the_one_that_has_started_it() -> None:
    code = "from xlgrid.plan.load import load_plan; from xlgrid.report import live; import time\n"
    code += "live.start([load_plan('tiny')], 1); time.sleep(3)"
    subprocess.run([sys.executable, "-c", code], check=True)
    for _ in range(600):
        if PAGE.exists() and "The run has ended." in PAGE.read_text():
            break
        time.sleep(0.1)
    assert "refresh" not in PAGE.read_text()
    assert Path("results/tiny/logs/status.log").read_text() == ""


def test_no_page_is_written_unless_it_is_asked_for() -> None:
    live.start([load_plan("tiny")], 0)
    assert not Path("results").exists()
