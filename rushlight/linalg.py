"""Norms, systems, decompositions and other linear algebra, from the op table."""

from rushlight import _C
from rushlight._errors import LinAlgError

_ops = _C.ops("linalg")
globals().update(_ops)
__all__ = ["LinAlgError", *_ops]  # pyright: ignore[reportUnsupportedDunderAll]
