"""Which entry of `downloads` a file has, and the addresses that follow from it."""

import re
from typing import Any

import pytest

from xlgrid.data.downloads.entries import Download, address, entry_of, find, regex


def test_names_in_braces_stand_for_one_text_wherever_they_are() -> None:
    entry = Download(url="https://a.test/{pair}.{split}.tar.bz2", member="{pair}.{split}.{part}")
    downloads = {"bucc/{pair}/{pair}.{split}.{part}": entry}
    found = find(downloads, "bucc/de-en/de-en.sample.gold")
    assert found and (found.urls, found.member) == (["https://a.test/de-en.sample.tar.bz2"], "de-en.sample.gold")
    assert find(downloads, "bucc/de-en/fr-en.sample.gold") is None
    assert find(downloads, "bucc/de-en/more/de-en.sample.gold") is None


def test_the_entry_of_one_file_wins_over_that_of_several() -> None:
    general, own = Download(url="https://a.test/{code}.txt"), Download(by_hand="ask")
    found = find({"text/{code}.txt": general, "text/xx.txt": own}, "text/xx.txt")
    assert found and found.entry == own


@pytest.mark.parametrize("path", ["cc100/{code}.txt.xz", "a.b/{x}/{x}.{y}", "one+two/file.bin"])
def test_the_expression_of_rules_matches_each_file_that_has_the_entry(path: str) -> None:
    file = re.sub(r"\{\w\w*\}", "de", path)
    assert re.fullmatch(regex(path), file) and find({path: Download(by_hand="ask")}, file)
    assert not re.fullmatch(regex(path), f"{file}x/y") and "(" not in regex(path)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://a.test/b/c.zip", "a.test/b/c.zip"),
        ("http://127.0.0.1:80/c.zip", "127.0.0.1:80/c.zip"),
        ("file:///tmp/c.zip", "tmp/c.zip"),
    ],
)
def test_archives_lie_at_their_address(url: str, place: str) -> None:
    assert address(url) == place


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give the address of the file as `url`, or say as `by_hand`"),
        ({"url": "www.example.org/x"}, "an address begins with https://"),
        ({"url": "https://a.test/a b"}, "no blanks"),
        ({"by_hand": "ask", "member": "x"}, "`member` describes the file at `url`"),
        ({"url": "https://a.test/x", "sha256": "abc"}, "64 hexadecimal digits"),
        ({"url": "https://a.test/{pair}", "sha256": "0" * 64}, "`sha256` is the checksum of one file"),
        ({"address": "https://a.test/x"}, "unknown key 'address'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        entry_of(settings)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("results/x/text/en.parquet", {"by_hand": "ask"}, "outside results/"),
        ("/data/x", {"by_hand": "ask"}, "from the folder of the project"),
        ("../x", {"by_hand": "ask"}, "from the folder of the project"),
        ("text/{code}.txt", {"url": "https://a.test/{language}.txt"}, "unknown name in the braces of `url` 'language'"),
        ("text/{code}.txt", {"url": "https://a.test/x", "member": "{cod}"}, "did you mean 'code'?"),
    ],
)
def test_a_path_that_does_not_fit_is_a_problem(path: str, settings: dict[str, Any], message: str) -> None:
    assert message in "\n".join(entry_of(settings).problems(path))
