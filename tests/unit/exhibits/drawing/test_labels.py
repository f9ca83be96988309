"""Labels: where a name is replaced, and that nothing else is."""

import pytest

from xlgrid.exhibits.drawing.labels import label, labelled

LABELS = {"en": "English", "sw": "Swahili", "bitfit": "BitFit", "full-ft": "Full FT", "f1": "F1", "en-fr": "En to Fr"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("en", "English"),
        ("en+sw", "English+Swahili"),
        ("en-sw", "English-Swahili"),
        ("en-fr", "En to Fr"),
        ("sw-fr", "sw-fr"),
        ("bitfit@lr=2e-05", "BitFit@lr=2e-05"),
        ("full-ft − bitfit", "Full FT − BitFit"),
        ("f1 (%)", "F1 (%)"),
        ("dev f1 (%)", "dev F1 (%)"),
        ("gain over full-ft (points)", "gain over Full FT (points)"),
        ("german", "german"),
        ("full-ft2", "full-ft2"),
        (3, "3"),
        (125_000, "125k"),
    ],
)
def test_a_name_has_its_label(name: object, shown: str) -> None:
    assert labelled(name, LABELS) == shown


def test_without_labels_texts_are_unchanged() -> None:
    for value in ("en+sw", "a b", 2.5, 7):
        assert labelled(value, {}) == label(value)
