"""Layers that add elements around sequences, images and volumes, or take some away."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple
from rushlight.nn.modules.utils import _pair as _pair
from rushlight.nn.modules.utils import _quadruple as _quadruple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Pads the last dims by amounts before and after, for the last dimension first."""

    _dims: int
    _mode: str
    padding: tuple[int, ...]

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)

    def _check_input_dim(self, input: Tensor) -> None:
        """CircularPad refuses what has too few or too many dims."""

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self._dims + 1}D or {self._dims + 2}D input "
                f"(got {input.dim()}D input)."
            )


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """Adds elements of one value around a sequence.

    Args:
        padding: (left, right), or one number for all;
            negative amounts take elements away.
        value: what is added.

    Shape:
        (N, C, L) or (C, L) to the same with L + left + right.

    Example:
        >>> torch.nn.ConstantPad1d(1, 9.0)(torch.tensor([[1.0, 2.0]])).tolist()
        [[9.0, 1.0, 2.0, 9.0]]
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds elements of one value around an image.

    Args:
        padding: (left, right, top, bottom), or one number for all;
            negative amounts take elements away.
        value: what is added.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with H + top + bottom and W + left + right.

    Example:
        >>> torch.nn.ConstantPad2d((1, 0, 0, 1), 9.0)(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[9.0, 1.0, 2.0], [9.0, 9.0, 9.0]]]
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds elements of one value around a volume.

    Args:
        padding: (left, right, top, bottom, front, back), or one number for all;
            negative amounts take elements away.
        value: what is added.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with each size and what is added to it.

    Example:
        >>> torch.nn.ConstantPad3d(1, 9.0)(torch.zeros(2, 3, 4, 5)).shape
        torch.Size([2, 5, 6, 7])
    """

    _dims = 3


class ZeroPad1d(_ZeroPadNd):
    """Adds zeros around a sequence.

    Args:
        padding: (left, right), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, L) or (C, L) to the same with L + left + right.

    Example:
        >>> torch.nn.ZeroPad1d((1, -1))(torch.tensor([[1.0, 2.0]])).tolist()
        [[0.0, 1.0]]
    """

    _dims = 1


class ZeroPad2d(_ZeroPadNd):
    """Adds zeros around an image.

    Args:
        padding: (left, right, top, bottom), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with H + top + bottom and W + left + right.

    Example:
        >>> torch.nn.ZeroPad2d((1, 0, 0, 1))(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]]
    """

    _dims = 2


class ZeroPad3d(_ZeroPadNd):
    """Adds zeros around a volume.

    Args:
        padding: (left, right, top, bottom, front, back), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with each size and what is added to it.

    Example:
        >>> torch.nn.ZeroPad3d(1)(torch.zeros(2, 3, 4, 5)).shape
        torch.Size([2, 5, 6, 7])
    """

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Adds elements around a sequence that mirror it, without the edge itself.

    Args:
        padding: (left, right), or one number for all, each
            below the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, L) or (C, L) to the same with L + left + right.

    Example:
        >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Adds elements around an image that mirror it, without the edge itself.

    Args:
        padding: (left, right, top, bottom), or one number for all, each
            below the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with H + top + bottom and W + left + right.

    Example:
        >>> torch.nn.ReflectionPad2d((1, 0, 0, 0))(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[2.0, 1.0, 2.0]]]
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Adds elements around a volume that mirror it, without the edge itself.

    Args:
        padding: (left, right, top, bottom, front, back), or one number for all, each
            below the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with each size and what is added to it.

    Example:
        >>> torch.nn.ReflectionPad3d(1)(torch.zeros(2, 3, 4, 5)).shape
        torch.Size([2, 5, 6, 7])
    """

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Adds elements around a sequence that repeat the edge.

    Args:
        padding: (left, right), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, L) or (C, L) to the same with L + left + right.

    Example:
        >>> torch.nn.ReplicationPad1d(2)(torch.tensor([[1.0, 2.0]])).tolist()
        [[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]]
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Adds elements around an image that repeat the edge.

    Args:
        padding: (left, right, top, bottom), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with H + top + bottom and W + left + right.

    Example:
        >>> torch.nn.ReplicationPad2d((1, 0, 0, 1))(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0]]]
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Adds elements around a volume that repeat the edge.

    Args:
        padding: (left, right, top, bottom, front, back), or one number for all;
            negative amounts take elements away.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with each size and what is added to it.

    Example:
        >>> torch.nn.ReplicationPad3d(1)(torch.zeros(2, 3, 4, 5)).shape
        torch.Size([2, 5, 6, 7])
    """

    _dims = 3


class CircularPad1d(_CircularPadNd):
    """Adds elements around a sequence that come from the other end.

    Args:
        padding: (left, right), or one number for all, each
            at most the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, L) or (C, L) to the same with L + left + right.

    Example:
        >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Adds elements around an image that come from the other end.

    Args:
        padding: (left, right, top, bottom), or one number for all, each
            at most the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, H, W) or (C, H, W) to the same with H + top + bottom and W + left + right.

    Example:
        >>> torch.nn.CircularPad2d((1, 0, 0, 0))(torch.tensor([[[1.0, 2.0]]])).tolist()
        [[[2.0, 1.0, 2.0]]]
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Adds elements around a volume that come from the other end.

    Args:
        padding: (left, right, top, bottom, front, back), or one number for all, each
            at most the size of its dimension; negative amounts take elements away.

    Shape:
        (N, C, D, H, W) or (C, D, H, W) to the same with each size and what is added to it.

    Example:
        >>> torch.nn.CircularPad3d(1)(torch.zeros(2, 3, 4, 5)).shape
        torch.Size([2, 5, 6, 7])
    """

    _dims = 3
