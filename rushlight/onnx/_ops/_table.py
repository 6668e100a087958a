"""The table of converters: for the name of an op the function that adds its ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["TABLE", "converts"]

# A converter has the op's parameters after the Builder, and returns a Value or a tuple of them.
# Those that share a name with another op have their home before it.
TABLE: dict[str, Callable[..., Any]] = {}


def converts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function the converter of some ops."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(names, function))
        return function

    return add
