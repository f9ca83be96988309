"""The profiles of a project, by the cluster on which they run jobs."""

from pathlib import Path

from xlgrid.base.profiles import profiles

ROOT = Path(__file__).parents[3]


def profile(project: Path, name: str, text: str) -> None:
    (project / name).mkdir()
    (project / name / "profile.v9+.yaml").write_text(text)


def test_a_profile_is_found_by_its_cluster(tmp_path: Path) -> None:
    profile(tmp_path, "our-lsf", "executor: submitit\nsubmitit-cluster: lsf\n")
    assert profiles(tmp_path) == {"lsf": "our-lsf"}


def test_a_profile_of_another_executor_is_left_out(tmp_path: Path) -> None:
    profile(tmp_path, "stock", "executor: slurm\n")
    profile(tmp_path, "empty", "")
    assert profiles(tmp_path) == {}


def test_the_profiles_of_this_project_name_their_clusters() -> None:
    assert profiles(ROOT) == {"slurm": "slurm", "local": "laptop"}
