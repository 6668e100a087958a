"""How the graph of a function and its gradients becomes two, for aot_autograd.

Invariant: the first graph returns the results and, after them, all values that the second one
reads; the second takes these values and the gradients of the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node

__all__ = ["default_partition", "min_cut_rematerialization_partition"]

BACKWARD = "is_backward"  # the partitioner_tag of nodes that came after the function had run


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[GraphModule, GraphModule]:
    """Returns the graph of the results and that of the gradients; nothing is computed twice.

    Args:
        joint_module: takes the arguments and, in placeholders called tangents, the gradients of the
            results; returns the results and the gradients of the arguments.
        num_fwd_outputs: how many of what it returns are results.
        options: accepted for PyTorch's sake, as _joint_inputs is.
    """
    graph = joint_module.graph
    returned = graph.output_node().args[0]
    assert isinstance(returned, Sequence)
    results, grads = returned[:num_fwd_outputs], returned[num_fwd_outputs:]
    inputs = graph.find_nodes(op="placeholder")
    tangents = [node for node in inputs if str(node.target).startswith("tangents")]
    primals = [node for node in inputs if node not in tangents]
    late = set(tangents)
    forward: list[Node] = []
    backward: list[Node] = []
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        is_late = node.meta.get("partitioner_tag") == BACKWARD
        if is_late or not late.isdisjoint(node.all_input_nodes):
            late.add(node)
            backward.append(node)
        else:
            forward.append(node)
    read = {node for user in backward for node in user.all_input_nodes}
    read.update(node for node in grads if isinstance(node, Node))
    attributes = [node for node in forward if node.op == "get_attr" and node in read]
    saved = [node for node in (*primals, *forward) if node in read and node.op != "get_attr"]
    return (
        _part(joint_module, primals, forward, (*results, *saved)),
        _part(joint_module, [*saved, *tangents], [*attributes, *backward], tuple(grads)),
    )


# PyTorch's computes values again where that saves memory.
min_cut_rematerialization_partition = default_partition


def _part(
    module: GraphModule, inputs: Iterable[Node], nodes: Iterable[Node], results: tuple[Any, ...]
) -> GraphModule:
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[each] if isinstance(each, Node) else each for each in results))
    return GraphModule(module, graph)
