"""Small conversions that several layers share."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that turns one value into n equal ones and leaves a sequence as it is."""

    def expand(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    return expand


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
