"""Calls that a graph makes twice, made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import ops
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_BANNED = """
    bernoulli binomial dropout multinomial normal poisson rand rand_like randint randn randperm
    rrelu add_ div_ lerp_ mul_ pow_ relu_ sigmoid_ sub_ tanh_
"""


def get_CSE_banned_ops() -> set[Any]:
    """Returns operators whose calls are not alike: random ones and some that write in place."""
    return {getattr(ops.aten, name) for name in _BANNED.split()}


class CSEPass(PassBase):
    """Lets a graph make each call once that it makes with the same arguments.

    The graph must be one of functions without effects; operators that are not go into banned_ops.

    Args:
        banned_ops: operators, such as torch.ops.aten.rand, whose calls all stay.

    Example:
        >>> from rushlight.fx.passes.dialect.common.cse_pass import CSEPass
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.exp(x) + torch.exp(x))
        >>> print(CSEPass()(traced).graph_module.code.strip())
        def forward(self, x):
            exp = rushlight.exp(x);  x = None
            add = exp + exp;  exp = None
            return add
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Returns a new module, or the same where no call comes twice."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        made: dict[Any, Node] = {}
        for node in graph_module.graph.nodes:
            packet = getattr(node.target, "overloadpacket", node.target)
            stays = node.op in ("placeholder", "get_attr", "output") or packet in self.banned_ops
            look = None if stays else _look(node, copies.__getitem__)
            if look is not None and look in made:
                copies[node] = made[look]
                continue
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if look is not None:
                made[look] = copies[node]
        if len(graph.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph), True)


def _look(node: Node, copy_of: Callable[[Node], Node]) -> Any:
    """What two calls have in common that do the same; None where that cannot be compared."""

    def of(value: Any) -> Any:
        if isinstance(value, Node):
            return copy_of(value)
        if isinstance(value, (tuple, list)):
            return type(value), tuple(map(of, value))
        if isinstance(value, dict):
            return dict, tuple((key, of(item)) for key, item in value.items())
        if isinstance(value, slice):
            return slice, of((value.start, value.stop, value.step))
        return type(value), value

    look = node.op, node.target, of(node.args), of(node.kwargs)
    try:
        hash(look)
    except TypeError:
        return None
    return look
