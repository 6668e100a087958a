"""State dicts as flat tables and back: the keys of leaves, and which values a checkpoint takes.

A leaf is a tensor, a tuple, or a value without tensors in it; its key joins the names on the way to
it with dots, as in "model.layers.0.weight".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import Tensor
from rushlight._checkpoint import plain_data
from rushlight.distributed.tensor import DTensor

__all__ = ["Placeholder", "check_plain", "leaves", "nested", "replace_leaf"]


class Placeholder:
    """Stands in a tree for a value that is still to be read."""


def leaves(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Returns the path and value of each leaf; tuples and lists of plain values are leaves.

    A path has a text for each key of a dict, and a number for each place in a list.
    """
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from leaves(value, (*path, str(name)))
    elif isinstance(tree, list) and any(map(_is_nested, tree)):
        for place, value in enumerate(tree):
            yield from leaves(value, (*path, place))
    else:
        yield path, tree


def _is_nested(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_nested, value))
    return isinstance(value, dict | Tensor | Placeholder)


class _Branch(dict[Any, Any]):
    """What nested grows, to tell it from values that are dicts."""


def nested(flat: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """Returns the tree of a flat table.

    Args:
        flat: values by key.
        paths: where they stand (leaves); without a path the key is one step.

    Raises:
        ValueError: if one is no path, or leads into a value, or to another.
    """
    root = _Branch()
    for key, value in flat.items():
        path = paths.get(key, (key,))
        if not isinstance(path, list | tuple) or not path or {*map(type, path)} - {str, int}:
            raise ValueError(f"load: {path!r} is no path. The checkpoint is damaged.")
        *way, last = path
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


def replace_leaf(tree: Any, path: tuple[str | int, ...], value: Any) -> None:
    """Puts another value where a path leads."""
    *way, last = path
    for step in way:
        tree = tree[_key(tree, step)]
    tree[_key(tree, last)] = value


def _key(tree: Any, step: str | int) -> Any:
    """What a dict has for the text of a path."""
    if isinstance(tree, dict) and step not in tree:
        return next((name for name in tree if str(name) == step), step)
    return step


def check_plain(value: Any, key: str) -> None:
    """Checks that a value is plain data (rushlight/_checkpoint/plain_data.py), or has tensors.

    Args:
        value: the value.
        key: where it stands, for errors.

    Raises:
        TypeError: for a DTensor, of which one rank's part would be saved, and for anything else,
            which load would not make again.
    """

    def refused(value: Any) -> None:
        if isinstance(value, DTensor):
            raise TypeError(
                f"save: {key} has a DTensor in a value that is saved whole. Put it into dicts and "
                "lists alone, and let the planner flatten them."
            )
        if not isinstance(value, Tensor):
            raise TypeError(
                f"save: {key} is {value!r}, a {type(value).__name__}. Checkpoints hold tensors, "
                "numbers, texts, bytes, dtypes, devices, and lists, tuples, sets and dicts of "
                "them, and no pickled objects. Convert it, or leave it out."
            )

    plain_data.encoded(value, refused)
