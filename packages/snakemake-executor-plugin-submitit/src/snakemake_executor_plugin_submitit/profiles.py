"""Finds values in the profiles of a run that YAML reads as others than are written, such as 0123 (83) and yes (True)."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from snakemake_executor_plugin_submitit.clusters import RESOURCES
from snakemake_executor_plugin_submitit.resources import TABLE

PREFIX = "submitit-"
KNOWN = {*TABLE, *RESOURCES}


def profiles(arguments: Sequence[str]) -> list[Path]:
    """The profiles that Snakemake reads with these arguments; none if they are not arguments of Snakemake."""
    from snakemake.cli import parse_args

    silent = io.StringIO()
    try:
        with contextlib.redirect_stderr(silent), contextlib.redirect_stdout(silent):
            parser, _ = parse_args(list(arguments))
    except (Exception, SystemExit):
        # Snakemake itself has read them already, unless its interface for Python is used, where there are no profiles.
        return []
    names = (source.partition("|") for source in parser._source_to_settings)
    return [Path(name) for kind, _, name in names if kind == "config_file"]


def misread(text: str) -> Iterator[tuple[str, str, object]]:
    """Key, text and value of each setting or resource of this executor in a profile whose value is not the text that is there."""
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return
    for key, node in _entries(root):
        name = key.lstrip("-")
        if name.startswith(PREFIX):
            yield from _compare(name, node)
        rules = [node] if name == "default-resources" else []
        rules += [rule for _, rule in _entries(node)] if name == "set-resources" else []
        for resource, value in (entry for rule in rules for entry in _entries(rule)):
            if resource in KNOWN:
                yield from _compare(resource, value)


def check_profiles(paths: Sequence[Path]) -> None:
    """Check that profiles say what they seem to say.

    Raises:
        ValueError: YAML reads a value as another.
    """
    wrong = []
    for path in paths:
        with contextlib.suppress(OSError, UnicodeError):
            for key, written, value in misread(path.read_text(encoding="utf-8")):
                wrong.append(
                    f'{path}: YAML reads "{key}: {written}" as {value}: write {key}: "{written}" or {key}: {value}'
                )
    if wrong:
        raise ValueError("\n".join(wrong))


def _entries(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    """Keys and values of a mapping; none of any other node."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
        if isinstance(key, yaml.ScalarNode):
            yield key.value, value


def _compare(key: str, node: yaml.Node) -> Iterator[tuple[str, str, object]]:
    # Only text without quotes is read as anything else. A missing value is no value.
    if isinstance(node, yaml.ScalarNode) and node.style is None:
        value = yaml.safe_load(node.value)
        if value is not None and str(value) != node.value:
            yield key, node.value, value
