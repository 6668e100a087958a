"""Discrete Fourier transforms, from the op table."""

from rushlight import _C
from rushlight import Tensor as Tensor

_ops = _C.ops("fft")
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]
