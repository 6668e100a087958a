"""What a graph computes from its attributes alone, computed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import getitem
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.nn import Module, Parameter, ParameterList

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module that computes what depends on attributes alone when it is first called.

    Args:
        root: has the attributes.
        graph: what is done with the results, which are attributes too.
        const_subgraph: what depends on attributes alone.
        fx_const_folded_attrs_name: the name of the attribute that its results become.
        device_for_folded_attrs: where integers among the results go.
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else GraphModule(root, const_subgraph)
        )
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes what depends on attributes alone; a call does that too."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("run_folding: it has been run.")
        self.has_folding_been_run = True
        results = self.const_subgraph_module()
        if isinstance(results, tuple):
            folded = ParameterList([self._parameter(result) for result in results])
        else:
            folded = self._parameter(results)
        setattr(self, self.fx_const_folded_attrs_name, folded)

    def _parameter(self, result: Any) -> Parameter:
        if isinstance(result, Tensor):
            return Parameter(result.detach().clone(), requires_grad=result.requires_grad)
        number = rl.tensor([float(result)], device=self.device_for_folded_attrs)
        return Parameter(number, requires_grad=False)


def get_unique_attr_name_in_module(mod_traced: Module, name: str) -> str:
    """Returns a name like one, that a module has no attribute of.

    Example:
        >>> from rushlight.fx.experimental.const_fold import get_unique_attr_name_in_module
        >>> get_unique_attr_name_in_module(torch.nn.Linear(2, 3), "weight")
        'weight_1'
    """
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        base, _, number = name.rpartition("_")
        name = f"{base}_{int(number) + 1}" if base and number.isdigit() else f"{name}_1"
    return name


def split_const_subgraphs(
    module: Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """Returns a module that does the same, but computes what depends on attributes alone once.

    Args:
        module: a module, which is traced if it has no graph.
        skip_folding_node_fn: says of nodes whether they are computed anew each time.
        device_for_folded_attrs: where integers that are computed go.

    Example:
        >>> from rushlight.fx.experimental.const_fold import split_const_subgraphs
        >>> class Scaled(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = torch.nn.Parameter(torch.ones(2))
        ...     def forward(self, x):
        ...         return x * self.weight.exp()
        >>> folded = split_const_subgraphs(Scaled())
        >>> print(folded.code.strip())
        def forward(self, x):
            _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
            mul = x * _fx_const_folded_attrs;  x = _fx_const_folded_attrs = None
            return mul
        >>> folded(torch.ones(2))
        tensor([2.7183, 2.7183], grad_fn=<MulBackward0>)
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    known: set[Node] = set()
    for node in traced.graph.nodes:
        is_known = node.op == "get_attr" or known.issuperset(node.all_input_nodes)
        if is_known and not node.is_impure() and not (skip_folding_node_fn or _never)(node):
            known.add(node)
    folded = [
        node
        for node in traced.graph.nodes
        if node in known and node.op != "get_attr" and not known.issuperset(node.users)
    ]
    make: Any = FoldedGraphModule  # which is of a class of its own, as each GraphModule
    if not folded:
        return make(traced, traced.graph)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(traced, name, Parameter() if len(folded) == 1 else ParameterList())
    return make(
        traced,
        _rest(traced.graph, known, folded, name),
        _folded(traced.graph, known, folded),
        name,
        device_for_folded_attrs,
    )


def _never(node: Node) -> bool:
    return False


def _folded(whole: Graph, known: set[Node], results: list[Node]) -> Graph:
    """The graph that computes what is known."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in whole.nodes:
        if node in known:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    made = tuple(copies[node] for node in results)
    graph.output(made[0] if len(made) == 1 else made)
    graph.eliminate_dead_code()
    return graph


def _rest(whole: Graph, known: set[Node], folded: list[Node], name: str) -> Graph:
    """The graph that computes the rest, with what is known from an attribute."""
    graph = Graph()
    attribute = graph.get_attr(name)
    copies = {folded[0]: attribute}
    if len(folded) > 1:
        for place, node in enumerate(folded):
            copies[node] = graph.call_function(getitem, (attribute, place))
    for node in copies:
        copies[node].meta = dict(node.meta)
    for node in whole.nodes:
        if node not in known or node.op == "get_attr":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.eliminate_dead_code()
    return graph
