"""The functions of torch that torch.nn.functional has under the same names with other arguments.

They keep PyTorch's order of arguments, in which its own layers call them, and its numbers for
reductions: 0 for none, 1 for the mean, 2 for the sum. Arguments that choose cuDNN are ignored.
Those that begin with an underscore are inner names that libraries call.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight._overridable import overridable
from rushlight.nn import functional as F
from rushlight.nn._reduction import NAMES as REDUCTIONS
from rushlight.nn._scaled_products import _scaled_mm as _scaled_mm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight import Generator


# Normalization


@overridable
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Returns nn.functional.batch_norm of the same arguments in another order."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@overridable
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Returns nn.functional.instance_norm of the same arguments in another order."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@overridable
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Returns nn.functional.layer_norm.

    Example:
        >>> torch.layer_norm(torch.tensor([1.0, 3.0]), (2,), eps=0.0)
        tensor([-1.,  1.])
    """
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


@overridable
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Returns nn.functional.group_norm."""
    return F.group_norm(input, num_groups, weight, bias, eps)


@overridable
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns batch_norm, and in training the mean and 1 / sqrt(var + eps) of each channel."""
    result = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return result, input.new_empty(0), input.new_empty(0)
    others = [d for d in range(input.dim()) if d != 1]
    mean, scale = _statistics(input, others, eps)
    return result, mean, scale


@overridable
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns layer_norm, the means and 1 / sqrt(var + eps), with sizes 1 for the dims summed."""
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    mean, scale = _statistics(input, dims, eps, keepdim=True)
    return F.layer_norm(input, normalized_shape, weight, bias, eps), mean, scale


@overridable
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns group_norm of an input of N * C * HxW elements, the means and 1 / sqrt(var + eps).

    The latter are of shape (N, group).
    """
    grouped = input.reshape(N, group, C // group * HxW)
    mean, scale = _statistics(grouped, [2], eps)
    return F.group_norm(input, group, weight, bias, eps), mean, scale


def _statistics(
    input: Tensor, dims: list[int], eps: float, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    wide = input.float() if input.itemsize == 2 else input
    variance, mean = rl.var_mean(wide, dims, correction=0, keepdim=keepdim)
    return mean, (variance + eps).rsqrt()


@overridable
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Returns the norms of the slices at each index of one dim, with sizes 1 for all others.

    Args:
        v: any shape.
        pow: the p of the norm.
        dim: the dim that is kept; -1 for the norm of all elements.

    Example:
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 2.0]])).tolist()
        [[5.0], [2.0]]
    """
    if dim == -1:
        return v.norm(pow)
    shape = [size if d == dim else 1 for d, size in enumerate(v.shape)]
    return v.transpose(0, dim).reshape(v.shape[dim], -1).norm(pow, 1).view(shape)


# Dropout


@overridable
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Returns nn.functional.alpha_dropout."""
    return F.alpha_dropout(input, p, train)


@overridable
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Returns nn.functional.feature_alpha_dropout."""
    return F.feature_alpha_dropout(input, p, train)


@overridable
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Returns nn.functional.rrelu."""
    return F.rrelu(input, lower, upper, training)


@overridable
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Does nn.functional.rrelu in place."""
    return F.rrelu(input, lower, upper, training, True)


# Losses


@overridable
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """Returns nn.functional.kl_div."""
    return F.kl_div(input, target, reduction=REDUCTIONS[reduction], log_target=log_target)


@overridable
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Returns nn.functional.margin_ranking_loss."""
    return F.margin_ranking_loss(
        input1, input2, target, margin=margin, reduction=REDUCTIONS[reduction]
    )


@overridable
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """Returns nn.functional.hinge_embedding_loss."""
    return F.hinge_embedding_loss(input, target, margin=margin, reduction=REDUCTIONS[reduction])


@overridable
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Returns nn.functional.cosine_embedding_loss."""
    return F.cosine_embedding_loss(
        input1, input2, target, margin=margin, reduction=REDUCTIONS[reduction]
    )


@overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """Returns nn.functional.triplet_margin_loss."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=REDUCTIONS[reduction]
    )


@overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Returns nn.functional.ctc_loss."""
    how = REDUCTIONS[reduction]
    lengths: tuple[Any, Any] = (input_lengths, target_lengths)
    return F.ctc_loss(log_probs, targets, *lengths, blank, how, zero_infinity)


@overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """Returns nn.functional.binary_cross_entropy_with_logits."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos_weight
    )


@overridable
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Returns nn.functional.poisson_nll_loss."""
    return F.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction]
    )


# Others


@overridable
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns the rows of weight that indices name; see nn.functional.embedding.

    Args:
        weight: (rows, features).
        indices: int64, any shape.
        padding_idx: the row that gets no gradient; none if -1.
        scale_grad_by_freq: whether a row's gradient is divided by how often it is named.
        sparse: must be False.

    Example:
        >>> torch.embedding(torch.tensor([[1.0], [2.0]]), torch.tensor([1, 0])).tolist()
        [[2.0], [1.0]]
    """
    padding = None if padding_idx == -1 else padding_idx
    return F.embedding(
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


@overridable
def adaptive_max_pool1d(input: Tensor, output_size: int | tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Returns the maxima of nn.functional.adaptive_max_pool1d and their places."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


@overridable
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Returns the convolution of nn.functional that the dims of weight and `transposed` name.

    Raises:
        NotImplementedError: if there is none for so many dims.
    """
    name = f"conv{'_transpose' * transposed}{weight.dim() - 2}d"
    function = getattr(F, name, None)
    if function is None:
        raise NotImplementedError(
            f"convolution: weight has shape {tuple(weight.shape)}, and there is no {name}."
        )
    stride, padding, dilation = tuple(stride), tuple(padding), tuple(dilation)
    if transposed:
        more = tuple(output_padding)
        return function(input, weight, bias, stride, padding, more, groups, dilation)
    return function(input, weight, bias, stride, padding, dilation, groups)


def _grouped_mm(
    input: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: rl.dtype | None = None,
) -> Tensor:
    """Returns nn.functional.grouped_mm."""
    return F.grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: rl.dtype
) -> Tensor:
    """Returns the gradient of softmax's input, from its result and the gradient of that."""
    weighted = grad_output * output
    return (weighted - output * weighted.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: rl.dtype
) -> Tensor:
    """Returns the gradient of log_softmax's input, from its result and the gradient of that."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Returns the sizes of a tensor as int64."""
    return rl.tensor(input.shape, dtype=rl.int64)
