"""The files of the ledger: each appears whole or not at all, and a damaged one is no more than a missing one."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from snakemake_executor_plugin_submitit.bundles import (
    Bundle,
    Job,
    Status,
    close_job,
    modification_times,
    note_failure,
    read_bundle,
    read_json,
    read_statuses,
    refresh,
    write_json,
)

JOB = Job("key", "rule", "shell", "true", ("in",), ("out", "folder"), ("folder",), ("log",), "table.tsv", 60.0)
BUNDLE = Bundle((JOB,), "/here", 2, 3, ("crash",), {"TOKEN": "ä"}, "/scratch", 600, 3600, 90, 10, 5, "/origin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a bundle."""
    BUNDLE.write(tmp_path / "0")
    return tmp_path / "0"


def test_a_bundle_is_read_as_it_was_written(folder: Path) -> None:
    assert read_bundle(folder) == BUNDLE


def test_a_bundle_does_not_replace_another(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        BUNDLE.write(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"jobs": 3}', '{"jobs": [], "scripts": [], "directory": "", "new": 1}']
)
def test_a_damaged_bundle_or_one_of_another_version_is_none(folder: Path, text: str) -> None:
    (folder / "bundle.json").write_text(text)
    assert read_bundle(folder) is None


def test_a_file_is_for_its_owner_and_appears_whole(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        write_json(tmp_path / "file.json", {"a": "ä"})
    finally:
        os.umask(umask)
    assert read_json(tmp_path / "file.json") == {"a": "ä"}
    assert (tmp_path / "file.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError("No space left on device")

    write_json(tmp_path / "file.json", 1)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_json(tmp_path / "file.json", 2)
    assert read_json(tmp_path / "file.json") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_a_missing_or_damaged_file_is_none_and_an_unreadable_one_an_error(tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text('{"a": ')
    (tmp_path / "folder.json").mkdir()
    assert read_json(tmp_path / "damaged.json") is None
    assert read_json(tmp_path / "missing.json") is None
    with pytest.raises(OSError, match="Is a directory"):
        read_json(tmp_path / "folder.json")


STATUS = Status("running", 1.0, "host", 2, 3, 4, None, None, "", (7,), cpu_seconds=1.5, memory_mb=20.0)


@pytest.mark.parametrize(
    ("state", "is_final"), [("running", False), ("stopped", False), ("done", True), ("failed", True)]
)
def test_a_status_is_read_as_it_was_written(folder: Path, state: str, is_final: bool) -> None:
    status = replace(STATUS, state=state)  # type: ignore[arg-type]
    status.write(folder, 12)
    assert list(read_statuses(folder)) == [(12, status, False)]
    assert status.final is is_final


def test_of_the_files_of_statuses_each_whole_one_is_read_and_a_closed_job_has_ended(folder: Path) -> None:
    """Other files are still being written, damaged, or of another version."""
    for number in range(4):
        STATUS.write(folder, number)
    for number in (0, 1, 9):
        close_job(folder, number)
    (folder / "status" / "1.closed").write_text("{")
    (folder / "status" / "2.json").write_text("{")
    for name in (".0.json.77", ".probe.77", "x.json", "y.closed", "5.tmp"):
        (folder / "status" / name).write_text("{}")
    (folder / "status" / "6.json").write_text('{"state": "done", "mood": "good"}')
    statuses = {number: (status, closed) for number, status, closed in read_statuses(folder)}
    assert (statuses[0], statuses[3]) == ((STATUS, True), (STATUS, False))
    assert statuses.keys() == {0, 1, 3} and (statuses[1][0].state, statuses[1][1]) == ("done", True)
    assert list(read_statuses(folder / "nowhere")) == []


def test_a_look_at_the_server_of_the_file_system_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    before = (folder / "status").stat().st_mtime_ns
    refresh(folder)
    refresh(tmp_path / "nowhere")
    assert list((folder / "status").iterdir()) == []
    assert (folder / "status").stat().st_mtime_ns > before, "the folder did not change, so nobody asks the server"


def test_a_missing_file_has_a_time_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", ns=(5, 7))
    assert modification_times(("a", "b", str(tmp_path / "a")), str(tmp_path)) == (7, -1, 7)


def test_each_failure_is_a_line_for_people(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        for message in ("first", "zweitens ä"):
            note_failure(tmp_path, "slurm", JOB, "NaN", message)
    finally:
        os.umask(umask)
    text = (tmp_path / "failures.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["message"] for line in text.splitlines()] == ["first", "zweitens ä"]
    assert "ä" in text, "letters are shown as numbers"
    assert (tmp_path / "failures.jsonl").stat().st_mode & 0o777 == 0o644


def test_a_failure_that_cannot_be_noted_is_no_error(tmp_path: Path) -> None:
    note_failure(tmp_path / "nowhere", "slurm", JOB, "NaN", "message")
