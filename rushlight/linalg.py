"""Norms and other linear algebra, from the op table."""

from rushlight import _C

_ops = _C.ops("linalg")
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]
