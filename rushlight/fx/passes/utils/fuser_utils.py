"""Nodes of a graph that become one call of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import getitem

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import in_order, stable_topological_sort

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Returns nodes of one graph so that each comes after those that it uses."""
    return in_order(nodes)


def validate_partition(partition: Iterable[Node]) -> bool:
    """Returns whether nodes may become one: no way out of them comes back."""
    return not comes_back(set(partition), lambda node: (node,))


def comes_back(inside: set[Node], group_of: Callable[[Node], Iterable[Node]]) -> bool:
    """Whether a way leaves a set of nodes and comes back to it.

    Args:
        inside: the set.
        group_of: for a node on the way, those that are passed together with it.
    """
    ahead = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while ahead:
        node = ahead.pop()
        if node in seen:
            continue
        for member in group_of(node):
            seen.add(member)
            if inside & member.users.keys():
                return True
            ahead += member.users
    return False


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: Sequence[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Makes a module of some nodes, which stay.

    Args:
        gm: whose nodes they are.
        nodes: the nodes, each after those that it uses.
        module_name: the name of the module's class.
        partition_lookup_table: accepted for PyTorch's sake.
        always_return_tuple: whether it returns a tuple where it has one result, too.

    Returns:
        The module, what it gets, and which of the nodes it returns.
    """
    graph = Graph()
    inside = set(nodes)
    used = (used for node in nodes for used in node.all_input_nodes)
    inputs = tuple(dict.fromkeys(node for node in used if node not in inside))
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name, type_expr=node.type)
        copies[node].meta = dict(node.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in outputs)
    graph.output(results if len(results) != 1 or always_return_tuple else results[0])
    graph.lint()
    return GraphModule(gm, graph, class_name=module_name), inputs, tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
) -> GraphModule:
    """Puts the call of a module into the graph, behind the nodes that it stands for.

    Args:
        gm: the whole.
        sub_gm: the module, which gets the name of its class.
        orig_inputs: what it gets.
        orig_outputs: what it returns, whose uses become uses of the call.

    Returns:
        The whole.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    places = {node: place for place, node in enumerate(gm.graph.nodes)}
    last = max((*orig_inputs, *orig_outputs), key=places.__getitem__)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, args=orig_inputs)
    (result,) = (node.args[0] for node in sub_gm.graph.nodes if node.op == "output")
    if not isinstance(result, tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    before = call
    for place, output in enumerate(orig_outputs):
        with gm.graph.inserting_after(before):
            before = gm.graph.call_function(getitem, (call, place))
        output.replace_all_uses_with(before, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: Sequence[Node]) -> GraphModule:
    """Erases nodes, of which each comes after those that it uses; returns the module."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)
    return gm


def fuse_by_partitions(
    gm: GraphModule,
    partitions: Sequence[Iterable[Node]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Makes each of several sets of nodes one call of a module.

    Args:
        gm: the module whose graph it is.
        partitions: the sets. No way out of one may come back to it.
        prefix: what the names of the modules begin with.
        always_return_tuple: whether they return tuples where they have one result, too.

    Returns:
        The module.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x * 2).exp())
        >>> _, mul, relu, *_ = traced.graph.nodes
        >>> from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions
        >>> print(fuse_by_partitions(traced, [[mul, relu]]).code.strip())
        def forward(self, x):
            fused_0 = self.fused_0(x);  x = None
            exp = fused_0.exp();  fused_0 = None
            return exp
    """
    for number, partition in enumerate(partitions):
        nodes = in_order(partition)
        if not validate_partition(nodes):
            raise AssertionError(f"Invalid partition, a way out of it comes back: {nodes}")
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, fused, inputs, outputs)
        erase_nodes(gm, nodes)
        stable_topological_sort(gm)
    gm.graph.lint()
    gm.recompile()
    return gm
