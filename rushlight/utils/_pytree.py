"""Nested containers as a list of leaves and a spec that puts them together again.

Lists, tuples, named tuples, dicts and their common kinds are containers; anything else is a leaf,
None too. Other classes join by register_pytree_node.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from types import UnionType
from typing import Any, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]


class _Container(NamedTuple):
    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]


_containers: dict[type, _Container] = {
    list: _Container(lambda x: (x, None), lambda items, _: list(items)),
    tuple: _Container(lambda x: (list(x), None), lambda items, _: tuple(items)),
    deque: _Container(lambda x: (list(x), x.maxlen), deque),
    dict: _Container(
        lambda x: (list(x.values()), list(x)),
        lambda items, keys: dict(zip(keys, items, strict=True)),
    ),
    OrderedDict: _Container(
        lambda x: (list(x.values()), list(x)),
        lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
    ),
    defaultdict: _Container(
        lambda x: (list(x.values()), (x.default_factory, list(x))),
        lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
    ),
}


def _named(cls: type) -> bool:
    return issubclass(cls, tuple) and (hasattr(cls, "_fields") or _is_result(cls))


def _is_result(cls: type) -> bool:
    """Whether it is made as what ops with several results return: of a sequence."""
    return hasattr(cls, "n_sequence_fields")


class TreeSpec:
    """How a tree is built: the class of a container, what it needs beside its items, their specs.

    A leaf has cls None.
    """

    __slots__ = ("children", "cls", "context", "num_leaves")

    def __init__(self, cls: type | None, context: Any, children: list[TreeSpec]) -> None:
        self.cls = cls
        self.context = context
        self.children = children
        self.num_leaves = sum(c.num_leaves for c in children) if cls is not None else 1

    def is_leaf(self) -> bool:
        return self.cls is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.cls is other.cls
            and self.context == other.context
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.cls, self.num_leaves))

    def __repr__(self) -> str:
        if self.cls is None:
            return "*"
        return f"{self.cls.__name__}({', '.join(map(repr, self.children))})"


_LEAF = TreeSpec(None, None, [])


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    **options: Any,
) -> None:
    """Makes a class a container.

    Args:
        cls: the class; its subclasses stay leaves.
        flatten_fn: gives the items and what else is needed to build an object again.
        unflatten_fn: builds one from items and that.
        options: accepted for PyTorch's sake: how specs are written to files.

    Raises:
        ValueError: if the class is a container already.
    """
    if cls in _containers:
        raise ValueError(f"register_pytree_node: {cls} is already registered.")
    _containers[cls] = _Container(flatten_fn, unflatten_fn)


def _split(tree: Any) -> tuple[list[Any], Any] | None:
    cls = type(tree)
    container = _containers.get(cls)
    if container is not None:
        return container.flatten(tree)
    return (list(tree), None) if _named(cls) else None


def _collect(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    parts = None if is_leaf is not None and is_leaf(tree) else _split(tree)
    if parts is None:
        leaves.append(tree)
        return _LEAF
    items, context = parts
    return TreeSpec(type(tree), context, [_collect(item, leaves, is_leaf) for item in items])


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its spec.

    Example:
        >>> from rushlight.utils._pytree import tree_flatten
        >>> tree_flatten({"a": 1, "b": (2, 3)})
        ([1, 2, 3], dict(*, tuple(*, *)))
    """
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves, is_leaf)


def tree_unflatten(leaves: Any, spec: TreeSpec) -> Any:
    """The tree of a spec with these leaves; the reverse of tree_flatten."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(
            f"tree_unflatten: got {len(leaves)} leaves, but the spec has {spec.num_leaves}."
        )
    return _build(iter(leaves), spec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.cls is None:
        return next(leaves)
    items = [_build(leaves, child) for child in spec.children]
    container = _containers.get(spec.cls)
    if container is not None:
        return container.unflatten(items, spec.context)
    return spec.cls(items) if _is_result(spec.cls) else spec.cls(*items)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves of a tree from left to right, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """A tree of func(leaf, ...) for the leaves of one or several trees of one structure.

    Example:
        >>> from rushlight.utils._pytree import tree_map
        >>> tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2})
        {'x': 3}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        found, rest_spec = tree_flatten(rest, is_leaf)
        if rest_spec != spec:
            raise ValueError(f"tree_map: the trees differ: {spec} and {rest_spec}.")
        others.append(found)
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func(leaf, ...) for all leaves and returns the tree as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """A tree of func(leaf) where a leaf is of some types, or a predicate is true; else the leaf.

    Example:
        >>> from rushlight.utils._pytree import tree_map_only
        >>> tree_map_only(int, lambda n: -n, [1, "a", 2])
        [-1, 'a', -2]
    """
    is_meant = _predicate(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if is_meant(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func for the leaves of some types and returns the tree as it is."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def _predicate(meant: Any) -> Callable[[Any], bool]:
    """A predicate from itself, or from a type or several."""
    if isinstance(meant, (type, tuple, UnionType)):
        return lambda x: isinstance(x, meant)
    return meant


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether pred(leaf) is true for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether pred(leaf) is true for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether pred(leaf) is true for some leaf of some types."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_all_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether pred(leaf) is true for all leaves of some types."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def broadcast_prefix(
    prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """For each leaf of a tree that of a smaller tree above it; None when they do not fit."""
    parts = None if is_leaf is not None and is_leaf(prefix) else _split(prefix)
    if parts is None:
        return [prefix] * len(tree_leaves(tree))
    below = _split(tree)
    if below is None or type(prefix) is not type(tree) or len(parts[0]) != len(below[0]):
        return None
    if isinstance(prefix, dict) and parts[1] != below[1]:
        return None
    result: list[Any] = []
    for part, subtree in zip(parts[0], below[0], strict=True):
        leaves = broadcast_prefix(part, subtree, is_leaf)
        if leaves is None:
            return None
        result += leaves
    return result
