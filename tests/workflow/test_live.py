"""A run of the real Snakemake writes a page about itself, from its beginning to its end, and what its jobs have used."""

import re
import time
from pathlib import Path
from threading import Thread

import yaml
from project import first, make, project, shell

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


def test_a_run_leaves_what_its_jobs_used_and_the_lines_for_a_profile_fit(tmp_path: Path) -> None:
    folder = project(tmp_path, first(), "first")
    make(folder, TARGET)
    output = shell(folder, "xlgrid efficiency first").stdout
    requests = yaml.safe_load(output[output.index("set-resources:") :])
    assert {"data", "text", "pretrain", "tokens", "train"} <= requests["set-resources"].keys()
    # No job counts twice, from the ledger and from its benchmark.
    assert re.search(r"^data +1 ", output, re.MULTILINE), output
    # A person writes the lines into a profile.
    profile = folder / "laptop" / "profile.v9+.yaml"
    profile.write_text(f"{profile.read_text()}\n{yaml.safe_dump(requests)}")
    process = shell(folder, f"snakemake --profile laptop --dry-run --forcerun train -- {TARGET}")
    memory = eval(requests["set-resources"]["train"]["mem_mb"], {"attempt": 1})
    assert f"mem_mb={memory}" in process.stdout + process.stderr, process.stdout + process.stderr
