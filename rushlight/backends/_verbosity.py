"""The context managers that print what a library of the CPU does, which nothing here does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Verbosity:
    """Takes a level and prints nothing.

    Args:
        level: 0 for off, 1 for on.
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass
