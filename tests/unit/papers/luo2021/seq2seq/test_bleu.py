"""BLEU from the statistics of sentences is that of sacrebleu on the same strings."""

import random
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import sacrebleu.tokenizers.tokenizer_spm

from xlgrid.heads.metrics import DRAWS
from xlgrid.languages import Language, language
from xlgrid.papers.luo2021.seq2seq import bleu
from xlgrid.papers.luo2021.seq2seq.bleu import CORPUS_BLEU, Scoring, signature, statistics, tokenizer_of

WORDS = ["the", "a", "dog", "Dog", "saw", '"sees"', "house,", "3.5", "10%", "don't", "über", "Hund.", "犬", "&", "<b>"]


def sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """References, and hypotheses that have some of their words."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(count)]
    hypotheses = [
        " ".join(word if rng.random() < 0.8 else rng.choice(WORDS) for word in reference.split() if rng.random() < 0.9)
        for reference in references
    ]
    return hypotheses, references


def outcomes(hypotheses: list[str], references: list[str]) -> list[list[int]]:
    return [statistics(*pair) for pair in zip(hypotheses, references, strict=True)]


@pytest.mark.parametrize("count", [1, 3, 50])
def test_bleu_of_a_corpus_is_that_of_sacrebleu(count: int) -> None:
    for seed in range(5):
        hypotheses, references = sentences(count, seed)
        expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
        assert CORPUS_BLEU.score(outcomes(hypotheses, references)) == pytest.approx(expected, abs=1e-9)


# Two references in each language, and a hypothesis for each; sacrebleu's command would choose the tokenizer by the language.
TEXTS = {
    "zh": (
        ["我非常喜欢新加坡的天气。", "他住在BBC附近 3.5 公里。"],
        ["我喜欢新加坡的天气。", "他住在BBC附近3.5公里处。"],
    ),
    "de": (["Der Hund, den ich sah.", "Es kostet 3,50 €."], ["Der Hund, den ich sehe.", "Es kostete 3,50 €."]),
    "th": (["ผมชอบอากาศที่นี่มาก", "แมวอยู่บนโต๊ะ"], ["ผมชอบอากาศที่นี่", "แมวอยู่ใต้โต๊ะ"]),
    "ja": (["私はこの町の天気がとても好きです。", "犬が走る。"], ["私はこの町の天気が好きです。", "犬が走った。"]),
    "ko": (
        ["나는 이 도시의 날씨를 아주 좋아한다.", "개가 달린다."],
        ["나는 이 도시의 날씨를 좋아한다.", "개가 달렸다."],
    ),
}


@pytest.mark.parametrize("code", TEXTS)
def test_bleu_and_its_signature_are_those_of_sacrebleu_for_the_language(code: str) -> None:
    if problem := bleu.unavailable(tokenizer_of(code)):
        pytest.skip(problem)
    hypotheses, references = TEXTS[code]
    # Thai is one word to the command.
    scorer = sacrebleu.BLEU(tokenize="char") if code == "th" else sacrebleu.BLEU(trg_lang=code)
    expected = scorer.corpus_score(hypotheses, [references]).score
    tokenizer = tokenizer_of(code)
    rows = [statistics(*pair, tokenizer) for pair in zip(hypotheses, references, strict=True)]
    assert CORPUS_BLEU.score(rows) == pytest.approx(expected, abs=1e-9) and expected > 10
    assert signature(tokenizer) == str(scorer.get_signature())


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char", "none"])
def test_each_tokenizer_is_that_of_sacrebleu(tokenizer: str) -> None:
    hypotheses, references = sentences(20)
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenizer).score
    rows = [statistics(*pair, tokenizer) for pair in zip(hypotheses, references, strict=True)]
    assert CORPUS_BLEU.score(rows) == pytest.approx(expected, abs=1e-9)


def test_every_tokenizer_of_sacrebleu_has_its_name() -> None:
    assert {*bleu.TOKENIZERS} == {*sacrebleu.BLEU.TOKENIZERS} - {"spm"}


@pytest.mark.parametrize(
    ("codes", "tokenizer"),
    [
        ("zh zho cmn yue wuu lzh", "zh"),
        ("ja jpn", "ja-mecab"),
        ("ko kor", "ko-mecab"),
        ("th lo km my bo dz shn ii khb", "char"),
        ("en de vi hi ar ru am sw qa1 qb7", "13a"),
    ],
)
def test_the_tokenizer_follows_the_language_and_an_option_goes_before(codes: str, tokenizer: str) -> None:
    for code in codes.split():
        assert tokenizer_of(code) == tokenizer, code
        assert tokenizer_of(code, "intl") == tokenizer_of(code, {code: "intl", "xx": "none"}) == "intl"
        assert tokenizer_of(code, {"xx": "none"}) == tokenizer


def test_a_tokenizer_that_does_not_exist_is_refused_with_the_nearest() -> None:
    for choice in ("flores20", {"th": "flores20"}):
        with pytest.raises(ValueError, match="unknown tokenizer of sacrebleu 'flores20', did you mean 'flores200'"):
            Scoring(bleu_tokenizer=choice)


def test_what_cannot_be_scored_is_refused_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = Language("xx", "X", None, "Laoo", "ltr")
    known = [*map(language, ("zh", "th", "de"))]
    assert [*bleu.problems(known, None)] == [*bleu.problems([*known, declared], {"xx": "char"})] == []
    for script, needed in (("Laoo", "char"), ("Hant", "zh")):
        (problem,) = bleu.problems([declared._replace(script=script)], None)
        assert f"xx is written in {script}" in problem and f"write `bleu_tokenizer: {{xx: {needed}}}`" in problem
    (problem,) = bleu.problems(known, {"tj": "char"})
    assert "unknown language that the task generates 'tj'" in problem
    monkeypatch.setattr(bleu, "find_spec", lambda name: None)
    (problem,) = bleu.problems([*map(language, ("ja", "jpn"))], None)
    assert "pip install 'sacrebleu[ja]'" in problem and "{ja: char, jpn: char}" in problem


def test_a_tokenizer_that_would_be_downloaded_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Until its file is there."""
    monkeypatch.setattr(bleu, "find_spec", lambda name: name)
    monkeypatch.setattr(sacrebleu.utils, "SACREBLEU_DIR", str(tmp_path))
    for tokenizer in ("flores101", "flores200", "spBLEU-1K"):
        assert "where there is a network" in (bleu.unavailable(tokenizer) or "")
        with pytest.raises(ValueError, match="which sacrebleu downloads"):
            statistics("a", "a", tokenizer)
    name = sacrebleu.tokenizers.tokenizer_spm.SPM_MODELS["flores200"]["url"].rpartition("/")[2]
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / name).touch()
    assert bleu.unavailable("flores200") is None


def test_an_empty_hypothesis_counts_no_word_and_empty_hypotheses_have_bleu_0() -> None:
    assert statistics("", "a dog") == [0, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert CORPUS_BLEU.score(outcomes(["", ""], ["a dog", "a house"])) == 0
    assert CORPUS_BLEU.score([]) == 0
    assert statistics("a dog", "") == [2, 0, 0, 0, 0, 0, 2, 1, 0, 0]
    assert not CORPUS_BLEU.moves(outcomes(["", ""], ["a dog", "a house"])).any()


def test_the_variance_over_draws_is_that_of_a_bootstrap_by_sacrebleu() -> None:
    hypotheses, references = sentences(60)
    moves = CORPUS_BLEU.moves(outcomes(hypotheses, references))
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(400):
        rows = rng.integers(0, 60, 60)
        drawn = ([texts[row] for row in rows] for texts in (hypotheses, references))
        scores.append(sacrebleu.corpus_bleu(next(drawn), [next(drawn)]).score)
    assert len(moves) == DRAWS
    assert (moves**2).mean() / len(moves) == pytest.approx(np.var(scores), rel=0.25)
