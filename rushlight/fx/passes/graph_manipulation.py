"""How large the values of a graph are, and other targets for its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rushlight import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):
    """Bytes of a node's result, and of it and the parameters of the module that it calls."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: str,
    old_target: Callable[..., Any] | str,
    new_op: str,
    new_target: Callable[..., Any] | str,
) -> None:
    """Gives the nodes that call one target another op and target; their arguments stay.

    Args:
        fx_module: gets a new graph.
        old_op, old_target: which nodes.
        new_op, new_target: what they become.

    Example:
        >>> from rushlight.fx.passes.graph_manipulation import replace_target_nodes_with
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.sin(x))
        >>> replace_target_nodes_with(
        ...     traced, "call_function", torch.sin, "call_function", torch.cos)
        >>> traced(torch.zeros(1))
        tensor([1.])
    """
    graph = Graph()
    values: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
        if node.op == old_op and node.target == old_target:
            values[node].op, values[node].target = new_op, new_target
    fx_module.graph = graph


def get_size_of_all_nodes(fx_module: GraphModule, args: Sequence[Tensor] | None = None) -> None:
    """Gives each node but the output an attribute size_bytes.

    Args:
        fx_module: a module in whose graph shapes are noted.
        args: what to run it with to note them; it is not run without.

    Raises:
        RuntimeError: if the result of a node is no tensor, or nothing is noted of it.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    node: Any
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Returns what ShapeProp noted about the result of a node.

    Raises:
        RuntimeError: if it noted nothing.
    """
    noted = node.meta.get("tensor_meta")
    if not isinstance(noted, TensorMetadata):
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation "
            "has run, and that its result is one tensor."
        )
    return noted


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Returns how many bytes the result of a node takes, and the parameters of what it calls.

    Raises:
        RuntimeError: if the result is no tensor, or ShapeProp has not run.

    Example:
        >>> from rushlight.fx.passes.graph_manipulation import get_size_of_all_nodes
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 2)))
        >>> get_size_of_all_nodes(traced, [torch.ones(1, 3)])
        >>> [node.size_bytes for node in traced.graph.find_nodes(op="call_module", target="0")]
        [size_bytes(output_size=8, total_size=40)]
    """
    noted = get_tensor_meta(node)
    count = 0
    if node.op == "call_module":
        called = fx_module.get_submodule(str(node.target))
        count = sum(parameter.numel() for parameter in called.parameters())
    output_size = noted.shape.numel() * noted.dtype.itemsize
    return size_bytes(output_size, output_size + count * noted.dtype.itemsize)
