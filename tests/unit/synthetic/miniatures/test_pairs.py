"""The languages of the two parts of an example."""

from xlgrid.synthetic.miniatures.pairs import sides


def test_a_language_alone_has_both_parts() -> None:
    assert sides("en") == ("en", "en") and sides("en-fr") == ("en", "fr")
