"""Any model can be asked about languages, and most have nothing to say."""

from typing import Any

import numpy as np
import torch

from xlgrid.base.arrays import Segments
from xlgrid.models import by_language

SEGMENTS = Segments(np.array([4]), ("fr", "en"), np.array([[0, 0]], np.int16), 4)


class Asked(torch.nn.Module):
    """A model that remembers what it was given."""

    def language_arguments(self, segments: Segments) -> dict[str, Any]:
        return {"languages": segments.languages}

    def language_parts(self, languages: list[str]) -> tuple[str, ...]:
        return tuple(f"part:{language}" for language in languages)

    def give_languages(self, names: list[str], languages: list[str]) -> None:
        self.given = (names, languages)


def test_a_model_is_asked_for_what_its_class_says() -> None:
    model: Any = Asked()
    assert by_language.arguments(model, SEGMENTS) == {"languages": ("fr", "en")}
    assert by_language.parts(model, ["fr"]) == ("part:fr",)
    by_language.give(model, ["weight"], ["fr"])
    assert model.given == (["weight"], ["fr"])


def test_other_models_compute_all_languages_alike() -> None:
    model: Any = torch.nn.Linear(1, 1)
    assert by_language.arguments(model, SEGMENTS) == {}
    assert by_language.parts(model, ["fr"]) == ()
    by_language.give(model, ["weight"], ["fr"])
