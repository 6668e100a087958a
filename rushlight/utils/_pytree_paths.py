"""Where the leaves of a tree are: paths of keys from the root.

A part of _pytree, which has these names too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rushlight.utils._pytree import (
    SUPPORTED_NODES,
    TreeSpec,
    _get_node_type,
    _list_flatten_with_keys,
    tree_is_leaf,
    tree_structure,
    tree_unflatten,
)


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """An item by its number."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """An item by its key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An item by its name as an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as it is written in Python.

    Example:
        >>> from rushlight.utils._pytree import MappingKey, SequenceKey, keystr
        >>> keystr((MappingKey("a"), SequenceKey(0)))
        "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies in a tree at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _walk(
    tree: Any, path: KeyPath, is_leaf: Callable[[Any], bool] | None
) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is not None:
        items = node.flatten_with_keys_fn(tree)[0]
    else:
        items = _list_flatten_with_keys(node.flatten_fn(tree)[0])[0]
    for key, item in items:
        yield from _walk(item, (*path, key), is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree from left to right, each as (path, leaf)."""
    return list(_walk(tree, (), is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a tree from left to right, each as (path, leaf), and its spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """A tree of func(path, leaf, ...), as tree_map's of func(leaf, ...).

    Example:
        >>> from rushlight.utils._pytree import keystr, tree_map_with_path
        >>> tree_map_with_path(lambda path, leaf: keystr(path), {"x": [1, 2]})
        {'x': ["['x'][0]", "['x'][1]"]}
    """
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    results = [func(*leaf, *each) for leaf, *each in zip(leaves, *others, strict=True)]
    return tree_unflatten(results, spec)
