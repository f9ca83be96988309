"""An unknown name is answered with the nearest known name and with all of them."""

import pytest

from xlgrid.base.names import unknown


@pytest.mark.parametrize(
    ("name", "allowed", "message"),
    [
        (
            "bitfti",
            ["full-ft", "bitfit"],
            "unknown method 'bitfti', did you mean 'bitfit'? (there are: full-ft, bitfit)",
        ),
        ("lora", ["full-ft", "bitfit"], "unknown method 'lora' (there are: full-ft, bitfit)"),
        (7, [1, 71, 1], "unknown method '7', did you mean '71'? (there are: 1, 71)"),
        ("lora", [], "unknown method 'lora' (there are: none)"),
    ],
)
def test_the_message_names_the_nearest_and_lists_each_name_once(
    name: object, allowed: list[object], message: str
) -> None:
    assert unknown("method", name, allowed) == message
