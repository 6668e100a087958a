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


class _Limits:
    """What finfo and iinfo have in common: one object, which nobody can change, for each dtype."""

    __slots__ = ("bits", "dtype", "max", "min")

    if TYPE_CHECKING:
        bits: int
        dtype: str
        max: Any
        min: Any

    def _set(self, **limits: Any) -> None:
        for name, value in limits.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of '{type(self).__name__}' is not writable")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (getattr(_C, self.dtype),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Limits) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


# By what they were asked for with.
_finfos: dict[Any, finfo] = {}
_iinfos: dict[Any, iinfo] = {}


class finfo(_Limits):
    """The limits of a floating-point dtype; of the default dtype when none is given.

    Example:
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    __slots__ = ("eps", "resolution", "smallest_normal", "tiny")

    if TYPE_CHECKING:
        eps: float
        resolution: float
        smallest_normal: float
        tiny: float

    def __new__(cls, type: Any = None) -> finfo:
        if type is None:
            type = _C.get_default_dtype()
        try:
            return _finfos[type]
        except (KeyError, TypeError):
            pass
        dtype = _expect_dtype("finfo", type)
        name = dtype.to_real()._name
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                f"Use torch.iinfo to handle '{name}'"
            )
        mantissa, exponent, greatest, digits = _FLOATS[name]
        _finfos[type] = self = super().__new__(cls)
        self._set(
            dtype=name,
            bits=dtype.to_real().itemsize * 8,
            eps=2.0**-mantissa,
            max=greatest,
            min=-greatest,
            tiny=2.0**exponent,
            smallest_normal=2.0**exponent,
            resolution=10.0**-digits,
        )
        return self

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype, or of the integers of a quantized one.

    Example:
        >>> torch.iinfo(torch.int8).max
        127
    """

    __slots__ = ()

    def __new__(cls, type: Any) -> iinfo:
        try:
            return _iinfos[type]
        except (KeyError, TypeError):
            pass
        dtype = _expect_dtype("iinfo", getattr(type, "integers", type))  # of a quantized dtype
        if dtype.is_floating_point or dtype.is_complex or dtype is _C.bool:
            raise TypeError(
                "torch.iinfo() requires an integer input type. "
                f"Use torch.finfo to handle '{dtype._name}'"
            )
        bits = dtype.itemsize * 8
        _iinfos[type] = self = super().__new__(cls)
        self._set(
            dtype=dtype._name,
            bits=bits,
            min=-(2 ** (bits - 1)) if dtype.is_signed else 0,
            max=2 ** (bits - 1 if dtype.is_signed else bits) - 1,
        )
        return self

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
