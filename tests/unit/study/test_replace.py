"""A study that extends another replaces names in all that it inherits."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from study_fixture import TEXT, write

from xlgrid.study.load import read_lineage
from xlgrid.study.replace import Replace, replaced

PARENT: dict[str, Any] = {
    "title": "t",
    "languages": ["en", "fr", "de", "ru"],
    "groups": {"near": ["fr", "de"]},
    "encoders": {"mbert": {"hub": "a/mbert"}, "other": {"hub": "a/other"}},
    "tasks": {"mlm": {"kind": "mlm"}},
    "methods": {"m": {"start": {"task": "mlm", "method": "m", "source": "en-fr+en-de", "pairs": ["en-fr", "en-de"]}}},
    "training": [{"when": {"encoder": "mbert", "source": ["near", "en+en-de"]}, "set": {"lr": 1.0}}],
    "grids": {"g": {"encoder": ["mbert", "other"], "source": ["en", "de", "near", "en-X", "en+en-de"]}},
    "claims": {"c": {"select": {"encoder": "mbert", "group": "zero-shot:de-X"}, "compare": [{"source": "de"}]}},
    "exhibits": {"e": {"encoders": ["mbert"], "groups": ["mono", "zero-shot:en-X"], "published": {"file": "f"}}},
    "published": {"seeds": 5, "names": {"encoder": {"other": "theirs"}}},
}


def test_an_encoder_is_replaced_wherever_it_is_named_and_keeps_its_published_name() -> None:
    keys = replaced(PARENT, Replace(encoders={"mbert": "mini"}), [])
    assert keys["encoders"] == {"other": {"hub": "a/other"}}
    assert keys["grids"]["g"]["encoder"] == ["mini", "other"]
    assert keys["training"][0]["when"]["encoder"] == keys["claims"]["c"]["select"]["encoder"] == "mini"
    assert keys["exhibits"]["e"]["encoders"] == ["mini"]
    assert keys["published"] == {"seeds": 5, "names": {"encoder": {"mini": "mbert", "other": "theirs"}}}


def test_tables_of_pairs_keep_their_names_even_those_of_a_language() -> None:
    tables = {"fr": "fr.csv", "near-far": {"file": "t.csv"}}
    assert replaced(PARENT | {"pairs": tables}, Replace(languages={"fr": "de"}), [])["pairs"] == tables


def test_what_nothing_stands_for_leaves_lists_and_mixes() -> None:
    keys = replaced(PARENT, Replace(encoders={"other": None}), ["en", "fr", "ru"])
    assert keys["grids"]["g"] == {"encoder": ["mbert"], "source": ["en", "near", "en-X"]}
    assert keys["groups"] == {"near": ["fr"]}
    assert keys["training"][0]["when"]["source"] == ["near"]
    assert keys["methods"]["m"]["start"] == {"task": "mlm", "method": "m", "source": "en-fr", "pairs": ["en-fr"]}
    assert keys["exhibits"]["e"]["published"] == {"file": "f"}


def test_what_is_stated_for_a_language_goes_with_it() -> None:
    scratch = {"languages": ["en", "fr", "de"], "bitext": [["en", "de"], ["en", "fr"]]}
    encoders = {"own": {"scratch": scratch}, "xmod": {"hub": "a/b", "modules": {"en": "en_XX", "de": "de_DE"}}}
    parent = PARENT | {"encoders": encoders, "text": {"files": {"fr": "fr.txt", "de": "de.txt"}}}
    keys = replaced(parent, Replace(languages={"fr": "qa1"}), ["en", "qa1", "ru"])
    assert keys["encoders"]["own"]["scratch"] == {"languages": ["en", "qa1"], "bitext": [["en", "qa1"]]}
    assert keys["encoders"]["xmod"]["modules"] == {"en": "en_XX"}
    assert keys["text"] == {"files": {"qa1": "fr.txt"}}


def test_a_value_with_nothing_in_its_place_stays_for_the_study_to_say() -> None:
    keys = replaced(PARENT, Replace(), ["en"])
    assert keys["claims"]["c"]["compare"] == [{"source": "de"}]
    assert keys["groups"] == {"near": ["fr", "de"]}


def test_a_language_of_another_is_not_compared_with_published_numbers() -> None:
    keys = replaced(PARENT, Replace(languages={"en": "qa1", "de": "qb1"}), ["qa1", "qb1", "fr", "ru"])
    assert keys["languages"] == ["qa1", "fr", "qb1", "ru"]
    assert keys["grids"]["g"]["source"] == ["qa1", "qb1", "near", "qa1-X", "qa1+qa1-qb1"]
    assert keys["groups"] == {"near": ["fr", "qb1"]}
    assert keys["claims"]["c"]["select"]["group"] == "zero-shot:qb1-X"
    assert keys["exhibits"]["e"]["groups"] == ["mono", "zero-shot:qa1-X"]
    assert "published" not in keys and "published" not in keys["exhibits"]["e"]


def test_two_languages_that_become_one_are_named_once() -> None:
    assert replaced(PARENT, Replace(languages={"fr": "qa1", "de": "qa1"}), [])["groups"] == {"near": ["qa1"]}


def test_a_mix_can_be_dropped_as_a_whole() -> None:
    keys = replaced(PARENT, Replace(languages={"en+en-de": None}), [])
    assert keys["grids"]["g"]["source"] == ["en", "de", "near", "en-X"]
    assert keys["methods"]["m"]["start"]["source"] == "en-fr+en-de"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"extends": "parent", "replace": {"encoders": {"mino": "other"}}},
            "child.yaml:2: .*'mino', did you mean 'mini'",
        ),
        ({"extends": "parent", "replace": {"languages": {"frr": "qa1"}}}, "child.yaml:2: .*'frr', did you mean 'fr'"),
        ({"extends": "parent", "replace": {"encoder": {}}}, "child.yaml:2: .*did you mean 'encoders'"),
        ({"replace": {"encoders": {"mini": "other"}}}, "child.yaml:1: .*add `extends`"),
        (
            {"extends": "studies/parent"},
            "child.yaml:1: extends: expected the name .*, or the path .*, got 'studies/parent'",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, TEXT, "parent.yaml")
    lines = [f"{key}: {yaml.safe_dump(value, default_flow_style=True)}" for key, value in changes.items()]
    (tmp_path / "child.yaml").write_text("".join(line.replace("\n...", "") for line in lines))
    with pytest.raises(ValueError, match=message):
        read_lineage(tmp_path / "child.yaml")


@pytest.mark.parametrize("key", ["groups", "languages", "encoders"])
def test_a_mistake_of_the_extended_study_is_named_with_its_own_line(key: str, tmp_path: Path) -> None:
    """A key is left without a value where everything below it is commented out."""
    write(tmp_path, re.sub(rf"^{key}:.*(\n .*)*$", f"{key}:", TEXT, flags=re.MULTILINE), "parent.yaml")
    write(tmp_path, "extends: parent\nlanguages: [en]\n", "child.yaml")
    with pytest.raises(ValueError, match=rf"parent\.yaml:\d+: {key}: "):
        read_lineage(tmp_path / "child.yaml")


def test_the_names_that_a_paper_gives_to_groups_stay() -> None:
    names = {"group": {"zero-shot:en-X": "en-fr+en-de", "mono": "avg"}}
    keys = replaced(PARENT | {"published": {"names": names}}, Replace(), ["en", "fr"])
    assert keys["published"]["names"]["group"] == names["group"]
