"""Batch norm over the batches of several processes: what they tell each other, the gradient."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight import distributed as dist
from rushlight.autograd.function import Function, once_differentiable

__all__ = ["SyncedBatchNorm", "joint_statistics"]


def _per_channel(values: Tensor, ndim: int) -> Tensor:
    """(C) as (C, 1, ...), to meet (N, C, ...)."""
    return values.view(-1, *(1 for _ in range(ndim - 2)))


def _all_but_channel(input: Tensor) -> list[int]:
    return [d for d in range(input.dim()) if d != 1]


def joint_statistics(input: Tensor, group: Any) -> tuple[Tensor, Tensor, float]:
    """Returns mean and biased variance of each channel over processes, and the number of values.

    Args:
        input: (N, C, *), whose N may differ between processes and may be 0.
        group: the processes.
    """
    channels = input.size(1)
    x = input.detach()
    x = x if x.dtype is rl.float64 else x.float()
    count = x.numel() // channels
    own = x.new_zeros(2 * channels + 1)  # mean, variance, count
    if count:
        var, mean = rl.var_mean(x, _all_but_channel(x), correction=0)
        own = rl.cat([mean, var, own.new_tensor([count])])
    parts = [rl.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, own, group)
    means, variances, counts = rl.stack(parts).split([channels, channels, 1], 1)
    total = counts.sum().item()
    weights = counts / max(total, 1)
    # Chan et al. 1979: no difference of large sums, which would lose digits.
    mean = (weights * means).sum(0)
    var = (weights * (variances + (means - mean).square())).sum(0)
    return mean, var, total


class SyncedBatchNorm(Function):
    """(x - mean) / sqrt(var + eps) * weight + bias, where mean and var came from all processes."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        count: float,
        eps: float,
        group: Any,
    ) -> Tensor:
        output, _, rstd = _C._batch_norm(input, weight, bias, mean, var, False, 0.0, eps)
        ctx.save_for_backward(input, weight, mean, rstd)
        ctx.count, ctx.group, ctx.has_bias = count, group, bias is not None
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """With z = (x - mean) * rstd, sums over the values of a channel of all processes:

        dx = weight * rstd * (g - sum(g) / count - z * sum(g * z) / count)

        (Ioffe and Szegedy 2015). The gradients of weight and bias are sums over this process alone,
        as those of other parameters are.
        """
        input, weight, mean, rstd = ctx.saved_tensors
        ndim, dims = input.dim(), _all_but_channel(input)
        g = grad.to(mean.dtype)
        z = (input - _per_channel(mean, ndim)) * _per_channel(rstd, ndim)
        sums = rl.stack([g.sum(dims), (g * z).sum(dims)])  # (2, C)
        grad_bias, grad_weight = sums.clone() if weight is not None else (None, None)
        grad_input = None
        if ctx.needs_input_grad[0]:
            dist.all_reduce(sums, group=ctx.group)
            sum_g, sum_gz = (_per_channel(total, ndim) for total in sums / ctx.count)
            scale = rstd if weight is None else rstd * weight
            grad_input = (g - sum_g - z * sum_gz) * _per_channel(scale, ndim)
            grad_input = grad_input.to(input.dtype)
        return grad_input, grad_weight, grad_bias if ctx.has_bias else None, *(None,) * 5
