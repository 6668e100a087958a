"""Gradients that torch.ops.aten has under names of their own, such as convolution_backward.

Most are gradients of public functions, taken by autograd, so that there is one formula for both.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn._reduction import NAMES as REDUCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["BACKWARDS"]


def _pulled(
    function: Callable[..., Tensor],
    grad_output: Tensor,
    inputs: Sequence[Tensor | None],
    mask: Sequence[bool] | None = None,
) -> tuple[Tensor | None, ...]:
    """The gradients of a function by those of its inputs that the mask says; None for others."""
    with rl.enable_grad():
        given = [None if x is None else x.detach() for x in inputs]
        wanted = [
            x.requires_grad_()
            for x, is_wanted in zip(given, mask or [True] * len(given), strict=True)
            if x is not None and is_wanted
        ]
        result = function(*given)
    found = iter(rl.autograd.grad(result, wanted, grad_output) if wanted else ())
    return tuple(next(found) if x is not None and x.requires_grad else None for x in given)


def _of_one(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The gradient by one input: called with the gradient, the input and the other arguments."""

    def backward(grad_output: Tensor, self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _pulled(lambda x: function(x, *args, **kwargs), grad_output, [self])[0]

    return backward


def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """The gradients of convolution by its input, its weight and its bias."""
    channels = grad_output.shape[1]
    bias = weight.new_zeros(channels) if output_mask[2] else None
    options = (stride, padding, dilation, transposed, output_padding, groups)
    return _pulled(
        lambda x, w, b: rl.convolution(x, w, b, *options),
        grad_output,
        [input, weight, bias],
        output_mask,
    )


def embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    """The gradient of embedding by its weight; padding_idx is -1 for none."""
    weight = grad_output.new_zeros(num_weights, grad_output.shape[-1])
    options = {
        "padding_idx": None if padding_idx == -1 else padding_idx,
        "scale_grad_by_freq": scale_grad_by_freq,
    }
    return _of_one(lambda w: F.embedding(indices, w, **options))(grad_output, weight)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of max_pool2d by its input: each goes to the place that indices say."""
    flat = rl.zeros_like(self, memory_format=rl.contiguous_format).flatten(-2)
    flat.scatter_add_(-1, indices.flatten(-2), grad_output.flatten(-2))
    return flat.view(self.shape)


def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """The gradient of nll_loss by its input."""
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": REDUCTIONS[reduction]}
    loss = _of_one(lambda x: F.nll_loss(x, target, weight, **options))
    return loss(grad_output, self)


def _mse_loss(input: Tensor, target: Tensor, reduction: int) -> Tensor:
    return F.mse_loss(input, target, reduction=REDUCTIONS[reduction])


BACKWARDS: dict[str, Callable[..., Any]] = {
    "_adaptive_avg_pool2d_backward": lambda grad, input: _of_one(F.adaptive_avg_pool2d)(
        grad, input, grad.shape[-2:]
    ),
    "avg_pool2d_backward": _of_one(F.avg_pool2d),
    "avg_pool3d_backward": _of_one(F.avg_pool3d),
    "convolution_backward": convolution_backward,
    "embedding_dense_backward": embedding_dense_backward,
    "gelu_backward": _of_one(F.gelu),
    "hardsigmoid_backward": _of_one(F.hardsigmoid),
    "hardswish_backward": _of_one(F.hardswish),
    "hardtanh_backward": _of_one(F.hardtanh),
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
    "mish_backward": _of_one(F.mish),
    "mse_loss_backward": _of_one(_mse_loss),
    "nll_loss_backward": nll_loss_backward,
    "sigmoid_backward": lambda grad, output: grad * (output * (1 - output)).conj(),
    "silu_backward": _of_one(F.silu),
    "softplus_backward": _of_one(F.softplus),
    "tanh_backward": lambda grad, output: grad * (1 - output * output).conj(),
    "threshold_backward": lambda grad, input, threshold: rl.where(input > threshold, grad, 0),
}
