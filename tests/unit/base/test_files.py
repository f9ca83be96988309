"""Files appear whole or not at all, and a disk that refuses is named."""

import errno
import os
from pathlib import Path

import pytest

from xlgrid.base.files import whole, write_text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_disk_that_refuses_is_named_and_keeps_what_stood_there(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell.json"
    write_text(path, "before")

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match=r"cannot write .*cell\.json: .*, then run the same command again") as error:
        write_text(path, "after")
    assert error.value.errno == number
    assert [p.name for p in tmp_path.iterdir()] == ["cell.json"] and path.read_text() == "before"


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole(tmp_path / "new" / "file.txt") as aside:
        aside.write_text("half")
        raise KeyboardInterrupt
    assert list((tmp_path / "new").iterdir()) == []


def test_a_read_only_file_system_is_named() -> None:
    with pytest.raises(OSError, match=r"cannot write /proc/1/xlgrid/file\.txt: .*, then run"):
        write_text("/proc/1/xlgrid/file.txt", "text")
