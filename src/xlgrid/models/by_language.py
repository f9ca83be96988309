"""Models that compute an input by its language, for which they have a module or a token.

Such a model has some of the methods of `ByLanguage`. Other models compute all languages alike.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from xlgrid.base.arrays import Segments

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ByLanguage(Protocol):
    """Methods by which a model answers questions about languages."""

    def language_arguments(self, segments: Segments) -> dict[str, Any]:
        """The arguments of `forward` that say in which languages the inputs of a batch are.

        Raises:
            ValueError: the model has no part for one of the languages, or an input is in two.
        """

    def language_parts(self, languages: Iterable[str]) -> tuple[str, ...]:
        """The parts that compute inputs in some languages, each as `kind:name`.

        Raises:
            ValueError: there is no part for one of the languages.
        """

    def give_languages(self, names: Iterable[str], languages: Iterable[str]) -> None:
        """Take a part that a method has added, if parameters with these names belong to one, for that of these languages.

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
