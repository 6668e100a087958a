"""State dicts as flat tables and back: the keys of leaves, and which values a checkpoint takes.

A leaf is a tensor or a value without tensors in it; its key joins the names on the way to it with
dots, as in "model.layers.0.weight".
"""

from __future__ import annotations

from rushlight import Tensor
from rushlight._checkpoint import plain_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["encoded", "leaves", "replace_leaf"]


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
        value: plain data (rushlight/_checkpoint/plain_data.py).
        key: where it stands, for errors.

    Raises:
        TypeError: for anything else, which would have to be pickled.
    """

    def refused(value: Any) -> Any:
        raise TypeError(
            f"save: {key} is {value!r}, a {type(value).__name__}. Checkpoints hold tensors, "
            "numbers, texts, bytes, dtypes, devices, and lists, tuples, sets and dicts of them, "
            "and no pickled objects. Convert it, or leave it out."
        )

    return plain_data.encoded(value, refused)
