"""Which entry of `downloads` a file has, and the addresses that follow from it."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from xlgrid.data.downloads.entries import Download, address, find, regex

OPUS = {
    "opus/{pair}/{split}.jsonl": Download(
        url="https://opus.test/OPUS-{corpus}/moses/{pair}.txt.zip",
        corpora={"Books/v1": ["de", "en", "fr"], "Films/v2": ["en", "zh_cn", "zh_tw"], "Odd/v1": ["en-sw"]},
    )
}


def urls(file: str) -> list[str]:
    found = find(OPUS, file)
    assert found
    return [url.removeprefix("https://opus.test/") for url in found.urls]


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("en-de", ["OPUS-Books/v1/moses/de-en.txt.zip"]),
        ("de-en", ["OPUS-Books/v1/moses/de-en.txt.zip"]),
        ("fr-de", ["OPUS-Books/v1/moses/de-fr.txt.zip"]),
        ("en-zh", ["OPUS-Films/v2/moses/en-zh_cn.txt.zip", "OPUS-Films/v2/moses/en-zh_tw.txt.zip"]),
        ("sw-en", ["OPUS-Odd/v1/moses/en-sw.txt.zip"]),
        # A corpus with some pairs does not have the others of their languages.
        ("sw-de", []),
        ("en-yo", []),
        ("en", []),
    ],
)
def test_a_pair_comes_from_each_corpus_that_has_it_by_its_name_on_opus(pair: str, expected: list[str]) -> None:
    assert urls(f"opus/{pair}/train.jsonl") == expected


def test_a_pair_that_no_corpus_has_is_a_problem_that_names_it() -> None:
    found = find(OPUS, "opus/en-yo/dev.jsonl")
    assert found and found.problem and "en-yo" in found.problem and "leave out the pair" in found.problem


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
        ({"url": "https://a.test/{corpus}", "corpora": {"A/v1": ["en"]}, "member": "x"}, "leave out `member`"),
        ({"address": "https://a.test/x"}, "unknown key 'address'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Download.model_validate(settings)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("results/x/text/en.parquet", {"by_hand": "ask"}, "outside results/"),
        ("/data/x", {"by_hand": "ask"}, "from the folder of the project"),
        ("../x", {"by_hand": "ask"}, "from the folder of the project"),
        ("text/{code}.txt", {"url": "https://a.test/{language}.txt"}, "unknown name in the braces of `url` 'language'"),
        ("text/{code}.txt", {"url": "https://a.test/x", "member": "{cod}"}, "did you mean 'code'?"),
        (
            "opus/{pair}.jsonl",
            {"url": "https://a.test/{corpus}", "corpora": {"A/v1": ["en"]}},
            "such as 'opus/{pair}/{split}.jsonl'",
        ),
        (
            "o/{pair}/{split}.jsonl",
            {"url": "https://a.test/{corpus}", "corpora": {"A": ["en"]}},
            "such as Europarl/v8, got 'A'",
        ),
    ],
)
def test_a_path_that_does_not_fit_is_a_problem(path: str, settings: dict[str, Any], message: str) -> None:
    assert message in "\n".join(Download.model_validate(settings).problems(path))


def test_what_fits_is_no_problem() -> None:
    assert [problem for path, entry in OPUS.items() for problem in entry.problems(path)] == []
