"""The order of the labels of an axis."""

from dataclasses import dataclass

from xlgrid.exhibits.drawing.blocks import Block, by_family, by_group


@dataclass(frozen=True)
class Language:
    family: str | None
    script: str | None


LANGUAGES = {
    **dict.fromkeys(("en", "de"), Language("Germanic", "Latin")),
    **dict.fromkeys(("fr", "es"), Language("Romance", "Latin")),
    **dict.fromkeys(("ru", "uk"), Language("Slavic", "Cyrillic")),
    "pl": Language("Slavic", "Latin"),
    **{f"q{i:02}": Language(f"Family {i // 5}", "round" if i % 5 < 3 else "square") for i in range(16)},
}


def test_pairs_follow_the_languages_by_direction_and_mixes_come_last() -> None:
    codes = ["en+en-fr", "fr-en", "de-fr", "en-ru", "ru", "en-fr", "fr", "ru-en", "en"]
    blocks = [(block.family, block.codes) for block in by_family(codes, LANGUAGES)]
    assert blocks == [
        ("Slavic", ("ru",)),
        ("Romance", ("fr",)),
        ("Germanic", ("en",)),
        ("en-X", ("en-ru", "en-fr")),
        ("X-en", ("ru-en", "fr-en")),
        ("other pairs", ("de-fr",)),
        ("mixed", ("en+en-fr",)),
    ]


def test_a_language_without_a_description_still_gets_a_place() -> None:
    assert by_family(["en", "tlh"], LANGUAGES)[-1] == Block("other", "", ("tlh",))


def test_languages_of_unknown_family_stand_together_and_say_so() -> None:
    languages = LANGUAGES | {"kab": Language(None, "Latin"), "std": Language(None, None)}
    assert by_family(["en", "std", "kab", "de"], languages) == [
        Block("Germanic", "Latin", ("en", "de")),
        Block("family not known", "", ("std",)),
        Block("family not known", "Latin", ("kab",)),
    ]


GROUPS = {"far": ("ru", "fr"), "all": ("en", "fr", "ru")}


def grouped(codes: list[str], *groups: str) -> list[tuple[str, tuple[str, ...]]]:
    blocks = by_group(codes, groups, lambda group, _, code: code in GROUPS[group])
    return [(block.family, block.codes) for block in blocks]


def test_blocks_that_are_groups_keep_the_order_within() -> None:
    assert grouped(["fr", "en", "de", "ru"], "far", "all") == [
        ("far", ("fr", "ru")),
        ("all", ("en",)),
        ("other", ("de",)),
    ]


def test_a_mix_and_the_source_of_untrained_methods_are_in_no_group() -> None:
    def belongs(group: str, source: str, target: str) -> bool:
        assert target in ("en", "fr"), f"{target} was asked about, which is no target"
        return target == "fr"

    blocks = by_group(["en", "none", "fr", "en+fr"], ["romance"], belongs)
    assert [(block.family, block.codes) for block in blocks] == [
        ("romance", ("fr",)),
        ("other", ("en", "none", "en+fr")),
    ]


def test_a_group_without_members_is_no_block() -> None:
    assert grouped(["en"], "far", "all") == [("all", ("en",))]
