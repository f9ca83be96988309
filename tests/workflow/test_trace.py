"""A stranger picks a number of a table, traces it, and makes its results again: the same bytes, apart from times."""

import json
import random
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from project import shell, succeeds

TIMES = re.compile(r'^ "(?:cpu_)?seconds": .*$', re.MULTILINE)


def traced(folder: Path, file: Path, *labels: str) -> dict[str, Any]:
    """What `xlgrid trace` prints as JSON."""
    process = shell(folder, shlex.join(["xlgrid", "trace", str(file.relative_to(folder)), *labels, "--json"]))
    assert process.returncode == 0, process.stderr
    result: dict[str, Any] = json.loads(process.stdout)
    return result


@pytest.fixture(scope="module")
def copy(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo of its own, because new cells make exhibits out of date."""
    return Path(shutil.copytree(demo, tmp_path_factory.mktemp("trace") / "copy", symlinks=True))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_number_picked_at_random_is_made_again(copy: Path, seed: int) -> None:
    draw = random.Random(seed)
    tables = sorted((copy / "results/demo/exhibits").glob("*.csv"))
    table = draw.choice(tables)
    entry = draw.choice(traced(copy, table)["entries"])
    row, column = (" ".join(entry[side].values()) for side in ("row", "column"))
    found = traced(copy, table, "--row", row, "--column", column)
    assert found["entries"] == [entry] and found["notes"] == []
    results = [copy / result["path"] for result in entry["results"]]
    assert results
    before = {path: path.read_text() for path in results}
    for path in results:
        path.write_text("damaged")
    succeeds(copy, found["commands"]["results"])
    for path, text in before.items():
        assert TIMES.sub("", path.read_text()) == TIMES.sub("", text)
        assert TIMES.search(text), "the record has its times on lines of their own"
    assert traced(copy, table, "--row", row, "--column", column)["entries"][0]["text"] == entry["text"]
