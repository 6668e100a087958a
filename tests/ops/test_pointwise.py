"""Pointwise ops where samples do not reach: the ends of the range, integers, dtypes, layouts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import scipy.special

import rushlight as torch
import rushlight.nn.functional as F

inf, nan = np.inf, np.nan


def ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distances from values of more digits in units of the last place of the actual dtype."""
    unit = np.spacing(np.abs(exact).astype(actual.dtype)).astype(exact.dtype)
    return np.abs(actual.astype(exact.dtype) - exact) / unit


# Function, reference, range, and how many ulps of float32 are allowed.
ACCURACY: list[tuple[Any, Any, float, float, float]] = [
    (torch.exp2, np.exp2, -125, 127, 2),
    (torch.expm1, np.expm1, -20, 80, 3),
    (torch.log1p, np.log1p, -0.99, 1e6, 3),
    (torch.tanh, np.tanh, -12, 12, 3),
    (torch.atanh, np.arctanh, -0.9999, 0.9999, 3),
    (torch.erf, scipy.special.erf, -5, 5, 5),
    (torch.erfc, scipy.special.erfc, -5, 9, 4),
    (torch.erfinv, scipy.special.erfinv, -0.999, 0.999, 5),
    (torch.lgamma, scipy.special.gammaln, 0.001, 3, 1),
    (torch.lgamma, scipy.special.gammaln, 3, 1e30, 1),
    (torch.lgamma, scipy.special.gammaln, -30, 0, 1),
    (torch.digamma, scipy.special.digamma, 0.001, 3, 1),
    (torch.digamma, scipy.special.digamma, 3, 1e30, 1),
    (torch.digamma, scipy.special.digamma, -30, 0, 1),
    (torch.sigmoid, scipy.special.expit, -85, 85, 4),
    (F.softplus, lambda x: np.logaddexp(0, x), -80, 19.9, 4),
    (F.logsigmoid, scipy.special.log_expit, -80, 80, 4),
    (F.silu, lambda x: x * scipy.special.expit(x), -80, 80, 4),
    (F.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), -80, 80, 5),
    (F.gelu, lambda x: x * scipy.special.ndtr(x), -9.5, 10, 66),
    (F.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -30, 10, 3),
]


@pytest.mark.parametrize(("function", "reference", "low", "high", "allowed"), ACCURACY)
def test_float32_is_within_a_few_ulps(
    function: Any, reference: Any, low: float, high: float, allowed: float
) -> None:
    x = np.linspace(low, high, 100_003).astype(np.float32)
    x = x[(x >= low) & (x <= high)]
    actual, exact = function(torch.from_numpy(x)).numpy(), reference(x.astype(np.float64))
    finite = np.isfinite(exact)  # the gamma function has poles
    assert ulps(actual[finite], exact[finite]).max() <= allowed


def every_kind_of_float(dtype: Any) -> np.ndarray:
    """Numbers of all exponents and signs, infinities, NaNs, multiples of pi / 2, and usual ones."""
    unsigned = np.uint32 if dtype == np.float32 else np.uint64
    integers = np.arange(65_521, dtype=unsigned) * unsigned(np.iinfo(unsigned).max // 65_521)
    quarters = (np.arange(-4000, 4000) * (np.pi / 2)).astype(dtype)
    usual = np.linspace(-3, 3, 30_011).astype(dtype)
    return np.concatenate([integers.view(dtype), np.spacing(quarters) + quarters, quarters, usual])


def assert_within_ulps(actual: np.ndarray, exact: np.ndarray, allowed: float) -> None:
    """That zeros and what is not finite are right, and all other numbers nearly."""
    expected = exact.astype(actual.dtype)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    assert ulps(actual[finite], exact[finite]).max() < allowed
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))


# Processors without fused products have libmvec's functions, or the C library's.
OWN = 1.0 if torch.backends.cpu.get_cpu_capability() != "DEFAULT" else 4.0
OURS = [
    "sin", "cos", "log", "log2", "log10", "log1p", "expm1", "sinh", "cosh", "arcsin", "arccos",
    "arctan", "arcsinh", "arccosh", "arctanh",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "allowed"), [("exp", 1.1), ("tanh", 2.5), *((name, OWN) for name in OURS)]
)
def test_errors_in_ulps_for_every_kind_of_float(name: str, allowed: float, dtype: Any) -> None:
    x = every_kind_of_float(dtype)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.longdouble))
        assert_within_ulps(getattr(torch, name)(torch.from_numpy(x)).numpy(), exact, allowed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_in_ulps_of_the_angles_of_points(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.choice(every_kind_of_float(dtype), (2, 100_000))
    info = np.finfo(dtype)
    ends = np.array([0, info.smallest_subnormal, 1, info.max / 4.1, info.max, inf, nan])
    corners = np.meshgrid(*[np.concatenate([ends, -ends]).astype(dtype)] * 2)
    with np.errstate(all="ignore"):
        near = (x * rng.uniform(-3, 3, x.shape)).astype(dtype)
        x, y = (
            np.concatenate([x, x, corners[0].ravel()]),
            np.concatenate([y, near, corners[1].ravel()]),
        )
        exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
        actual = torch.atan2(torch.from_numpy(y), torch.from_numpy(x)).numpy()
        assert_within_ulps(actual, exact, OWN)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter_of_every_kind_of_float(dtype: Any) -> None:
    info = np.finfo(dtype)
    kinds = [0.0, info.smallest_subnormal, info.tiny, 1.0, info.max, inf, nan]
    x, y = np.meshgrid(*[np.array(kinds + [-kind for kind in kinds], dtype)] * 2)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    actual = torch.nextafter(torch.from_numpy(x.copy()), torch.from_numpy(y.copy())).numpy()
    np.testing.assert_array_equal(actual, expected)
    signs = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[signs]), np.signbit(expected[signs]))


def test_lgamma_and_digamma_at_zeros_and_poles() -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([1.0, 2.0, 0.0, -0.0, -1.0, -1e30, inf, -inf, nan], dtype=dtype)
        logs, slopes = torch.lgamma(x).numpy(), torch.digamma(x[2:]).numpy()
        np.testing.assert_array_equal(logs, [0, 0, inf, inf, inf, inf, inf, inf, nan])
        np.testing.assert_array_equal(slopes, [-inf, inf, nan, nan, inf, nan, nan])


ENDS = [-inf, -1e4, -50.0, 0.0, 200.0, 1e4, inf, nan]
AT_ENDS: list[tuple[Any, list[float]]] = [
    (torch.exp, [0, 0, np.exp(-50), 1, inf, inf, inf, nan]),
    (torch.sigmoid, [0, 0, np.exp(-50), 0.5, 1, 1, 1, nan]),
    (torch.tanh, [-1, -1, -1, 0, 1, 1, 1, nan]),
    (torch.erfc, [2, 2, 2, 1, 0, 0, 0, nan]),
    (torch.relu, [0, 0, 0, 0, 200, 1e4, inf, nan]),
    (F.softplus, [0, 0, np.exp(-50), np.log(2), 200, 1e4, inf, nan]),
    (F.logsigmoid, [-inf, -1e4, -50, -np.log(2), -0.0, 0, 0, nan]),
    (F.elu, [-1, -1, -1, 0, 200, 1e4, inf, nan]),
    (F.hardtanh, [-1, -1, -1, 0, 1, 1, 1, nan]),
    (torch.sign, [-1, -1, -1, 0, 1, 1, 1, 0]),
    (lambda x: torch.logaddexp(x, x), [v + np.log(2) for v in ENDS]),
    (lambda x: torch.clamp(x, -2, 2), [-2, -2, -2, 0, 2, 2, 2, nan]),
    (lambda x: torch.maximum(x, torch.zeros_like(x)), [0, 0, 0, 0, 200, 1e4, inf, nan]),
    (lambda x: torch.fmax(x, torch.zeros_like(x)), [0, 0, 0, 0, 200, 1e4, inf, 0]),
    (
        lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x), reduction="none"),
        [inf, 1e4, 50, np.log(2), 0, 0, nan, nan],
    ),
]


@pytest.mark.parametrize(("function", "expected"), AT_ENDS)
def test_the_ends_of_the_range(function: Any, expected: list[float]) -> None:
    for repeats in (1, 9):  # alone, and in whole vectors
        x = torch.from_numpy(np.repeat(np.array(ENDS, np.float32), repeats))
        np.testing.assert_allclose(
            function(x).numpy(), np.repeat(expected, repeats), rtol=1e-6, atol=0
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_is_close_where_results_are_subnormal_or_overflow(dtype: Any) -> None:
    info = np.finfo(dtype)
    lowest, highest = np.log(info.smallest_subnormal), np.log(info.max)
    huge = [sign * value for sign in (-1, 1) for value in (1e4, 2.0**23, 2.0**52, 1e19, info.max)]
    x = np.append(np.linspace(lowest - 1, highest + 1, 5000), huge).astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x.astype(np.longdouble)).astype(dtype)
    np.testing.assert_allclose(
        torch.tensor(x).exp().numpy(), expected, rtol=2 * info.eps, atol=info.smallest_subnormal
    )


@pytest.mark.parametrize(
    "function", [torch.sigmoid, F.softplus, F.logsigmoid, F.gelu, F.elu, F.mish]
)
def test_gradients_stay_finite_where_exp_overflows(function: Any) -> None:
    x = torch.tensor([-1000.0, -100.0, 100.0, 1000.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    assert torch.isfinite(gradient).all()
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert torch.isfinite(second).all()


# Integers


def test_integer_division_rounds_like_python() -> None:
    for a, b in itertools.product(range(-7, 8), [-3, -2, -1, 1, 2, 3]):
        x, y = torch.tensor([a]), torch.tensor([b])
        assert (x // y).item() == a // b
        assert (x % y).item() == a % b
        assert torch.fmod(x, y).item() == int(np.fmod(a, b))
        assert torch.div(x, y, rounding_mode="trunc").item() == int(a / b)
        assert torch.div(x, y, rounding_mode="floor").item() == a // b


def test_float_floor_division_is_pythons() -> None:
    for a, b in [(1.0, 0.1), (-1.0, 0.1), (7.5, -2.0), (-1.0, inf), (0.0, -3.0), (5.0, 5.0)]:
        x, y = torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
        assert (x // y).item() == a // b
        assert (x % y).item() == a % b


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "div"])
def test_integer_division_by_zero_raises(name: str) -> None:
    settings = {"rounding_mode": "floor"} if name == "div" else {}
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, name)(torch.tensor([1, 2]), torch.tensor([1, 0]), **settings)
    nothing = torch.empty(0, dtype=torch.int64)
    for zero in (0, torch.tensor(0), torch.tensor([0])):
        assert getattr(torch, name)(nothing, zero, **settings).shape == (0,)


def test_int64_extremes_wrap_and_do_not_trap() -> None:
    least = torch.tensor([-(2**63)])
    for result in (least // -1, abs(least), -least, least * -1):
        assert result.item() == -(2**63)
    assert (least % -1).item() == 0
    assert (torch.tensor([2**62]) * 4).item() == 0


def test_small_integers_wrap_around() -> None:
    x = torch.tensor([200, 100], dtype=torch.uint8)
    assert (x + 100).tolist() == [44, 200]
    assert (x * x).tolist() == [200 * 200 % 256, 100 * 100 % 256]
    assert (-torch.tensor([-128], dtype=torch.int8)).item() == -128


def test_shifts_past_the_width_move_all_bits_out() -> None:
    x = torch.tensor([5, -5])
    assert (x << 1).tolist() == [10, -10]
    for by in (64, 1000, -1):
        assert (x << by).tolist() == [0, 0]
        assert (x >> by).tolist() == [0, -1]


def test_integer_powers() -> None:
    x = torch.tensor([-3, -1, 0, 1, 2])
    for n in range(6):
        assert (x**n).tolist() == [v**n for v in x.tolist()]
    assert (x ** torch.tensor([-1, -3, 2, -2, -1])).tolist() == [0, -1, 0, 1, 0]
    assert (torch.tensor([3]) ** torch.tensor([40])).item() == 3**40 % 2**64 - 2**64 * (
        3**40 % 2**64 >= 2**63
    )
    with pytest.raises(RuntimeError, match="negative integer powers are not allowed"):
        _ = x**-1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_numbers_equal_what_rounds_to_them(dtype: torch.dtype, device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is neither GPU nor shim")
    x = torch.tensor([0.1, 0.3], dtype=dtype, device=device)
    for number in (0.1, torch.tensor(0.1, dtype=torch.float64)):
        assert (x == number).tolist() == (number == x).tolist() == [True, False]
        assert (x >= number).tolist() == (number <= x).tolist() == [True, True]
        assert (x < number).tolist() == (x <= number / 2).tolist() == [False, False]
    assert x.clone().eq_(0.1).tolist() == [1, 0]
    whole = torch.tensor([2049, 7], dtype=torch.int32, device=device)
    assert (whole == torch.tensor([2048.0, 8.0], dtype=dtype, device=device)).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_nextafter_of_every_float16_equals_numpy(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is neither GPU nor shim")
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for target in (-np.inf, -0.0, 0.0, 1.0, np.inf, np.nan):
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, np.float16(target))
        towards = torch.tensor(target, dtype=torch.float16, device=device)
        actual = torch.nextafter(torch.from_numpy(x).to(device), towards).cpu().numpy()
        np.testing.assert_array_equal(actual, expected)
        matters = ~np.isnan(expected) & (x != target)  # of equal ones, C returns the second
        np.testing.assert_array_equal(np.signbit(actual)[matters], np.signbit(expected)[matters])


def test_nextafter_of_bfloat16_is_its_neighbor() -> None:
    x = torch.tensor([1.0, 0.0, -1.0], dtype=torch.bfloat16)
    y = torch.nextafter(x, torch.tensor(2.0, dtype=torch.bfloat16))
    assert y.tolist() == [1 + 2**-7, 2.0**-133, -1 + 2**-8]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_nextafter_is_not_written_where_it_does_not_fit(dtype: torch.dtype) -> None:
    x, row = torch.ones(5, 1, dtype=dtype), torch.zeros(5, dtype=dtype)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.nextafter_(row)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.nextafter(row, row, out=torch.zeros(5, dtype=torch.int64))
    assert x.sum().item() == 5


# Dtypes


PROMOTIONS = [
    (torch.float32, torch.float64, torch.float64),
    (torch.float16, torch.bfloat16, torch.float32),
    (torch.int64, torch.float16, torch.float16),
    (torch.uint8, torch.int8, torch.int16),
    (torch.bool, torch.int32, torch.int32),
    (torch.float64, torch.complex64, torch.complex128),
    (torch.float16, 2.5, torch.float16),
    (torch.int32, 2.5, torch.float32),
    (torch.int32, 2, torch.int32),
    (torch.uint8, True, torch.uint8),
    (torch.bool, 2, torch.int64),
    (torch.float32, 1j, torch.complex64),
]


@pytest.mark.parametrize(("left", "right", "expected"), PROMOTIONS)
def test_operands_are_promoted(left: Any, right: Any, expected: Any) -> None:
    a = torch.ones(3, dtype=left)
    b = torch.ones(3, dtype=right) if isinstance(right, torch.dtype) else right
    assert (a + b).dtype is expected
    assert (b * a).dtype is expected
    assert (a == b).dtype is torch.bool


def test_zero_dim_tensors_promote_by_category_only() -> None:
    half = torch.ones(2, dtype=torch.float16)
    assert (half + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float16
    assert (torch.ones(2, dtype=torch.int32) + torch.tensor(1.5)).dtype is torch.float32


def test_integers_become_floats_where_a_function_needs_them() -> None:
    x = torch.tensor([1, 4])
    assert torch.sqrt(x).dtype is torch.float32
    assert (x / 2).tolist() == [0.5, 2.0]
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.div_(2)
    with pytest.raises(NotImplementedError, match="not implemented for complex64"):
        torch.floor(torch.ones(2, dtype=torch.complex64))


def test_every_half_survives_a_round_trip() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = torch.from_numpy(halves)
    with np.errstate(invalid="ignore"):  # AArch64 warns of signaling NaN
        expected = halves.astype(np.float32)
    np.testing.assert_array_equal(x.float().numpy(), expected)
    np.testing.assert_array_equal(x.float().half().numpy(), halves)


def test_floats_round_to_half_like_numpy() -> None:
    bits = np.arange(0, 2**32, 64_007, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(torch.from_numpy(x).half().numpy(), expected)


def test_floats_round_to_bfloat16_with_nan_among_them() -> None:
    in_order = np.arange(0, 2**32, 64_007, dtype=np.uint64).astype(np.uint32)
    for bits in (in_order, np.random.default_rng(0).permutation(in_order)):
        x = bits.view(np.float32)
        rounded = bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)
        expected = np.where(np.isnan(x), bits | 0x400000, rounded) >> 16
        actual = torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)
        np.testing.assert_array_equal(actual, expected)


def test_complex_numbers_follow_numpy() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=(2, 40)) + 1j * generator.normal(size=(2, 40))).reshape(2, 40)
    x, y = torch.from_numpy(a.copy()), torch.from_numpy(b.copy())
    for mine, theirs in [
        (x + y, a + b), (x * y, a * b), (x / y, a / b), (x**2, a**2), (x**y, a**b),
        (torch.exp(x), np.exp(a)), (torch.sqrt(x), np.sqrt(a)), (torch.tanh(x), np.tanh(a)),
        (torch.log1p(x), np.log1p(a)), (torch.sgn(x), a / abs(a)), (x.conj(), a.conj()),
    ]:  # fmt: skip
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)
    assert abs(x).dtype is torch.float64


def test_zeta_of_huge_arguments_ends() -> None:
    s = torch.tensor([torch.inf, 1e20, 2.0, torch.inf], dtype=torch.float64)
    q = torch.tensor([1e30, 1e17, 1e30, 1.0], dtype=torch.float64)
    expected = [0, 0, 1e-30, 1]
    np.testing.assert_allclose(torch.special.zeta(s, q).numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_products_and_quotients_are_no_more_than_their_formulas(dtype: Any) -> None:
    z = torch.randn(1000, dtype=dtype)
    assert (z * z.conj()).imag.eq(0).all()  # no product is added before it is rounded
    assert (z / z).allclose(torch.ones_like(z))
    far = torch.tensor([1e30 + 1e30j, 1e-30 - 1e-30j, 1e30j, 3 - 4j], dtype=dtype)
    assert (far / far).tolist() == [1, 1, 1, 1]
    assert torch.reciprocal(far).allclose(
        torch.tensor([5e-31 - 5e-31j, 5e29 + 5e29j, -1e-30j, 0.12 + 0.16j], dtype=dtype), atol=0
    )
    over_zero = (torch.tensor([1 + 1j, -1 + 0j], dtype=dtype) / 0).tolist()
    assert over_zero[0] == complex(torch.inf, torch.inf)
    assert over_zero[1].real == -torch.inf and math.isnan(over_zero[1].imag)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_signs_of_halves_move_without_a_conversion(dtype: Any) -> None:
    x = torch.tensor([0.0, -0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan, 6e-8], dtype=dtype)
    y = torch.tensor(-3.0, dtype=torch.float64)
    for f in (torch.neg, torch.abs, lambda v: torch.copysign(v, y), lambda v: torch.copysign(v, v)):
        for v in (x, x[::2], x.view(2, 4).t()):
            assert f(v).dtype is dtype
            want = f(v.float())
            assert torch.equal(f(v).float().nan_to_num(9), want.nan_to_num(9))
            assert torch.equal(f(v).signbit(), want.signbit())
    assert torch.equal(x.clone().neg_().signbit(), ~x.signbit())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_arithmetic_of_halves_is_that_of_floats_rounded_once(dtype: Any) -> None:
    x, y = (torch.arange(n, dtype=torch.int32).to(torch.int16) * 7 + n for n in (70001, 70001))
    x, y = x.view(dtype), y.flip(0).view(dtype)
    ops: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: torch.add(a, b, alpha=0.3),
        "mul": torch.mul, "div": torch.div, "square": lambda a, b: a.square(),
        "sqrt": lambda a, b: a.sqrt(), "reciprocal": lambda a, b: a.reciprocal(),
        "maximum": torch.maximum, "clamp": lambda a, b: a.clamp(-1, 1),
        "relu6": lambda a, b: F.relu6(a), "sign": lambda a, b: a.sign(),
        "clamp to bounds that it does not hold": lambda a, b: a.clamp(-0.1, 0.3),
        "threshold": lambda a, b: F.threshold(a, 0.1, 0.7), "trunc": lambda a, b: a.trunc(),
        "round": lambda a, b: a.round(), "addcmul": lambda a, b: torch.addcmul(a, a, b),
        "where": lambda a, b: torch.where(a > b, a, b),
        "masked_fill": lambda a, b: a.masked_fill(a > b, 0.5),
        "masked_fill with what it does not hold": lambda a, b: a.masked_fill(a > b, 0.1),
        "by a number that it holds": lambda a, b: a * 0.75,
        "by one that it does not hold": lambda a, b: a * 0.1,
        "by integers": lambda a, b: a * torch.full_like(a, 2049, dtype=torch.int64),
        "by a float64": lambda a, b: a + torch.tensor(1e-3, dtype=torch.float64),
    }  # fmt: skip
    for name, op in ops.items():
        found, want = op(x, y), op(x.float(), y.float()).to(dtype)
        same = (found == want) | (found.isnan() & want.isnan())
        assert same.all(), name
        assert torch.equal(op(x[3:20], y[3:20]).nan_to_num(9), found[3:20].nan_to_num(9)), name
        assert torch.equal(op(x[::3], y[::3]).nan_to_num(9), found[::3].nan_to_num(9)), name


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_expm1_and_log1p_are_exact_near_zero(dtype: Any) -> None:
    z = np.array([1e-12 + 2e-12j, -3e-9j, 1e-20, 0, -1e-6 + 1e-7j])
    x = torch.from_numpy(z).to(dtype)
    tolerance = 1e-6 if dtype is torch.complex64 else 1e-14
    np.testing.assert_allclose(x.expm1().numpy(), z + z**2 / 2 + z**3 / 6, rtol=tolerance)
    np.testing.assert_allclose(x.log1p().numpy(), z - z**2 / 2 + z**3 / 3, rtol=tolerance)


def test_complex_log_sums_of_nothing_are_minus_infinity() -> None:
    nothing = torch.tensor([[-torch.inf, -torch.inf], [-torch.inf, 2 + 3j]])
    assert nothing.logsumexp(1).tolist() == [complex(-torch.inf, 0), 2 + 3j]
    assert nothing.logcumsumexp(1).tolist()[1] == [complex(-torch.inf, 0), 2 + 3j]
    assert torch.logaddexp(nothing[0], nothing[1]).tolist() == nothing[1].tolist()
    assert torch.zeros(2, 0, dtype=torch.complex64).logsumexp(1).tolist() == [-torch.inf] * 2


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "square", "sgn", "atanh"])
def test_complex_gradients_follow_the_conjugate_convention(name: str) -> None:
    generator = np.random.default_rng(1)
    point = generator.normal(size=3) + 1j * generator.normal(size=3)
    cotangent = generator.normal(size=3) + 1j * generator.normal(size=3)
    x = torch.from_numpy(point.copy()).requires_grad_()
    f = getattr(torch, name)
    (gradient,) = torch.autograd.grad(f(x), x, torch.from_numpy(cotangent.copy()))

    def slope(direction: complex) -> np.ndarray:
        step = 1e-6 * direction
        ahead, behind = (f(torch.from_numpy(point + s)).numpy() for s in (step, -step))
        return (cotangent.conj() * (ahead - behind) / 2e-6).real

    np.testing.assert_allclose(gradient.numpy(), slope(1) + 1j * slope(1j), rtol=1e-6, atol=1e-8)


# Layouts


LAYOUTS = {
    "contiguous": lambda a: torch.from_numpy(a.copy()),
    "transposed": lambda a: torch.from_numpy(np.array(a, order="F")),
    "every other": lambda a: torch.from_numpy(np.repeat(a, 2, axis=-1))[..., ::2],
    "expanded": lambda a: torch.from_numpy(a[:1].copy()).expand(*a.shape),
    "other dtype": lambda a: torch.from_numpy(a.astype(np.float32)),
}


@pytest.mark.parametrize("shape", [(3, 5), (70, 65), (300, 257), (2, 3, 1100), (1, 1)])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_any_two_layouts_meet(shape: tuple[int, ...], left: str, right: str) -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(-50, 50, size=(2, *shape)).astype(np.float64)
    x, y = LAYOUTS[left](a), LAYOUTS[right](b)
    np.testing.assert_array_equal((x - y).numpy(), x.numpy() - y.numpy())
    target = LAYOUTS["transposed"](a)
    target.sub_(y)
    np.testing.assert_array_equal(target.numpy(), a - y.numpy())


@pytest.mark.parametrize("count", [1, 7, 64, 1023, 1025, 40_001, 100_003])
def test_numbers_meet_tensors_of_any_length(count: int) -> None:
    a = np.arange(count, dtype=np.float32)
    x = torch.from_numpy(a.copy())
    np.testing.assert_array_equal((x + 1.5).numpy(), a + np.float32(1.5))
    np.testing.assert_array_equal((2 - x).numpy(), 2 - a)
    np.testing.assert_array_equal(torch.where(x > 3, x, -1).numpy(), np.where(a > 3, a, -1))


def test_results_keep_channels_last() -> None:
    x = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for result in (x + 1, x * x, torch.exp(x), x + torch.rand(2, 3, 4, 5)):
        assert result.is_contiguous(memory_format=torch.channels_last)


def test_in_place_writes_see_the_old_values_of_overlapping_views() -> None:
    x = torch.arange(6.0)
    x[1:].add_(x[:-1])
    assert x.tolist() == [0, 1, 3, 5, 7, 9]
    x = torch.arange(4.0).reshape(2, 2)
    x.add_(x.t())
    assert x.tolist() == [[0, 3], [3, 6]]


# Forms


ALIASES = {
    "absolute": "abs", "negative": "neg", "fix": "trunc", "arcsin": "asin", "arccosh": "acosh",
    "arctan2": "atan2", "multiply": "mul", "divide": "div", "true_divide": "div",
    "subtract": "sub", "clip": "clamp", "greater": "gt", "less_equal": "le", "not_equal": "ne",
}  # fmt: skip


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases_are_the_same_op(alias: str, name: str) -> None:
    rows = {r["name"]: r for r in torch._C._op_table() if not r["overload"]}
    assert rows[alias]["alias_of"] == name
    assert rows[alias]["args"] == rows[name]["args"]
    assert hasattr(torch, alias)
    assert hasattr(torch.Tensor, alias)


INPLACE = [F.relu, F.relu6, F.leaky_relu, F.elu, F.celu, F.selu, F.silu, F.mish, F.hardtanh]
INPLACE += [F.hardsigmoid, F.hardswish]


@pytest.mark.parametrize("function", INPLACE)
def test_inplace_argument_writes_the_input_and_keeps_the_gradient(function: Any) -> None:
    start = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
    plain = function(start)
    x = start * 1
    written = function(x, inplace=True)
    assert written is x
    np.testing.assert_array_equal(x.detach().numpy(), plain.detach().numpy())
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    expected, actual = (torch.autograd.grad(y, start, weights)[0] for y in (plain, x))
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_in_place_forms_without_derivative_have_zero_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 1).eq_(1).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_numbers_may_stand_first_in_powers_and_remainders() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.pow(2, x).tolist() == [2, 4, 8]
    assert torch.remainder(7, x).tolist() == [0, 1, 1]
    assert torch.float_power(2, x).dtype is torch.float64
    assert torch.xlogy(0, x).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_divided_by_a_number_rounded_to_one(dtype: torch.dtype) -> None:
    x, tenth = torch.tensor([1.0, -2.0, 3.0], dtype=dtype), torch.tensor(0.1, dtype=dtype)
    for divide in (torch.remainder, torch.fmod):
        assert torch.equal(divide(x, 0.1), divide(x, tenth))
        assert torch.equal(divide(x, 2), divide(x, torch.tensor(2.0, dtype=dtype)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["xlogy", "special.xlogy", "special.xlog1py"])
def test_halves_meet_a_number_in_a_logarithm_as_it_rounds(name: str, dtype: torch.dtype) -> None:
    function = attrgetter(name)(torch)
    x = torch.tensor([0.1, 17.3, 100.0], dtype=dtype)
    for number in (0.1, 2.7, 3, 1e5):
        rounded = torch.tensor(number, dtype=dtype)
        assert torch.equal(function(x, number), function(x, rounded))
        assert torch.equal(function(number, x), function(rounded, x))


def test_xlogy_passes_no_gradient_on_where_none_came() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    torch.xlogy(x, torch.tensor([-1.0, 0.0])).backward(torch.zeros(2))
    torch.special.xlog1py(x, torch.tensor([-2.0, -1.0])).backward(torch.zeros(2))
    assert x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 2, 2.5, 3])
def test_powers_by_numbers_equal_numpy_and_their_derivative(exponent: float) -> None:
    a = np.linspace(0.3, 4, 20)
    x = torch.from_numpy(a.copy()).requires_grad_()
    y = x**exponent
    np.testing.assert_allclose(y.detach().numpy(), a**exponent, rtol=1e-14)
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(
        gradient.detach().numpy(), exponent * a ** (exponent - 1.0), rtol=1e-13
    )


def test_the_zeroth_and_the_first_power_of_any_number() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0])
    x = torch.from_numpy(a.copy())
    for power in (0, 1, 0.0, 1.0):
        assert np.array_equal((x**power).numpy(), a**power, equal_nan=True)
    assert (x**1).signbit().tolist() == np.signbit(a).tolist()
    assert x.clone().pow_(0).tolist() == [1.0] * 6
    assert torch.pow(x, 0.0, out=torch.empty(0, dtype=torch.float64)).tolist() == [1.0] * 6
    assert (torch.tensor([False, True]) ** 0).tolist() == [1, 1]
    assert (torch.tensor([0, 2]) ** 1.0).dtype == torch.float32
    assert (torch.tensor([2 - 1j]) ** 0).tolist() == [1]


def test_ties_share_the_gradient() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    gradients = torch.autograd.grad(torch.maximum(x, y).sum(), (x, y))
    assert [g.tolist() for g in gradients] == [[0.5, 0, 1], [0.5, 1, 0]]
    gradients = torch.autograd.grad(torch.minimum(x, y).sum(), (x, y))
    assert [g.tolist() for g in gradients] == [[0.5, 1, 0], [0.5, 0, 1]]
    x = torch.tensor([1.0, 2.0, 3.0, nan, 1.0], requires_grad=True)
    y = torch.tensor([1.0, 3.0, 2.0, 1.0, nan], requires_grad=True)
    gradients = torch.autograd.grad(torch.fmax(x, y).sum(), (x, y))
    assert [g.tolist() for g in gradients] == [[0.5, 0, 1, 0, 1], [0.5, 1, 0, 1, 0]]
    gradients = torch.autograd.grad(torch.fmin(x, y).sum(), (x, y))
    assert [g.tolist() for g in gradients] == [[0.5, 1, 0, 0, 1], [0.5, 0, 1, 1, 0]]


def test_bounds_that_are_numbers_stop_gradients_where_elements_equal_them() -> None:
    x = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], requires_grad=True)
    for bounded, expected in (
        (x.clamp(-1, 1), [0, 0, 1, 0, 0]),
        (F.hardtanh(x), [0, 0, 1, 0, 0]),
        (x.clamp(min=-1), [0, 0, 1, 1, 1]),
        (x.clamp_min(-1), [0, 0, 1, 1, 1]),
        (x.clamp(max=1), [1, 1, 1, 0, 0]),
        (x.clamp_max(1), [1, 1, 1, 0, 0]),
    ):
        (gradient,) = torch.autograd.grad(bounded.sum(), x)
        assert gradient.tolist() == expected


def test_bounds_that_are_tensors_share_gradients_where_elements_equal_them() -> None:
    x = torch.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True)
    low, high = (torch.full((4,), bound, requires_grad=True) for bound in (1.0, 2.0))
    gradients = torch.autograd.grad(x.clamp(low, high).sum(), (x, low, high))
    assert [g.tolist() for g in gradients] == [[0, 0.5, 0.5, 0], [1, 0.5, 0, 0], [0, 0, 0.5, 1]]
    for bounded in (x.clamp(min=low), x.clamp_min(low)):
        gradients = torch.autograd.grad(bounded.sum(), (x, low))
        assert [g.tolist() for g in gradients] == [[0, 0.5, 1, 1], [1, 0.5, 0, 0]]
    for bounded in (x.clamp(max=high), x.clamp_max(high)):
        gradients = torch.autograd.grad(bounded.sum(), (x, high))
        assert [g.tolist() for g in gradients] == [[1, 1, 0.5, 0], [0, 0, 0.5, 1]]
    gradients = torch.autograd.grad(x.clamp(high, low).sum(), (x, low, high))
    assert [g.tolist() for g in gradients] == [[0] * 4, [1] * 4, [0] * 4]


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: torch.add(torch.tensor([1]), 1, alpha=0.5), RuntimeError, "floating point number"),
    (lambda: torch.tensor([True]) - torch.tensor([True]), NotImplementedError, "bool"),
    (lambda: torch.tensor([1]) - torch.tensor([True]), RuntimeError, "with a bool tensor is not"),
    (lambda: torch.where(torch.ones(2), 1, 2), RuntimeError, "expected condition to be a boolean"),
    (lambda: torch.ones(2).masked_fill(torch.ones(2), 0), RuntimeError, "boolean masks"),
    (
        lambda: torch.ones(2).masked_fill(torch.ones(2) > 0, torch.ones(2)),
        RuntimeError,
        "0-dimensional value tensor",
    ),
    (lambda: torch.clamp(torch.ones(2)), RuntimeError, "At least one of 'min' or 'max'"),
    (lambda: torch.div(torch.ones(2), 2, rounding_mode="up"), RuntimeError, "rounding_mode to be"),
    (lambda: F.prelu(torch.ones(2, 3), torch.ones(2)), RuntimeError, "Mismatch of parameter"),
    (lambda: F.glu(torch.ones(3)), RuntimeError, "Halving dimension must be even"),
    (lambda: F.gelu(torch.ones(3), approximate="x"), RuntimeError, "either none or tanh"),
    (lambda: F.softshrink(torch.ones(3), -1.0), RuntimeError, "greater or equal to 0"),
    (lambda: F.hardtanh(torch.ones(3), 2.0, 1.0), ValueError, "cannot be greater than"),
    (lambda: F.binary_cross_entropy(torch.tensor([2.0]), torch.ones(1)), RuntimeError, "0 and 1"),
    (lambda: torch.ones(2, 3) + torch.ones(2), RuntimeError, "must match"),
    (lambda: torch.ones(3).add_(torch.ones(2, 3)), RuntimeError, "doesn't match the broadcast"),
    (lambda: torch.ones(1).expand(3).add_(1), RuntimeError, "single memory location"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_mistakes_are_told(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "div",
        "floor_divide",
        "bitwise_and",
        "maximum",
        "pow",
        "float_power",
        "xlogy",
        "remainder",
    ],
)
def test_the_first_operand_may_be_a_number(name: str) -> None:
    x = torch.tensor([1, 2, 3])
    function = getattr(torch, name)
    result = function(5, x)
    assert torch.equal(result, function(torch.full_like(x, 5), x))
    assert torch.equal(function(5, 3), function(torch.tensor(5), torch.tensor(3)))
    with pytest.raises(TypeError):
        torch.relu(5)


def test_a_number_in_front_promotes_as_one_behind() -> None:
    assert torch.mul(2.5, torch.ones(2, dtype=torch.float16)).dtype == torch.float16
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.pow(3, x).sum() + torch.sub(1, x).sum(), x)
    np.testing.assert_allclose(gradient.numpy(), np.log(3) * 3.0 ** np.array([1, 2]) - 1, 1e-6)


BASES = [-inf, -3.5, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, inf, nan]
EXPONENTS = [-inf, -4.0, -3.0, -1.5, -1.0, -0.0, 0.75, 1.5, 3.0, 4.0, 10.0, 2.0**24 + 2, inf, nan]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_powers_of_all_signs_and_parities(dtype: torch.dtype) -> None:
    bases, exponents = np.array(BASES), np.array(EXPONENTS)
    with np.errstate(all="ignore"):
        expected = np.power.outer(bases, exponents).astype(str(dtype).removeprefix("torch."))
    of_numbers = [torch.tensor(bases).to(dtype) ** e for e in EXPONENTS]
    for actual in (
        torch.pow(torch.tensor(bases).to(dtype)[:, None], torch.tensor(exponents).to(dtype)),
        torch.stack(of_numbers, 1),
    ):
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)
        both = ~np.isnan(expected)
        assert (np.signbit(actual.numpy()) == np.signbit(expected))[both].all()
