"""State dicts as flat tables and back: the keys of leaves, and which values a checkpoint takes.

A leaf is a tensor or a value without tensors in it; its key joins the names on the way to it with
dots, as in "model.layers.0.weight".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import Tensor
from rushlight._checkpoint import plain_data

__all__ = ["encoded", "leaves", "nested", "replace_leaf", "steps_of"]


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


def steps_of(tree: Any, path: tuple[Any, ...]) -> tuple[str | int, ...]:
    """Returns a path with a number for each place in a list, and a text for each key of a dict."""
    steps: list[str | int] = []
    for name in path:
        steps.append(str(name) if isinstance(tree, dict) else name)
        tree = tree[name]
    return tuple(steps)


class _Branch(dict[Any, Any]):
    """What nested grows, to tell it from values that are dicts."""


def nested(flat: dict[str, Any], paths: dict[str, tuple[str | int, ...]]) -> dict[str, Any]:
    """Returns the tree of a flat table.

    Args:
        flat: values by key.
        paths: where they stand (steps_of); without a path the key is one step.

    Raises:
        ValueError: if a path leads into a value, or to another.
    """
    root = _Branch()
    for key, value in flat.items():
        *way, last = path = paths.get(key, (key,))
        at: Any = root
        for step in way:
            at = at.setdefault(step, _Branch()) if isinstance(at, _Branch) else None
        if not isinstance(at, _Branch) or last in at:
            raise ValueError(f"load: the path {path} of {key} is taken. The checkpoint is damaged.")
        at[last] = value
    return {key: _grown(value) for key, value in root.items()}


def _grown(tree: Any) -> Any:
    if not isinstance(tree, _Branch):
        return tree
    if all(isinstance(step, int) for step in tree):
        return [_grown(tree[place]) for place in sorted(tree)]
    return {key: _grown(value) for key, value in tree.items()}


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
