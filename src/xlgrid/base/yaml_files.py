"""YAML files that people write: the contents of a file, and an error that names the line."""

from pathlib import Path
from typing import Any

import yaml


def read_yaml(path: Path) -> tuple[yaml.Node | None, Any]:
    """The node of a YAML file, which has the lines of its keys, and the value; None and None if the file is empty.

    Raises:
        ValueError: the file is not in UTF-8, or is not YAML; the message names the file and the line.
    """
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{number}: not in UTF-8 ({error.reason}): save the file in UTF-8") from None
    try:
        return yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark, began = error.problem_mark, error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        context = (
            f", {error.context}" + (f" that begins in line {began.line + 1}" if began else "") if error.context else ""
        )
        raise ValueError(
            f"{path}{line}: not valid YAML: {error.problem}{context}; see whether brackets and quotes are closed, lines are indented with "
            "spaces alone, and a text with a colon or # in it stands in quotes"
        ) from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML: {' '.join(str(error).split())}: correct the file") from None
