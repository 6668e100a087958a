"""Layers that drop parts of their input at random in training."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got "
                f"{p}."
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Sets elements to zero with probability p in training, and scales the rest by 1 / (1 - p).

    In evaluation it returns its input (Hinton et al. 2012).

    Args:
        p: probability of an element to be dropped.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout(1.0)(torch.ones(3)).tolist()
        [0.0, 0.0, 0.0]
        >>> torch.nn.Dropout(1.0).eval()(torch.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Sets whole channels of sequences to zero with probability p in training.

    The rest is scaled by 1 / (1 - p); in evaluation it returns its input (Tompson et al. 2015).

    Args:
        p: probability of a channel to be dropped.
        inplace: whether to overwrite the input.

    Shape:
        (N, C, L) or (C, L), unchanged.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout1d(1.0)(torch.ones(1, 1, 3)).tolist()
        [[[0.0, 0.0, 0.0]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Sets whole channels of images to zero with probability p in training.

    The rest is scaled by 1 / (1 - p); in evaluation it returns its input (Tompson et al. 2015).

    Args:
        p: probability of a channel to be dropped.
        inplace: whether to overwrite the input.

    Shape:
        (N, C, H, W), or (N, C, L) as PyTorch reads three dimensions, unchanged.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout2d(1.0)(torch.ones(1, 1, 1, 2)).tolist()
        [[[[0.0, 0.0]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Sets whole channels of volumes to zero with probability p in training.

    The rest is scaled by 1 / (1 - p); in evaluation it returns its input (Tompson et al. 2015).

    Args:
        p: probability of a channel to be dropped.
        inplace: whether to overwrite the input.

    Shape:
        (N, C, D, H, W) or (C, D, H, W), unchanged.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout3d(1.0)(torch.ones(1, 1, 1, 1, 2)).tolist()
        [[[[[0.0, 0.0]]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for networks with SELU: keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Dropped elements become SELU's limit for large negative inputs, and all are then shifted and
    scaled. In evaluation it returns its input.

    Args:
        p: probability of an element to be dropped.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.AlphaDropout(0.5).eval()(torch.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Args:
        p: probability of a channel to be dropped.
        inplace: whether to overwrite the input.

    Shape:
        (N, C, *), unchanged.

    Raises:
        ValueError: if p is not between 0 and 1.

    Example:
        >>> torch.nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 3)).tolist()
        [[1.0, 1.0, 1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
