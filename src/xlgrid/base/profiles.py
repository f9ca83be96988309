"""The profiles of a project that run jobs with the executor submitit."""

from pathlib import Path
from typing import Any

import yaml


def profiles(project: Path = Path()) -> dict[str, str]:
    """The name of a cluster -> the profile that runs jobs there, such as `slurm`, which is a folder of the project."""
    found: dict[str, str] = {}
    for path in sorted(project.glob("*/profile.v9+.yaml")):
        entries: Any = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
        if isinstance(entries, dict) and entries.get("executor") == "submitit":
            # The executor's own default.
            found.setdefault(entries.get("submitit-cluster", "slurm"), path.parent.name)
    return found
