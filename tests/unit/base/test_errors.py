"""A damaged file's error names what to delete."""

from pathlib import Path

from xlgrid.base.errors import Damaged


def test_the_paths_are_no_part_of_the_message() -> None:
    error = Damaged("a is cut: delete it", Path("a"), "b")
    assert (str(error), error.paths) == ("a is cut: delete it", (Path("a"), "b"))
    assert Damaged("line 3 is cut: mend it").paths == ()
