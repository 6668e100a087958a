"""The ops of the package root, from the op table; _ops.pyi has their types.

Programs look here for the classes of what torch.ops.aten has.
"""

from rushlight import _C

_ops = _C.ops("torch")
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]

# A function of Python in PyTorch, of which programs ask in this way whether it knows indexing.
_ops["meshgrid"].__kwdefaults__ = {"indexing": None}


def __getattr__(name: str) -> object:
    if name in ("OpOverload", "OpOverloadPacket"):
        from rushlight import _op_overload

        return getattr(_op_overload, name)
    if name == "ops":
        from rushlight import ops

        return ops
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
