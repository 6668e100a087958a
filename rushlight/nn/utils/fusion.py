"""Batch norm that no longer learns, folded into the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

M = TypeVar("M", bound=Module)

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: M, bn: _BatchNorm, transpose: bool = False) -> M:
    """Returns a convolution that does what a convolution and a batch norm after it do.

    Args:
        conv: the convolution, in evaluation mode.
        bn: the batch norm with running statistics, in evaluation mode.
        transpose: whether the convolution is a transposed one.

    Raises:
        AssertionError: if one is in training mode, or the batch norm has no running statistics.

    Example:
        >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> fused = torch.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = torch.randn(1, 1, 4, 4)
        >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-5)
        True
    """
    fused: Any = _copied(conv, bn)
    statistics: tuple[Any, ...] = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *statistics, transpose=transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of a convolution with a batch norm folded into it.

    Args:
        conv_w: the convolution's weight, (out, in, *kernel), or (in, out, *kernel) with transpose.
        conv_b: its bias; None is 0.
        bn_rm: the running mean.
        bn_rv: the running variance.
        bn_eps: what is added to the variance.
        bn_w: the batch norm's factor; None is 1.
        bn_b: the batch norm's bias; None is 0.
        transpose: whether the convolution is a transposed one.

    Example:
        >>> one = torch.ones(1)
        >>> weight, bias = torch.nn.utils.fuse_conv_bn_weights(
        ...     torch.ones(1, 1, 1), None, one, one, 0.0, 3 * one, None)
        >>> weight.item(), bias.item()
        (3.0, -3.0)
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: M, bn: _BatchNorm) -> M:
    """Returns a linear layer that does what a linear layer and a batch norm after it do.

    Args:
        linear: the linear layer, in evaluation mode.
        bn: the batch norm with running statistics, in evaluation mode.

    Raises:
        AssertionError: if one is in training mode, the batch norm has no running statistics, or
            its size is neither that of the layer's outputs nor 1.

    Example:
        >>> linear, bn = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
        >>> fused = torch.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = torch.randn(4, 2)
        >>> torch.allclose(fused(x), bn(linear(x)), atol=1e-5)
        True
    """
    fused: Any = _copied(linear, bn)
    if bn.num_features not in (fused.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={fused.out_features} and bn.num_features={bn.num_features}"
        )
    statistics: tuple[Any, ...] = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *statistics)
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of a linear layer with a batch norm folded into it.

    Args:
        linear_w: the layer's weight, (out, in).
        linear_b: its bias; None is 0.
        bn_rm: the running mean.
        bn_rv: the running variance.
        bn_eps: what is added to the variance.
        bn_w: the batch norm's factor; None is 1.
        bn_b: the batch norm's bias; None is 0.

    Example:
        >>> one = torch.ones(1)
        >>> weight, bias = torch.nn.utils.fuse_linear_bn_weights(
        ...     torch.ones(1, 2), one, one, one, 0.0, 3 * one, one)
        >>> weight.tolist(), bias.tolist()
        ([[3.0, 3.0]], [1.0])
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _copied(layer: M, bn: _BatchNorm) -> M:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return copy.deepcopy(layer)


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    factor: Tensor | None,
    shift: Tensor | None,
    shape: list[int],
) -> tuple[Parameter, Parameter]:
    """Scales the outputs, which lie along the dim of size -1 in shape, and moves them."""
    scale = rl.rsqrt(variance + eps)
    if factor is not None:
        scale = scale * factor
    moved = (-mean if bias is None else bias - mean) * scale
    if shift is not None:
        moved = moved + shift
    bias_dtype = weight.dtype if bias is None else bias.dtype
    scaled = (weight * scale.reshape(shape)).to(weight.dtype)
    needs_grad = bias is not None and bias.requires_grad
    return Parameter(scaled, weight.requires_grad), Parameter(moved.to(bias_dtype), needs_grad)
