"""Normalization of each sample by itself, independent of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


_shape_t = int | Sequence[int]  # PyTorch's name


def _shape(normalized_shape: _shape_t) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalizes the last dimensions of each sample (Ba et al. 2016).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and (biased) variance over
    normalized_shape.

    Args:
        normalized_shape: sizes of the last dimensions; one number for the last alone.
        eps: added to the variance.
        elementwise_affine: whether a weight is learned.
        bias: whether a bias is learned as well.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (*, *normalized_shape), unchanged.

    Example:
        >>> torch.nn.LayerNorm(2, eps=0.0)(torch.tensor([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, normalized_shape=normalized_shape)
        self.normalized_shape = shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        factory: Any = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            parameter = Parameter(rl.empty(shape, **factory)) if wanted else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalizes groups of channels of each sample (Wu and He 2018).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and (biased) variance over a group's
    channels and all positions; weight and bias are per channel.

    Args:
        num_groups: number of groups; must divide num_channels.
        num_channels: number of channels C.
        eps: added to the variance.
        affine: whether weight and bias are learned.
        device: where to put the parameters.
        dtype: their dtype.
        bias: whether affine includes a bias.

    Shape:
        (N, C, *), unchanged.

    Raises:
        ValueError: if num_groups does not divide num_channels.

    Example:
        >>> layer = torch.nn.GroupNorm(1, 2, eps=0.0)
        >>> layer(torch.tensor([[1.0, 3.0]])).tolist()
        [[-1.0, 1.0]]
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_groups <= 0 or num_channels % num_groups != 0:
            raise ValueError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})."
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        factory: Any = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            parameter = Parameter(rl.empty((num_channels,), **factory)) if wanted else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions of each sample by their root mean square.

    y = x / sqrt(mean(x**2) + eps) * weight (Zhang and Sennrich 2019).

    Args:
        normalized_shape: sizes of the last dimensions; one number for the last alone.
        eps: added to the mean square; the dtype's machine epsilon if None.
        elementwise_affine: whether a weight is learned.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (*, *normalized_shape), unchanged.

    Example:
        >>> torch.nn.RMSNorm(4, eps=0.0)(torch.tensor([2.0, -2.0, 2.0, -2.0])).tolist()
        [1.0, -1.0, 1.0, -1.0]
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, normalized_shape=normalized_shape)
        self.normalized_shape = shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        factory: Any = {"device": device, "dtype": dtype}
        self.register_parameter(
            "weight", Parameter(rl.empty(shape, **factory)) if elementwise_affine else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of the channels around (Krizhevsky et al. 2012).

    y[c] = x[c] / (k + alpha * mean of x[j]^2)^beta with j from c - size // 2 to
    c + (size - 1) // 2, where channels that do not exist count as 0.

    Args:
        size: how many channels are in a mean.
        alpha: factor of the mean.
        beta: exponent.
        k: added to the mean.

    Shape:
        (N, C, *), unchanged.

    Example:
        >>> norm = torch.nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)
        >>> norm(torch.tensor([[[1.0], [2.0]]])).flatten().tolist()
        [0.5, 0.4000000059604645]
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of images whose windows lie evenly around each channel.

    An even size has the window of size - 1, and still divides its sum by size. PyTorch's own layer
    keeps the first channel in all later windows, against the formula; this one does not.

    Args:
        size: what a sum is divided by, and its number of channels.
        alpha: factor of the mean.
        beta: exponent.
        k: added to the mean.

    Shape:
        (N, C, H, W), unchanged.

    Example:
        >>> norm = torch.nn.CrossMapLRN2d(1, alpha=1.0, beta=1.0)
        >>> norm(torch.tensor([[[[1.0]], [[2.0]]]])).flatten().tolist()
        [0.5, 0.4000000059604645]
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        window = (self.size - 1) // 2 * 2 + 1
        return F.local_response_norm(
            input, window, self.alpha * window / self.size, self.beta, self.k
        )
