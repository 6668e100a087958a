"""Where the patterns of a back end occur in a graph.

A pattern is compared from its end: (c, (b, a)) is the call of c with the result of b, whose input
is that of a. Functions are the same by their names, as the root and nn.functional have some in two
versions.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import rushlight as rl
from rushlight import fx
from rushlight.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
)
from rushlight.ao.quantization.observer import FixedQParamsObserver
from rushlight.ao.quantization.utils import MatchAllNode

__all__ = ["Match", "Patterns", "call_name", "dtypes_for", "key_of", "leaves"]

_OPERATORS: dict[Any, str] = {
    operator.add: "add",
    operator.iadd: "add",
    operator.mul: "mul",
    operator.imul: "mul",
    operator.sub: "sub",
    operator.isub: "sub",
    operator.matmul: "matmul",
    operator.floordiv: "floordiv",
}
_SYNONYMS = {
    "concat": "cat",
    "concatenate": "cat",
    "elu_": "elu",
    "hardswish_": "hardswish",
    "leaky_relu_": "leaky_relu",
    "relu_": "relu",
    "relu6_": "relu6",
}


def call_name(target: Any) -> str:
    """Returns the name by which functions are compared."""
    name = _OPERATORS.get(target) or getattr(target, "__name__", "")
    return _SYNONYMS.get(name, name)


def _key(item: Any) -> Any:
    """What a class, function or method name of a pattern is compared by."""
    return item if isinstance(item, type | str) else ("function", call_name(item))


def key_of(node: Any, root: fx.GraphModule) -> Any:
    """Returns what a node is compared by: the class, function or method name that it calls."""
    if not isinstance(node, fx.Node):
        return None
    if node.op == "call_module":
        return type(root.get_submodule(str(node.target)))
    if node.op == "call_function":
        home = getattr(node.target, "__module__", None) or ""
        is_known = node.target in _OPERATORS or home.partition(".")[0] == "rushlight"
        return ("function", call_name(node.target)) if is_known or not home else None
    return str(node.target) if node.op == "call_method" else None


@dataclass
class Match:
    """A pattern in a graph: `nodes` has the nested form of the pattern, from its end."""

    config: BackendPatternConfig
    nodes: Any

    @property
    def last(self) -> fx.Node:
        """The node whose result is the pattern's."""
        return self.nodes[0] if isinstance(self.nodes, tuple) else self.nodes

    @property
    def root(self) -> fx.Node:
        """The node that takes the pattern's input and names what is made of it."""
        if self.config._root_node_getter is not None:
            return self.config._root_node_getter(self.nodes)
        node = self.nodes
        while isinstance(node, tuple):
            node = node[-1]
        return node

    @property
    def extra_inputs(self) -> list[Any]:
        """Other inputs of the pattern than those of its root."""
        getter = self.config._extra_inputs_getter
        return [] if getter is None else getter(self.nodes)

    def inside(self) -> list[fx.Node]:
        """Returns the nodes that the pattern itself has, the last one first."""
        extra = set(self.extra_inputs)
        return [node for node in leaves(self.nodes) if node not in extra]


def leaves(nested: Any) -> list[Any]:
    """Returns the elements of tuples in tuples, one after the other."""
    if isinstance(nested, tuple):
        return [leaf for part in nested for leaf in leaves(part)]
    return [nested]


class Patterns:
    """The patterns of some configurations; longer ones go first."""

    def __init__(self, configs: Iterable[tuple[Any, BackendPatternConfig]]) -> None:
        self._by_end: dict[Any, list[tuple[Any, BackendPatternConfig]]] = {}
        for pattern, config in configs:
            end = pattern[0] if isinstance(pattern, tuple) else pattern
            self._by_end.setdefault(_key(end), []).append((pattern, config))
        for found in self._by_end.values():
            found.sort(key=lambda pair: -len(leaves(pair[0])))

    @classmethod
    def of(cls, backend: BackendConfig, is_wanted: Any) -> Patterns:
        """Returns those of a back end's configurations for which is_wanted(config) is true."""
        pairs = backend._pattern_complex_format_to_config.items()
        return cls((pattern, config) for pattern, config in pairs if is_wanted(config))

    def find(self, node: fx.Node, root: fx.GraphModule) -> Match | None:
        """Returns the longest pattern that ends in a node."""
        for pattern, config in self._by_end.get(key_of(node, root), ()):
            nodes = _compared(node, pattern, root, True)
            if nodes is not None:
                return Match(config, nodes)
        return None


def _compared(node: Any, pattern: Any, root: fx.GraphModule, is_last: bool) -> Any:
    """The nodes in the form of a pattern, None where they differ."""
    if pattern is MatchAllNode:
        return node
    if not isinstance(pattern, tuple):
        pattern = (pattern,)
    end, *before = pattern
    if key_of(node, root) != _key(end) or (not is_last and len(node.users) != 1):
        return None
    if not before:
        return node
    if len(node.args) < len(before):
        return None
    found = [_compared(a, p, root, False) for a, p in zip(node.args, before, strict=False)]
    return None if any(part is None for part in found) else (node, *found)


def dtypes_for(config: BackendPatternConfig, qconfig: Any) -> DTypeConfig | None:
    """Returns the dtypes of a configuration that a QConfig gives, None if it gives none of them."""
    activation, weight = qconfig.activation(), qconfig.weight()
    is_dynamic = bool(getattr(activation, "is_dynamic", False))
    results = None if is_dynamic else activation
    for dtypes in config.dtype_configs:
        wanted = dtypes.weight_dtype_with_constraints
        has_weight = wanted.dtype not in (None, rl.float32)
        if (
            bool(dtypes.is_dynamic) == is_dynamic
            and _fits(dtypes.input_dtype_with_constraints, activation)
            and _fits(dtypes.output_dtype_with_constraints, results)
            and (not has_weight or _fits(wanted, weight))
        ):
            return dtypes
    return None


def _fits(wanted: DTypeWithConstraints, observer: Any) -> bool:
    """Whether an observer, or None for floats, gives a dtype within its bounds."""
    if wanted.dtype is None:
        return True
    if (rl.float32 if observer is None else observer.dtype) is not wanted.dtype:
        return False
    watcher = getattr(observer, "activation_post_process", observer)
    lowest, highest = wanted.quant_min_lower_bound, wanted.quant_max_upper_bound
    if lowest is not None and highest is not None:
        low, high = getattr(watcher, "quant_min", None), getattr(watcher, "quant_max", None)
        if low is None or high is None or low < lowest or high > highest:
            return False
    if wanted.scale_min_lower_bound is not None:
        smallest = getattr(watcher, "eps", None)
        if smallest is None or float(smallest) < wanted.scale_min_lower_bound:
            return False
    if wanted.scale_exact_match is None or wanted.zero_point_exact_match is None:
        return True
    return isinstance(watcher, FixedQParamsObserver) and (
        float(watcher.scale) == wanted.scale_exact_match
        and int(watcher.zero_point) == wanted.zero_point_exact_match
    )
