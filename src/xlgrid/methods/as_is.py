"""The encoder as it is: cells without training."""

from typing import ClassVar

from xlgrid.methods.method import Method


class AsIs(Method):
    """Installs nothing and trains nothing: a cell evaluates the encoder with the head that was pre-trained with it.

    A grid with this method has the source `none`, and no runs.
    """

    is_trained: ClassVar[bool] = False

    def trains(self, name: str) -> bool:
        """Never."""
        return False

    def check_start(self, start: Method | None) -> None:
        """There is no run that could begin with another."""
        if start is not None:
            raise ValueError("the method has no runs, which could begin with an MLM run: leave out `start`")
