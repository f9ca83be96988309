"""Names are known to the other parts of a study."""

from pathlib import Path

from study_fixture import QA, write

from xlgrid.plan.load import load_study


def test_a_task_can_be_trained_on_another_of_the_same_head(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("kind: copa,", "kind: copa, trained_on: siqa,")))
    assert [study.entry("copa", split)[0] for split in ("train", "dev", "test")] == ["siqa", "siqa", "copa"]
    assert study.entry("xquad", "train") == ("xquad", study.tasks["xquad"])
