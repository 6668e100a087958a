"""Tools for tests: comparing values and making tensors."""

from rushlight.testing._comparison import assert_close
from rushlight.testing._creation import make_tensor
from rushlight.testing._older import assert_allclose

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
