"""The languages of the two parts of an example, such as its premise and its hypothesis."""


def sides(language: str) -> tuple[str, str]:
    """The languages of the first and the second part of an example: `en` and `fr` in data of the pair `en-fr`, and `en`
    for both in data of `en`."""
    first, _, second = language.partition("-")
    return first, second or first
