"""The functions behind the layers.

Most are ops of the core, taken over from its table. Written here are those that read best as
compositions of other ops; they hold no state.
"""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight import Tensor, _later
from rushlight import sigmoid as sigmoid
from rushlight import tanh as tanh
from rushlight._overridable import overridable
from rushlight.nn import _reduction
from rushlight.nn._attention import *  # noqa: F403
from rushlight.nn._attention import _canonical_mask as _canonical_mask
from rushlight.nn._attention import _in_projection as _in_projection
from rushlight.nn._attention import _in_projection_packed as _in_projection_packed
from rushlight.nn._attention import _mha_shape_check as _mha_shape_check
from rushlight.nn._attention import _none_or_dtype as _none_or_dtype
from rushlight.nn._embedding_bag import embedding_bag as embedding_bag
from rushlight.nn._losses import *  # noqa: F403
from rushlight.nn._ops import *  # noqa: F403
from rushlight.nn._ops import leaky_relu, linear
from rushlight.nn._pooling import *  # noqa: F403  after the ops, in the place of some
from rushlight.nn._pooling_places import *  # noqa: F403
from rushlight.nn._products import *  # noqa: F403
from rushlight.nn._scaled_products import *  # noqa: F403
from rushlight.nn._vision import *  # noqa: F403
from rushlight.overrides import handle_torch_function as handle_torch_function
from rushlight.overrides import has_torch_function as has_torch_function
from rushlight.overrides import has_torch_function_unary as has_torch_function_unary
from rushlight.overrides import has_torch_function_variadic as has_torch_function_variadic

_Reduction = _reduction  # PyTorch's name

# Products and distances


@overridable
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
    forms = linear(input2, weight.flatten(0, 1)).unflatten(-1, (outs, ins1))  # (*, out, in1)
    result = (forms @ input1.unsqueeze(-1)).squeeze(-1)  # (*, out)
    return result if bias is None else result + bias


@overridable
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Returns vectors divided by their norm: input / max(||input||_p, eps).

    Args:
        input: vectors along dim.
        p: order of the norm.
        dim: dimension, or dimensions, of the vectors' elements.
        eps: smallest norm to divide by.
        out: where the result is written.

    Example:
        >>> torch.nn.functional.normalize(torch.tensor([0.0, 4.0]), dim=0).tolist()
        [0.0, 1.0]
    """
    return rl.div(input, input.norm(p, dim=dim, keepdim=True).clamp_min(eps), out=out)


# Nonlinearities


@overridable
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


@overridable
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

    Raises:
        RuntimeError: if lower is above upper.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.25, 0.75).tolist()
        [-0.5, 2.0]
    """
    if lower > upper:
        raise RuntimeError(
            "rrelu: Lower bound should be less than or equal to the upper bound, got "
            f"{lower} and {upper}."
        )
    if not input.is_floating_point():
        raise NotImplementedError(f"rrelu: not implemented for {input.dtype}. Use input.float().")
    if not training and not inplace:
        return leaky_relu(input, (lower + upper) / 2)
    if training:
        slopes = rl.empty_like(input).uniform_(lower, upper)
    else:
        slopes = rl.full_like(input, (lower + upper) / 2)
    factors = slopes.masked_fill(input > 0, 1.0)
    return input.mul_(factors) if inplace else input * factors


@overridable
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Does rrelu in place.

    Args:
        input: any shape; it is overwritten.
        lower: smallest slope.
        upper: largest slope.
        training: whether each element draws its slope; otherwise it is the mean of the bounds.

    Example:
        >>> torch.nn.functional.rrelu_(torch.tensor([-1.0, 2.0]), 0.25, 0.75).tolist()
        [-0.5, 2.0]
    """
    return rrelu(input, lower, upper, training, inplace=True)


@overridable
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Returns a random sample of classes, softened so that it has a gradient (Jang et al. 2017).

    It is softmax((logits + g) / tau), where g are draws of the Gumbel distribution.

    Args:
        logits: logarithms of probabilities, not necessarily normalized.
        tau: temperature; close to 0 the samples are close to one-hot.
        hard: whether the result is one-hot, with the gradient of the soft sample.
        eps: has no effect; another value warns.
        dim: dimension of the classes.

    Example:
        >>> sample = torch.nn.functional.gumbel_softmax(torch.zeros(4), hard=True)
        >>> sample.sum().item()
        1.0
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    noise = -rl.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    one_hot = rl.zeros_like(logits).scatter_(dim, best, 1.0)
    return one_hot - soft.detach() + soft


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__, ["grad"], {"modules.utils": "_pair _single _triple"}, package="rushlight.nn"
)
