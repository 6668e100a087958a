"""The ops of nn.functional, from the op table; _ops.pyi has their types."""

from rushlight import _C

_ops = _C.ops("nn.functional")
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]
