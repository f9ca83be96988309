"""The head `span-mlqa`: the head `span` with the evaluation of MLQA (Lewis et al. 2020, section 2.4).

Answers are normalised as in `mlqa_evaluation_v1.py` of github.com/facebookresearch/MLQA.
"""

import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache

from xlgrid.heads.metrics import MLQA_EM, MLQA_F1
from xlgrid.heads.span.head import SpanHead
from xlgrid.languages.iso import standard


def _without(*articles: str) -> Callable[[str], str]:
    """A function that replaces each of some words by a space."""
    pattern = re.compile(rf"\b({'|'.join(articles)})\b")
    return lambda text: pattern.sub(" ", text)


# Language -> a function that removes its articles. Hindi and Chinese have no articles.
_ARTICLES: dict[str, Callable[[str], str]] = {
    "en": _without("a", "an", "the"),
    "es": _without("un", "una", "unos", "unas", "el", "la", "los", "las"),
    "vi": _without("của", "là", "cái", "chiếc", "những"),
    "de": _without(
        *("ein", "eine", "einen", "einem", "eines", "einer", "der", "die", "das", "den", "dem", "des"),
    ),
    # MLQA's script replaces these two letters within words, too.
    "ar": lambda text: text.replace("ال", " "),
}
# The languages for which each Chinese character counts as a word.
_MIXED_SEGMENTATION = {"zh"}
_CHINESE = re.compile(r"([\u4e00-\u9fa5])")


class MlqaSpanHead(SpanHead):
    """The answer to a question as a span of its context, scored with the normalisation of the context's language.

    Punctuation of all scripts is removed from an answer, and so are the articles of its language if MLQA lists them.
    Words are separated by spaces. In Chinese, each Chinese character is also a word.
    """

    name = "span-mlqa"
    all_metrics = (MLQA_F1, MLQA_EM)

    def normalised(self, text: str, language: str) -> str:
        text = "".join(character for character in text.lower() if not _is_punctuation(character))
        code = _code(language)
        text = _ARTICLES[code](text) if code in _ARTICLES else text
        text = _CHINESE.sub(r" \1 ", text) if code in _MIXED_SEGMENTATION else text
        return " ".join(text.split())


@cache
def _code(language: str) -> str:
    """MLQA's code for a language or for its macrolanguage, such as `zh` for `zho` and for `cmn`."""
    known = standard(language)
    codes = (language, *known.codes, *known.macrolanguage) if known else (language,)
    return next((code for code in codes if code in _ARTICLES or code in _MIXED_SEGMENTATION), language)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") or character in string.punctuation
