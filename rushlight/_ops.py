"""The ops of the package root, from the op table; _ops.pyi has their types."""

from rushlight import _C

_ops = _C.ops("torch")
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]

# A function of Python in PyTorch, of which programs ask in this way whether it knows indexing.
_ops["meshgrid"].__kwdefaults__ = {"indexing": None}
