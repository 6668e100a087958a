"""Loops over bool, int8, uint8, int16 and int32 give the low bits of what int64 gives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

NARROW = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32]

OPS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: torch.add(x, y, alpha=3),
    "mul": torch.mul,
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "square": lambda x, y: torch.square(x),
    "cube": lambda x, y: x**3,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "where": lambda x, y: torch.where(x > y, x, y),
    "masked_fill": lambda x, y: x.masked_fill(x <= y, 1),
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "isnan": lambda x, y: torch.isnan(x),
    "isfinite": lambda x, y: torch.isfinite(x),
    "signbit": lambda x, y: torch.signbit(x),
}
# Not of bool.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "sub": lambda x, y: torch.sub(x, y, alpha=2),
    "neg": lambda x, y: torch.neg(x),
    "abs": lambda x, y: torch.abs(x),
    "sign": lambda x, y: torch.sign(x),
    "not": lambda x, y: torch.bitwise_not(x),
    "clamp": lambda x, y: torch.clamp(x, 3, 40),
    "clamp by tensors": lambda x, y: torch.clamp(x, y, torch.maximum(x, y)),
    "relu": lambda x, y: torch.relu(x),
    "hardtanh": lambda x, y: torch.nn.functional.hardtanh(x, 0, 7),
    "threshold": lambda x, y: torch.nn.functional.threshold(x, 5, 9),
    "heaviside": torch.heaviside,
    "floor": lambda x, y: torch.floor(x),
    "left shift": torch.bitwise_left_shift,
    "right shift": torch.bitwise_right_shift,
    "floor_divide": lambda x, y: torch.floor_divide(x, torch.where(y == 0, 1, y)),
    "trunc divide": lambda x, y: torch.div(x, torch.where(y == 0, 1, y), rounding_mode="trunc"),
    "remainder": lambda x, y: torch.remainder(x, torch.where(y == 0, 1, y)),
    "fmod": lambda x, y: torch.fmod(x, torch.where(y == 0, 1, y)),
    "gcd": torch.gcd,
}


def pairs(dtype: Any) -> tuple[Any, Any]:
    """Pairs of all values of 8 bits; of others, of those near powers of two."""
    if dtype is torch.bool:
        return torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    info = torch.iinfo(dtype)
    if info.bits == 8:
        values = torch.arange(info.min, info.max + 1)
    else:
        near = {s * 2**k + d for k in range(info.bits) for s in (-1, 1) for d in (-1, 0, 1)}
        values = torch.tensor(sorted(v for v in near if info.min <= v <= info.max))
    grid = torch.meshgrid(values, values, indexing="ij")
    return grid[0].flatten().to(dtype), grid[1].flatten().to(dtype)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", [*OPS, *ARITHMETIC])
def test_low_bits_are_those_of_int64(name: str, dtype: Any) -> None:
    if name in ARITHMETIC and dtype is torch.bool:
        pytest.skip("bool has no arithmetic")
    op = (OPS | ARITHMETIC)[name]
    x, y = pairs(dtype)
    if "shift" in name:  # by more than there are bits, too
        y = y.clamp(max=70)
    found, wide = op(x, y), op(x.long(), y.long())
    if found.dtype is dtype:
        wide = wide.to(dtype)
    assert found.dtype is wide.dtype and torch.equal(found, wide)
    # In tiles, where operands are converted, broadcast and strided.
    assert torch.equal(op(x[::2], y[::2]), found[::2])
    side = math.isqrt(x.numel())
    rows, grid = (x.view(side, side), y.view(side, side)), found.view(side, side)
    assert torch.equal(op(rows[0][:, :1], rows[1]).expand(side, side), grid)
    turned = [t.t().contiguous() for t in rows]
    assert torch.equal(op(turned[0], turned[1][:, :1]).t(), grid)
    assert torch.equal(op(turned[0][-1], turned[1][-1, 0]), grid[:, -1])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("shape", [(5,), (9000,), (3, 700), (700, 3), (70, 300), (9, 40, 16)])
def test_extremes_are_those_of_int64(shape: tuple[int, ...], dtype: Any) -> None:
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    x = torch.randint(low, high + 1, shape).to(dtype)
    for v in (x, x.flip(0), x.transpose(0, -1), x[..., ::2], x.expand(2, *shape)):
        for dims in (tuple(range(v.dim())), (0,), (-1,)):
            for f in (torch.amax, torch.amin):
                assert f(v, dims).dtype is dtype
                assert torch.equal(f(v, dims).long(), f(v.long(), dims))
            for f in (torch.any, torch.all):
                assert torch.equal(f(v, dims).long(), f(v.long(), dims).long())


@pytest.mark.parametrize("dtype", NARROW[1:], ids=str)
def test_numbers_that_the_dtype_cannot_hold_keep_their_value(dtype: Any) -> None:
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, -1 if info.min else 1, 0, 1, info.max]).to(dtype)
    above = info.max + 1
    assert (x < above).all() and not (x == above + info.min).all()
    assert (x > info.min - 1).all() and (x <= torch.tensor(2**62)).all()
    assert torch.equal(x.clamp(info.min - 5, above + 5), x)
    assert torch.equal(torch.maximum(x, torch.tensor(info.min - 1)), x)
    wide = (x.long() * (above + 3)).to(dtype)
    assert torch.equal(x * (above + 3), wide)


def test_bools_of_other_libraries_that_are_no_bits_are_true() -> None:
    x = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    y = torch.tensor([True, True, False, False])
    assert (x & y).tolist() == [False, True, False, False]
    assert (x * x).tolist() == (x | y ^ y).tolist() == [False, True, True, True]
    assert (x == y).tolist() == [False, True, False, False]
    assert torch.where(y, x, y).tolist() == [False, True, False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.maximum(x, y).view(torch.uint8).tolist() == [1, 1, 1, 1]
