"""What is outside of a value: one fill for all types, or one for each."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from rushlight.vision.transforms._functional.crops import Fill as OneFill

Fill = OneFill | dict[type | str, OneFill]


def _one(fill: Any) -> Any:
    if fill is not None and not isinstance(fill, (numbers.Number, tuple, list)):
        raise TypeError(
            f"fill: got {fill!r}. It must be a number, a sequence of them, or a dict of these."
        )
    return [float(value) for value in fill] if isinstance(fill, Sequence) else fill


def fills_by_type(fill: Any) -> dict[Any, Any]:
    """The fill of each type, under "others" that of all types without one."""
    if isinstance(fill, dict):
        return {cls: _one(value) for cls, value in fill.items()}
    return {"others": _one(fill)}


def fill_of(fills: dict[Any, Any], value: Any) -> Any:
    """The fill of a value."""
    return fills.get(type(value), fills.get("others"))
