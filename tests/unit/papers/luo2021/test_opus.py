"""Which archives of OPUS the bitext of a pair comes from, and which files the rule makes."""

import re
from typing import Any

import pytest

from xlgrid.data.downloads import Downloads, find
from xlgrid.data.downloads.entries import entry_of
from xlgrid.papers.luo2021.opus import Bitext, pair_of

OPUS = {
    "opus/{pair}/{split}.jsonl": Bitext(
        url="https://opus.test/OPUS-{corpus}/moses/{pair}.txt.zip",
        corpora={"Books/v1": ["de", "en", "fr"], "Films/v2": ["en", "zh_cn", "zh_tw"], "Odd/v1": ["en-sw"]},
    )
}


def urls(file: str) -> list[str]:
    entry = find(OPUS, file)
    assert entry
    return [url.removeprefix("https://opus.test/") for url in entry.urls]


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
    entry = find(OPUS, "opus/en-yo/dev.jsonl")
    assert entry and entry.problem and "en-yo" in entry.problem and "leave out the pair" in entry.problem
    with pytest.raises(ValueError, match=r"none of the `corpora` of .* has en-yo: add one that has it"):
        Downloads([OPUS]).archives("opus/en-yo/train.jsonl")


@pytest.mark.parametrize("values", [{"pair": "de-en", "split": "dev"}, {"language": "de-en", "split": "dev"}])
def test_a_path_names_the_pair(values: dict[str, str]) -> None:
    assert pair_of(values) == "de-en"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "https://a.test/{corpus}", "corpora": {"A/v1": ["en"]}, "member": "x"}, "leave out `member`"),
        ({"corpora": {"A/v1": ["en"]}, "by_hand": "ask"}, "`corpora` describes the file at `url`, which is missing"),
        ({"url": "https://a.test/{corpus}", "corpra": {"A/v1": ["en"]}}, "did you mean 'corpora'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        entry_of(settings)


@pytest.mark.parametrize(
    ("path", "settings", "message"),
    [
        ("opus/{pair}.jsonl", {"corpora": {"A/v1": ["en"]}}, "such as 'opus/{pair}/{split}.jsonl'"),
        ("o/{pair}/{split}.jsonl", {"corpora": {"A": ["en"]}}, "such as Europarl/v8, got 'A'"),
    ],
)
def test_a_path_that_does_not_fit_is_a_problem(path: str, settings: dict[str, Any], message: str) -> None:
    assert message in "\n".join(entry_of({"url": "https://a.test/{corpus}"} | settings).problems(path))


def test_what_fits_is_no_problem_and_a_key_without_a_value_is_none() -> None:
    assert [problem for path, entry in OPUS.items() for problem in entry.problems(path)] == []
    assert type(entry_of({"url": "https://a.test/x", "corpora": None})) is not Bitext


DOWNLOADS = {
    "{folder}/{file}.xz": {"by_hand": "ask"},
    "opus/{pair}/{split}.jsonl": {"url": "https://o.test/{corpus}/{pair}.zip", "corpora": {"Books/v1": ["de", "en"]}},
    "opus/de-en/{split}.jsonl": {"by_hand": "ask"},
    "opus/en-de/test.jsonl": {"url": "https://a.test/test"},
    "opus/en-fr/notes.jsonl": {"by_hand": "ask"},
}


@pytest.fixture
def downloading() -> Downloads:
    return Downloads([{path: entry_of(entry) for path, entry in DOWNLOADS.items()}])


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("opus/de-en/train.jsonl", "join_bitext"),
        ("opus/en-fr/train.jsonl", "join_bitext"),
        ("opus/en-fr/notes.jsonl", "by_hand"),
        ("opus/en-de/test.jsonl", "download"),
        # The job of the folder would write over the test set.
        ("opus/en-de/train.jsonl", None),
        ("o.test/Books/v1/de-en.zip", "download_archive"),
    ],
)
def test_the_rule_of_the_entry_that_wins_makes_a_file(downloading: Downloads, file: str, rule: str | None) -> None:
    # The outputs of the rules, as Snakemake matches them.
    ends = dict.fromkeys(("download", "download_archive", "unpack", "by_hand"), "")
    ends |= {"join_bitext": r"/(train|dev|test)\.jsonl"}
    outputs = {name: f"(?P<file>{downloading.regex(name)}){end}$" for name, end in ends.items()}
    assert [name for name, output in outputs.items() if re.match(output, file)] == ([rule] if rule else [])


def test_archives_are_found_by_their_places(downloading: Downloads) -> None:
    [archive] = downloading.archives("opus/en-de/train.jsonl")
    [url] = downloading.find("opus/en-de/train.jsonl").urls
    assert downloading.archive(archive.removeprefix("downloads/")).url == url
    with pytest.raises(ValueError, match="no study has an archive at"):
        downloading.archive("o.test/de-en.zip")
