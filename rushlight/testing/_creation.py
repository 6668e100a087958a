"""Making tensors for tests.

Owns make_tensor: random values in a range, in any dtype, with the awkward layouts that tests need.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor


def make_tensor(
    *shape: int | tuple[int, ...] | list[int],
    dtype: rl.dtype,
    device: str | rl.device = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Returns a tensor of uniform random values from low to high, without high.

    Args:
        shape: sizes, or one sequence of them.
        dtype: dtype of the result.
        device: device of the result.
        low: lower end; by default 0 for bool and unsigned dtypes, else -9.
        high: upper end; by default 2 for bool, 10 for integers, 9 for the others. Both ends are
            moved into the range of the dtype.
        requires_grad: whether the result requires a gradient.
        noncontiguous: leave gaps between the elements in memory.
        exclude_zero: put 1, or the smallest normal number, in the place of zeros.
        memory_format: order of the elements in memory.

    Raises:
        ValueError: if low is not less than high, or nothing between them is of the dtype.

    Example:
        >>> x = torch.testing.make_tensor(2, 3, dtype=torch.int8, low=5, high=6)
        >>> x.tolist()
        [[5, 5, 5], [5, 5, 5]]
    """
    is_float = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not is_float:
        raise ValueError(
            f"make_tensor: requires_grad=True needs a floating or complex dtype, not {dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude each other")
    low, high = _range(dtype, low, high)
    sizes: Any = tuple(shape[0]) if shape and isinstance(shape[0], tuple | list) else shape
    if noncontiguous and math.prod(sizes) > 1:
        # Every second element of a tensor twice as wide.
        wide = _uniform((*sizes[:-1], 2 * sizes[-1]), dtype, low, high)
        result = wide[..., ::2]
    else:
        result = _uniform(sizes, dtype, low, high)
    if exclude_zero:
        result[result == 0] = rl.finfo(dtype).tiny if is_float else 1
    result = result.to(device)
    if memory_format is not None:
        result = result.contiguous(memory_format=memory_format)
    return result.requires_grad_(requires_grad)


def _range(dtype: rl.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    if dtype is rl.bool:
        default = (0, 2)
    elif dtype in (rl.uint8, rl.uint16, rl.uint32, rl.uint64):
        default = (0, 10)
    elif dtype.is_floating_point or dtype.is_complex:
        default = (-9, 9)
    else:
        default = (-9, 10)
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "make_tensor: low equals high, which is deprecated for floats. Use torch.full instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif not low < high:
        raise ValueError(f"make_tensor: low must be less than high, but they are {low} and {high}")
    least, greatest = _limits(dtype)
    if low > greatest or high < least:
        raise ValueError(
            f"make_tensor: no number from {low} to {high} is of {dtype}, whose range is from "
            f"{least} to {greatest}."
        )
    past = 1 if isinstance(greatest, int) else 0  # as the upper end is not included
    return max(low, least), min(high, greatest + past)


def _limits(dtype: rl.dtype) -> tuple[float, float]:
    if dtype is rl.bool:
        return 0, 1
    if dtype.is_floating_point or dtype.is_complex:
        return rl.finfo(dtype).min, rl.finfo(dtype).max
    return rl.iinfo(dtype).min, rl.iinfo(dtype).max


def _uniform(sizes: Any, dtype: rl.dtype, low: float, high: float) -> Tensor:
    if dtype.is_complex:
        real, imag = (_uniform(sizes, rl.float64, low, high) for _ in range(2))
        return rl.complex(real, imag).to(dtype)
    if dtype.is_floating_point:
        values = rl.rand(sizes, dtype=rl.float64) * (high - low) + low
        rounded = values.to(dtype).double()
        return rl.where(rounded < high, rounded, low).to(dtype)  # the end itself is left out
    return rl.randint(math.ceil(low), math.ceil(high), sizes).to(dtype)
