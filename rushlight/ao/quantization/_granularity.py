"""How many scales a tensor has, and how floats map to integers, in the words of torchao."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from rushlight import Tensor
from rushlight.ao.quantization._observer_base import WithArgs

__all__ = [
    "AffineQuantizedObserverBase",
    "Granularity",
    "MappingType",
    "PerAxis",
    "PerBlock",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "TorchAODType",
    "ZeroPointDomain",
    "get_block_size",
]


class MappingType(Enum):
    """How the range of floats maps to that of integers."""

    #: Both ranges have 0 in their middle: the scale is that of the larger end.
    SYMMETRIC = auto()
    #: As before, by the scale that leaves both ends uncut.
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    #: The range of floats maps to all integers, and 0 to the zero point.
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """What a zero point is: an integer, a float, or none."""

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Integers of fewer than 8 bits, for which there is no dtype."""

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """Which elements of a tensor share a scale."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All elements."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """Those at the same place along an axis.

    Args:
        axis: the axis.
    """

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """Groups of neighbors along the last dim.

    Args:
        group_size: how many there are in a group.
    """

    group_size: int


@dataclass(frozen=True)
class PerBlock(Granularity):
    """Blocks.

    Args:
        block_size: the shape of a block.
    """

    block_size: tuple[int, ...]


class PerRow(Granularity):
    """Rows along the last dim."""


class PerToken(Granularity):
    """Rows along the last dim, each of which is a token."""


def get_block_size(input_shape: Sequence[int], granularity: Granularity) -> tuple[int, ...]:
    """Returns the shape of what shares a scale in a tensor.

    Args:
        input_shape: the tensor's shape.
        granularity: which elements share one.

    Raises:
        ValueError: for a granularity that is not known.

    Example:
        >>> from rushlight.ao.quantization.observer import PerAxis, get_block_size
        >>> get_block_size((4, 6), PerAxis(1))
        (4, 1)
    """
    shape = tuple(input_shape)
    if isinstance(granularity, PerTensor):
        return shape
    if isinstance(granularity, PerAxis):
        axis = granularity.axis % len(shape)
        return (*shape[:axis], 1, *shape[axis + 1 :])
    ones = (1,) * (len(shape) - 1)
    if isinstance(granularity, PerRow | PerToken):
        return (*ones, shape[-1])
    if isinstance(granularity, PerGroup):
        if len(shape) != 2:
            raise AssertionError(
                f"Expecting input shape dim to be 2 for per group quantization, got: {shape}"
            )
        return (1, granularity.group_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(WithArgs):
    """What observers of torchao's quantizers share; a subclass has forward and calculate_qparams.

    Args:
        mapping_type: how floats map to integers.
        target_dtype: the dtype of the integers.
        granularity: which elements share a scale.
        quant_min: the smallest integer in use.
        quant_max: the largest.
        eps: the smallest scale.
        scale_dtype: the dtype of scales.
        zero_point_dtype: the dtype of zero points.
        preserve_zero: that 0 is to stay exact.
        zero_point_domain: what zero points are.

    Raises:
        ValueError: if zero_point_domain is None.
    """

    def __init__(
        self,
        mapping_type: MappingType,
        target_dtype: Any,
        granularity: Granularity,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        scale_dtype: Any = None,
        zero_point_dtype: Any = None,
        preserve_zero: bool = True,
        zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        if zero_point_domain is None:
            raise ValueError("Please use ZeroPointDomain.NONE instead of None")
        self.mapping_type, self.target_dtype = mapping_type, target_dtype
        self.granularity, self.quant_min, self.quant_max = granularity, quant_min, quant_max
        self.eps, self.scale_dtype, self.zero_point_dtype = eps, scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        self.block_size: tuple[int, ...] | None = None  # of the tensors that forward has seen
        self.original_dtype: Any = None
        for name, value in kwargs.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        """Watches a tensor, and returns it."""
        raise NotImplementedError

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Returns scales and zero points."""
        raise NotImplementedError
