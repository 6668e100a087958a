"""What passes need to know of nodes, and graphs put in order again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from rushlight import nn
from rushlight.fx._naming import qualified_name
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node

__all__ = [
    "CALLABLE_NODE_OPS",
    "get_node_target",
    "in_order",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def torch_name(function: Any) -> str:
    """The qualified name of a function or class as PyTorch writes it: torch.relu, _operator.add."""
    name = qualified_name(function)
    if name.startswith("operator."):
        return f"_{name}"
    return f"torch{name.removeprefix('rushlight')}" if name.startswith("rushlight.") else name


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """Returns what a node calls: the class of a module, a function, or the name of a method.

    Args:
        submodules: the modules by their paths.
        node: a call.

    Example:
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> call = list(traced.graph.nodes)[1]
        >>> torch.fx.passes.tools_common.get_node_target(dict(traced.named_modules()), call)
        'torch.nn.modules.activation.ReLU'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {sorted(CALLABLE_NODE_OPS)}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        return torch_name(type(submodules[target]))
    return torch_name(target) if node.op == "call_function" else str(target)


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Returns nodes of one graph so that each comes after those that it uses.

    Raises:
        AssertionError: if nodes use each other in a circle.
    """
    nodes = list(nodes)
    among = set(nodes)
    order: list[Node] = []
    placed: set[Node] = set()
    waiting: dict[Node, list[Node]] = {}  # by one of what they wait for
    for first in nodes:
        ready = [first]
        while ready:
            node = ready.pop()
            missing = (n for n in node.all_input_nodes if n in among and n not in placed)
            awaited = next(missing, None)
            if awaited is not None:
                waiting.setdefault(awaited, []).append(node)
                continue
            order.append(node)
            placed.add(node)
            ready += reversed(waiting.pop(node, []))
    if waiting:
        raise AssertionError("topological sort failed: the nodes use each other in a circle.")
    return order


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Moves nodes that come too early behind what they use; returns the module.

    Raises:
        AssertionError: if nodes use each other in a circle.
    """
    for before, node in pairwise(in_order(gm.graph.nodes)):
        before.append(node)
    return gm


legalize_graph = stable_topological_sort
