"""Unsigned integers against NumPy, above all uint64 beyond the range of int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from grouping import each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import rushlight as torch

DTYPES = [np.uint8, np.uint16, np.uint32, np.uint64]
each_dtype = each("dtype", DTYPES, ids=lambda d: d.__name__)


def edges(dtype: Any) -> np.ndarray:
    """Numbers around the ends and the middle of the range."""
    largest = int(np.iinfo(dtype).max)
    middle = largest // 2
    return np.array([0, 1, 2, 3, 7, middle - 1, middle, middle + 1, largest - 1, largest], dtype)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(edges(dtype), 10), np.tile(edges(dtype), 10)


def check(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert actual.numpy().dtype == np.asarray(expected).dtype


BINARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (torch.add, np.add),
    (torch.sub, np.subtract),
    (torch.mul, np.multiply),
    (torch.floor_divide, np.floor_divide),
    (torch.remainder, np.remainder),
    (torch.fmod, np.fmod),
    (torch.true_divide, lambda x, y: np.divide(x, y).astype(np.float32)),
    (torch.maximum, np.maximum),
    (torch.minimum, np.minimum),
    (torch.fmax, np.fmax),
    (torch.fmin, np.fmin),
    (torch.eq, np.equal),
    (torch.ne, np.not_equal),
    (torch.lt, np.less),
    (torch.le, np.less_equal),
    (torch.gt, np.greater),
    (torch.ge, np.greater_equal),
    (torch.bitwise_and, np.bitwise_and),
    (torch.bitwise_or, np.bitwise_or),
    (torch.bitwise_xor, np.bitwise_xor),
    (torch.logical_and, np.logical_and),
    (torch.pow, np.power),
    (torch.heaviside, lambda x, y: np.where(x == 0, y, 1).astype(x.dtype)),
]


@each_dtype
@pytest.mark.parametrize(("function", "reference"), BINARY, ids=lambda f: f.__name__)
def test_binary_op_equals_numpy(dtype: Any, function: Any, reference: Any) -> None:
    x, y = pairs(dtype)
    if reference in (np.floor_divide, np.remainder, np.fmod) or function is torch.true_divide:
        x, y = x[y != 0], y[y != 0]
    if function is torch.pow:
        y = y % np.asarray(9, dtype)
    expected = reference(x, y)
    actual = function(torch.from_numpy(x), torch.from_numpy(y))
    if function is torch.true_divide:
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)
    else:
        check(actual, expected)


@each_dtype
def test_shifts_equal_numpy(dtype: Any) -> None:
    x = np.repeat(edges(dtype), 8)
    by = np.tile(np.array([0, 1, 5, 7, 15, 31, 63, 70], dtype), 10)
    width = 8 * x.itemsize
    shifted = [int(a) << int(b) & (2**width - 1) for a, b in zip(x, by, strict=True)]
    check(torch.from_numpy(x) << torch.from_numpy(by), np.array(shifted, dtype))
    shifted = [int(a) >> int(b) for a, b in zip(x, by, strict=True)]
    check(torch.from_numpy(x) >> torch.from_numpy(by), np.array(shifted, dtype))


UNARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (torch.abs, np.abs),
    (torch.neg, np.negative),
    (torch.sign, np.sign),
    (torch.square, np.square),
    (torch.bitwise_not, np.invert),
    (torch.floor, np.positive),
    (torch.ceil, np.positive),
    (torch.trunc, np.positive),
    (torch.round, np.positive),
    (torch.conj_physical, np.conj),
    (torch.isfinite, np.isfinite),
    (torch.isinf, np.isinf),
    (torch.isnan, np.isnan),
    (torch.signbit, lambda x: np.zeros(x.shape, bool)),
    (torch.logical_not, np.logical_not),
    (lambda x: torch.sort(x).values, np.sort),
    (torch.argsort, lambda x: np.argsort(x, kind="stable")),
    (lambda x: torch.sort(x, descending=True).values, lambda x: np.sort(x)[::-1]),
    (torch.unique, np.unique),
    (torch.amax, np.max),
    (torch.amin, np.min),
    (torch.max, np.max),
    (torch.argmax, np.argmax),
    (torch.argmin, np.argmin),
    (lambda x: torch.cummax(x, 0).values, np.maximum.accumulate),
    (lambda x: torch.cummin(x, 0).values, np.minimum.accumulate),
    (lambda x: x.sum(dtype=torch.uint64), np.sum),
    (lambda x: x.prod(dtype=torch.uint64), np.prod),
    (lambda x: x.cumsum(0, dtype=torch.uint64), np.cumsum),
    (lambda x: x.cumprod(0, dtype=torch.uint64), np.cumprod),
    (torch.any, np.any),
    (torch.all, np.all),
    (torch.count_nonzero, np.count_nonzero),
    (lambda x: torch.nonzero(x)[:, 0], lambda x: np.nonzero(x)[0]),
    (lambda x: torch.topk(x, 3).values, lambda x: np.sort(x)[::-1][:3]),
    (lambda x: torch.flip(x, (0,)), lambda x: x[::-1]),
    (lambda x: torch.roll(x, 2, 0), lambda x: np.roll(x, 2)),
    (lambda x: x[x > 2], lambda x: x[x > 2]),
    (lambda x: x.double(), lambda x: x.astype(np.float64)),
    (lambda x: x.float(), lambda x: x.astype(np.float32)),
    (lambda x: x.to(torch.complex128), lambda x: x.astype(np.complex128)),
    (lambda x: x.long(), lambda x: x.astype(np.int64)),
    (lambda x: x.to(torch.uint8), lambda x: x.astype(np.uint8)),
    (lambda x: x.bool(), lambda x: x.astype(bool)),
    (lambda x: x.double().mean(), lambda x: x.astype(np.float64).mean()),
    (lambda x: torch.cat([x, x.to(torch.uint8)]), lambda x: np.concatenate([x, x.astype("u1")])),
    (lambda x: torch.where(x > 2, x, x + 1), lambda x: np.where(x > 2, x, x + x.dtype.type(1))),
    (lambda x: torch.tril(x.reshape(2, 5)), lambda x: np.tril(x.reshape(2, 5))),
    (lambda x: torch.clamp(x, 2, 100), lambda x: np.clip(x, 2, 100)),
    (lambda x: x.index_select(0, torch.tensor([9, 0])), lambda x: x[[9, 0]]),
    (lambda x: torch.take_along_dim(x, torch.tensor([8]), 0), lambda x: x[[8]]),
    (lambda x: x.reshape(2, 5) @ x.reshape(5, 2), lambda x: x.reshape(2, 5) @ x.reshape(5, 2)),
    (lambda x: torch.searchsorted(x, x.flip(0)), lambda x: np.searchsorted(x, x[::-1])),
]  # fmt: skip


@each_dtype
@each("step", [1, 2])
@pytest.mark.parametrize("i", range(len(UNARY)))
def test_op_equals_numpy(dtype: Any, i: int, step: int) -> None:
    function, reference = UNARY[i]
    x = edges(dtype)
    spread = np.repeat(x, step)
    tensor = torch.from_numpy(spread)[::step]
    with np.errstate(over="ignore"):
        expected = np.asarray(reference(x))
    actual = function(tensor)
    if function in (torch.any, torch.all):
        actual = actual.bool()  # uint8 of uint8, as in PyTorch
    check(actual, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
@pytest.mark.parametrize("i", range(len(UNARY)))
def test_uint64_on_cuda_equals_numpy(i: int) -> None:
    function, reference = UNARY[i]
    x = edges(np.uint64)
    tensor = torch.from_numpy(x)
    with np.errstate(over="ignore"):
        expected = np.asarray(reference(x))
    with torch.device("cuda"):  # for the tensors that the functions make
        check(function(tensor.cuda()).cpu(), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
@pytest.mark.parametrize(("function", "reference"), BINARY, ids=lambda f: f.__name__)
def test_uint64_with_another_on_cuda_equals_the_cpu(function: Any, reference: Any) -> None:
    x, y = (torch.from_numpy(a) for a in pairs(np.uint64))
    x, y = x[y > 0], y[y > 0]
    check(function(x.cuda(), y.cuda()).cpu(), function(x, y).numpy())


@given(arrays.arrays(np.uint64, st.integers(1, 40)))
def test_uint64_is_ordered_as_python_orders_its_integers(x: np.ndarray) -> None:
    tensor, numbers = torch.from_numpy(x), [int(n) for n in x]
    assert tensor.tolist() == numbers
    assert tensor.sort().values.tolist() == sorted(numbers)
    assert (tensor.max().item(), tensor.min().item()) == (max(numbers), min(numbers))
    assert (tensor < tensor.flip(0)).tolist() == [
        a < b for a, b in zip(numbers, numbers[::-1], strict=True)
    ]
    assert tensor.double().tolist() == [float(n) for n in numbers]
    assert tensor.sum(dtype=torch.uint64).item() == sum(numbers) % 2**64


def test_python_numbers_above_int64_keep_their_value() -> None:
    largest = 2**64 - 1
    x = torch.tensor([largest, 2**63], dtype=torch.uint64)
    assert x.tolist() == [largest, 2**63]
    assert str(x) == "tensor([18446744073709551615,  9223372036854775808], dtype=torch.uint64)"
    assert torch.full((1,), largest, dtype=torch.uint64).item() == largest
    assert (x == largest).tolist() == [True, False]
    assert (x - 2**63).tolist() == [2**63 - 1, 0]
    assert int(x[0]) == largest
    assert float(x[1]) == 2.0**63
    assert range(2**64)[x[0]] == largest
    x[1] = np.uint64(2**63 + 1)
    assert x[1].item() == 2**63 + 1
    assert (torch.tensor([1.0]) + 2**63).item() == 2.0**63
    assert (torch.tensor([1]) + 2**63).item() == 1 - 2**63  # int64 wraps around, as in PyTorch


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long: 9223372036854775808"):
        torch.tensor(2**63)
    for value, dtype in [(2**63, torch.int64), (-256, torch.uint8), (2**32, torch.uint32)]:
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.tensor(value, dtype=dtype)
    for data in (2**64, [-(2**63) - 1]):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.tensor(data)
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        torch.tensor([1.0]) + 2**64
    with pytest.raises(OverflowError, match="too large to convert to float"):
        torch.tensor(10**400, dtype=torch.float64)
    assert torch.tensor([2**70], dtype=torch.float64).item() == 2.0**70
    with pytest.raises(RuntimeError, match="does not fit into int64"):
        torch.zeros(3).sum(torch.tensor(2**63, dtype=torch.uint64))


def test_division_of_unsigned_integers_by_zero_is_refused() -> None:
    x = torch.tensor([1], dtype=torch.uint64)
    for operation in (torch.floor_divide, torch.remainder, torch.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            operation(x, x - 1)
