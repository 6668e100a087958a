"""The limits of dtypes: finfo for floating-point ones, iinfo for integers."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# (explicit mantissa bits, largest exponent, decimal digits that survive) of IEEE-like formats.
_FLOATS = {
    "float16": (10, 15, 3),
    "bfloat16": (7, 127, 2),
    "float32": (23, 127, 6),
    "float64": (52, 1023, 15),
}


class finfo:
    """The limits of a floating-point dtype; of the default dtype when none is given.

    Example:
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        name = dtype.to_real()._name
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{name}'"
            )
        mantissa, exponent, digits = _FLOATS[name]
        self.dtype = name
        self.bits = dtype.to_real().itemsize * 8
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = 2.0 ** (1 - exponent)
        self.smallest_normal = self.tiny
        self.resolution = 10.0**-digits

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    Example:
        >>> torch.iinfo(torch.int8).max
        127
    """

    def __init__(self, type: Any) -> None:
        if type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(
                "torch.iinfo() requires an integer input type. "
                f"Use torch.finfo to handle '{type._name}'"
            )
        self.dtype = type._name
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - 1 if type.is_signed else self.bits) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
