"""Every language of a grid has one module in an X-MOD: pre-trained, or from an MLM run that adds it."""

from typing import Any

import pytest

from xlgrid.study.checks import problems
from xlgrid.study.schema import Study


def study(method: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **grid: Any) -> Study:
    scratch = {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "fr"]}
    axes = {"task": ["ner"], "encoder": ["e"], "method": ["m"], "source": ["en"], "target": ["en", "fr"], "seed": [1]}
    start = {"task": "text", "method": "add", "pairs": ["de"], "missing": "none"}
    return Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        tokenizers={"added-de": {"kind": "xlmr", "languages": ["de"]}},
        encoders={"e": encoder or {"scratch": scratch}},
        tasks={"ner": {"kind": "ruletaker"}, "text": {"kind": "mlm", "tokenizer": "added-{language}"}},
        methods={
            "m": method or {"base": "xmod", "start": start},
            "add": {"base": "xmod", "options": {"tune": "language"}},
        },
        grids={"g": axes | grid},
    )


def test_languages_with_a_module_and_added_ones_are_no_problem() -> None:
    assert problems(study(target=["en", "fr", "de"])) == []
    assert problems(study(source=["de"], target=["en", "de"])) == []


@pytest.mark.parametrize("method", [{"base": "xmod"}, {"base": "full-ft"}])
@pytest.mark.parametrize("axis", ["source", "target"])
def test_a_language_without_a_module_is_named(method: dict[str, Any], axis: str) -> None:
    [problem] = problems(study(method, **{axis: ["de"]}))
    assert problem.startswith(
        "grids.g: encoder e has modules of en, fr, but not of de: leave de out, or name it in `pairs`"
    )


def test_a_pretrained_language_is_not_added_once_more() -> None:
    start = {"task": "text", "method": "add", "pairs": ["fr"], "missing": "none"}
    [problem] = problems(study({"base": "xmod", "start": start}))
    assert "method m would add fr" in problem


def test_pairs_are_refused() -> None:
    [problem] = problems(study(target=["en-fr"]))
    assert "each for inputs in one language: leave out en-fr" in problem


def test_shared_and_a_checkpoint_without_a_mapping_have_no_languages_that_could_lack() -> None:
    shared = {"scratch": {"kind": "xlmr", "architecture": "shared", "languages": ["en"]}}
    for encoder in (shared, {"hub": "facebook/xmod-base"}):
        described = study({"base": "xmod"}, encoder, target=["de"])
        assert described.encoders["e"].modules_of(described) is None
        assert problems(described) == []


def test_a_mapping_says_which_modules_are_used() -> None:
    published = {"hub": "facebook/xmod-base", "tokenizer": "added-de", "modules": {"en": "en_XX"}}
    described = study(encoder=published)
    assert described.encoders["e"].modules_of(described) == ["en"]
    [problem] = problems(described)
    assert "has modules of en, but not of fr" in problem
    [problem] = problems(study(encoder=published | {"modules": {"xx": "xx_XX"}}))
    assert problem.startswith("encoders.e.modules: unknown language")


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ({"hub": "a/b", "modules": {"en": "en_XX", "fr": "en_XX"}}, "en and fr have the same module en_XX"),
        ({"scratch": {"kind": "bert", "architecture": "xmod", "languages": ["en"]}}, "scratch.kind"),
        (
            {"scratch": {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}},
            "leave out `bitext`",
        ),
        (
            {"scratch": {"kind": "xlmr", "architecture": "xmod", "languages": ["en"], "reduction": 200}},
            "smaller than reduction",
        ),
    ],
)
def test_what_does_not_go_together_is_an_error_of_the_schema(encoder: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study(encoder=encoder)
