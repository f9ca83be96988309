"""An unknown name is answered with the nearest known name and with all of them."""

import pytest

from xlgrid.base.names import among, unknown


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
        ("BitFit", ["bitfit"], "unknown method 'BitFit', did you mean 'bitfit'? (there are: bitfit)"),
        ("companion", ["options"], "unknown method 'companion' (there are: options)"),
        ("lora", [], "unknown method 'lora' (there are: none)"),
    ],
)
def test_the_message_names_the_nearest_and_lists_each_name_once(
    name: object, allowed: list[object], message: str
) -> None:
    assert unknown("method", name, allowed) == message


def test_a_name_that_no_grid_uses_is_told_from_one_that_does_not_exist() -> None:
    unused, misspelt = among("here", "method", ["lora", "bitfti"], ["bitfit"], ["lora", "bitfit"])
    assert (
        unused == "here: no grid uses method 'lora', which the study defines: name it in a grid, or leave it out here"
    )
    assert misspelt.startswith("here: unknown method 'bitfti', did you mean 'bitfit'?")
