"""Every function against array-api-strict: signatures, then values, dtypes and shapes.

The suite of the standard's authors, array-api-tests, is not on PyPI (docs/array_api.md says what of
it fails, and why); array-api-strict is their reference implementation. Inputs cover every dtype,
0-d, empty and strided arrays.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_api.reference import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    REAL,
    UNSIGNED,
    check,
    dtypes_in,
    function_of,
    numbers,
    ours,
    strict,
)
from grouping import each

import rushlight.array_api as xp

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's, of values that are tested here

# Signatures

# Where ours take more than the standard's: positions or defaults that it does not have.
WIDER = {"astype", "expand_dims", "from_dlpack"}


def test_every_name_of_the_standard_is_there() -> None:
    later = {"isin", "broadcast_shapes"}  # of version 2025.12
    of_strict = {"Device", "ArrayAPIStrictFlags", "__version__"}
    names = {n for n in strict.__all__ if "strict_flags" not in n} - later - of_strict
    assert names - set(xp.__all__) == set()
    assert set(xp.__all__) - names == set()


@pytest.mark.parametrize("extension", ["linalg", "fft"])
def test_every_name_of_an_extension_is_there(extension: str) -> None:
    assert sorted(getattr(xp, extension).__all__) == sorted(getattr(strict, extension).__all__)


FUNCTIONS = [
    *(n for n in xp.__all__ if inspect.isfunction(getattr(xp, n)) and n not in WIDER),
    *(f"linalg.{n}" for n in xp.linalg.__all__),
    *(f"fft.{n}" for n in xp.fft.__all__),
]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_signature_is_the_standard_s(name: str) -> None:
    def parameters(function: Any) -> list[Any]:
        positional = inspect.Parameter.POSITIONAL_ONLY
        return [
            (None if p.kind is positional else p.name, p.kind, p.default)
            for p in inspect.signature(function).parameters.values()
        ]

    assert parameters(function_of(name, xp)) == parameters(function_of(name, strict))


# Element by element

UNARY = {
    "abs": NUMERIC,
    **dict.fromkeys(["acos", "asin", "atan", "asinh", "tanh", "cos", "sin", "exp"], FLOATING),
    **dict.fromkeys(["cosh", "sinh", "tan", "expm1", "reciprocal"], FLOATING),
    **dict.fromkeys(["bitwise_invert"], BOOL + INTEGRAL),
    **dict.fromkeys(["ceil", "floor", "trunc"], ORDERED),
    **dict.fromkeys(["isfinite", "isinf", "isnan", "negative", "positive"], NUMERIC),
    **dict.fromkeys(["round", "square"], NUMERIC),
    **dict.fromkeys(["conj", "imag", "real"], COMPLEX),
    "logical_not": BOOL,
    "signbit": REAL,
    "sign": NUMERIC,
    **dict.fromkeys(["log", "log2", "log10", "log1p", "sqrt", "atanh", "acosh"], FLOATING),
}  # fmt: skip


@each("dtype", lambda name: UNARY[name], ids=str)
@each("shape", [(), (0,), (3, 5)], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_array(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    check(name, numbers(dtype, shape))


COMPARISONS = ["greater", "greater_equal", "less", "less_equal"]
BINARY = {
    **dict.fromkeys(["add", "multiply", "subtract"], NUMERIC),
    **dict.fromkeys(["equal", "not_equal"], ALL),
    **dict.fromkeys([*COMPARISONS, "maximum", "minimum"], ORDERED),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], BOOL + INTEGRAL),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], BOOL),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], REAL),
    **dict.fromkeys(["floor_divide", "remainder"], ORDERED),
    "divide": FLOATING,
    "pow": NUMERIC,
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGRAL),
}


def operands(name: str, first: str, second: str, shapes: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = numbers(first, shapes[0], 1), numbers(second, shapes[1], 2)
    if name in ("floor_divide", "remainder"):
        y = np.where(y == 0, np.ones_like(y), y)
    if name == "pow" and second in INTEGRAL:
        y = y % np.asarray(7, y.dtype)
    if name in ("bitwise_left_shift", "bitwise_right_shift"):
        y = y % np.asarray(8, y.dtype)
    return x, np.asarray(y)


SHAPES = [((3, 5), (5,)), ((), (4,)), ((4, 1), (1, 3)), ((0, 3), (3,)), ((), ())]


@each("dtype", lambda name: BINARY[name], ids=str)
@each("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_arrays(name: str, dtype: str, shapes: Any) -> None:
    check(name, *operands(name, dtype, dtype, shapes))


def mixed(dtypes: list[str]) -> list[tuple[str, str]]:
    """Pairs of different dtypes that promote."""
    kinds = [BOOL, INTEGRAL, FLOATING]
    pairs = itertools.permutations(dtypes, 2)
    same_kind = [(a, b) for a, b in pairs if any(a in kind and b in kind for kind in kinds)]
    return [(a, b) for a, b in same_kind if not {"uint64"} & {a, b} or {a, b} <= set(UNSIGNED)]


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_promote_as_in_the_standard(name: str) -> None:
    for first, second in mixed(BINARY[name]):
        for shapes in [((3,), (3,)), ((), (3,)), ((3,), ())]:  # 0-d arrays count in full
            check(name, *operands(name, first, second, shapes))


@pytest.mark.parametrize("name", BINARY)
def test_either_operand_may_be_a_number(name: str) -> None:
    for dtype in BINARY[name]:
        x, _ = operands(name, dtype, dtype, ((3, 2), ()))
        number: Any = True if dtype == "bool" else 2
        check(name, x, number)
        if name not in ("pow", "bitwise_left_shift", "bitwise_right_shift"):
            ones = np.ones_like(x)
            check(name, number, ones)
        if dtype in FLOATING:
            check(name, x, 2.5)
        if dtype in COMPLEX:
            check(name, x, 2 - 1j)


@pytest.mark.parametrize("dtype", ORDERED)
def test_clip(dtype: str) -> None:
    x = numbers(dtype, (3, 5))
    low, high = np.full((5,), 1, dtype), np.full((3, 1), 4, dtype)
    for bounds in [(1, 4), (None, 3), (2, None), (low, high), (None, high), (1, high), (low, 4)]:
        check("clip", x, *bounds)
    check("clip", x)


@pytest.mark.parametrize("dtype", ALL)
def test_where(dtype: str) -> None:
    condition = numbers("bool", (3, 1))
    check("where", condition, numbers(dtype, (4,)), numbers(dtype, ()))
    check("where", condition, numbers(dtype, (4,)), 1 if dtype != "bool" else True)


# Reductions

REDUCTIONS = {
    "sum": NUMERIC,
    "prod": NUMERIC,
    "max": ORDERED,
    "min": ORDERED,
    "mean": FLOATING,
    "std": REAL,
    "var": REAL,
    "all": ALL,
    "any": ALL,
    "count_nonzero": ALL,
}


@each("dtype", lambda name: REDUCTIONS[name], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, dtype: str) -> None:
    for axis in [None, 0, -1, (0, 2), (), (2, 0, 1)]:
        for keepdims in (False, True):
            check(name, numbers(dtype, (2, 3, 4)), axis=axis, keepdims=keepdims)
    check(name, numbers(dtype, ()))
    if name in ("sum", "prod", "all", "any", "count_nonzero"):
        check(name, numbers(dtype, (0, 3)), axis=0)
    if name in ("std", "var"):
        check(name, numbers(dtype, (5, 3)), axis=0, correction=1)
        check(name, numbers(dtype, (5, 3)), correction=1.5)
    if name in ("sum", "prod"):
        check(name, numbers(dtype, (3,)), dtype=f"dtype:{dtype}")


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_total(name: str, dtype: str) -> None:
    check(name, numbers(dtype, (6,)))
    for axis, initial in [(0, False), (-1, True), (1, True)]:
        check(name, numbers(dtype, (3, 4)), axis=axis, include_initial=initial)
    check(name, numbers(dtype, (3,)), dtype=f"dtype:{dtype}")
    check(name, numbers(dtype, (0,)), include_initial=True)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_diff(dtype: str) -> None:
    x = numbers(dtype, (3, 5))
    check("diff", x)
    check("diff", x, axis=0, n=2)
    check("diff", x, n=0)
    check("diff", x, prepend=numbers(dtype, (3, 1)), append=numbers(dtype, (3, 2)))


# Searching, sorting, sets


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sort(name: str, dtype: str) -> None:
    for axis in (0, -1):
        for descending in (False, True):
            check(name, numbers(dtype, (4, 7)), axis=axis, descending=descending)
    check(name, numbers(dtype, (0,)))


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_of_extreme(name: str, dtype: str) -> None:
    for axis, keepdims in itertools.product([None, 0, -1], [False, True]):
        check(name, numbers(dtype, (4, 7)), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("dtype", ALL)
def test_nonzero(dtype: str) -> None:
    check("nonzero", numbers(dtype, (3, 4)))
    check("nonzero", numbers(dtype, (0,)))
    with pytest.raises(ValueError, match="must have a dim"):
        xp.nonzero(ours(numbers(dtype, ())))


@pytest.mark.parametrize("dtype", ORDERED)
def test_searchsorted(dtype: str) -> None:
    x, values = np.sort(numbers(dtype, (9,))), numbers(dtype, (2, 3), 5)
    for side in ("left", "right"):
        check("searchsorted", x, values, side=side)
        shuffled = numbers(dtype, (9,))
        check("searchsorted", shuffled, values, side=side, sorter=np.argsort(shuffled))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["unique_counts", "unique_inverse", "unique_values", "unique_all"])
def test_set(name: str, dtype: str) -> None:
    check(name, numbers(dtype, (4, 5)))
    check(name, numbers(dtype, (0,)))
    check(name, numbers(dtype, ()))


@pytest.mark.parametrize("dtype", ALL)
def test_take(dtype: str) -> None:
    x = numbers(dtype, (4, 5))
    check("take", x, np.array([1, 0, -1]), axis=0)
    check("take", x, np.array([], np.int64), axis=-1)
    check("take", x[0], np.array([2, 2], np.uint8))
    places = np.array([[1, 0], [-1, 2], [0, 0], [4, 4]])
    check("take_along_axis", x, places)
    check("take_along_axis", x, np.array([[0, 1, 2, -1, 0]]), axis=0)


# Creation and manipulation


@pytest.mark.parametrize("dtype", ALL)
def test_creation(dtype: str) -> None:
    d = f"dtype:{dtype}"
    for shape in [(), 3, (2, 0), (2, 3)]:
        check("zeros", shape, dtype=d)
        check("ones", shape, dtype=d)
        check("full", shape, 1 if dtype != "bool" else True, dtype=d)
    x = numbers(dtype, (2, 3))
    for name in ("zeros_like", "ones_like"):
        check(name, x)
        check(name, x, dtype="dtype:float32")
    check("full_like", x, 1 if dtype != "bool" else True)
    for args, k in [((3,), 0), ((3, 4), 1), ((3, 4), -2), ((2, 2), 9), ((2, 2), -9), ((0,), 0)]:
        check("eye", *args, k=k, dtype=d)
    check("tril", numbers(dtype, (2, 3, 4)), k=-1)
    check("triu", numbers(dtype, (3, 4)), k=1)
    assert xp.empty(2, dtype=dtypes_in(d, xp)).dtype is dtypes_in(d, xp)
    assert xp.empty_like(ours(x)).shape == (2, 3)


def test_creation_has_the_default_dtypes() -> None:
    assert xp.zeros(1).dtype is xp.float32
    assert xp.full(1, 1).dtype is xp.int64
    assert xp.full(1, True).dtype is xp.bool
    assert xp.full(1, 1j).dtype is xp.complex64
    assert xp.asarray([1, 2]).dtype is xp.int64
    assert xp.asarray([1, 2.0]).dtype is xp.float32
    assert xp.asarray([1, 2.0, 3j]).dtype is xp.complex64
    assert xp.asarray([True, False]).dtype is xp.bool
    assert xp.arange(3).dtype is xp.int64
    assert xp.arange(3.0).dtype is xp.float32
    assert xp.linspace(0, 1, 3).dtype is xp.float32
    assert xp.linspace(0, 1j, 3).dtype is xp.complex64


@pytest.mark.parametrize("dtype", ORDERED)
def test_ranges(dtype: str) -> None:
    d = f"dtype:{dtype}"
    for args in [(5,), (2, 7), (1, 9, 3), (5, 2), (0,), (3, 3, 2)]:
        check("arange", *args, dtype=d)
    if dtype not in UNSIGNED:
        for args in [(7, 1, -2), (1, 7, -2), (-3,)]:
            check("arange", *args, dtype=d)


@pytest.mark.parametrize("dtype", FLOATING)
def test_linspace(dtype: str) -> None:
    d = f"dtype:{dtype}"
    for num, endpoint in [(5, True), (5, False), (1, True), (1, False), (0, True)]:
        check("linspace", -1, 3, num, dtype=d, endpoint=endpoint)
        if dtype in COMPLEX:
            check("linspace", -1 + 2j, 3, num, dtype=d, endpoint=endpoint)


@pytest.mark.parametrize("dtype", ALL)
def test_manipulation(dtype: str) -> None:
    x, y = numbers(dtype, (2, 3, 4)), numbers(dtype, (2, 1, 4), 3)
    check("broadcast_to", y, (2, 3, 4))
    check("broadcast_arrays", x, y, numbers(dtype, ()))
    check("concat", [x, y], axis=1)
    check("concat", [x, y], axis=None)
    check("stack", [x, x], axis=-1)
    for axis in (0, -1, 3):
        check("expand_dims", x, axis=axis)
    for axis in (None, 1, (0, -1), ()):
        check("flip", x, axis=axis)
    check("moveaxis", x, 0, 2)
    check("moveaxis", x, (0, 1), (-1, 0))
    check("permute_dims", x, (2, 0, 1))
    check("repeat", x, 2)
    check("repeat", x, 2, axis=1)
    check("repeat", x, np.array([1, 0, 2]), axis=1)
    check("reshape", x, (4, -1))
    check("reshape", x, (24,), copy=True)
    for shift, axis in [(5, None), (-1, 0), ((1, 2), (0, -1)), (2, (0, 1)), (1, -2)]:
        check("roll", x, shift, axis=axis)
    check("squeeze", y, 1)
    check("squeeze", numbers(dtype, (1, 2, 1)), axis=(0, -1))
    for repetitions in [(2,), (2, 1, 3), (2, 1, 1, 2), (), (0,)]:
        check("tile", x, repetitions)
    check("unstack", x, axis=1)
    check("meshgrid", x[0, 0], y[0, 0], indexing="ij")
    check("meshgrid", x[0, 0], y[0, 0], x[0, 1])


def test_what_is_out_of_range_is_refused() -> None:
    x = xp.ones((2, 3))
    for call in (
        lambda: xp.expand_dims(x, axis=4),
        lambda: xp.expand_dims(x, axis=-4),
        lambda: xp.squeeze(x, 2),
        lambda: xp.sum(x, axis=2),
        lambda: xp.take(x, xp.asarray([0]), axis=2),
        lambda: xp.flip(x, axis=2),
        lambda: xp.sort(x, axis=-3),
    ):
        with pytest.raises(IndexError):
            call()
    for call in (
        lambda: xp.squeeze(x, 0),
        lambda: xp.take(x, xp.asarray([0])),
        lambda: xp.cumulative_sum(x),
        lambda: xp.matrix_transpose(x[0]),
        lambda: xp.meshgrid(x[0], indexing="ji"),
        lambda: xp.isdtype(xp.int8, "whole"),
        lambda: xp.result_type(),
        lambda: xp.searchsorted(x[0], x[0], side="middle"),
        lambda: xp.diff(x, n=-1),
        lambda: xp.expand_dims(x, (0, 0)),
        lambda: xp.prod(x, axis=(0, -2)),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call()
    with pytest.raises(TypeError, match="Make arrays with asarray"):
        xp.add(1, 2)


# Dtypes


@pytest.mark.parametrize("dtype", ALL)
def test_astype(dtype: str) -> None:
    for other in ALL:
        x = numbers(dtype, (5,))
        if dtype in COMPLEX and other not in [*COMPLEX, "bool"]:
            with pytest.raises(TypeError, match=r"xp\.real"):
                xp.astype(ours(x), getattr(xp, other))
            continue
        if dtype in FLOATING and other in INTEGRAL:
            x = abs(x)
        if other in INTEGRAL and dtype in INTEGRAL:
            x = x[2:]
        mine = xp.astype(ours(x), getattr(xp, other))
        np.testing.assert_array_equal(mine.numpy(), x.astype(other))
    same = ours(numbers(dtype, (3,)))
    assert xp.astype(same, same.dtype, copy=False) is same
    assert xp.astype(same, same.dtype) is not same


def outcome(function: Callable[[], Any]) -> str:
    try:
        return str(function())
    except (TypeError, RuntimeError):
        return "refused"


@each("second", ALL, ids=str)
@pytest.mark.parametrize("first", ALL)
def test_result_type_within_a_kind(first: str, second: str) -> None:
    mine = outcome(lambda: xp.result_type(getattr(xp, first), getattr(xp, second)))
    reference = outcome(lambda: strict.result_type(getattr(strict, first), getattr(strict, second)))
    if reference != "refused":  # other pairs are ours to decide
        assert mine.removeprefix("torch.") == reference.rpartition(".")[2]


@pytest.mark.parametrize("dtype", ALL)
def test_kinds_and_limits(dtype: str) -> None:
    d, other = getattr(xp, dtype), getattr(strict, dtype)
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    for kind in [*kinds, "complex floating", "numeric", ("bool", "integral")]:
        assert xp.isdtype(d, kind) == strict.isdtype(other, kind)
    assert xp.isdtype(d, d)
    assert xp.isdtype(d, (xp.int8, d))
    if dtype in FLOATING:
        mine, theirs_ = xp.finfo(d), strict.finfo(other)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(mine, field) == getattr(theirs_, field)
        assert mine.dtype is d.to_real()
    if dtype in INTEGRAL:
        mine, theirs_ = xp.iinfo(d), strict.iinfo(other)
        assert (mine.bits, mine.max, mine.min) == (theirs_.bits, theirs_.max, theirs_.min)
        assert mine.dtype is d
    for target in ALL:
        ours_, reference = getattr(xp, target), getattr(strict, target)
        kind_of = next(k for k in (BOOL, INTEGRAL, FLOATING) if dtype in k)
        if target in kind_of:
            assert xp.can_cast(d, ours_) == strict.can_cast(other, reference), target


# Linear algebra


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products(dtype: str) -> None:
    def matrix(*shape: int, seed: int = 0) -> np.ndarray:
        return numbers(dtype, shape, seed)

    check("matmul", matrix(3, 4), matrix(4, 2, seed=1))
    check("matmul", matrix(4), matrix(4, 2, seed=1))
    check("matmul", matrix(3, 4), matrix(4, seed=1))
    check("matmul", matrix(4), matrix(4, seed=1))
    check("matmul", matrix(2, 1, 3, 4), matrix(5, 4, 2, seed=1))
    check("matmul", matrix(3, 0), matrix(0, 2))
    check("matrix_transpose", matrix(2, 3, 4))
    check("tensordot", matrix(2, 3, 4), matrix(3, 4, 5, seed=1))
    check("tensordot", matrix(2, 3, 4), matrix(4, 3, seed=1), axes=((1, 2), (1, 0)))
    check("tensordot", matrix(2), matrix(3, seed=1), axes=0)
    check("vecdot", matrix(2, 3), matrix(3, seed=1))
    check("vecdot", matrix(3, 2), matrix(3, 2, seed=1), axis=-2)


def test_products_promote() -> None:
    for first, second in [("float32", "float64"), ("int8", "int16"), ("float64", "complex64")]:
        x, y = numbers(first, (3, 3)), numbers(second, (3, 3), 1)
        for name in ("matmul", "tensordot", "vecdot"):
            check(name, x, y)
