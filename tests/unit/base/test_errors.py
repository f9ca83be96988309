"""A damaged file's error names what to delete."""

from pathlib import Path

from xlgrid.base.errors import Damaged, first_sentence


def test_the_paths_are_no_part_of_the_message() -> None:
    error = Damaged("a is cut: delete it", Path("a"), "b")
    assert (str(error), error.paths) == ("a is cut: delete it", (Path("a"), "b"))
    assert Damaged("line 3 is cut: mend it").paths == ()


def test_an_error_of_a_library_is_its_first_sentence() -> None:
    assert first_sentence(OSError("No such\n type. Update 3.0 of it.")) == "OSError: No such type"
