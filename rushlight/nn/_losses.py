"""The losses that read best in Python: those that call functions or take numbers for tensors.

nn.functional installs them; they hold no state. The others are ops of the core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable
from rushlight.nn import _ops as ops
from rushlight.nn._linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = [
    "gaussian_nll_loss",
    "linear_cross_entropy",
    "triplet_margin_with_distance_loss",
]


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise ValueError(
        f"{reduction} is not a valid value for reduction. Use 'none', 'mean' or 'sum'."
    )


@overridable
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Returns the negative log likelihood of targets under normal distributions.

    0.5 * (log(max(var, eps)) + (input - target)**2 / max(var, eps)) (Nix and Weigend 1994).

    Args:
        input: means, any shape.
        target: draws, of the same shape or one that broadcasts.
        var: variances: a number, the shape of input, or that without its last dim or with a last
            dim of 1.
        full: whether the constant 0.5 * log(2 * pi) is added.
        eps: smallest variance; the gradient does not see the limit.
        reduction: "none", "mean" or "sum".

    Raises:
        ValueError: if var has a negative element or does not fit input.

    Example:
        >>> x, y = torch.tensor([1.0]), torch.tensor([3.0])
        >>> torch.nn.functional.gaussian_nll_loss(x, y, torch.ones(1)).item()
        2.0
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry {var}.")
        var = rl.full_like(input, var)
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not _fits(tuple(input.shape), tuple(var.shape)):
            raise ValueError(
                f"gaussian_nll_loss: var is of incorrect size {tuple(var.shape)} for input "
                f"{tuple(input.shape)}. It has a variance for each element or one for each row."
            )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"{reduction} is not valid for gaussian_nll_loss. Use 'none', 'mean' or 'sum'."
        )
    if not var.is_meta and bool((var < 0).any()):
        raise ValueError("gaussian_nll_loss: var has negative entry/entries.")
    # The limit is put on a copy, so that var keeps the gradient 1 below it.
    limited = var.clone()
    with rl.no_grad():
        limited.clamp_(min=eps)
    losses = 0.5 * (limited.log() + (input - target) ** 2 / limited)
    if full:
        losses = losses + 0.9189385332046727
    return _reduced(losses, reduction)


def _fits(shape: tuple[int, ...], var: tuple[int, ...]) -> bool:
    """Whether variances have one size of 1 where the input has another, and agree elsewhere."""
    if len(shape) != len(var):
        return False
    return all(b in (a, 1) for a, b in zip(shape, var, strict=True)) and (
        sum(a != b for a, b in zip(shape, var, strict=True)) == 1
    )


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Returns max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d.

    Args:
        anchor: (N, *), or what distance_function takes.
        positive: what should lie close to anchor.
        negative: what should lie away from it.
        distance_function: d; pairwise_distance if None.
        margin: how much further away, positive.
        swap: whether negatives that lie closer to positive count by that distance.
        reduction: "none", "mean" or "sum".

    Raises:
        RuntimeError: if the numbers of dimensions differ.
        ValueError: if margin is not positive.

    Example:
        >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0]])
        >>> torch.nn.functional.triplet_margin_with_distance_loss(
        ...     a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1)
        ... ).item()
        2.0
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    distance = ops.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = rl.minimum(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0), reduction)


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Returns cross_entropy(linear(input, linear_weight, linear_bias), target).

    With options the logits are computed a part of the batch at a time and never kept, which saves
    most of the memory where there are many more classes than features. That needs targets that are
    classes, no label smoothing and a matrix as linear_weight; else options have no effect, with a
    warning. Such a result has no second derivative.

    Args:
        input: (N, in_features) or (in_features).
        linear_weight: (C, in_features), or (C, d1, ..., in_features) for a loss at many places.
        target: classes (N, d1, ...) or probabilities (N, C, d1, ...).
        linear_bias: (C, d1, ...).
        weight: factor of each class, (C).
        reduction: "none", "mean" or "sum".
        ignore_index: class that does not count; -100 if None. Not for probabilities.
        label_smoothing: share of the target that is spread evenly over all classes.
        options: how to split the batch; None computes all logits at once.

    Raises:
        RuntimeError: if shapes do not fit together.

    Example:
        >>> x, w = torch.zeros(1, 3), torch.zeros(2, 3)
        >>> loss = torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0]))
        >>> round(loss.item(), 4)
        0.6931
    """
    _check_linear(input, linear_weight, linear_bias)
    classes, places = linear_weight.shape[0], tuple(linear_weight.shape[1:-1])
    logits_shape = (*input.shape[:-1], classes, *places)
    if tuple(target.shape) == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        takes_parts = reduction in ("mean", "sum", "none") and label_smoothing == 0 and not places
        if takes_parts and target.dtype == rl.int64:
            return _by_parts(
                input, linear_weight, target, linear_bias, weight, reduction, ignored, options
            )
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in "
            "{'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, "
            f"out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
            f"target.dtype={target.dtype}, out_features={places}.",
            stacklevel=3,
        )
    matrix = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = ops.linear(input, matrix, bias).reshape(logits_shape)
    return ops.cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignored,
        label_smoothing=label_smoothing,
    )


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}"
        )
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )


def _by_parts(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    from rushlight.nn._linear_cross_entropy import ChunkedLinearCrossEntropy

    rows = input if input.dim() == 2 else input.unsqueeze(0)
    targets = target if input.dim() == 2 else target.unsqueeze(0)
    loss = ChunkedLinearCrossEntropy.apply(
        rows, linear_weight, linear_bias, targets, weight, reduction, ignore_index, options
    )
    return loss.squeeze(0) if input.dim() == 1 and reduction == "none" else loss
