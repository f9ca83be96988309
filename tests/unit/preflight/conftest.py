"""A project with a study of files of one's own and of an encoder on the Hub, and a Hub that does not answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from xlgrid.data.lock import Unreachable
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan

STUDY: dict[str, Any] = {
    "title": "Topics",
    "languages": ["en", "de"],
    "encoders": {"e": {"hub": "some/encoder"}},
    "tasks": {
        "topic": {
            "kind": "sequence",
            "inputs": ["text"],
            "target": "label",
            "labels": ["a", "b"],
            "data": {"local": "data/{language}/{split}.jsonl"},
            "max_length": 16,
        }
    },
    "methods": {"full-ft": {}},
    "training": [{"set": {"steps": 2}}],
    "grids": {
        "all": {
            "task": ["topic"],
            "encoder": ["e"],
            "method": ["full-ft"],
            "source": ["en"],
            "target": ["mono"],
            "seed": [1],
        }
    },
}
# As many as fill a batch.
ROWS = [
    {"text": f"{number} {word}", "label": label} for number in range(16) for word, label in (("one", "a"), ("two", "b"))
]


def rows_in(name: str) -> list[dict[str, Any]]:
    """The rows of a file, which differ between files."""
    return [row | {"text": f"{row['text']} in {name}"} for row in ROWS]


# The splits that the study needs: English trains, both languages are tested.
FILES = ("en/train", "en/dev", "en/test", "de/test")


@pytest.fixture
def sized_tasks() -> dict[str, Any]:
    """The tasks of the study with numbers of examples, since German has no training data to count."""
    return {"topic": {**STUDY["tasks"]["topic"], "examples": {"train": 100, "dev": 10, "test": 10}}}


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """A function that writes the study with changed keys, and files with changed rows (None: no file), and plans the study."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text("study: topics\nhub_lock: hub.lock.yaml\n")
    Path("studies").mkdir()

    def planned(rows: dict[str, list[dict[str, Any]] | None] | None = None, **changed: Any) -> Plan:
        Path("studies/topics.yaml").write_text(yaml.safe_dump(STUDY | changed, sort_keys=False))
        for name, of_file in ({name: rows_in(name) for name in FILES} | (rows or {})).items():
            if of_file is not None:
                path = Path("data", f"{name}.jsonl")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(json.dumps(row) + "\n" for row in of_file))
        return load_plan("topics")

    return planned


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Hub does not answer; the list has the repositories that it was asked for."""
    repositories: list[str] = []

    def ask(kind: str, repo: str, revision: str, seconds: float | None = None) -> Any:
        repositories.append(repo)
        raise Unreachable("ConnectError: no network")

    monkeypatch.setattr("xlgrid.data.lock.ask", ask)
    return repositories
