"""The functions behind the layers.

Most are ops of the core, taken over from its table. Written here are those that read best as
compositions of other ops; they hold no state.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight import sigmoid as sigmoid
from rushlight import tanh as tanh
from rushlight.nn._attention import *  # noqa: F403
from rushlight.nn._attention import _canonical_mask as _canonical_mask
from rushlight.nn._attention import _none_or_dtype as _none_or_dtype
from rushlight.nn._ops import *  # noqa: F403
from rushlight.nn._pooling import *  # noqa: F403  after the ops, in the place of some
from rushlight.nn._vision import *  # noqa: F403

# Products and distances


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Returns the bilinear forms input1 @ weight[k] @ input2 + bias[k].

    Args:
        input1: (*, in1_features).
        input2: (*, in2_features).
        weight: (out_features, in1_features, in2_features).
        bias: (out_features).

    Returns:
        (*, out_features).

    Example:
        >>> x = torch.tensor([[1.0, 2.0]])
        >>> torch.nn.functional.bilinear(x, x, torch.eye(2).unsqueeze(0)).tolist()
        [[5.0]]
    """
    outs, ins1, ins2 = weight.shape
    if input1.shape[-1] != ins1 or input2.shape[-1] != ins2:
        raise RuntimeError(
            f"bilinear: inputs {tuple(input1.shape)} and {tuple(input2.shape)} have "
            f"{input1.shape[-1]} and {input2.shape[-1]} features, but weight "
            f"{tuple(weight.shape)} takes {ins1} and {ins2}."
        )
    columns = weight.permute(1, 0, 2).reshape(ins1, outs * ins2)
    forms = (input1 @ columns).unflatten(-1, (outs, ins2))  # (*, out, in2)
    result = (forms @ input2.unsqueeze(-1)).squeeze(-1)  # (*, out)
    return result if bias is None else result + bias


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Returns vectors divided by their norm: input / max(||input||_p, eps).

    Args:
        input: vectors along dim.
        p: order of the norm.
        dim: dimension, or dimensions, of the vectors' elements.
        eps: smallest norm to divide by.

    Example:
        >>> torch.nn.functional.normalize(torch.tensor([0.0, 4.0]), dim=0).tolist()
        [0.0, 1.0]
    """
    return input / input.norm(p, dim=dim, keepdim=True).clamp_min(eps)


# Nonlinearities


def softmin(input: Tensor, dim: int | None = None, dtype: rl.dtype | None = None) -> Tensor:
    """Returns the softmax of -input.

    Args:
        input: any shape.
        dim: the dimension along which the result sums to 1.
        dtype: dtype to convert to first.

    Example:
        >>> torch.nn.functional.softmin(torch.tensor([0.0, 200.0]), dim=0).tolist()
        [1.0, 0.0]
    """
    return (-input).softmax(dim, dtype=dtype)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Returns input where positive, and a slope times it elsewhere (Xu et al. 2015).

    Args:
        input: any shape.
        lower: smallest slope.
        upper: largest slope.
        training: whether each element draws its slope; otherwise it is the mean of the bounds.
        inplace: whether to overwrite input.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.25, 0.75).tolist()
        [-0.5, 2.0]
    """
    if training:
        slopes = rl.empty_like(input).uniform_(lower, upper)
    else:
        slopes = rl.full_like(input, (lower + upper) / 2)
    factors = slopes.masked_fill(input > 0, 1.0)
    return input.mul_(factors) if inplace else input * factors


# Losses


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(
        f"{reduction} is not a valid value for reduction. Use 'none', 'mean' or 'sum'."
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Returns input where target is 1, and max(0, margin - input) where it is -1.

    Args:
        input: distances of pairs, any shape.
        target: 1 or -1, of the same shape.
        margin: how large the input has to be where target is -1.
        reduction: "none", "mean" or "sum".

    Example:
        >>> x, y = torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0])
        >>> torch.nn.functional.hinge_embedding_loss(x, y, reduction="none").tolist()
        [0.5, 0.75]
    """
    loss = rl.where(target == 1, input, (margin - input).clamp_min(0))
    return _reduce(loss, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """Returns max(0, -target * (input1 - input2) + margin), where target is 1 or -1.

    Args:
        input1: scores, any shape.
        input2: scores to compare with.
        target: 1 if input1 should be larger, -1 if input2 should.
        margin: how far the inputs have to lie apart.
        reduction: "none", "mean" or "sum".

    Raises:
        RuntimeError: if the numbers of dimensions differ.

    Example:
        >>> one = torch.ones(1)
        >>> torch.nn.functional.margin_ranking_loss(one, 3 * one, one).item()
        2.0
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss: All input tensors should have same dimension but got sizes: "
            f"input1: {tuple(input1.shape)}, input2: {tuple(input2.shape)}, "
            f"target: {tuple(target.shape)}."
        )
    return _reduce((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """Returns 1 - cos(input1, input2) where target is 1, and max(0, cos - margin) where it is -1.

    Args:
        input1: (N, D) or (D).
        input2: the same shape.
        target: 1 or -1, (N) or ().
        margin: how large the cosine may be where target is -1.
        reduction: "none", "mean" or "sum".

    Raises:
        RuntimeError: if the shapes do not fit together.

    Example:
        >>> x, y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
        >>> torch.nn.functional.cosine_embedding_loss(x, y, torch.tensor(1.0)).item()
        1.0
    """
    if target.dim() > 1 or input1.dim() != target.dim() + 1 or input2.dim() != input1.dim():
        raise RuntimeError(
            f"cosine_embedding_loss: inputs {tuple(input1.shape)} and {tuple(input2.shape)} do not "
            f"fit target {tuple(target.shape)}. Two (N, D) take (N), and two (D) take ()."
        )
    cosine = rl.cosine_similarity(input1, input2, dim=-1)
    return _reduce(rl.where(target == 1, 1 - cosine, (cosine - margin).clamp_min(0)), reduction)
