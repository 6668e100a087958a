"""Special functions of mathematics, from the op table."""

from rushlight import _C
from rushlight import Tensor as Tensor

# Forms in place are functions of the root only, as in PyTorch.
_ops = {name: op for name, op in _C.ops("special").items() if not name.endswith("_")}
globals().update(_ops)
__all__ = list(_ops)  # pyright: ignore[reportUnsupportedDunderAll]
