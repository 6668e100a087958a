"""Notes in a graph what its nodes give, by running it without data."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a module node by node on fake tensors; node.meta["val"] is what a node gave.

    Args:
        module: a GraphModule.
        mode: makes tensors fake; one of its own, to which parameters count as fake, if None.

    Example:
        >>> from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3)))
        >>> FakeTensorProp(traced).propagate(torch.ones(4, 2)).shape
        torch.Size([4, 3])
        >>> traced.graph.output_node().meta["val"].shape
        torch.Size([4, 3])
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n: Node) -> Any:
        """Runs a node and notes its result, without history."""

        def noted(value: Any) -> Any:
            if isinstance(value, Tensor):
                return self._mode.from_tensor(value).detach()
            return value if isinstance(value, (int, float)) else None

        result = super().run_node(n)
        value = map_aggregate(result, noted)
        if value is not None:
            n.meta["val"] = value
        return result

    def propagate(self, *args: Any) -> Any:
        """Returns what the module gives for the fake tensors of some arguments."""
        faked = [self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*faked)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Returns what the module gives for arguments that are fake already."""
        with self._mode:
            return self.run(*args)
