"""The limits of dtypes: finfo for floating-point ones, iinfo for integers."""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# (explicit mantissa bits, least exponent, largest number, decimal digits that survive)
_FLOATS = {
    "float8_e4m3fn": (3, -6, 448.0, 0),
    "float8_e5m2": (2, -14, 57344.0, 0),
    "float16": (10, -14, 65504.0, 3),
    "bfloat16": (7, -126, (2 - 2.0**-7) * 2.0**127, 2),
    "float32": (23, -126, (2 - 2.0**-23) * 2.0**127, 6),
    "float64": (52, -1022, (2 - 2.0**-52) * 2.0**1023, 15),
}


_OF_PYTHON = {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}


def _expect_dtype(name: str, given: Any) -> Any:
    if isinstance(given, type) and given in _OF_PYTHON:
        return _OF_PYTHON[given]
    if not isinstance(given, _C.dtype):
        kind = type(given).__name__
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {kind}.")
    return given


class finfo:
    """The limits of a floating-point dtype; of the default dtype when none is given.

    Example:
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        dtype = _expect_dtype("finfo", _C.get_default_dtype() if type is None else type)
        name = dtype.to_real()._name
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{name}'"
            )
        mantissa, exponent, self.max, digits = _FLOATS[name]
        self.dtype = name
        self.bits = dtype.to_real().itemsize * 8
        self.eps = 2.0**-mantissa
        self.min = -self.max
        self.tiny = 2.0**exponent
        self.smallest_normal = self.tiny
        self.resolution = 10.0**-digits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

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
        type = _expect_dtype("iinfo", type)
        if type.is_floating_point or type.is_complex or type is _C.bool:
            raise TypeError(
                "torch.iinfo() requires an integer input type. "
                f"Use torch.finfo to handle '{type._name}'"
            )
        self.dtype = type._name
        self.bits = type.itemsize * 8
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - 1 if type.is_signed else self.bits) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
