"""Nested state dicts as flat ones and back, for planners."""

from __future__ import annotations

from typing import Any

from rushlight.distributed.checkpoint import _tree

__all__ = ["flatten_state_dict", "unflatten_state_dict"]


def flatten_state_dict(
    state_dict: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, tuple[str | int, ...]]]:
    """Returns the tensors and values of a state dict by key, and the path to each.

    Args:
        state_dict: nested dicts and lists; tuples, and lists of plain values, stay values.

    Raises:
        ValueError: if two have the same key.

    Example:
        >>> from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
        >>> flatten_state_dict({"a": {"b": 1}, "c": [{"d": 2}]})
        ({'a.b': 1, 'c.0.d': 2}, {'a.b': ('a', 'b'), 'c.0.d': ('c', 0, 'd')})
    """
    flat: dict[str, Any] = {}
    paths: dict[str, tuple[str | int, ...]] = {}
    for path, value in _tree.leaves(state_dict):
        key = ".".join(map(str, path))
        if key in flat:
            raise ValueError(f"flatten_state_dict: two values have the key {key}. Rename one.")
        flat[key], paths[key] = value, path
    return flat, paths


def unflatten_state_dict(
    state_dict: dict[str, Any], mapping: dict[str, tuple[str | int, ...]]
) -> dict[str, Any]:
    """Returns the nested state dict that flatten_state_dict made a flat one of.

    Args:
        state_dict: values by key.
        mapping: the path to each.

    Raises:
        ValueError: if a path leads into a value, or to another.

    Example:
        >>> from rushlight.distributed.checkpoint._nested_dict import unflatten_state_dict
        >>> unflatten_state_dict({"a.b": 1, "c.0": 2}, {"a.b": ("a", "b"), "c.0": ("c", 0)})
        {'a': {'b': 1}, 'c': [2]}
    """
    return _tree.nested(state_dict, mapping)
