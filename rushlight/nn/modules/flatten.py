"""Layers that only change the shape."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins a range of dimensions into one.

    Args:
        start_dim: first dimension to join.
        end_dim: last dimension to join.

    Shape:
        (N, *) to (N, product of *), with the defaults.

    Example:
        >>> tuple(torch.nn.Flatten()(torch.zeros(2, 3, 4)).shape)
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several.

    Args:
        dim: the dimension to split.
        unflattened_size: sizes to split it into; one of them may be -1.

    Shape:
        (*, S, *) to (*, *unflattened_size, *), where S is the product of unflattened_size.

    Example:
        >>> tuple(torch.nn.Unflatten(1, (3, 4))(torch.zeros(2, 12)).shape)
        (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)
        check_sizes(self, unflattened_size=self.unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
