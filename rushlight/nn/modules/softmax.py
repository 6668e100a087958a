"""Layers that turn numbers along a dimension into probabilities."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["LogSoftmax", "Softmax", "Softmax2d", "Softmin"]


class _AlongDim(Module):
    """What the layers that normalize along one dimension share."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        if dim is not None and (isinstance(dim, bool) or not hasattr(dim, "__index__")):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) divided by its sum along a dimension.

    Args:
        dim: the dimension along which the result sums to 1.

    Example:
        >>> torch.nn.Softmax(dim=0)(torch.zeros(2)).tolist()
        [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of softmax, computed as x - logsumexp(x).

    Args:
        dim: the dimension along which the exponential of the result sums to 1.

    Example:
        >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([0.0, -200.0])).tolist()
        [0.0, -200.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of -x.

    Args:
        dim: the dimension along which the result sums to 1.

    Example:
        >>> torch.nn.Softmin(dim=0)(torch.tensor([0.0, 200.0])).tolist()
        [1.0, 0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels at each position of an image.

    Shape:
        (N, C, H, W) or (C, H, W), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(2, 1, 1)).tolist()
        [[[0.5]], [[0.5]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D (got {input.dim()}D). "
                "The channels are the third dimension from the end."
            )
        return F.softmax(input, -3)
