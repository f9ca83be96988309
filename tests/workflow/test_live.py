"""A run of the real Snakemake writes a page about itself, from its beginning to its end."""

import re
import time
from pathlib import Path
from threading import Thread

from project import first, project, shell

TARGET = "results/first/runs/ner/mini-xlmr/bitfit/qa1/seed1/run.json"


def texts(page: Path, seconds: float, last: str) -> list[str]:
    """The texts of a page, one after another, until it has the text `last`."""
    found: list[str] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and last not in "".join(found[-1:]):
        if page.exists() and (text := page.read_text()) not in found[-1:]:
            found.append(text)
        time.sleep(0.05)
    return found


def test_a_run_writes_a_page_about_itself_until_it_ends(tmp_path: Path) -> None:
    study = first()
    # The training fails after the jobs before it.
    study["training"][0]["set"]["lr"] = 1e30
    folder = project(tmp_path, study, "first")
    command = f"snakemake --profile laptop --config page=1 -- {TARGET}"
    run = Thread(target=lambda: ended.append(shell(folder, command).returncode))
    ended: list[int] = []
    run.start()
    pages = texts(folder / "results" / "first" / "status.html", 120, "The run has ended.")
    run.join()
    assert len(pages) > 1 and all('http-equiv="refresh"' in text for text in pages[:-1])
    assert ended == [1] and "refresh" not in pages[-1]
    [again] = re.findall(r"<pre[^>]*>(.*?)</pre>", pages[-1])
    assert again.startswith("snakemake --profile laptop -- results/first/runs/ner/mini-xlmr/bitfit/qa1/seed1/"), again
    assert (folder / "results" / "first" / "logs" / "status.log").read_text() == ""
