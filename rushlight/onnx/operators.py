"""Shapes as tensors, for programs that keep them so in recordings."""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """Returns the shape of a tensor as a tensor.

    Example:
        >>> torch.onnx.operators.shape_as_tensor(torch.zeros(2, 3))
        tensor([2, 3])
    """
    return rl.tensor(x.shape, dtype=rl.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Returns a tensor in the shape that another one says.

    Example:
        >>> torch.onnx.operators.reshape_from_tensor_shape(torch.zeros(6), torch.tensor([2, 3]))
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    return x.reshape(shape.tolist())
