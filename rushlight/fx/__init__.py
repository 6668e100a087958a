"""torch.fx: programs as graphs that can be read, changed and run.

symbolic_trace calls a module with Proxies, which record what is done to them in a Graph. A
GraphModule runs a graph as generated Python. Nothing here computes: the ops do, when it is run.
"""

from __future__ import annotations

from rushlight import _later
from rushlight.fx import immutable_collections
from rushlight.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace
from rushlight.fx._wrapping import wrap
from rushlight.fx.graph import CodeGen, Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, has_side_effect, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


__getattr__ = _later.imports(
    __name__, ("experimental", "operator_schemas", "passes", "tensor_type")
)
