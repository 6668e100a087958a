"""The base of passes over graphs, and what they return."""

from __future__ import annotations

from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass returns: the module, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase:
    """A pass over the graph of a module, with checks before and after it.

    Example:
        >>> class Negate(torch.fx.passes.infra.pass_base.PassBase):
        ...     def call(self, graph_module):
        ...         for node in graph_module.graph.find_nodes(op="call_function", target=torch.abs):
        ...             node.target = torch.neg
        ...         return torch.fx.passes.infra.pass_base.PassResult(graph_module, True)
        >>> changed = Negate()(torch.fx.symbolic_trace(lambda x: torch.abs(x))).graph_module
        >>> _ = changed.recompile()
        >>> changed(torch.tensor([2.0]))
        tensor([-2.])
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Returns what becomes of a module; None where it is not changed."""
        raise NotImplementedError(f"{type(self).__name__} must define call.")

    def requires(self, graph_module: GraphModule) -> None:
        """Raises an error if the pass cannot run on a module."""

    def ensures(self, graph_module: GraphModule) -> None:
        """Raises an error if the pass left a module as it must not be."""
