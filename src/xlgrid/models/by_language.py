"""Models with a module or a token for each language, such as X-MOD and mBART.

Such a model implements some methods of `ByLanguage`. Other models compute all languages alike.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from xlgrid.base.arrays import Segments

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ByLanguage(Protocol):
    """Methods of a model whose computation depends on the language of the input."""

    def language_arguments(self, segments: Segments) -> dict[str, Any]:
        """The arguments of `forward` that state the languages of the inputs of a batch.

        Raises:
            ValueError: the model has no part for one of the languages, or an input is in two languages.
        """

    def language_parts(self, languages: Iterable[str]) -> tuple[str, ...]:
        """The parts that compute inputs in some languages, each as `kind:name`.

        Raises:
            ValueError: there is no part for one of the languages.
        """

    def give_languages(self, names: Iterable[str], languages: Iterable[str]) -> None:
        """Use a part that a method has added as the part of these languages.

        Nothing happens if no parameter with one of these names belongs to such a part.

        Raises:
            ValueError: the model has a part for one of the languages already.
        """


def arguments(model: "PreTrainedModel", segments: Segments) -> dict[str, Any]:
    """`ByLanguage.language_arguments` of any model."""
    ask = getattr(model, "language_arguments", None)
    return ask(segments) if ask else {}


def parts(model: "PreTrainedModel", languages: Iterable[str]) -> tuple[str, ...]:
    """`ByLanguage.language_parts` of any model."""
    ask = getattr(model, "language_parts", None)
    return ask(languages) if ask else ()


def give(model: "PreTrainedModel", names: Iterable[str], languages: Iterable[str]) -> None:
    """`ByLanguage.give_languages` of any model."""
    ask = getattr(model, "give_languages", None)
    if ask:
        ask(names, languages)
