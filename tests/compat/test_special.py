"""Special functions equal PyTorch's at special values: zeros, infinities, NaN, poles, signs."""

import itertools

import numpy as np
import pytest
import scipy.special

import rushlight as torch

pytorch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
POINTS = [0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 3.0, -3.0, 7.5, -7.5,
          8.0, 9.0, -9.0, 30.0, -30.0, 110.0, 1e-30, -1e-30, INF, -INF, NAN]  # fmt: skip

UNARY = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "entr", "erf", "erfc",
    "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e", "i1", "i1e", "log1p",
    "log_ndtr", "logit", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "ndtr", "ndtri", "psi", "round", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "sinc", "spherical_bessel_j0",
]  # fmt: skip
BINARY = ["gammainc", "gammaincc", "xlog1py", "xlogy", "zeta"]
POLYNOMIALS = [
    f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"
] + [
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
]  # fmt: skip
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "bfloat16": 2e-2, "float16": 4e-3}
# Where PyTorch has few digits, or NaN in place of a limit, SciPy is right as well.
SCIPY = {
    name: getattr(scipy.special, name)
    for name in (
        "digamma", "erf", "erfc", "erfcx", "erfinv", "gammainc", "gammaincc", "i0", "i0e", "i1",
        "i1e", "log_ndtr", "ndtr", "ndtri", "zeta", "xlog1py",
    )
} | {
    "airy_ai": lambda x: scipy.special.airy(x)[0],
    "bessel_j0": scipy.special.j0,
    "bessel_j1": scipy.special.j1,
    "bessel_y0": scipy.special.y0,
    "bessel_y1": scipy.special.y1,
    "modified_bessel_i0": scipy.special.i0,
    "modified_bessel_i1": scipy.special.i1,
    "modified_bessel_k0": scipy.special.k0,
    "modified_bessel_k1": scipy.special.k1,
    "scaled_modified_bessel_k0": scipy.special.k0e,
    "scaled_modified_bessel_k1": scipy.special.k1e,
}  # fmt: skip


def compare(name, points, dtype, *numbers, tiny=0.0):
    """Holds a function of torch.special to PyTorch's results, dtypes and exceptions."""

    def run(library):
        tensors = [library.tensor(p, dtype=getattr(library, dtype)) for p in points]
        result = getattr(library.special, name)(*tensors, *numbers)
        return str(result.dtype), result.double().numpy(), [t.double().numpy() for t in tensors]

    try:
        kind, theirs, rounded = run(pytorch)
    except (RuntimeError, NotImplementedError):
        pytest.skip(f"PyTorch has no {name} for {dtype}")
    our_kind, ours, _ = run(torch)
    assert our_kind == kind

    def close(expected):
        smallest = max(tiny, 1e-7 if dtype == "float16" else 1e-37)
        with np.errstate(over="ignore"):
            expected = expected.astype(dtype if dtype.startswith("float") else "float32")
        return np.isclose(ours, expected, rtol=TOLERANCE[dtype], atol=smallest, equal_nan=True)

    right = close(theirs)
    if name in SCIPY:
        right |= close(np.asarray(SCIPY[name](*rounded, *numbers)))
    at_infinity = np.isinf(rounded).any(0)
    right |= at_infinity & np.isnan(theirs)  # which has a limit here
    wrong = np.nonzero(~right)[0]
    found = [(*(float(r[i]) for r in rounded), float(ours[i]), float(theirs[i])) for i in wrong]
    assert not found, "inputs, ours, PyTorch's"


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name, dtype) -> None:
    points = np.array(POINTS)
    compare(name, [points], dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name, dtype) -> None:
    first = [x for x in POINTS if name != "zeta" or np.isfinite(x)]
    pairs = np.array(list(itertools.product(first, POINTS))).T
    tiny = 1e-12 if name == "zeta" else 0.0  # below zero, PyTorch loses what cancels
    compare(name, pairs, dtype, tiny=tiny)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name, dtype) -> None:
    points = [x for x in POINTS if abs(x) < 20]
    pairs = np.array(list(itertools.product(points, [-2, -1, 0, 1, 2, 3, 7, 8, 9, 12]))).T
    compare(name, pairs, dtype, tiny=1e-12 if dtype == "float64" else 4e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_polygamma(n, dtype) -> None:
    points = [x for x in POINTS if x > 0 and x != INF] + [NAN]
    results = [
        library.polygamma(n, library.tensor(points, dtype=getattr(library, dtype))).double().numpy()
        for library in (torch, pytorch)
    ]
    np.testing.assert_allclose(*results, rtol=TOLERANCE[dtype], atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_multigammaln(p) -> None:
    compare("multigammaln", [[x for x in POINTS if x > (p - 1) / 2]], "float64", p)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_nextafter(dtype) -> None:
    # Subnormal numbers, powers of two, the largest number, and around zero.
    points = [0.0, -0.0, 1e-40, 1.0, -1.0, 1.0078125, 2.0, 3e38, -3e38, INF, -INF, NAN, 2.0**-126]
    a, b = np.array(list(itertools.product(points, repeat=2))).T

    def run(library):
        x, y = (library.tensor(v, dtype=getattr(library, dtype)) for v in (a, b))
        return library.nextafter(x, y).double().numpy()

    np.testing.assert_array_equal(run(torch), run(pytorch))


def test_nextafter_of_float16_steps_through_all_its_numbers() -> None:
    bits = torch.arange(0, 0x7C00, dtype=torch.int16)
    x = bits.view(torch.float16)
    up = torch.nextafter(x, torch.tensor(INF, dtype=torch.float16))
    assert torch.equal(up.view(torch.int16), bits + 1)
    assert torch.equal(torch.nextafter(up, torch.zeros_like(up)).view(torch.int16), bits)
    down = torch.nextafter(-up, torch.zeros_like(up))
    assert torch.equal(down.abs().view(torch.int16), bits)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_and_ldexp(dtype) -> None:
    points = [0.0, -0.0, 1.0, -3.5, 6e-8, 1e-40, 5e-324, 6e4, 1e300, INF, -INF, NAN]
    x, y = (library.tensor(points, dtype=getattr(library, dtype)) for library in (torch, pytorch))
    (mantissa, exponent), (expected, power) = torch.frexp(x), pytorch.frexp(y)
    np.testing.assert_array_equal(mantissa.numpy(), expected.numpy())
    finite = np.isfinite(y.numpy())
    np.testing.assert_array_equal(exponent.numpy()[finite], power.numpy()[finite])
    back = torch.ldexp(mantissa, exponent.to(x.dtype))
    np.testing.assert_array_equal(back.numpy(), y.numpy())
    wide = torch.tensor([1.0, 5e-324, 1e308, 1.0, 3.0], dtype=torch.float64)
    powers = torch.tensor([-1074, 2000, -2000, 1100, 4])
    with np.errstate(over="ignore"):
        expected = np.ldexp(wide.numpy(), powers.numpy())
    np.testing.assert_array_equal(torch.ldexp(wide, powers.double()).numpy(), expected)
