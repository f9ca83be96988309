"""A damaged file's error names what to delete."""

from pathlib import Path

import pytest

from xlgrid.base.errors import Damaged, first_sentence, is_result, whole_again


def test_the_paths_are_no_part_of_the_message() -> None:
    error = Damaged("a is cut: delete it", Path("a"), "b")
    assert (str(error), error.paths) == ("a is cut: delete it", (Path("a"), "b"))
    assert Damaged("line 3 is cut: mend it").paths == ()


def test_an_error_of_a_library_is_its_first_sentence() -> None:
    assert first_sentence(OSError("No such\n type. Update 3.0 of it.")) == "OSError: No such type"


def test_only_results_are_to_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for own in ("checkpoints/mine", tmp_path / "mine", "../results/mine", "results-of-others/mine", "/data/results/e"):
        assert not is_result(own) and "delete" not in whole_again(own), own
    for made in ("results/s/encoders/e", tmp_path / "results" / "s"):
        assert is_result(made) and whole_again(made).startswith("delete results/s")
