"""YAML files that people write: the contents of a file, an error that names the line, and words that YAML does not read as text."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

# Values that are written as they are read, and so are what they seem to be.
_PLAIN = re.compile(r"true|false|-?(0|[1-9][0-9]*)(\.(0|[0-9]*[1-9]))?")
# Whole numbers of YAML 1.1 that seem to be other ones: 012 is 10, and 1:30 is 90.
_OTHER_BASE = re.compile("[-+]?(0[0-7_]+|[0-9_]+(:[0-5]?[0-9])+(\\.[0-9_]*)?)")

# The parser in C, which some platforms lack, is ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Word(NamedTuple):
    """A scalar without quotes that YAML reads as something else than it seems to be, such as `no`, `~`, `012` and `1_000`.

    Attributes:
        text: as it stands in the file.
        value: as YAML reads it.
    """

    text: str
    value: Any

    @property
    def is_number_in_disguise(self) -> bool:
        """Whether it is a number that nobody would read as this one."""
        return bool(_OTHER_BASE.fullmatch(self.text))


def word_of(node: yaml.Node) -> Word | None:
    """The scalar of a node, if YAML reads it as something else than it seems to be; else None."""
    if not isinstance(node, yaml.ScalarNode) or node.style or node.tag.endswith((":str", ":merge")):
        return None
    if not node.value or _PLAIN.fullmatch(node.value):
        return None
    value = yaml.safe_load(node.value)
    return None if str(value) == node.value else Word(node.value, value)


def _parsed(text: str) -> tuple[yaml.Node | None, Any]:
    try:
        return yaml.compose(text, LOADER), yaml.load(text, LOADER)
    except yaml.YAMLError:
        # The parser in Python says better what is wrong.
        return yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)


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
        return _parsed(text)
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
