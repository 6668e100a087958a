"""What assert_close replaced."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.testing._comparison import assert_close

__all__ = ["assert_allclose"]

# dtype -> (rtol, atol), looser than those of assert_close.
_TOLERANCES = {
    rl.float16: (1e-3, 1e-3),
    rl.float32: (1e-4, 1e-5),
    rl.float64: (1e-5, 1e-8),
}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Does assert_close with looser tolerances and no look at dtypes; deprecated.

    Args:
        actual: a tensor, or what makes one.
        expected: the same.
        rtol: relative tolerance; by default it follows from the dtypes.
        atol: absolute tolerance; to be given together with rtol.
        equal_nan: whether NaN equals NaN.
        msg: the message of the error.

    Raises:
        AssertionError: if they are not close.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> torch.testing.assert_allclose(torch.ones(2), [1.00001, 1.0])
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = rl.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = rl.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        known = [_TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*known, strict=True))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
