"""Notes shapes and dtypes in a graph by running it once."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is noted about a tensor: node.meta["tensor_meta"]."""

    shape: rl.Size
    dtype: rl.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: rl.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is noted about a tensor.

    Args:
        result: the tensor.
        include_contiguity: whether to note the order of its elements in memory.
    """
    order = None
    if include_contiguity:
        orders = [rl.contiguous_format]
        orders += {4: [rl.channels_last], 5: [rl.channels_last_3d]}.get(result.dim(), [])
        order = next((o for o in orders if result.is_contiguous(memory_format=o)), None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), order, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a module node by node and notes the shapes, dtypes and strides of the results.

    Each node whose result is or holds tensors gets meta["tensor_meta"]; all get meta["type"], the
    class of the result.

    Args:
        gm: a GraphModule.

    Example:
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3)))
        >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(4, 2))
        >>> traced.graph.output_node().meta["tensor_meta"].shape
        torch.Size([4, 3])
    """

    def run_node(self, n: Node) -> Any:
        """Runs a node and notes what is known of its result."""
        result = super().run_node(n)
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        noted = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Returns what the module returns for some arguments, having noted shapes on the way."""
        return self.run(*args)
