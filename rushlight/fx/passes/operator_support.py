"""Which nodes a back end takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

Modules = Mapping[str, nn.Module]
IsNodeSupported = Callable[[Modules, Node], bool]

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]


class OperatorSupportBase(ABC):
    """Base class of what says which nodes are taken."""

    @abstractmethod
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Returns whether a node is taken."""


class OperatorSupport(OperatorSupportBase):
    """Takes the calls of a table.

    Args:
        support_dict: by the name of what is called, as get_node_target returns it, None for any
            arguments; or a pair of the dtypes that arguments may have, one tuple for each argument
            in order, and the same by keyword. They are looked up in node.meta["val"] of arguments.
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        """Returns whether a node is taken. All that are no calls are."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        by_place, by_name = dtypes
        pairs = [*zip(node.args, by_place, strict=False)]
        pairs += [(node.kwargs.get(name), allowed) for name, allowed in by_name.items()]
        return all(dtype_of(value) in allowed for value, allowed in pairs)


def dtype_of(argument: Any) -> rl.dtype | None:
    """The dtype of what a node returns, where it was noted."""
    meta = getattr(argument, "meta", {})
    noted = meta.get("val", meta.get("tensor_meta"))
    return getattr(noted, "dtype", None)


class _Function(OperatorSupportBase):
    def __init__(self, function: IsNodeSupported) -> None:
        self._function = function

    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Returns what takes the nodes for which a function returns True."""
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Returns what takes the nodes that all of several take."""
    return _Function(lambda modules, n: all(s.is_node_supported(modules, n) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Returns what takes the nodes that one of several takes."""
    return _Function(lambda modules, n: any(s.is_node_supported(modules, n) for s in op_support))


class OpSupports:
    """What takes all nodes but some."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: rl.dtype) -> OperatorSupportBase:
        """Returns what takes nodes none of whose arguments is of a dtype."""
        return _Function(lambda modules, n: all(dtype_of(a) != dtype for a in n.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Returns what takes nodes that have none of these names."""
        return _Function(lambda modules, n: n.name not in disallow_set)
