"""State dicts as flat tables and back: the keys of leaves, and what JSON holds of other values.

A leaf is a tensor or a value without tensors in it; its key joins the names on the way to it with
dots, as in "model.layers.0.weight".
"""

from __future__ import annotations

import base64
import math

import rushlight as rl
from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["decoded", "encoded", "leaves", "replace_leaf"]

_TAG = "!"  # the key that marks what JSON does not have


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Returns the path and value of each leaf; lists of plain values are leaves."""
    items: Any = None
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list | tuple) and any(map(_is_nested, tree)):
        items = enumerate(tree)
    if items is None:
        yield path, tree
        return
    for name, value in items:
        yield from leaves(value, (*path, name))


def _is_nested(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_nested, value))
    return isinstance(value, dict | Tensor)


def replace_leaf(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    """Puts another value where a path leads.

    Raises:
        TypeError: if it leads into a tuple.
    """
    for name in path[:-1]:
        tree = tree[name]
    if isinstance(tree, tuple):
        raise TypeError(
            f"load: {'.'.join(map(str, path))} is in a tuple, which cannot be changed. Use a list."
        )
    tree[path[-1]] = value


def encoded(value: Any, key: str) -> Any:
    """Returns a value as JSON.

    Args:
        value: numbers, texts, None, bytes, dtypes and devices, and lists, tuples, sets and dicts of
            them.
        key: where it stands, for errors.

    Raises:
        TypeError: for anything else, which would have to be pickled.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [encoded(item, key) for item in value]
    if isinstance(value, dict):
        items = {name: encoded(item, key) for name, item in value.items()}
        if _TAG not in items and all(type(name) is str for name in items):
            return items
        pairs = [[encoded(name, key), item] for name, item in items.items()]
        return {_TAG: "dict", "value": pairs}
    if kind in (tuple, set, rl.Size):
        name = "set" if kind is set else "tuple"
        return {_TAG: name, "value": [encoded(item, key) for item in value]}
    if kind in (float, complex):
        return {_TAG: kind.__name__, "value": str(value)}
    if kind is bytes:
        return {_TAG: "bytes", "value": base64.b64encode(value).decode()}
    if kind in (rl.dtype, rl.device):
        return {_TAG: kind.__name__, "value": str(value)}
    raise TypeError(
        f"save: {key} is {value!r}, a {kind.__name__}. Checkpoints hold tensors, numbers, texts, "
        "bytes, dtypes, devices, and lists, tuples, sets and dicts of them, and no pickled "
        "objects. Convert it, or leave it out."
    )


_DECODE = {
    "dict": lambda pairs: {decoded(name): decoded(item) for name, item in pairs},
    "tuple": lambda items: tuple(map(decoded, items)),
    "set": lambda items: set(map(decoded, items)),
    "float": float,
    "complex": complex,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "dtype": lambda text: dtype_of(text),
    "device": rl.device,
}


def decoded(value: Any) -> Any:
    """Returns what was encoded.

    Raises:
        ValueError, TypeError, LookupError, RuntimeError: if it was not.
    """
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG in value:
        return _DECODE[value[_TAG]](value["value"])
    return {name: decoded(item) for name, item in value.items()}


def dtype_of(text: str) -> rl.dtype:
    """Returns the dtype of that name, "torch.float32".

    Raises:
        ValueError: if there is none.
    """
    found = getattr(rl, text.removeprefix("torch."), None)
    if not isinstance(found, rl.dtype):
        raise ValueError(f"{text!r} is no dtype")
    return found
