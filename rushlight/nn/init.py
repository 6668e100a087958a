"""Functions that fill parameters with starting values, in place and outside autograd.

Owns the published schemes; the random numbers come from Tensor.uniform_ and Tensor.normal_.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Literal

import rushlight as rl
from rushlight import Tensor

FanMode = Literal["fan_in", "fan_out"]

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]


# PyTorch's names of single draws, which copies of its code call.


def _no_grad_uniform_(
    tensor: Tensor, a: float, b: float, generator: rl.Generator | None = None
) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: rl.Generator | None = None
) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor,
    mean: float,
    std: float,
    a: float,
    b: float,
    generator: rl.Generator | None = None,
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)


_UNIT_GAINS = ["linear", "sigmoid"]
_UNIT_GAINS += [f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor by which a nonlinearity asks for a larger starting deviation.

    It is 1 for linear maps and sigmoid, 5/3 for tanh, sqrt(2) for relu,
    sqrt(2 / (1 + slope**2)) for leaky_relu (He et al. 2015) and 3/4 for selu.

    Args:
        nonlinearity: name of the function in nn.functional.
        param: negative slope of leaky_relu, 0.01 if None.

    Returns:
        The gain.

    Raises:
        ValueError: for an unknown name, or a slope that is not a number.

    Example:
        >>> torch.nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity in _UNIT_GAINS:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: negative_slope {slope!r} not a valid number.")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(
        f"calculate_gain: Unsupported nonlinearity {nonlinearity!r}. Use one of "
        f"{', '.join([*_UNIT_GAINS, 'tanh', 'relu', 'leaky_relu', 'selu'])}."
    )


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: rl.Generator | None = None
) -> Tensor:
    """Fills a tensor from the uniform distribution on [a, b) and returns it.

    Args:
        tensor: tensor to fill.
        a: lower bound.
        b: upper bound.
        generator: source of random numbers; the default one if None.

    Example:
        >>> w = torch.nn.init.uniform_(torch.empty(100), 2.0, 3.0)
        >>> 2.0 <= w.min().item() and w.max().item() < 3.0
        True
    """
    with rl.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: rl.Generator | None = None
) -> Tensor:
    """Fills a tensor from the normal distribution and returns it.

    Args:
        tensor: tensor to fill.
        mean: mean.
        std: standard deviation.
        generator: source of random numbers; the default one if None.

    Example:
        >>> torch.nn.init.normal_(torch.empty(2), mean=3.0, std=0.0).tolist()
        [3.0, 3.0]
    """
    with rl.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: rl.Generator | None = None,
) -> Tensor:
    """Fills a tensor from a normal distribution cut off outside [a, b] and returns it.

    Inverse transform sampling: with F the normal distribution function, F^-1 of a uniform number
    between F(a) and F(b).

    Args:
        tensor: tensor to fill.
        mean: mean of the normal distribution before the cut.
        std: its standard deviation.
        a: lower cutoff.
        b: upper cutoff.
        generator: source of random numbers; the default one if None.

    Raises:
        RuntimeError: if a is above b.

    Example:
        >>> w = torch.nn.init.trunc_normal_(torch.empty(1000))
        >>> w.abs().max().item() <= 2.0
        True
    """
    if a > b:
        raise RuntimeError(f"trunc_normal_: a must not be above b, but they are {a} and {b}.")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"trunc_normal_: mean {mean} is more than 2 std ({std}) outside [{a}, {b}]; the values "
            "will bunch at a cutoff.",
            stacklevel=2,
        )
    low, high = ((cutoff - mean) / (std * math.sqrt(2)) for cutoff in (a, b))
    with rl.no_grad():
        if low > 1 or high < -1:
            _fill_from_tail(tensor, low, high, generator)
            return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)
        # erf(z / sqrt(2)) = 2 F(mean + z * std) - 1
        tensor.uniform_(math.erf(low), math.erf(high), generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


def _fill_from_tail(
    tensor: Tensor, low: float, high: float, generator: rl.Generator | None
) -> None:
    """Fills a tensor with z / sqrt(2) of normal z between cutoffs that lie in one tail."""
    # Mirrored to the lower tail: probabilities near 0 keep the digits that those near 1 lose.
    sign = 1.0 if high < 0 else -1.0
    chances = [max(math.erfc(-end) / 2, 1e-300) for end in sorted((sign * low, sign * high))]
    draws = rl.empty(tensor.shape, dtype=rl.float64, device=tensor.device)
    draws.uniform_(*chances, generator=generator)
    tensor.copy_(rl.special.ndtri(draws).mul_(sign / math.sqrt(2)))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills a tensor with one value and returns it.

    Args:
        tensor: tensor to fill.
        val: the value.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.5).tolist()
        [0.5, 0.5]
    """
    with rl.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills a tensor with ones and returns it.

    Args:
        tensor: tensor to fill.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2)).tolist()
        [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills a tensor with zeros and returns it.

    Args:
        tensor: tensor to fill.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2)).tolist()
        [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def _check_dims(name: str, tensor: Tensor, allowed: tuple[int, ...]) -> None:
    if tensor.dim() not in allowed:
        raise ValueError(
            f"{name}: Only tensors with {' or '.join(map(str, allowed))} dimensions are supported, "
            f"but got shape {tuple(tensor.shape)}."
        )


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity and returns it, so that Linear passes its input on.

    Args:
        tensor: matrix to fill, of any shape (rows, columns).

    Raises:
        ValueError: if tensor does not have 2 dimensions.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check_dims("eye_", tensor, (2,))
    with rl.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution weight so that it passes channels on, and returns it.

    Output channel i of each group copies input channel i, as far as there are both.

    Args:
        tensor: weight (out_channels, in_channels / groups, *kernel) with 1 to 3 kernel dimensions.
        groups: groups of the convolution.

    Raises:
        ValueError: if tensor does not have 3 to 5 dimensions or groups do not divide out_channels.

    Example:
        >>> torch.nn.init.dirac_(torch.empty(1, 1, 3)).tolist()
        [[[0.0, 1.0, 0.0]]]
    """
    _check_dims("dirac_", tensor, (3, 4, 5))
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups != 0:
        raise ValueError(
            f"dirac_: dim 0 must be divisible by groups, but got {out_channels} and {groups}."
        )
    per_group = out_channels // groups
    center = tuple(size // 2 for size in kernel)
    with rl.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                tensor[(group * per_group + channel, channel, *center)] = 1.0
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The number of inputs of one output, and of outputs of one input, of a weight."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, but "
            f"got shape {tuple(tensor.shape)}."
        )
    kernel_elements = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel_elements, tensor.shape[0] * kernel_elements


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan that a mode, "fan_in" or "fan_out" in any case, names."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode!r} not supported, please use one of {modes}.")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """He et al. 2015, equations 10 and 14, with the gain of the nonlinearity."""
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _is_empty(tensor: Tensor) -> bool:
    """Whether there is nothing to fill; warns, since no fan can be computed then."""
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: rl.Generator | None = None
) -> Tensor:
    """Fills a weight uniformly within gain * sqrt(6 / (fan_in + fan_out)) and returns it.

    Keeps the variance of activations and gradients level (Glorot and Bengio 2010, equation 16).

    Args:
        tensor: weight of at least 2 dimensions, (out, in, *kernel).
        gain: factor for the nonlinearity, see calculate_gain.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor has fewer than 2 dimensions.

    Example:
        >>> w = torch.nn.init.xavier_uniform_(torch.empty(2, 4))
        >>> w.abs().max().item() <= 1.0
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: rl.Generator | None = None
) -> Tensor:
    """Fills a weight normally with deviation gain * sqrt(2 / (fan_in + fan_out)) and returns it.

    Keeps the variance of activations and gradients level (Glorot and Bengio 2010, equation 12).

    Args:
        tensor: weight of at least 2 dimensions, (out, in, *kernel).
        gain: factor for the nonlinearity, see calculate_gain.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor has fewer than 2 dimensions.

    Example:
        >>> w = torch.nn.init.xavier_normal_(torch.empty(100, 100))
        >>> round(w.std().item(), 2)
        0.1
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: rl.Generator | None = None,
) -> Tensor:
    """Fills a weight uniformly within gain * sqrt(3 / fan) and returns it.

    Keeps the variance level through layers with relu-like functions (He et al. 2015).

    Args:
        tensor: weight of at least 2 dimensions, (out, in, *kernel).
        a: negative slope, if nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: name for calculate_gain.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor has fewer than 2 dimensions, or mode or nonlinearity is unknown.

    Example:
        >>> w = torch.nn.init.kaiming_uniform_(torch.empty(2, 6), nonlinearity="relu")
        >>> w.abs().max().item() <= 1.0
        True
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: rl.Generator | None = None,
) -> Tensor:
    """Fills a weight normally with deviation gain / sqrt(fan) and returns it.

    Keeps the variance level through layers with relu-like functions (He et al. 2015).

    Args:
        tensor: weight of at least 2 dimensions, (out, in, *kernel).
        a: negative slope, if nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: name for calculate_gain.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor has fewer than 2 dimensions, or mode or nonlinearity is unknown.

    Example:
        >>> w = torch.nn.init.kaiming_normal_(torch.empty(100, 200), nonlinearity="relu")
        >>> round(w.std().item(), 2)
        0.1
    """
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: rl.Generator | None = None) -> Tensor:
    """Fills a weight with a random matrix of orthonormal rows or columns and returns it.

    The matrix is uniform (Haar): Q of a QR decomposition of normal numbers, with the signs of R's
    diagonal (Saxe et al. 2014; Mezzadri 2007, section 5).

    Args:
        tensor: weight of at least 2 dimensions; the trailing ones are seen as one.
        gain: factor to scale it by.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor has fewer than 2 dimensions.

    Example:
        >>> w = torch.nn.init.orthogonal_(torch.empty(2, 5))
        >>> (w @ w.T - torch.eye(2)).abs().max().item() < 1e-6
        True
    """
    if tensor.dim() < 2:
        raise ValueError(
            "orthogonal_: Only tensors with 2 or more dimensions are supported, but got shape "
            f"{tuple(tensor.shape)}."
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    normal = tensor.new_empty((max(rows, columns), min(rows, columns)), dtype=rl.float64)
    normal.normal_(generator=generator)
    q, r = rl.linalg.qr(normal)
    q = q * (r.diagonal().sign() * gain)  # (max, min), orthonormal columns times gain
    with rl.no_grad():
        return tensor.copy_((q if rows >= columns else q.mT).reshape(tensor.shape))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: rl.Generator | None = None
) -> Tensor:
    """Fills a matrix normally, with a share of each column zero, and returns it.

    Each unit then starts with few strong inputs (Martens 2010, section 5).

    Args:
        tensor: matrix to fill.
        sparsity: share of each column to set to zero, rounded up to whole elements.
        std: standard deviation of the rest.
        generator: source of random numbers; the default one if None.

    Raises:
        ValueError: if tensor does not have 2 dimensions.

    Example:
        >>> w = torch.nn.init.sparse_(torch.empty(4, 3), sparsity=0.5)
        >>> (w == 0).sum(0).tolist()
        [2, 2, 2]
    """
    _check_dims("sparse_", tensor, (2,))
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with rl.no_grad():
        for column in range(columns):
            tensor[rl.randperm(rows, generator=generator)[:zeros], column] = 0.0
    return tensor


def _old_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The name without underscore that PyTorch programs of before 2018 use."""

    @functools.wraps(function)
    def renamed(*args: object, **kwargs: object) -> Tensor:
        name = function.__name__
        warnings.warn(
            f"nn.init.{name[:-1]} is deprecated in favor of nn.init.{name}.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return renamed


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
