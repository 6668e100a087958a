"""Parts of a graph by what they come from: the class of a module, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import torch_name

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes that come from one call of a module or function.

    Attributes:
        nodes: in the order of the graph.
        source: the class or function.
        input_nodes: what they take from outside.
        output_nodes: those that are used outside.
        params: those that are parameters and other attributes.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph,
    wanted_sources: Sequence[Any],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Any, list[SourcePartition]]:
    """Returns, for each wanted source that a graph has, the parts that come from it.

    A node comes from the innermost module in whose forward it was recorded, and from the function
    that it calls.

    Args:
        graph: as torch.export or a tracer recorded it.
        wanted_sources: classes of modules, functions, and names of functions.
        filter_fn: parts with a node for which it returns False are left out.

    Example:
        >>> from rushlight.fx.passes.utils.source_matcher_utils import get_source_partitions
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        >>> graph = torch.export.export(network, (torch.ones(1, 2),)).graph
        >>> parts = get_source_partitions(graph, [torch.nn.Linear])
        >>> parts[torch.nn.Linear][0].output_nodes
        [linear]
    """
    parts: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        for source in wanted_sources:
            place = _place_in(source, node)
            if place is not None:
                parts.setdefault(source, {}).setdefault(place, []).append(node)
                break
    return {
        source: [
            _partition(nodes, source)
            for nodes in places.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, places in parts.items()
    }


def _place_in(source: Any, node: Node) -> str | None:
    """What tells one call of a source from others, if a node comes from it."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        place, function = stack[-1]
        return place if function == source else None
    if node.op != "call_function":
        return None
    if isinstance(source, type):
        modules = list(node.meta.get("nn_module_stack", {}).items())
        call, (_, kind) = modules[-1] if modules else ("", ("", object))
        return call if _is_of(kind, source) else None
    # A recording has torch.add for a + b, and the op inside for a function written in Python.
    name = source if isinstance(source, str) else getattr(source, "__name__", None)
    return node.name if getattr(node.target, "__name__", None) == name else None


def _is_of(kind: Any, wanted: type) -> bool:
    if isinstance(kind, type):
        return issubclass(kind, wanted)
    return kind == torch_name(wanted)


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    computed = [node for node in nodes if node.op != "get_attr"]
    inputs = dict.fromkeys(
        arg
        for node in nodes
        for arg in node.all_input_nodes
        if arg not in inside and arg.op != "get_attr"
    )
    outputs = [node for node in computed if not inside.issuperset(node.users)]
    params = [node for node in nodes if node.op == "get_attr"]
    return SourcePartition(nodes, source, list(inputs), outputs, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Returns whether the second part uses what the first computes."""
    inside = set(subgraph2.nodes)
    return any(not inside.isdisjoint(node.users) for node in subgraph1.nodes)
