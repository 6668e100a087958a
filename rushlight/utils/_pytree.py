"""Nested containers as a list of leaves and a spec that puts them together again.

Lists, tuples, named tuples, dicts and their common kinds are containers; anything else is a leaf,
None too. Other classes join by register_pytree_node. The module is private in PyTorch, but many
libraries use it: names and fields are PyTorch's. Paths to leaves are in _pytree_paths.py,
specs from parts and as texts in _pytree_specs.py, data classes in _pytree_classes.py.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight import Tensor

if TYPE_CHECKING:
    from rushlight.utils._pytree_classes import register_constant, register_dataclass
    from rushlight.utils._pytree_paths import (
        GetAttrKey,
        KeyPath,
        MappingKey,
        SequenceKey,
        key_get,
        keystr,
        tree_flatten_with_path,
        tree_leaves_with_path,
        tree_map_with_path,
    )
    from rushlight.utils._pytree_specs import (
        treespec_dict,
        treespec_dumps,
        treespec_leaf,
        treespec_loads,
        treespec_pprint,
        treespec_tuple,
    )

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

PyTree = Any
Context = Any


class NodeDef(NamedTuple):
    """How objects of a class are taken apart and put together.

    Args:
        type: the class; of named tuples, what makes them.
        flatten_fn: gives the items and what else is needed to build an object again.
        unflatten_fn: builds one from items and that.
        flatten_with_keys_fn: as flatten_fn, with (key, item) for each item; None where items are
            numbered.
    """

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


class Written(NamedTuple):
    """How treespec_dumps writes the specs of a class: under a name, and what else there is."""

    name: str | None
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


SUPPORTED_SERIALIZED_TYPES: dict[Any, Written] = {}
SUPPORTED_NODES: dict[Any, NodeDef] = {}
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = STANDARD_DICT_TYPES | {tuple, list, namedtuple, deque}


_CAN_BE_A_BASE = 1 << 10  # Py_TPFLAGS_BASETYPE


class structseq(tuple[Any, ...]):
    """Stands in SUPPORTED_NODES for the classes of what ops with several results return."""


def is_namedtuple_class(cls: object) -> bool:
    """Whether a class was made by collections.namedtuple, or is a subclass of one that was."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is of a class that collections.namedtuple made, or of a subclass."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether an object is a named tuple or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: object) -> bool:
    """Whether a class is as those of what ops with several results return."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in counts)
        and not cls.__flags__ & _CAN_BE_A_BASE
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is made as what ops with several results return: of a sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether an object is as what ops with several results return, or the class of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def _get_node_type(tree: Any) -> Any:
    """The key of a tree's node in SUPPORTED_NODES, if it is no leaf."""
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    if issubclass(cls, dict):  # those of modules are plain ones in PyTorch
        return getattr(cls, "_node_type", cls)
    if not issubclass(cls, tuple):
        return cls
    if is_namedtuple_instance(tree):
        return namedtuple
    return structseq if is_structseq_instance(tree) else cls


class TreeSpec:
    """How a tree is built: the type of a container, what it needs beside its items, their specs.

    A leaf has type None.
    """

    __slots__ = ("children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_leaves = sum(c.num_leaves for c in children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(c.num_nodes for c in children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What a tree has where this spec has leaves: leaves or trees below them.

        Dicts of any kind are taken by their keys.

        Raises:
            ValueError: where the tree has another container, or other keys.

        Example:
            >>> from rushlight.utils._pytree import tree_structure
            >>> tree_structure({"a": 1, "b": 2}).flatten_up_to({"b": (3, 4), "a": None})
            [None, (3, 4)]
        """
        if self.type is None:
            return [tree]
        node_type, items, fits = _get_node_type(tree), [], False
        if node_type in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES:
            keys = self.context[1] if self.type is defaultdict else self.context
            items = [tree[key] for key in keys if key in tree]
            fits = len(items) == len(keys) == len(tree)
        elif node_type is self.type:
            items, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
            fits = len(items) == self.num_children
            fits = fits and (context == self.context or node_type is deque)
        if not fits:
            raise ValueError(
                f"flatten_up_to: the trees differ: expected a {self.type.__name__}, {self}, "
                f"but got {tree_structure(tree)}."
            )
        pairs = zip(self.children_specs, items, strict=True)
        return [leaf for spec, item in pairs for leaf in spec.flatten_up_to(item)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        gap = ",\n" + " " * (indent + 2)
        items = gap.join(child.__repr__(indent + 2) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{items}])"


PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:
    """The spec of a tree that is one leaf."""
    return _LEAF


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None,
) -> None:
    """Makes a class a container.

    Args:
        cls: the class; its subclasses stay leaves.
        flatten_fn: gives the items and what else is needed to build an object again.
        unflatten_fn: builds one from items and that.
        serialized_type_name: what treespec_dumps calls the class; without it, it refuses.
        to_dumpable_context, from_dumpable_context: turn what else is needed to build an object
            into what JSON can tell, and back; not needed if it can.
        flatten_with_keys_fn: as flatten_fn, with (key, item) for each item.

    Raises:
        ValueError: if the class is a container already, or only one of the functions for JSON is
            given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: {cls} is already registered.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"register_pytree_node: {cls} has one of to_dumpable_context and from_dumpable_context."
            " Give both or none."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = Written(
        serialized_type_name, to_dumpable_context, from_dumpable_context
    )


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(cls: type[Any], *functions: Any, **options: Any) -> None:
    """Makes a class a container, also once more; old, register_pytree_node is new."""
    warnings.warn(
        "_register_pytree_node is deprecated. Use register_pytree_node.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered; this counts from now on.", stacklevel=2)
        _deregister_pytree_node(cls)
    register_pytree_node(cls, *functions, **options)


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Makes the objects of a registered class leaves again."""
    del SUPPORTED_NODES[cls], SUPPORTED_SERIALIZED_TYPES[cls]


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Gives a named tuple the name by which treespec_dumps writes it."""
    SUPPORTED_SERIALIZED_TYPES[cls] = Written(serialized_type_name, None, None)


def _list_flatten(d: Iterable[Any]) -> tuple[list[Any], None]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: None) -> list[Any]:
    return list(values)


def _tuple_unflatten(values: Iterable[Any], context: None) -> tuple[Any, ...]:
    return tuple(values)


def _namedtuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], type[Any]]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Callable[..., Any]) -> Any:
    return context(*values)


def _structseq_unflatten(values: Iterable[Any], context: Callable[..., Any]) -> Any:
    return context(values)


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], int | None]:
    return list(d), d.maxlen


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values: Iterable[Any], context: list[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: list[Any]) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _list_flatten_with_keys(d: Iterable[Any]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    from rushlight.utils._pytree_paths import SequenceKey

    return [(SequenceKey(i), item) for i, item in enumerate(d)], None


def _dict_flatten_with_keys(
    d: dict[Any, Any],
) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    from rushlight.utils._pytree_paths import MappingKey

    return [(MappingKey(key), item) for key, item in d.items()], list(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[GetAttrKey, Any]], type[Any]]:
    from rushlight.utils._pytree_paths import GetAttrKey

    return [(GetAttrKey(n), item) for n, item in zip(d._fields, d, strict=True)], type(d)


_tuple_flatten = _list_flatten
_odict_flatten = _ordereddict_flatten = _dict_flatten
_odict_unflatten = _ordereddict_unflatten
_tuple_flatten_with_keys = _list_flatten_with_keys

for _definition in (
    NodeDef(list, _list_flatten, _list_unflatten),
    NodeDef(tuple, _list_flatten, _tuple_unflatten),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(structseq, _namedtuple_flatten, _structseq_unflatten),
    NodeDef(deque, _deque_flatten, deque),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _dict_flatten_with_keys),
):
    SUPPORTED_NODES[_definition.type] = _definition


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a tree is one leaf.

    Example:
        >>> from rushlight.utils._pytree import tree_is_leaf
        >>> tree_is_leaf(1), tree_is_leaf([1])
        (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def _collect(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    node_type = _get_node_type(tree)
    node = SUPPORTED_NODES.get(node_type)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    items, context = node.flatten_fn(tree)
    return TreeSpec(node_type, context, [_collect(item, leaves, is_leaf) for item in items])


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its spec.

    Example:
        >>> from rushlight.utils._pytree import tree_flatten
        >>> tree_flatten({"a": 1, "b": (2, 3)})
        ([1, 2, 3], TreeSpec(dict, ['a', 'b'], [*,
          TreeSpec(tuple, None, [*,
            *])]))
    """
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a spec with these leaves; the reverse of tree_flatten."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: got {len(leaves)} leaves, but the spec has {treespec.num_leaves}."
        )
    return _build(iter(leaves), treespec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    items = [_build(leaves, child) for child in spec.children_specs]
    return SUPPORTED_NODES[spec.type].unflatten_fn(items, spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tensor_leaves(tree: Any) -> list[Tensor]:
    """The tensors among the leaves of a tree, from left to right."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments, those by position first."""
    return tree_leaves((args, kwargs))


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
    """A tree of func(leaf, ...) for the leaves of a tree and what others have in their places.

    Raises:
        ValueError: another tree lacks a place of the first.

    Example:
        >>> from rushlight.utils._pytree import tree_map
        >>> tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2})
        {'x': 3}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
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


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """For each leaf of a spec that of a smaller tree above it; None when they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    node_type = _get_node_type(tree)
    if node_type is not treespec.type:
        return None
    parts, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
    if len(parts) != treespec.num_children or context != treespec.context:
        return None
    result: list[Any] = []
    for part, child in zip(parts, treespec.children_specs, strict=True):
        leaves = _broadcast_to_and_flatten(part, child, is_leaf)
        if leaves is None:
            return None
        result += leaves
    return result


def __getattr__(name: str) -> Any:
    if name in __all__:
        from rushlight.utils import _pytree_classes, _pytree_paths, _pytree_specs

        homes = {"treespec": _pytree_specs, "register": _pytree_classes}
        return getattr(homes.get(name.partition("_")[0], _pytree_paths), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
