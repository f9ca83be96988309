"""A file that is not YAML is named with its line."""

from pathlib import Path

import pytest

from xlgrid.base.yaml_files import read_yaml


def test_a_file_has_a_value_and_the_lines_of_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("one: 1\ntwo: [ä]\n", encoding="utf-8")
    node, value = read_yaml(path)
    assert value == {"one": 1, "two": ["ä"]}
    assert node and [key.start_mark.line for key, _ in node.value] == [0, 1]


def test_an_empty_file_has_neither(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.touch()
    assert read_yaml(path) == (None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: c: d\n", "a.yaml:2: not valid YAML: mapping values are not allowed here; see whether"),
        (b"a: 1\nb: [c\nd: 2\n", "a.yaml:3: not valid YAML: expected ',' or ']', but got ':', while parsing a flow sequence that begins in line 2;"),
        (b"a: *b\n", "a.yaml:1: not valid YAML: found undefined alias 'b'; see whether"),
        (b"a: \x00\n", "a.yaml: not valid YAML: unacceptable character #x0000: special characters are not allowed in "),
        ("a: 1\nb: ä\n".encode("latin-1"), "a.yaml:2: not in UTF-8 (invalid continuation byte): save the file in UTF-8"),
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_named_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_bytes(content)
    with pytest.raises(ValueError) as error:
        read_yaml(Path("a.yaml"))
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
