"""Groups stand for their members, and say which targets belong to them."""

import pytest

from xlgrid.languages import language
from xlgrid.languages.sources import Source, Target
from xlgrid.study.groups import belongs, expand

LANGUAGES = {code: language(code) for code in ("en", "fr", "de", "ru")}
GROUPS = {"romance": ["fr"], "pairs": ["en-fr", "fr-en"]}


@pytest.mark.parametrize(
    ("value", "members"),
    [
        ("mono", ["en", "fr", "de", "ru"]),
        ("en-X", ["en-fr", "en-de", "en-ru"]),
        ("X-en", ["fr-en", "de-en", "ru-en"]),
        ("family:Romance", ["fr"]),
        ("script:Latn", ["en", "fr", "de"]),
        ("pairs", ["en-fr", "fr-en"]),
        ("en+en-fr", ["en+en-fr"]),
        ("fr", ["fr"]),
        ("mix:mono", ["en+fr+de+ru"]),
        ("mix:script:Latn", ["en+fr+de"]),
        ("mix:pairs", ["en-fr+fr-en"]),
        ("mix:romance", ["fr"]),
    ],
)
def test_a_group_stands_for_its_members_and_anything_else_for_itself(value: str, members: list[str]) -> None:
    assert list(expand(value, LANGUAGES, GROUPS)) == members


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("romnce", "did you mean 'romance'"),
        ("mix:romnce", "did you mean 'romance'"),
        ("it", "unknown language or group 'it'"),
        ("en-it", "unknown language or group 'it'"),
        ("en@fr", "unknown language or group 'en@fr'"),
        ("en-fr-de", "neither a language nor a pair"),
        ("family:Romanc", "did you mean 'Romance'"),
    ],
)
def test_a_group_that_does_not_exist_is_refused(value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expand(value, LANGUAGES, GROUPS)


@pytest.mark.parametrize(
    ("group", "targets"),
    [
        ("all", "en fr de ru en-fr fr-en"),
        ("in-language", "en en-fr"),
        ("zero-shot", "fr de ru fr-en"),
        ("new-language", "de ru"),
        ("mono", "en fr de ru"),
        ("zero-shot:mono", "fr de ru"),
        ("zero-shot:pairs", "fr-en"),
        ("family:Romance", "fr"),
        ("script:Cyrl", "ru"),
        ("same-script", "fr de fr-en"),
        ("other-script", "ru"),
        ("en-X", "en-fr"),
        ("X-en", "fr-en"),
    ],
)
def test_the_targets_that_belong_to_a_group_of_a_run_on_english_and_a_pair(group: str, targets: str) -> None:
    every = map(Target, ["en", "fr", "de", "ru", "en-fr", "fr-en"])
    assert [
        target for target in every if belongs(group, Source("en+en-fr"), target, LANGUAGES, GROUPS)
    ] == targets.split()


@pytest.mark.parametrize(
    ("group", "targets"),
    [("all", "en fr en-fr"), ("mono", "en fr"), ("script:Latn", "en fr en-fr"), ("en-X", "en-fr")]
    + [(f"{side}-{of}", "") for side in ("same", "other") for of in ("family", "script")]
    + [("zero-shot", ""), ("in-language", ""), ("new-language", ""), ("zero-shot:mono", "")],
)
def test_no_target_is_related_to_the_source_of_cells_without_training(group: str, targets: str) -> None:
    every = map(Target, ["en", "fr", "en-fr"])
    assert [target for target in every if belongs(group, Source("none"), target, LANGUAGES, GROUPS)] == targets.split()


@pytest.mark.parametrize(("group", "fact"), [("same-family", "family"), ("script:Latn", "script")])
def test_a_fact_that_is_not_known_is_no_fact_in_common(group: str, fact: str) -> None:
    """Two unknown families are not one family."""
    bare = {code: known._replace(family=None, script=None) for code, known in LANGUAGES.items() if code != "en"}
    languages = {"en": LANGUAGES["en"]} | bare
    message = rf"group '{group}' needs the {fact} of each language, but the {fact} of fr \(French\), de \(German\), ru"
    with pytest.raises(ValueError, match=message):
        belongs(group, Source("fr"), Target("de"), languages, GROUPS)
    assert belongs("zero-shot", Source("fr"), Target("de"), languages, GROUPS)
    with pytest.raises(ValueError, match=r"'family:Romance' needs the family of each language"):
        expand("family:Romance", languages, GROUPS)
    assert expand("mono", languages, GROUPS) == ("en", "fr", "de", "ru")


def test_an_unknown_group_names_those_that_exist() -> None:
    with pytest.raises(ValueError, match="unknown group 'zero-shto', did you mean 'zero-shot'"):
        belongs("zero-shto", Source("en"), Target("fr"), LANGUAGES, GROUPS)
