"""Groups are the members and targets that their names say."""

from pathlib import Path

from study_fixture import TEXT, write

from xlgrid.plan.load import load_study


def test_groups_by_family_and_script(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    assert study.expand("family:Romance", study.grids["main"]) == ("fr",)
    assert study.expand("script:Latn", study.grids["main"]) == ("en", "fr")
    assert study.belongs("family:Romance", "en", "fr") and not study.belongs("family:Romance", "en", "en-fr")
