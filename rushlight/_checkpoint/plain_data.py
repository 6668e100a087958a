"""Plain Python data as JSON and back, for files that run no code when they are read.

What JSON has stands for itself; anything else is {"!": its kind, "value": ...}, so that a value
comes back as it was. Owns these kinds; users may add kinds of their own, and say what they refuse.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as rl

__all__ = ["decoded", "dtype_of", "encoded", "tagged"]

_TAG = "!"


def tagged(kind: str, value: Any) -> dict[str, Any]:
    """Returns what stands for a value of a kind."""
    return {_TAG: kind, "value": value}


def encoded(value: Any, other: Callable[[Any], Any]) -> Any:
    """Returns a value as JSON.

    Args:
        value: numbers, texts, None, bytes, slices, dtypes, devices, layouts and memory formats, and
            lists, tuples, sizes, sets and dicts of them.
        other: what to do with anything else: returns its JSON, or raises.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [encoded(item, other) for item in value]
    if isinstance(value, dict):
        items = {name: encoded(item, other) for name, item in value.items()}
        if _TAG not in items and all(type(name) is str for name in items):
            return items
        return tagged("dict", [[encoded(name, other), item] for name, item in items.items()])
    if kind in (tuple, set, rl.Size):
        return tagged(kind.__name__, [encoded(item, other) for item in value])
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return tagged("slice", [encoded(part, other) for part in parts])
    if kind is bytes:
        return tagged("bytes", base64.b64encode(value).decode())
    if kind in (float, complex, rl.dtype, rl.device, rl.layout, rl.memory_format):
        return tagged(kind.__name__, str(value))
    return tagged("ellipsis", None) if value is ... else other(value)


def decoded(value: Any, kinds: dict[str, Callable[[Any], Any]] | None = None) -> Any:
    """Returns what was encoded.

    Args:
        value: JSON.
        kinds: makers of the values of more kinds.

    Raises:
        ValueError, TypeError, LookupError, RuntimeError: if it was not.
    """
    if isinstance(value, list):
        return [decoded(item, kinds) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {name: decoded(item, kinds) for name, item in value.items()}
    kind, content = value[_TAG], value["value"]
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](decoded(item, kinds) for item in content)
    return _MAKERS[kind](content) if kind in _MAKERS else (kinds or {})[kind](content)


def _named(kind: type, text: str) -> Any:
    found = getattr(rl, text.removeprefix("torch."), None)
    if not isinstance(found, kind):
        raise ValueError(f"{text!r} is no {kind.__name__}")
    return found


_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "Size": rl.Size,
    "slice": lambda parts: slice(*parts),
}
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": complex,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "dtype": partial(_named, rl.dtype),
    "layout": partial(_named, rl.layout),
    "memory_format": partial(_named, rl.memory_format),
    "device": rl.device,
    "ellipsis": lambda _: ...,
}


def dtype_of(text: str) -> rl.dtype:
    """Returns the dtype of that name, "torch.float32".

    Raises:
        ValueError: if there is none.
    """
    return _named(rl.dtype, text)
