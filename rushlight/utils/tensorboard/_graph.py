"""The ops of a module as the graph that TensorBoard shows.

An op stands in the group of the module whose parameters it uses.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import ParseDict
from tensorboardX.proto.graph_pb2 import GraphDef  # pyright: ignore[reportAttributeAccessIssue]

from rushlight import nn
from rushlight.export._program import record_program
from rushlight.fx.node import Node


def graph_of(model: nn.Module, inputs: Any) -> GraphDef:
    """Runs a module on an example of its inputs and returns the ops that it calls."""
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    program = record_program(model, args, None, lambda how, site: None)
    root = type(model).__name__
    names: dict[Node, str] = {}
    made = []
    for node in program.graph.nodes:
        names[node] = _name(node, root)
        op = {"placeholder": "IO Node", "get_attr": "Parameter", "output": "IO Node"}.get(node.op)
        made.append(
            {
                "name": names[node],
                "op": op or getattr(node.target, "__name__", str(node.target)),
                "input": [names[source] for source in node.all_input_nodes],
                "attr": _shapes(node),
            }
        )
    return ParseDict({"node": made, "versions": {"producer": 22}}, GraphDef())


def _name(node: Node, root: str) -> str:
    if node.op == "placeholder":
        return f"input/{node.name}"
    if node.op == "output":
        return "output/output"
    if node.op == "get_attr":
        return "/".join((root, *str(node.target).split(".")))
    owners = [str(n.target).split(".")[:-1] for n in node.all_input_nodes if n.op == "get_attr"]
    common = []
    for parts in zip(*owners, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "/".join((root, *common, node.name))


def _shapes(node: Node) -> dict[str, Any]:
    """What TensorBoard writes on the edges; nothing for several results."""
    shape = getattr(node.meta.get("tensor_meta"), "shape", None)
    if shape is None:
        return {}
    dims = [{"size": size} for size in shape]
    return {"_output_shapes": {"list": {"shape": [{"dim": dims}]}}}
