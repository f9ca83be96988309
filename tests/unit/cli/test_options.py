"""What commands share."""

from pathlib import Path

import pytest

from xlgrid.cli.options import by_target, folder_of


@pytest.mark.parametrize("name", ["run/delta.safetensors", "run/run.json", "run"])
def test_a_folder_is_named_by_itself_or_by_a_file_in_it(name: str) -> None:
    assert folder_of(Path(name)) == Path("run")


def test_a_path_for_each_target() -> None:
    assert by_target("tokens", ["en=a.arrow", "en-fr=b=c.arrow"]) == {"en": Path("a.arrow"), "en-fr": Path("b=c.arrow")}
    for wrong in ("a.arrow", "en="):
        with pytest.raises(ValueError, match="--tokens takes TARGET=PATH"):
            by_target("tokens", [wrong])
