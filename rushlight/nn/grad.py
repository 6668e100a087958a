"""The gradients of convolutions, as functions of their own."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import _C, Tensor
from rushlight.nn.modules.utils import _ntuple

Sizes = int | Sequence[int]


def _input_grad(
    dims: int,
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    steps, around, gaps = map(_ntuple(dims), (stride, padding, dilation))
    size = list(input_size)[-dims:]
    grad = _C._conv_input(grad_output, weight, size, steps, around, around, gaps, groups)
    return _checked("input_size", input_size, grad)


def _weight_grad(
    dims: int,
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    steps, around, gaps = map(_ntuple(dims), (stride, padding, dilation))
    kernel = list(weight_size)[-dims:]
    weight, _ = _C._conv_weight(
        input, grad_output, kernel, steps, around, around, gaps, groups, False
    )
    return _checked("weight_size", weight_size, weight)


def _checked(name: str, wanted: Sequence[int], grad: Tensor) -> Tensor:
    if tuple(wanted) != tuple(grad.shape):
        raise RuntimeError(
            f"nn.grad: {name} is {tuple(wanted)}, but the other tensors and groups make it "
            f"{tuple(grad.shape)}."
        )
    return grad


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv1d by its input.

    Args:
        input_size: the input's shape, (N, in_channels, L).
        weight: (out_channels, in_channels / groups, kernel).
        grad_output: the gradient of the result, (N, out_channels, L_out).
        stride, padding, dilation, groups: as the convolution has them.

    Raises:
        RuntimeError: if the shapes do not fit each other.

    Example:
        >>> weight, grad = torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 1, 2)
        >>> torch.nn.grad.conv1d_input((1, 1, 3), weight, grad)
        tensor([[[1., 3., 2.]]])
    """
    return _input_grad(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv1d by its weight, of shape weight_size; see conv1d_input.

    Example:
        >>> x, grad = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.ones(1, 1, 2)
        >>> torch.nn.grad.conv1d_weight(x, (1, 1, 2), grad)
        tensor([[[3., 5.]]])
    """
    return _weight_grad(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv2d by its input, of shape input_size; see conv1d_input."""
    return _input_grad(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv2d by its weight, of shape weight_size; see conv1d_input."""
    return _weight_grad(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv3d by its input, of shape input_size; see conv1d_input."""
    return _input_grad(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of conv3d by its weight, of shape weight_size; see conv1d_input."""
    return _weight_grad(3, input, weight_size, grad_output, stride, padding, dilation, groups)
