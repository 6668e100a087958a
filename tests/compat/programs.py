"""What tests keep that compare whole programs: the programs by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]


class Programs(dict[str, Program]):
    """Takes a program in when it is called with it, as a decorator is."""

    def __call__(self, run: Program) -> Program:
        self[run.__name__] = run
        return run
