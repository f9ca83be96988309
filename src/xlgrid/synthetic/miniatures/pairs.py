"""The languages of the two parts of an example."""


def sides(language: str) -> tuple[str, str]:
    """The languages of the first and the second part of an example: both are `en` in data in `en`, and they are `en` and `fr` in data of
    the pair `en-fr`."""
    first, _, second = language.partition("-")
    return first, second or first
