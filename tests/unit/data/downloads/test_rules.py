"""One rule makes each file of `downloads`, from the entry that wins."""

import re
from pathlib import Path
from typing import Any

import pytest

from xlgrid.data.downloads import Download, Downloads

DOWNLOADS = {
    "text/{code}.txt": {"url": "https://a.test/{code}"},
    "mine/model.bin": {"url": "file:///srv/mine.zip", "member": "model.bin"},
    "own/{code}/{split}.tsv": {"by_hand": "ask"},
}


def of_rules(entries: dict[str, Any]) -> Downloads:
    return Downloads([{path: Download.model_validate(entry) for path, entry in entries.items()}])


@pytest.fixture
def downloading() -> Downloads:
    return of_rules(DOWNLOADS)


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("text/en.txt", "download"),
        ("mine/model.bin", "unpack"),
        ("srv/mine.zip", "download_archive"),
        ("own/de/train.tsv", "by_hand"),
        ("text/more/en.txt", None),
        ("mine/config.json", None),
        ("text/en.txt.gz", None),
    ],
)
def test_one_rule_makes_a_file_of_downloads(downloading: Downloads, file: str, rule: str | None) -> None:
    rules = ("download", "download_archive", "unpack", "by_hand")
    matching = [name for name in rules if re.fullmatch(downloading.regex(name), file)]
    assert matching == ([rule] if rule else [])


OVERLAPPING = {
    "cc100/{code}.txt.xz": {"url": "https://a.test/{code}"},
    "cc100/en.txt.xz": {"by_hand": "ask"},
    "cc100/x.{kind}.xz": {"url": "https://a.test/x.tar", "member": "{kind}"},
    "{folder}/{file}.xz": {"by_hand": "ask"},
}


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("cc100/de.txt.xz", "download"),
        ("cc100/en.txt.xz", "by_hand"),
        ("cc100/x.txt.xz", "download"),
        ("cc100/x.dic.xz", "unpack"),
        ("cc100/de.dic.xz", "by_hand"),
    ],
)
def test_the_rule_of_the_entry_that_wins_makes_a_file_of_several_entries(file: str, rule: str) -> None:
    downloads = of_rules(OVERLAPPING)
    # The outputs of the rules, as Snakemake matches them.
    outputs = {name: f"(?P<file>{downloads.regex(name)})$" for name in ("download", "unpack", "by_hand")}
    assert [name for name, output in outputs.items() if re.match(output, file)] == [rule]


def test_without_downloads_the_rules_make_nothing() -> None:
    assert Downloads([]).regex("download") == "(?!)"


def test_a_file_that_a_person_has_brought_is_no_output_of_a_rule(
    downloading: Downloads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own/de").mkdir(parents=True)
    Path("own/de/train.tsv").touch()
    made = downloading.regex("by_hand")
    assert re.fullmatch(made, "own/de/dev.tsv") and not re.fullmatch(made, "own/de/train.tsv")


def test_archives_are_found_by_their_places(downloading: Downloads) -> None:
    [archive] = downloading.archives("mine/model.bin")
    [url] = downloading.find("mine/model.bin").urls
    assert downloading.archive(archive.removeprefix("downloads/")).url == url
    with pytest.raises(ValueError, match="no study has an archive at"):
        downloading.archive("o.test/de-en.zip")
